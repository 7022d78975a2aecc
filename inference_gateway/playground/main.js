// The page: what is asked for, and the run that answers it.

import { Refused, answer, chunks } from "./events.js";
import { $, drawCalls, drawProblem, drawText, duration, element } from "./view.js";

// One for each tool, shown where the gateway offers it.
const EXAMPLES = {
  Calculator: "Each of the 24 boxes holds 17 books, so together they hold",
  Calendar: "Today is",
  WikiSearch: "The population of Ljubljana is",
  QA: "Q: In which country is Ljubljana? A:",
  MT: 'The sign says "El vuelo dura 5 horas." In English:',
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
      ? drawProblem("The gateway cannot be reached.", "Is it still running? What has been written so far is kept.")
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

async function listTools() {
  const [{ data: models }, { data: tools }] = await Promise.all(
    ["v1/models", "v1/tools"].map(async (path) => answer(await fetch(path, { headers: headers() }))),
  );
  $("model").textContent = `${models[0].id}, ${models[0].max_model_len.toLocaleString("en")} tokens`;
  const unchecked = new Set([...$("tools").querySelectorAll("input:not(:checked)")].map((box) => box.value));
  $("tools").replaceChildren(
    $("tools").querySelector("legend"),
    ...tools.map((tool) => {
      const label = element("label", "", tool.ready ? "" : "down");
      label.title = tool.ready ? tool.description : tool.reason;
      const box = element("input");
      Object.assign(box, { type: "checkbox", checked: !unchecked.has(tool.name), value: tool.name });
      label.append(box, ` ${tool.name}`);
      return label;
    }),
  );
  $("examples").replaceChildren(
    ...tools.filter(({ name }) => name in EXAMPLES).map(({ name }) => {
      const button = Object.assign(element("button", name, "quiet"), { type: "button", title: EXAMPLES[name] });
      button.addEventListener("click", () => {
        $("prompt").value = EXAMPLES[name];
        $("form").requestSubmit();
      });
      return button;
    }),
  );
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

async function complete() {
  running?.abort();
  if (!listed) await showTools(); // the gateway was not up yet, or asked for a key
  const run = new AbortController();
  running = run;
  const body = request();
  const calls = [];
  let text = "", pending = null, usage = null, first = null, drawing = false;
  const began = performance.now();
  const draw = () => {
    drawing = false;
    if (running === run || running === null) drawText(body.prompt, text, calls, pending);
  };
  // Tokens come faster than the screen shows them.
  const drawSoon = () => drawing || ((drawing = true), requestAnimationFrame(draw));

  $("result").hidden = false;
  $("text").setAttribute("aria-busy", "true");
  $("run").textContent = "Stop";
  $("run").classList.add("stop");
  $("status").textContent = "";
  $("curl").textContent = curl(body);
  drawProblem();
  drawCalls(calls);
  draw();
  try {
    const stream = { stream: true, stream_tool_events: true, stream_options: { include_usage: true } };
    const response = await fetch("v1/completions", {
      method: "POST", headers: headers(), signal: run.signal, body: JSON.stringify({ ...body, ...stream }),
    });
    for await (const chunk of chunks(response)) {
      for (const { text: piece, tool_event: told } of chunk.choices) {
        text += piece;
        if (piece) first ??= performance.now() - began;
        if (!told) continue;
        pending = told.type === "call_started" ? told : null;
        if (told.type === "call_finished") drawCalls((calls.push(told), calls));
      }
      usage = chunk.usage ?? usage;
      drawSoon();
    }
    const counts = usage ? [`${usage.completion_tokens} tokens made`, `${usage.tool_tokens} from tools`] : [];
    const times = [`first text after ${duration(first ?? 0)}`, `${duration(performance.now() - began)} in all`];
    $("status").textContent = [...counts, ...times].join(" · ");
  } catch (error) {
    if (running !== run) return; // a newer run has the page
    if (error.name === "AbortError") $("status").textContent = "Stopped; the gateway has freed what it held.";
    else explain(error);
  } finally {
    if (running === run) {
      running = null;
      pending = null;
      draw();
      $("text").setAttribute("aria-busy", "false");
      $("run").textContent = "Complete";
      $("run").classList.remove("stop");
    }
  }
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
$("api_key").addEventListener("change", showTools);
$("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText($("curl").textContent);
  $("copy").textContent = "Copied";
  setTimeout(() => ($("copy").textContent = "Copy"), 1500);
});
showTools();
