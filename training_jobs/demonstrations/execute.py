"""Execute the calls of texts against the running tool services, and keep the texts that a call's real output
answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from demo_world.texts import CallSlot, Document, Text
from toolformer.tool_client import ErrorCode, ToolClient, ToolResult


@dataclass(frozen=True, slots=True)
class ExecutedCall:
    """A call with what the tool said to it."""

    tool: str
    input: str
    output: str


# The client's own codes say that the service was not reached, "internal" that it broke; others that it has no answer.
_TROUBLE: Final = frozenset({*map(str, ErrorCode), "internal"})

ExecutedSegment = str | ExecutedCall


@dataclass(frozen=True, slots=True)
class ExecutedDocument:
    """A document's segments in reading order, each call with its output; ``number`` is the document's place in the
    corpus."""

    number: int
    segments: tuple[ExecutedSegment, ...]


class ServiceTrouble(Exception):  # noqa: N818 - reads as what happened
    """A tool service could not be asked. Going on would make a corpus that depends on the weather; the message says
    which."""


async def check_services(client: ToolClient, tools: Iterable[str]) -> None:
    """Ask every tool's service whether it is ready.

    Raises:
        ServiceTrouble: naming the services that are not, and the remedy.
    """
    reasons = {name: state.reason for name in tools if not (state := await client.ready(name))}
    if reasons:
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise ServiceTrouble(f"{listed}. Start the tool services first (toolformer up)")


async def execute(documents: Sequence[Document], client: ToolClient) -> tuple[list[ExecutedDocument], Counter[str]]:
    """Documents with their calls executed, and how many texts were kept and dropped, by reason.

    A text is dropped where its tool has no answer or its output lacks the answer that the generator knows; a
    document with no text left is left out.

    Raises:
        ServiceTrouble: if a service could not be asked.
    """
    results = await _results([text for document in documents for text in document.texts], client)
    executed: list[ExecutedDocument] = []
    counts: Counter[str] = Counter()
    for document in documents:
        segments: list[ExecutedSegment] = []
        for text in document.texts:
            result = results.get(id(text))
            outcome = _outcome(text, result)
            counts[outcome] += 1
            if outcome.startswith("kept"):
                segments += ([" "] if segments else []) + _with_output(text, result)
        if segments:
            executed.append(ExecutedDocument(document.number, _joined(segments)))
    return executed, counts


async def _results(texts: Sequence[Text], client: ToolClient) -> dict[int, ToolResult]:
    """Results by the text's identity."""
    found: dict[int, ToolResult] = {}
    for tool in sorted({text.call.tool for text in texts if text.call}):
        asking = [text for text in texts if text.call and text.call.tool == tool]
        inputs = [text.call.input for text in asking if text.call]
        results = await client.call_many(tool, inputs, dates=[text.date for text in asking])
        for text, result in zip(asking, results, strict=True):
            # The client's own codes say that the service was not reached; a service's codes say that it has no
            # answer.
            if result.error is not None and result.error.code in set(ErrorCode):
                raise ServiceTrouble(f"{tool}({result.input}): {result.error.code}: {result.error.message}")
            found[id(text)] = result
    return found


def _outcome(text: Text, result: ToolResult | None) -> str:
    if result is None:
        return "kept: no call"
    if result.output is None:
        return f"dropped: {result.tool} has no answer"
    if not says(result.output, text.answer):
        return f"dropped: {result.tool} says something else"
    return f"kept: {result.tool}"


def says(output: str, answer: str) -> bool:
    """Whether ``answer`` stands in ``output`` as whole words or a whole number."""
    return re.search(rf"(?<![\w.,]){re.escape(answer)}(?![\w]|[.,]\d)", output) is not None


def _with_output(text: Text, result: ToolResult | None) -> list[ExecutedSegment]:
    if result is None or result.output is None:
        return [text.plain]
    called = ExecutedCall(result.tool, result.input, result.output)
    return [called if isinstance(segment, CallSlot) else segment for segment in text.segments]


def _joined(segments: Sequence[ExecutedSegment]) -> tuple[ExecutedSegment, ...]:
    """Neighbouring strings made one: they are encoded together, since no call stands between them."""
    joined: list[ExecutedSegment] = []
    for segment in segments:
        if isinstance(segment, str) and joined and isinstance(joined[-1], str):
            joined[-1] += segment
        elif segment:
            joined.append(segment)
    return tuple(joined)
