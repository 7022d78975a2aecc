"""For each tool the texts that are worth its prompt (appendix A of the paper), and how many fell for which reason."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

from training_jobs.corpus.cutting import cut
from training_jobs.corpus.foreign_parts import KEPT, foreign_paragraphs
from training_jobs.corpus.language_id import Languages
from training_jobs.corpus.numbers_in_text import judge_calculator
from training_jobs.corpus.readers import CorpusError, Read
from training_jobs.corpus.tokens import TokenSpans, word_spans
from training_jobs.corpus.url_dates import IMPOSSIBLE, date_in_url
from training_jobs.records import Document

COUNTS_FILE: Final = "counts.json"
HEURISTICS: Final = ("Calculator", "Calendar", "MT")
"""The tools that have one; every other tool gets every text."""
ANY: Final = "any text"
DATED: Final = "a date"


@dataclass(frozen=True, slots=True)
class Settings:
    """``language``: texts that their file says are in another are left out (``None``: none is). ``seed`` draws the
    texts that have three numbers and no more. ``spans`` says what a token is. Texts of more than ``max_tokens`` are cut
    into several (``None``: they stay whole)."""

    language: str | None = "en"
    seed: int = 0
    spans: TokenSpans = word_spans
    max_tokens: int | None = None


@dataclass(slots=True)
class Counts:
    """How many texts were read, left out at once, and for each tool kept and dropped, by reason; ``judged`` counts a
    text that was cut as often as it has pieces."""

    read: int = 0
    judged: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    kept: dict[str, Counter[str]] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    paragraphs: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """Plain values, in a fixed order."""
        return {
            "read": self.read,
            "judged": self.judged,
            "left out": dict(sorted(self.left_out.items())),
            "tools": {
                tool: {
                    "kept": dict(sorted(self.kept[tool].items())),
                    "dropped": dict(sorted(self.dropped[tool].items())),
                }
                for tool in self.kept
            },
            "paragraphs for MT": dict(sorted(self.paragraphs.items())),
        }


class Selector:
    """Judges texts for each of ``tools``; ``languages`` is needed where ``MT`` is among them.

    Raises:
        ValueError: if it is needed and missing.
    """

    def __init__(self, tools: Sequence[str], settings: Settings, languages: Languages | None) -> None:
        if "MT" in tools and languages is None:
            raise ValueError("MT needs a language classifier: give --language-id lid.176.ftz, or leave MT out")
        self._settings = settings
        self._languages = languages
        self.tools = tuple(tools)
        self.counts = Counts(kept={tool: Counter() for tool in tools}, dropped={tool: Counter() for tool in tools})

    def select(self, texts: Iterable[Read]) -> Iterator[tuple[str, Document]]:
        """Each tool's name with each document that it gets, in the order of the texts.

        Raises:
            CorpusError: if two texts have the same id.
        """
        seen: set[int] = set()
        for text in texts:
            self.counts.read += 1
            document = text.document
            key = _hash(document.id)
            if key in seen:
                raise CorpusError(
                    f"{document.source}: id {document.id!r} stands twice; give each text an id of its own"
                )
            seen.add(key)
            if reason := self._useless(text):
                self.counts.left_out[reason] += 1
                continue
            limit = self._settings.max_tokens
            for piece in cut(document, limit, self._settings.spans) if limit else (document,):
                self.counts.judged += 1
                for tool in self.tools:
                    kept, reason = self._judge(tool, piece)
                    (self.counts.kept if kept else self.counts.dropped)[tool][reason] += 1
                    yield from ((tool, one) for one in kept)

    def _useless(self, text: Read) -> str | None:
        if not text.document.text.strip():
            return "empty text"
        wanted = self._settings.language
        if wanted is not None and text.language is not None and text.language != wanted:
            return f"language: {text.language}"
        return None

    def _judge(self, tool: str, document: Document) -> tuple[list[Document], str]:
        match tool:
            case "Calculator":
                # Drawn by the id alone, so that shards and their order do not matter.
                draw = random.Random(_hash(str(self._settings.seed), document.id))
                kept, reason = judge_calculator(document.text, spans=self._settings.spans, draw=draw)
                return ([document] if kept else []), reason
            case "Calendar":
                if document.date is not None:
                    return [document], DATED
                return [], date_in_url(document.url).reason or str(IMPOSSIBLE.reason)
            case "MT":
                assert self._languages is not None
                found, reason, paragraphs = foreign_paragraphs(
                    document, spans=self._settings.spans, languages=self._languages
                )
                self.counts.paragraphs.update(paragraphs)
                assert bool(found) is (reason == KEPT)
                return found, reason
            case _:
                return [document], ANY


def select_files(texts: Iterable[Read], out: Path, selector: Selector) -> Counts:
    """Write each tool's ``out/<Tool>.jsonl`` (:class:`~training_jobs.records.Document` lines) and ``out/counts.json``.

    A reader sees whole files or none.

    Raises:
        CorpusError: as :meth:`Selector.select` and the readers do.
    """
    out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        files: dict[str, IO[str]] = {
            tool: stack.enter_context((out / f"{tool}.jsonl.partial").open("w", encoding="utf-8"))
            for tool in selector.tools
        }
        for tool, document in selector.select(texts):
            files[tool].write(document.to_line())
    counts = json.dumps(selector.counts.as_json(), indent=2, ensure_ascii=False) + "\n"
    (out / f"{COUNTS_FILE}.partial").write_text(counts, encoding="utf-8")
    for name in (*(f"{tool}.jsonl" for tool in selector.tools), COUNTS_FILE):
        (out / f"{name}.partial").replace(out / name)
    return selector.counts


def _hash(*parts: str) -> int:
    return int.from_bytes(blake2b("\x1f".join(parts).encode(), digest_size=8).digest())
