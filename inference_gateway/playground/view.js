// Drawing a completion: its text with each call as a chip at the place where it stands, and why the text ended.

export const $ = (id) => document.getElementById(id);

export function element(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

export const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

// Errors of calls that were never sent to their tool.
const refused = (call) => /^(unfinished_call|input_too_long|no_result_asked|repeated_call):/.test(call.error ?? "");

function chip(call, state) {
  const made = element("span", "", `chip ${state}`);
  made.append(element("b", call.tool), ` ${call.input}`);
  if (state === "calling") made.append(" …");
  else if (refused(call)) made.append(" → not made");
  else made.append(state === "done" ? ` → ${call.output} ` : " → no answer ", element("small", duration(call.duration_ms)));
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
export function drawText(target, prompt, text, calls, pending) {
  const characters = Array.from(text);
  const parts = [element("span", prompt, "given")];
  let at = 0;
  for (const call of calls) {
    parts.push(characters.slice(at, call.offset).join(""), " ", chip(call, call.error === null ? "done" : "failed"));
    at = Math.max(at, call.offset + callLength(characters, call));
  }
  parts.push(characters.slice(at).join(""));
  if (pending) parts.push(" ", chip(pending, "calling"));
  target.replaceChildren(...parts);
}

function callEnding(call) {
  if (call.error.startsWith("unfinished_call:")) return `A call of ${call.tool} ran out of tokens and was not made.`;
  const why = call.error.replace(/^\w+: /, "");
  return refused(call) ? `A call of ${call.tool} was refused: ${why}.` : `${call.tool} gave no answer: ${why}.`;
}

// Why a text ended, in words; `ended` is the last chunk's choice, `usage` the counts, then the request.
export function ending(text, ended, usage, { max_tokens: limit, stop_at }) {
  const lost = ended.tool_calls.filter((call) => call.error !== null).map(callEnding);
  if (!lost.length && usage?.rolled_back_tokens) lost.push("A call ran out of tokens and was not made.");
  if (text.trim() === "" && !lost.length) lost.push("The model wrote no text.");
  const said = {
    stop: stop_at ? "Stopped after one sentence." : "The model ended its text here.",
    length: ended.timed_out
      ? "Cut off: the time limit was reached."
      : usage && usage.completion_tokens < limit
        ? "Cut off: the model's memory for one text is full."
        : `Cut off after ${limit} tokens; for more, raise the length in the settings.`,
  };
  return [...lost, said[ended.finish_reason]].join(" ");
}

export function counts(usage, first, all) {
  const made = usage ? [`${usage.completion_tokens} tokens written`, `${usage.tool_tokens} from tools`] : [];
  const times = first === null ? [] : [`first text after ${duration(first)}`];
  return [...made, ...times, `${duration(all)} in all`].join(" · ");
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
