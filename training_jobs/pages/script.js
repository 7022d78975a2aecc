const at = (id) => document.getElementById(id);
// Texts and results are anybody's: they are put in as text, never as markup.
const make = (tag, text, name) => { const made = document.createElement(tag); made.textContent = text; if (name) made.className = name; return made; };
const row = (cells, tag) => { const made = make("tr", ""); made.append(...cells.map((cell) => make(tag, cell))); return made; };
const describe = (list, facts) => { for (const [name, value] of Object.entries(facts)) list.append(make("dt", name), make("dd", value)); };

// A list that is looked through: `choose` is its form; `matching()` gives what fits it, `shown(one)` the item for one.
function browse(choose, list, more, none, number, unit, matching, shown) {
  const PAGE = 50;
  let most = PAGE;
  function show() {
    const found = matching();
    list.replaceChildren(...found.slice(0, most).map(shown));
    number.textContent = `${found.length} ${unit}`;
    none.hidden = found.length > 0;
    more.hidden = found.length <= most;
  }
  choose.addEventListener("input", () => { most = PAGE; show(); });
  choose.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { most += PAGE; show(); });
  show();
}
