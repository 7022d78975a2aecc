"""For each tool the texts that are worth its prompt (appendix A of the paper), and how many fell for which reason."""

from __future__ import annotations

import contextlib
import heapq
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

from toolformer.model_files.whole import whole, write_whole
from training_jobs.corpora.web.cutting import cut
from training_jobs.corpora.web.foreign_parts import KEPT, foreign_paragraphs
from training_jobs.corpora.web.language_id import Languages
from training_jobs.corpora.web.numbers_in_text import judge_calculator
from training_jobs.corpora.web.readers import CorpusError, Read
from training_jobs.corpora.web.tokens import TokenSpans, word_spans
from training_jobs.corpora.web.url_dates import IMPOSSIBLE, date_in_url
from training_jobs.records import Document

COUNTS_FILE: Final = "counts.json"
HELD_OUT_FILE: Final = "held_out.jsonl"
"""Texts that no tool gets: finetuning measures perplexity on them."""
ANY: Final = "any text"
DATED: Final = "a date"
_HELD_OUT: Final = "the same text is held out"


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """``language``: texts that their file says are in another are left out (``None``: none is). ``seed`` draws the
    texts that have three numbers and no more, and the ``hold_out`` texts that are set apart. ``spans`` says what a
    token is. Texts of more than ``max_tokens`` are cut into several (``None``: they stay whole)."""

    language: str | None = "en"
    seed: int = 0
    spans: TokenSpans = word_spans
    max_tokens: int | None = None
    hold_out: int = 0


@dataclass(slots=True)
class Counts:
    """How many texts were read, held out, left out at once, and for each tool kept and dropped, by reason; ``judged``
    counts a text that was cut as often as it has pieces."""

    read: int = 0
    held_out: int = 0
    judged: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    kept: dict[str, Counter[str]] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    paragraphs: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """Plain values, in a fixed order."""
        return {
            "read": self.read,
            "held out": self.held_out,
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

    def __init__(self, tools: Sequence[str], settings: SelectSettings, languages: Languages | None) -> None:
        if "MT" in tools and languages is None:
            raise ValueError("MT needs a language classifier: give --language-id lid.176.ftz, or leave MT out")
        self._settings = settings
        self._languages = languages
        self._held_out = _Draw(settings.hold_out, settings.seed)
        self.tools = tuple(tools)
        self.counts = Counts(kept={tool: Counter() for tool in tools}, dropped={tool: Counter() for tool in tools})

    def select(self, texts: Iterable[Read]) -> Iterator[tuple[str, Document]]:
        """Each tool's name with each document that it gets, in the order of the texts; one that was held out until
        another was drawn in its place comes then.

        Raises:
            CorpusError: if two texts have the same id, or all are held out.
        """
        seen: set[int] = set()
        for text in texts:
            self.counts.read += 1
            document = text.document
            key = _hash(document.id)
            if key in seen:
                raise CorpusError(
                    f"{document.source}: id {document.id!r} occurs twice; give each text an id of its own"
                )
            seen.add(key)
            if reason := self._useless(text):
                self.counts.left_out[reason] += 1
                continue
            if document in self._held_out:
                self.counts.left_out[_HELD_OUT] += 1
            elif (free := self._held_out.add(document)) is not None:
                yield from self._judge_all(free)
        self.counts.held_out = len(self.held_out)
        if self._settings.hold_out and not self.counts.judged:
            found = f"there are {self.counts.held_out:,} texts"
            raise CorpusError(
                f"--hold-out {self._settings.hold_out}: {found}, so none is left to select; hold out fewer"
            )

    @property
    def held_out(self) -> list[Document]:
        """The texts that were held out, in a random order that the seed gives."""
        return self._held_out.drawn()

    def _judge_all(self, document: Document) -> Iterator[tuple[str, Document]]:
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
    """Write each tool's ``out/<Tool>.jsonl`` (:class:`~training_jobs.records.Document` lines), ``out/held_out.jsonl``
    where texts are held out, and ``out/counts.json``.

    A reader sees whole files or none.

    Raises:
        CorpusError: as :meth:`Selector.select` and the readers do.
    """
    out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        files: dict[str, IO[str]] = {
            tool: stack.enter_context(
                stack.enter_context(whole(out / f"{tool}.jsonl")).open("w", encoding="utf-8"),
            )
            for tool in selector.tools
        }
        for tool, document in selector.select(texts):
            files[tool].write(document.to_line())
        (out / HELD_OUT_FILE).unlink(missing_ok=True)  # what an earlier selection held out may now be selected
    if selector.held_out:
        write_whole(out / HELD_OUT_FILE, "".join(document.to_line() for document in selector.held_out))
    write_whole(out / COUNTS_FILE, json.dumps(selector.counts.as_json(), indent=2, ensure_ascii=False) + "\n")
    return selector.counts


class _Draw:
    """Draws ``count`` documents of those added, one of each text: the ones whose texts have the lowest hashes. So the
    same texts are drawn whatever their order, and a text that was not drawn never is."""

    def __init__(self, count: int, seed: int) -> None:
        self._count, self._seed = count, str(seed)
        self._drawn: dict[int, Document] = {}
        self._highest_first: list[int] = []

    def __contains__(self, document: Document) -> bool:
        return self._count > 0 and self._key(document) in self._drawn

    def add(self, document: Document) -> Document | None:
        """The document that is not drawn after this one was added: it, an earlier one, or none."""
        if not self._count:
            return document
        key = self._key(document)
        self._drawn[key] = document
        if len(self._drawn) <= self._count:
            heapq.heappush(self._highest_first, -key)
            return None
        return self._drawn.pop(-heapq.heappushpop(self._highest_first, -key))

    def drawn(self) -> list[Document]:
        """Those drawn so far, by their hashes."""
        return [self._drawn[key] for key in sorted(self._drawn)]

    def _key(self, document: Document) -> int:
        return _hash("held out", self._seed, document.text)


def _hash(*parts: str) -> int:
    return int.from_bytes(blake2b("\x1f".join(parts).encode(), digest_size=8).digest())
