// A link that holds the prompt and its settings, behind the #, which no server sees. Opening it starts nothing.

import { $ } from "./view.js";

const FIELDS = ["prompt", "max_tokens", "max_calls", "api_top_k", "temperature", "seed", "date"];
const SWITCHES = ["show_calls", "one_sentence", "compare"];

// The tools to call, as the link names them; null where it leaves them as they are.
export function restore() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const id of FIELDS) $(id).value = given.get(id) ?? $(id).defaultValue;
  for (const id of SWITCHES) $(id).checked = given.has(id) ? given.get(id) === "1" : $(id).defaultChecked;
  $("settings").open = [...given.keys()].some((id) => !["prompt", "tools", "compare"].includes(id));
  return given.has("tools") ? given.get("tools").split(",") : null;
}

export function link() {
  const held = new URLSearchParams();
  for (const id of FIELDS) if (id === "prompt" || $(id).value !== $(id).defaultValue) held.set(id, $(id).value);
  for (const id of SWITCHES) if ($(id).checked !== $(id).defaultChecked) held.set(id, Number($(id).checked));
  const boxes = [...$("tools").querySelectorAll("input")];
  if (boxes.some((box) => !box.checked)) {
    held.set("tools", boxes.filter((box) => box.checked).map((box) => box.value).join(","));
  }
  return new URL(`#${held}`, location.href).href;
}
