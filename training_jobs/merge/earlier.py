"""The C* of the round before: texts that have calls already, and get more."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from toolformer.api_call import Tokenizer, splice_result
from toolformer.tools import ToolRegistry
from training_jobs.errors import StageError
from training_jobs.merge.putting import rendered
from training_jobs.records import CallSegment, Document, Merged, R, RecordError, records_in


@dataclass(slots=True)
class Earlier:
    """Texts of C* and the plain documents they came from, by id, all in memory: C* is small beside a corpus."""

    texts: dict[str, Merged] = field(default_factory=dict)
    _documents: dict[str, Document] = field(default_factory=dict)

    @classmethod
    def load(cls, with_calls: Path, documents: Path) -> Earlier:
        """Read the two files of a merge.

        Raises:
            StageError: if they cannot be read or do not belong together.
        """
        texts = {text.id: text for text in _read(with_calls, Merged)}
        plain = {document.id: document for document in _read(documents, Document)}
        if texts.keys() != plain.keys():
            raise StageError(f"{documents} does not have the texts of {with_calls}: merge the earlier round again")
        return cls(texts, plain)

    def document(self, id_: str) -> Document:
        """The plain text."""
        return self._documents[id_]

    def rendered(self, id_: str, registry: ToolRegistry) -> str:
        """The text with its calls."""
        return rendered(self.texts[id_].segments, registry)

    def cut(self, tokenizer: Tokenizer, registry: ToolRegistry) -> Earlier:
        """The same with each result as a model sees it: neutralised and cut to its tool's limit of tokens."""
        texts = {
            id_: Merged(id_, tuple(_cut(segment, tokenizer, registry) for segment in text.segments), text.gains)
            for id_, text in self.texts.items()
        }
        return Earlier(texts, self._documents)


def _cut(segment: str | CallSegment, tokenizer: Tokenizer, registry: ToolRegistry) -> str | CallSegment:
    if isinstance(segment, str):
        return segment
    limit = registry.get(segment.tool).max_result_tokens
    spliced = splice_result(segment.output, tokenizer, max_tokens=limit)
    if spliced is None:
        raise StageError(f"a call of {segment.tool} in C* has an empty result: merge the earlier round again")
    return CallSegment(segment.tool, segment.input, spliced.text)


def _read(path: Path, kind: type[R]) -> list[R]:
    try:
        return list(records_in(path, kind))
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); merge the earlier round first") from error
    except RecordError as error:
        raise StageError(str(error)) from error
