"""Execute the calls of texts against the running tool services, and keep the texts that a call's real output
answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from demo_world.texts import CallSlot, Document, Text
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry
from training_jobs.execute.asking import ExecuteSettings, Question, ask_each, why_dropped
from training_jobs.merge.putting import Segment, joined
from training_jobs.records import CallSegment


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
        StageError: if a service does not answer, see `ask_each`.
    """
    asked = [text for document in documents for text in document.texts if text.call]
    questions = [(text.call.tool, Question(text.call.input, text.date)) for text in asked if text.call]
    outcomes = iter(await ask_each(client, registry, questions, how))
    executed: list[ExecutedDocument] = []
    counts: Counter[str] = Counter()
    for document in documents:
        segments: list[Segment] = []
        for text in document.texts:
            said = next(outcomes) if text.call else None
            output = said if isinstance(said, str) else None
            reason = why_dropped(text.call.tool, output, text.answer) if text.call else None
            counts[reason or f"kept: {text.call.tool if text.call else 'no call'}"] += 1
            if reason is None:
                segments += ([" "] if segments else []) + _with_output(text, output)
        if segments:
            executed.append(ExecutedDocument(document.number, tuple(joined(segments))))
    return executed, counts


def _with_output(text: Text, output: str | None) -> list[Segment]:
    if text.call is None or output is None:
        return [text.plain]
    called = CallSegment(text.call.tool, text.call.input, output)
    return [called if isinstance(segment, CallSlot) else segment for segment in text.segments]
