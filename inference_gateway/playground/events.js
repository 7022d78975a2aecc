// Reading a completion from the gateway.

// The server refused, and says why: `message` names the field and the remedy.
export class Refused extends Error {
  constructor(status, { message, code }, retryAfter) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

// The JSON of a response, or `Refused`.
export async function answer(response) {
  if (response.ok) return response.json();
  throw await refusal(response);
}

async function refusal(response) {
  const body = await response.json().catch(() => null);
  const error = body?.error ?? { message: `the server answered ${response.status} ${response.statusText}`, code: "" };
  return new Refused(response.status, error, response.headers.get("Retry-After"));
}

// The chunks of a streamed completion. A line may come in several reads, and comments are no events.
export async function* chunks(response) {
  if (!response.ok) throw await refusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let read; !(read = await reader.read()).done;) {
    const lines = (rest + read.value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "data: [DONE]") return;
      if (!line.startsWith("data: ")) continue;
      const chunk = JSON.parse(line.slice(6));
      if (chunk.error) throw new Refused(response.status, chunk.error, null);
      yield chunk;
    }
  }
  throw new Error("the stream broke off before its end");
}
