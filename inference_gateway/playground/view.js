// Drawing a completion: its text with each call as a chip at the place where it stands.

export const $ = (id) => document.getElementById(id);

export function element(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

export const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function chip(call, state) {
  const made = element("span", "", `chip ${state}`);
  made.append(element("b", call.tool), ` ${call.input}`);
  if (state === "calling") {
    made.append(" …");
    made.title = "the sequence waits for the tool's answer";
  } else {
    made.append(state === "done" ? ` → ${call.output} ` : " → no answer ", element("small", duration(call.duration_ms)));
    if (call.error) made.title = call.error;
  }
  return made;
}

// How many of `characters` from `call.offset` on are the call's own text; its result closes it.
function callLength(characters, call) {
  if (call.output === null) return 0;
  const rest = characters.slice(call.offset).join("");
  if (!/^\s*\[/.test(rest)) return 0; // calls are not shown
  const ending = `-> ${call.output}]`;
  const found = rest.indexOf(ending);
  return found < 0 ? 0 : Array.from(rest.slice(0, found + ending.length)).length;
}

// `calls` are finished, `pending` is the one that is made now; offsets count characters, not UTF-16 units.
export function drawText(prompt, text, calls, pending) {
  const characters = Array.from(text);
  const parts = [element("span", prompt, "given")];
  let at = 0;
  for (const call of calls) {
    parts.push(characters.slice(at, call.offset).join(""), " ", chip(call, call.error === null ? "done" : "failed"));
    at = Math.max(at, call.offset + callLength(characters, call));
  }
  parts.push(characters.slice(at).join(""));
  if (pending) parts.push(" ", chip(pending, "calling"));
  $("text").replaceChildren(...parts);
  $("raw-text").textContent = prompt + text;
}

export function drawCalls(calls) {
  $("calls").hidden = calls.length === 0;
  if (calls.some((call) => call.error !== null)) $("calls").open = true; // it says what went wrong
  $("call-rows").replaceChildren(
    ...calls.map((call) => {
      const row = element("tr", "", call.error === null ? "" : "failed");
      const cells = [call.tool, call.input, call.error ?? call.output, duration(call.duration_ms)];
      row.append(...cells.map((cell) => element("td", cell)));
      return row;
    }),
  );
}

// Says what went wrong and what may help; without arguments the box goes away.
export function drawProblem(title = "", detail = "") {
  $("problem").hidden = title === "";
  $("problem").replaceChildren(element("strong", title), detail);
}
