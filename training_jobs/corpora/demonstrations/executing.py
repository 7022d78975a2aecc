"""Execute the calls of texts against the running tool services, and keep the texts that a call's real output
answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from demo_world.texts import CallSlot, Document, Text
from toolformer.tool_client import ToolClient, ToolError
from toolformer.tools import ToolRegistry
from training_jobs.execute.asking import ExecuteSettings, Outcome, Question, ask_all
from training_jobs.records import CallSegment, says

Segment = str | CallSegment


@dataclass(frozen=True, slots=True)
class ExecutedDocument:
    """A document's segments in reading order, each call with its output; ``number`` is the document's place in the
    corpus."""

    number: int
    segments: tuple[Segment, ...]


async def execute(
    documents: Sequence[Document], client: ToolClient, registry: ToolRegistry, how: ExecuteSettings
) -> tuple[list[ExecutedDocument], Counter[str]]:
    """Documents with their calls executed, and how many texts were kept and dropped, by reason.

    A text is dropped where its tool has no answer or its output lacks the answer that the generator knows; a
    document with no text left is left out.

    Raises:
        StageError: if a service does not answer, see `ask_all`.
    """
    outcomes = await _outcomes([text for document in documents for text in document.texts], client, registry, how)
    executed: list[ExecutedDocument] = []
    counts: Counter[str] = Counter()
    for document in documents:
        segments: list[Segment] = []
        for text in document.texts:
            said = outcomes.get(id(text))
            became = _became(text, said)
            counts[became] += 1
            if became.startswith("kept"):
                segments += ([" "] if segments else []) + _with_output(text, said)
        if segments:
            executed.append(ExecutedDocument(document.number, _joined(segments)))
    return executed, counts


async def _outcomes(
    texts: Sequence[Text], client: ToolClient, registry: ToolRegistry, how: ExecuteSettings
) -> dict[int, Outcome]:
    """What the tools said, by the text's identity."""
    found: dict[int, Outcome] = {}
    for tool in sorted({text.call.tool for text in texts if text.call}):
        asking = [text for text in texts if text.call and text.call.tool == tool]
        questions = [Question(text.call.input, text.date) for text in asking if text.call]
        said = await ask_all(client, registry.get(tool), questions, how)
        found |= {id(text): one for text, one in zip(asking, said, strict=True)}
    return found


def _became(text: Text, said: Outcome | None) -> str:
    if text.call is None or said is None:
        return "kept: no call"
    if isinstance(said, ToolError):
        return f"dropped: {text.call.tool} has no answer"
    if not says(said, text.answer):
        return f"dropped: {text.call.tool} says something else"
    return f"kept: {text.call.tool}"


def _with_output(text: Text, said: Outcome | None) -> list[Segment]:
    if text.call is None or not isinstance(said, str):
        return [text.plain]
    called = CallSegment(text.call.tool, text.call.input, said)
    return [called if isinstance(segment, CallSlot) else segment for segment in text.segments]


def _joined(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Neighbouring strings made one: they are encoded together, since no call is between them."""
    joined: list[Segment] = []
    for segment in segments:
        if isinstance(segment, str) and joined and isinstance(joined[-1], str):
            joined[-1] += segment
        elif segment:
            joined.append(segment)
    return tuple(joined)
