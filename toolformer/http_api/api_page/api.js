// The API page: draws the server's openapi.json, and sends requests to try it.

const LONGEST = 200_000; // characters of an answer that are shown
const DEEPEST = 3; // fields within fields that are listed

const $ = (id) => document.getElementById(id);

function element(name, content = "", className = "") {
  const made = document.createElement(name);
  made.append(...[content].flat());
  if (className) made.className = className;
  return made;
}

// Text with `code` in it.
const prose = (text = "") =>
  text.split(/(`[^`]+`)/).filter(Boolean).map((part) => (part.startsWith("`") ? element("code", part.slice(1, -1)) : part));
const paragraphs = (text = "") => text.split(/\n{2,}/).filter(Boolean).map((one) => element("p", prose(one)));

let described;

// A schema without its reference, and without the null that an optional field may be.
function resolved(schema) {
  if (schema.$ref) return resolved(schema.$ref.split("/").slice(1).reduce((found, key) => found[key], described));
  const real = (schema.anyOf ?? []).filter((one) => one.type !== "null");
  return real.length === 1 ? { ...schema, ...resolved(real[0]), description: schema.description, anyOf: undefined } : schema;
}

function kind(schema) {
  const one = resolved(schema);
  if (one.anyOf) return [...new Set(one.anyOf.filter((option) => option.type !== "null").map(kind))].join(" or ");
  if (one.const !== undefined) return JSON.stringify(one.const);
  if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (one.type === "array") return `list of ${kind(one.items ?? {})}`;
  return one.format ?? one.type ?? "anything";
}

function limits(schema) {
  const one = resolved(schema);
  const said = [];
  const low = one.minimum ?? one.exclusiveMinimum, high = one.maximum ?? one.exclusiveMaximum;
  if (low !== undefined) said.push(`${one.minimum === undefined ? "more than" : "at least"} ${low}`);
  if (high !== undefined) said.push(`${one.maximum === undefined ? "less than" : "at most"} ${high}`);
  for (const [least, most, what] of [["minLength", "maxLength", "characters"], ["minItems", "maxItems", "elements"]]) {
    if (one[least] > 1) said.push(`at least ${one[least]} ${what}`);
    if (one[most] !== undefined) said.push(`at most ${one[most].toLocaleString("en")} ${what}`);
  }
  if (one.default !== undefined && one.default !== null && one.const === undefined) said.push(`default ${JSON.stringify(one.default)}`);
  return said.join(", ");
}

// The object that a field holds, or each element of its list: its own fields are listed below it.
function inner(schema) {
  const one = resolved(schema);
  const held = one.type === "array" ? resolved(one.items ?? {}) : resolved(one.additionalProperties || one);
  return held.properties ? held : null;
}

function fieldRows(schema, depth = 0) {
  const one = resolved(schema);
  return Object.entries(one.properties ?? {}).flatMap(([name, field]) => {
    const row = element("tr");
    const first = element("td", element("code", name), depth ? "nested" : "");
    if (one.required?.includes(name)) first.append(element("small", "required"));
    const meaning = element("td", prose(field.description ?? resolved(field).description));
    if (limits(field)) meaning.append(element("small", limits(field)));
    row.append(first, element("td", kind(field)), meaning);
    const below = depth < DEEPEST && inner(field);
    return below ? [row, ...fieldRows(below, depth + 1)] : [row];
  });
}

function fieldTable(rows) {
  const head = element("thead", element("tr", ["Field", "Kind", "Meaning"].map((title) => element("th", title))));
  return element("div", element("table", [head, element("tbody", rows)], "fields"), "scroll");
}

// What a schema's fields are, or what the whole is where it has none.
function meaning(schema) {
  const listed = inner(schema);
  return listed ? fieldTable(fieldRows(listed)) : element("p", element("small", kind(schema)));
}

function jsonOf(content) {
  return content?.["application/json"];
}

// Bodies to start from, by name.
function examples(media) {
  if (media.examples) return Object.entries(media.examples).map(([name, { value }]) => [name, value]);
  if (media.example) return [["example", media.example]];
  const one = resolved(media.schema);
  return [["example", Object.fromEntries((one.required ?? []).map((name) => [name, one.properties[name].default ?? ""]))]];
}

function answers(operation) {
  const box = element("div", element("h3", "Answers"), "answers");
  for (const [status, response] of Object.entries(operation.responses)) {
    const shown = element("details", element("summary", [element("code", status), ` ${response.description}`]));
    for (const [type, { schema, example }] of Object.entries(response.content ?? {})) {
      shown.append(element("p", element("small", type)));
      if (schema) shown.append(meaning(schema));
      if (example !== undefined) shown.append(element("pre", JSON.stringify(example, null, 2)));
    }
    box.append(shown);
  }
  return box;
}

function field(label, input) {
  return element("label", [label, input]);
}

function tryIt(method, path, operation, parameters) {
  const form = element("form", element("h3", "Try it"));
  const inputs = parameters.map((parameter) => {
    const input = element("input");
    input.required = parameter.required ?? false;
    input.value = parameter.example ?? parameter.schema?.examples?.[0] ?? "";
    form.append(field(parameter.name, input));
    return [parameter, input];
  });
  const media = jsonOf(operation.requestBody?.content);
  const body = element("textarea");
  if (media) {
    body.rows = 8;
    body.spellcheck = false;
    const show = (value) => (body.value = JSON.stringify(value, null, 2));
    const found = examples(media);
    show(found[0][1]);
    form.append(field("Body", body));
    if (found.length > 1) {
      const choices = found.map(([name, value]) => {
        const button = element("button", name, "quiet");
        button.type = "button";
        button.addEventListener("click", () => show(value));
        return button;
      });
      form.append(element("div", [element("small", "Examples"), ...choices], "row"));
    }
  }
  const send = element("button", "Send");
  const status = element("span");
  status.setAttribute("role", "status");
  const received = element("pre", "", "received");
  received.hidden = true;
  received.tabIndex = 0;
  form.append(element("div", [send, status], "row"), received);

  let running = null;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) return running.abort();
    running = new AbortController();
    send.textContent = "Stop";
    received.hidden = true;
    received.textContent = "";
    const began = performance.now();
    try {
      const response = await request(method, path, inputs, media && body.value, running.signal);
      status.textContent = `${response.status} ${response.statusText}`;
      received.hidden = false;
      await show(response, received);
      status.textContent += ` · ${Math.round(performance.now() - began)} ms`;
    } catch (error) {
      status.textContent = error.name === "AbortError" ? "Stopped." : `No answer: ${error.message}`;
    } finally {
      running = null;
      send.textContent = "Send";
    }
  });
  return form;
}

function request(method, path, inputs, body, signal) {
  const values = (place) => inputs.filter(([parameter, input]) => parameter.in === place && input.value !== "");
  for (const [{ name }, input] of values("path")) path = path.replace(`{${name}}`, encodeURIComponent(input.value));
  const url = new URL(`.${path}`, location.href);
  for (const [{ name }, input] of values("query")) url.searchParams.append(name, input.value);
  const headers = Object.fromEntries(values("header").map(([{ name }, input]) => [name, input.value]));
  if (body) headers["Content-Type"] = "application/json";
  if ($("api_key").value) headers.Authorization = `Bearer ${$("api_key").value}`;
  return fetch(url, { method: method.toUpperCase(), headers, signal, ...(body && { body }) });
}

// JSON in lines, a stream as it comes.
async function show(response, target) {
  if (response.headers.get("Content-Type")?.startsWith("application/json")) {
    target.textContent = JSON.stringify(await response.json(), null, 2).slice(0, LONGEST);
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let read; !(read = await reader.read()).done;) {
    target.append(read.value.slice(0, Math.max(0, LONGEST - target.textContent.length)));
  }
}

function draw(method, path, operation) {
  const name = `${method}-${path}`;
  const summary = element("summary", [element("b", method), element("code", path), element("span", operation.summary ?? "")]);
  const inside = element("div", paragraphs(operation.description));
  const parameters = operation.parameters ?? [];
  if (parameters.length) {
    const asFields = {
      properties: Object.fromEntries(
        parameters.map(({ name, schema, description }) => [name, { ...schema, description: description ?? schema.description }])),
      required: parameters.filter(({ required }) => required).map(({ name }) => name),
    };
    inside.append(element("h3", "Parameters"), fieldTable(fieldRows(asFields)));
  }
  const media = jsonOf(operation.requestBody?.content);
  inside.append(tryIt(method, path, operation, parameters));
  if (media) inside.append(element("h3", "Body"), meaning(media.schema));
  inside.append(answers(operation));
  const made = element("details", [summary, inside], `operation ${method}`);
  made.id = name;
  made.open = decodeURIComponent(location.hash.slice(1)) === name;
  made.addEventListener("toggle", () => made.open && history.replaceState(null, "", `#${name}`));
  return made;
}

async function main() {
  described = await (await fetch("openapi.json")).json();
  const { info, paths, components } = described;
  document.title = `${info.title}: API`;
  $("title").textContent = info.title;
  $("version").textContent = `version ${info.version}`;
  $("about").append(...paragraphs(info.description));
  $("key").hidden = !components?.securitySchemes;
  const groups = new Map();
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const group = operation.tags?.[0] ?? "other";
      groups.set(group, [...(groups.get(group) ?? []), draw(method, path, operation)]);
    }
  }
  // What asks the server how it is comes last.
  for (const [group, drawn] of [...groups].sort(([a], [b]) => (a === "operation") - (b === "operation"))) {
    $("operations").append(element("h2", group), ...drawn);
  }
  document.querySelector(".operation[open]")?.scrollIntoView();
}

main().catch((error) => {
  $("problem").hidden = false;
  $("problem").textContent = `The description of this API cannot be read: ${error.message}`;
});
