// The page: what is asked for, and the run that answers it.

import { Refused, answer, chunks } from "./events.js";
import { link, restore } from "./link.js";
import { $, counts, drawCalls, drawProblem, drawText, element, ending } from "./view.js";

// One for each tool, shown where the gateway offers it.
const EXAMPLES = {
  Calculator: "There are 24 boxes with 17 books each. How many books are there altogether? The answer is",
  Calendar: "Today is",
  WikiSearch: "Albrecht Dürer died on",
  QA: "The capital of Kenya is",
  MT: 'How do you say "Ich verstehe dich nicht." in English?',
};

const number = (id) => ($(id).value === "" ? null : Number($(id).value));

function request() {
  const boxes = [...$("tools").querySelectorAll("input")];
  const body = {
    prompt: $("prompt").value,
    max_tokens: number("max_tokens"),
    max_calls: number("max_calls"),
    api_top_k: number("api_top_k"),
    temperature: number("temperature"),
    show_calls: $("show_calls").checked,
  };
  if (boxes.some((box) => !box.checked)) body.tools = boxes.filter((box) => box.checked).map((box) => box.value);
  if ($("one_sentence").checked) body.stop_at = "sentence";
  if (number("seed") !== null) body.seed = number("seed");
  if ($("date").value) body.tool_context = { date: $("date").value };
  return body;
}

function headers() {
  const key = $("api_key").value;
  return { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
}

// The key stands in the command as a variable: what is copied is often pasted where others read it.
function curl(body) {
  const quoted = JSON.stringify(body, null, 1).replaceAll("'", "'\\''");
  const key = $("api_key").value ? ' -H "Authorization: Bearer $KEY"' : "";
  return `curl -s ${new URL("v1/completions", location.href)} -H 'Content-Type: application/json'${key} -d '${quoted}'`;
}

function explain(error) {
  if (!(error instanceof Refused)) {
    const unreachable = error instanceof TypeError;
    return unreachable
      ? drawProblem("The gateway cannot be reached.", "Is it still running? The text so far stays.")
      : drawProblem("The completion broke off.", error.message);
  }
  if (error.status === 401) {
    $("key").hidden = false;
    $("api_key").focus();
    return drawProblem("This gateway asks for an API key.", "Put yours in the field and complete again.");
  }
  if (error.retryAfter) return drawProblem("The gateway is busy.", `${error.message}. Try again in ${error.retryAfter} s.`);
  return drawProblem("The gateway did not accept that.", error.message);
}

let wanted = restore(); // tools that a link names

function toolBox({ name, ready, description }) {
  const label = element("label", "", ready ? "" : "down");
  label.title = description;
  const box = element("input");
  const before = $("tools").querySelector(`input[value="${name}"]`);
  Object.assign(box, { type: "checkbox", checked: wanted?.includes(name) ?? before?.checked ?? true, value: name });
  label.append(box, ` ${name}`);
  return label;
}

function exampleItem(text) {
  const button = Object.assign(element("button", text, "quiet"), { type: "button" });
  button.addEventListener("click", () => {
    $("prompt").value = text;
    $("form").requestSubmit();
  });
  const item = element("li");
  item.append(button);
  return item;
}

async function listTools() {
  const [{ data: models }, { data: tools }] = await Promise.all(
    ["v1/models", "v1/tools"].map(async (path) => answer(await fetch(path, { headers: headers() }))),
  );
  const [model] = models;
  $("model").textContent = `${model.id}, ${model.max_model_len.toLocaleString("en")} tokens`;
  $("about").hidden = !model.description;
  $("about").textContent = model.description ?? "";
  $("tools").replaceChildren($("tools").querySelector("legend"), ...tools.map(toolBox));
  wanted = null;
  const down = tools.filter(({ ready }) => !ready).map(({ name, reason }) => `${name} is down: ${reason}.`);
  $("down").hidden = !down.length;
  $("down").textContent = down.join(" ");
  const shown = tools.filter(({ name }) => name in EXAMPLES).map(({ name }) => exampleItem(EXAMPLES[name]));
  $("examples").hidden = !shown.length;
  $("examples").querySelector("ul").replaceChildren(...shown);
}

let listed = false;

async function showTools() {
  try {
    await listTools();
    listed = true;
    if (!running) drawProblem();
  } catch (error) {
    $("result").hidden = false;
    explain(error);
    if (error.retryAfter) setTimeout(showTools, 1000 * error.retryAfter); // the model is still being loaded
  }
}

let running = null;

// One completion, drawn into `column` as it comes. `saw` is shown its text and its calls.
async function completeInto(column, body, run, saw) {
  const part = (name) => column.querySelector(`.${name}`);
  const calls = [];
  let text = "", pending = null, usage = null, ended = null, first = null, drawing = false;
  const began = performance.now();
  const draw = () => {
    drawing = false;
    if (running !== run && running !== null) return; // a newer run has the page
    drawText(part("text"), body.prompt, text, calls, pending);
    saw(text, calls);
  };
  // Tokens come faster than the screen shows them.
  const drawSoon = () => drawing || ((drawing = true), requestAnimationFrame(draw));

  part("text").setAttribute("aria-busy", "true");
  part("ending").textContent = part("counts").textContent = "";
  draw();
  try {
    const stream = { stream: true, stream_tool_events: true, stream_options: { include_usage: true } };
    const response = await fetch("v1/completions", {
      method: "POST", headers: headers(), signal: run.signal, body: JSON.stringify({ ...body, ...stream }),
    });
    for await (const chunk of chunks(response)) {
      for (const choice of chunk.choices) {
        const { text: piece, tool_event: event } = choice;
        text += piece;
        if (piece) first ??= performance.now() - began;
        if (choice.finish_reason) ended = choice;
        if (!event) continue;
        pending = event.type === "call_started" ? event : null;
        if (event.type === "call_finished") calls.push(event);
      }
      usage = chunk.usage ?? usage;
      drawSoon();
    }
    calls.splice(0, Infinity, ...(ended?.tool_calls ?? calls));
    if (ended) part("ending").textContent = ending(text, ended, usage, body);
    part("counts").textContent = counts(usage, first, performance.now() - began);
  } catch (error) {
    if (running !== run) return;
    if (error.name === "AbortError") part("ending").textContent = "Stopped.";
    else explain(error);
  } finally {
    if (running === run) {
      pending = null;
      draw();
      part("text").setAttribute("aria-busy", "false");
    }
  }
}

async function complete() {
  running?.abort();
  if (!listed) await showTools(); // the gateway was not up yet, or asked for a key
  const run = new AbortController();
  running = run;
  const body = request();
  const both = $("compare").checked;
  history.replaceState(null, "", link());

  $("result").hidden = false;
  $("without").hidden = $("with").querySelector("h2").hidden = !both;
  $("columns").classList.toggle("two", both);
  $("run").textContent = "Stop";
  $("run").classList.add("stop");
  $("curl").textContent = curl(body);
  drawProblem();
  const saw = (text, calls) => {
    $("raw-text").textContent = body.prompt + text;
    drawCalls(calls);
  };
  const runs = [completeInto($("with"), body, run, saw)];
  if (both) runs.push(completeInto($("without"), { ...body, tools: [] }, run, () => {}));
  $("columns").scrollIntoView({ block: "nearest" });
  await Promise.all(runs);
  if (running !== run) return;
  running = null;
  $("run").textContent = "Complete";
  $("run").classList.remove("stop");
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  complete();
});
$("run").addEventListener("click", (event) => {
  if (!running) return; // the form is submitted
  event.preventDefault();
  running.abort();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("form").requestSubmit();
  if (event.key === "Escape") running?.abort();
});
addEventListener("hashchange", () => {
  wanted = restore() ?? [...$("tools").querySelectorAll("input")].map((box) => box.value);
  showTools();
});
$("api_key").addEventListener("change", showTools);

function copies(id, text) {
  const label = $(id).textContent;
  $(id).addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    $(id).textContent = "Copied";
    setTimeout(() => ($(id).textContent = label), 1500);
  });
}
copies("copy", () => $("curl").textContent);
copies("link", link);
showTools();
