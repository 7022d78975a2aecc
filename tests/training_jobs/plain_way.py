"""Annotating and filtering the plain, obvious way: everything computed again for every token, one by one.

Follows section 2 of the paper line by line. What `training_jobs.annotate` and `training_jobs.filter` give must equal
this."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from language_model.tokenizer import ByteLevelTokenizer
from tests.support.calls import parse_call
from toolformer.api_call import ApiCall, MalformedCall, call_ids
from toolformer.calls_in_text import encode_with_calls
from toolformer.tools import Tool, ToolRegistry

Model = Callable[[Sequence[int]], Tensor]
"""Logits ``[vocabulary]`` of what follows some ids."""


@dataclass(frozen=True)
class Found:
    position: int
    offset: int
    probability: float
    inputs: tuple[str, ...]


def annotate(
    model: Model, tokenizer: ByteLevelTokenizer, tool: Tool, id_: str, text: str, *, seed: int, ends: Sequence[int] = ()
) -> tuple[list[Found], Counter[str]]:
    """Positions above ``tau_s``, at most k, with the inputs sampled there, and what was dropped."""
    head = encode_with_calls(tool.prompt_head, tokenizer, ToolRegistry([tool]))
    prompt = head + tokenizer.encode(f" {text}") + tokenizer.encode("\nOutput:")
    shown, own = tokenizer.encode(f" {text}"), tokenizer.encode(text)
    [opening] = tokenizer.marks.opening
    by_position: dict[int, tuple[float, int, int, int]] = {}
    for place in range(len(shown)):
        before = decode(shown[:place], tokenizer)
        if before is None:
            continue
        positions = [n for n in range(len(own)) if decode(own[:n], tokenizer) == before[1:]]
        if not positions:
            continue
        probability = float(torch.softmax(model(prompt + shown[:place]).double(), -1)[opening])
        # If the space is a token of its own, nothing of the text stands before or behind it: the place before counts.
        by_position.setdefault(positions[0], (probability, positions[0], len(before[1:]), place))
    above = [one for one in by_position.values() if one[0] > tool.sampling_threshold]
    likely = sorted(above, key=lambda one: -one[0])
    found, dropped = [], Counter[str]()
    for probability, position, offset, place in sorted(likely[: tool.max_positions], key=lambda one: one[1]):
        inputs: list[str] = []
        for number in range(tool.max_samples):
            stream = random.Random(repr((seed, id_, tool.name, position, number)))
            input_, reason = sample(model, tokenizer, tool, [*prompt, *shown[:place], opening], stream, ends)
            if input_ is None or input_ in inputs:
                dropped[reason or "repeated"] += 1
            else:
                inputs.append(input_)
        found.append(Found(position, offset, probability, tuple(inputs)))
    return found, dropped


def decode(ids: Sequence[int], tokenizer: ByteLevelTokenizer) -> str | None:
    try:
        return b"".join(map(tokenizer.token_bytes, ids)).decode()
    except UnicodeDecodeError:
        return None


def sample(
    model: Model,
    tokenizer: ByteLevelTokenizer,
    tool: Tool,
    prefix: list[int],
    stream: random.Random,
    ends: Sequence[int],
) -> tuple[str | None, str]:
    """One sampled call's input, or why there is none. Reads no further than it takes to know."""
    written = b""
    limit = len(tokenizer.encode(f"{tool.name}(")) + tool.max_input_tokens + 6
    for _ in range(limit):
        token = drawn(model(prefix), stream.random())
        if token in ends:
            break
        written += tokenizer.token_bytes(token)
        prefix = [*prefix, token]
        text = written.decode(errors="replace")
        if "\n" in text or not any(a.startswith(b) for a, b in [(text, f"{tool.name}("), (f"{tool.name}(", text)]):
            return None, "malformed"
        for end in range(1, len(text) + 1):
            try:
                call, _ = parse_call("[" + text[:end].replace("->", "]"), (tool.name,) if tool.quoted else ())
            except MalformedCall:
                continue
            if "\ufffd" in text:
                return None, "malformed"
            if not call.input.strip() and tool.takes_input:
                return None, "empty input"
            if call.input.strip() and not tool.takes_input:
                return None, "malformed"
            too_long = len(tokenizer.encode(call.input.strip())) > tool.max_input_tokens
            return (None, "input too long") if too_long else (call.input.strip(), "")
    return None, "malformed" if decode_error_inside(written) else "unfinished"


def decode_error_inside(written: bytes) -> bool:
    """Whether no further bytes could make this text."""
    return all(decode_bytes(written + b"\x80" * n) is None for n in range(4))


def decode_bytes(written: bytes) -> str | None:
    try:
        return written.decode()
    except UnicodeDecodeError:
        return None


def drawn(logits: Tensor, number: float) -> int:
    """The first token up to which the probabilities sum to more than ``number``."""
    cumulative = torch.softmax(logits.double(), -1).cumsum(-1)
    return int((cumulative <= number * cumulative[-1]).sum())


def losses(
    model: Model,
    tokenizer: ByteLevelTokenizer,
    tool: Tool,
    text: str,
    position: int,
    input_: str,
    output: str,
    *,
    begin: Sequence[int],
    empty: str = " [{} -> ]",
    inside: bool = False,
) -> tuple[float, float, float]:
    """``L_i`` of no call, of the call with an empty result (written as in ``empty``), of the call with its result; the
    call is before the text or, if ``inside``, at its place."""
    call = ApiCall(tool.name, input_)
    with_result = call_ids(call, tokenizer, quoted=tool.quoted, result=output, max_result_tokens=tool.max_result_tokens)
    # A call is encoded a segment at a time.
    before, after = empty.split("{}")
    parts = [before, call.head(quoted=tool.quoted), *re.findall(r" ->| |]", after)]
    marks = tokenizer.marks
    written = {" [": marks.opening, " ->": marks.arrow, " ": tokenizer.encode(marks.gap), "]": marks.closing}
    without = [id_ for part in parts for id_ in written.get(part, tokenizer.encode(part))]
    ids = tokenizer.encode(text)
    weights = [5 / 15, 4 / 15, 3 / 15, 2 / 15, 1 / 15]

    at = position if inside else 0

    def loss(call: Sequence[int]) -> float:
        total = 0.0
        for j in range(position, min(position + 5, len(ids))):
            context = [*begin, *ids[:at], *call, *ids[at:j]]
            if begin or j:
                total -= weights[j - position] * float(torch.log_softmax(model(context).double(), -1)[ids[j]])
        return total

    return loss([]), loss(without), loss(with_result)
