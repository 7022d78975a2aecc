"""Wikipedia search as an engine.

One thread talks to Java (see `lucene.Searcher`). While it works, further searches gather; then they run as one batch,
side by side in Java's own threads. Under load the batches grow by themselves; without it nothing waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic import Field
from pydantic_settings import BaseSettings

from services.base import Call, CannotStart, InBatches, fingerprint
from services.bundled_pages import build_beside
from services.wiki_search.index import BUNDLED, IndexBuildError, manifest_if_current, recipe_of
from services.wiki_search.java import LuceneError
from services.wiki_search.lucene import DEFAULT_HEAP_MB, DEFAULT_TITLE_BOOST, Hit, Searcher
from services.wiki_search.manifest import LUCENE_FOLDER, UnusableIndexError, check_files, read_manifest
from services.wiki_search.ranking import CANDIDATES, best_snippet, essence, numbered, require_words
from services.wiki_search.snippets import DEFAULT_CHARS, SnippetForm

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

_FIRST_QUERIES: Final = ("a country and its capital", "the population of a city")


class WikiSearchSettings(BaseSettings):
    """``TOOLFORMER_WIKI_SEARCH_INDEX``, ``_SNIPPET_CHARS``, ``_SNIPPET_FORM``, ``_TITLE_BOOST``, ``_HEAP_MB``,
    ``_THREADS``, and ``TOOLFORMER_DATA_DIR``."""

    index: Path | None = None
    """A finished index; without one the bundled encyclopedia is indexed under the data folder, once."""
    snippet_chars: int = Field(DEFAULT_CHARS, ge=60, le=2_000)
    snippet_form: SnippetForm = "title"
    title_boost: float = Field(DEFAULT_TITLE_BOOST, ge=0, le=100)
    """How much a word in a page's title counts more than one in its text."""
    heap_mb: int = Field(DEFAULT_HEAP_MB, ge=64)
    threads: int | None = Field(None, ge=1, le=256)
    """Searches of a batch that run at once; by default one a core."""
    data_dir: Path = Field(Path("var"), validation_alias="TOOLFORMER_DATA_DIR")


class WikiSearchEngine(InBatches["_Search", Any]):
    """Answers queries from one index."""

    not_ready = "the index is not open"

    def __init__(self, settings: WikiSearchSettings) -> None:
        super().__init__()
        self._settings = settings
        self._index = settings.index or settings.data_dir / "wiki_search" / "index"
        self._searcher: Searcher | None = None

    async def start(self) -> None:
        """Builds the bundled index where no other is named and it is needed, and opens the index.

        Raises:
            CannotStart: the bundled index cannot be built, or there is no finished index, or it holds less than its
                manifest says, or Lucene cannot read it.
        """
        if self._settings.index is None and not await self.in_thread(self._is_current):
            logger.info("indexing the bundled encyclopedia into %s; this happens once", self._index)
            module, index = "services.wiki_search.index", str(self._index)
            if status := await build_beside(module, "--pages", BUNDLED, "--index", index):
                raise CannotStart(f"the bundled index could not be built (exit status {status}); the reason is above")
        await super().start()

    async def answer_one(self, call: Call) -> str:
        """The best snippet for a query, or the one with the number at its end.

        Raises:
            ToolFailure: `empty_query` or `no_result`.
        """
        (query, number), chars, form = numbered(call.input), self._settings.snippet_chars, self._settings.snippet_form

        def shown(hits: list[Hit], index: Searcher) -> str:
            return best_snippet(query, hits, index.terms, index.rarity, chars, form, number)

        return await self._ask(query, CANDIDATES, shown)

    async def search(self, query: str, limit: int, offset: int) -> list[Hit]:
        """Hits `offset` to `offset + limit` for `query`, best first; fewer or none at the end.

        Raises:
            ToolFailure: `empty_query`.
        """

        def page(hits: list[Hit], index: Searcher) -> list[Hit]:
            require_words(query, index.terms)
            return hits[offset:]

        return await self._ask(query, offset + limit, page)

    async def _ask(self, query: str, limit: int, finish: Callable[[list[Hit], Searcher], ResultT]) -> ResultT:
        """What `finish` makes of the hits for `query`; it runs in the Java thread and may raise."""
        [found] = await self.ask_all([_Search(query, limit, finish)])
        return cast(ResultT, found)

    def _is_current(self) -> bool:
        try:
            return manifest_if_current(self._index, recipe_of(BUNDLED)) is not None
        except (IndexBuildError, UnusableIndexError) as error:
            raise CannotStart(str(error)) from error

    def load(self) -> Callable[[Sequence[_Search]], list[Any]]:
        """See `InBatches.load`."""
        settings = self._settings
        try:
            manifest = read_manifest(self._index)
            check_files(self._index)
            searcher = self._searcher = Searcher(
                self._index / LUCENE_FOLDER,
                heap_mb=settings.heap_mb,
                threads=settings.threads,
                title_boost=settings.title_boost,
            )
        except (UnusableIndexError, LuceneError) as error:
            raise CannotStart(str(error)) from error
        if searcher.passages != manifest.passages:
            raise CannotStart(
                f"{self._index} holds {searcher.passages:,} passages, its manifest says {manifest.passages:,}; "
                "remove it and build it again"
            )
        self.data_version = fingerprint(
            manifest.recipe, settings.snippet_chars, settings.snippet_form, settings.title_boost
        )
        # The first searches load most of Java's classes, which the first callers need not wait for.
        searcher.search(_FIRST_QUERIES[:1], CANDIDATES)
        searcher.search(_FIRST_QUERIES, CANDIDATES)
        logger.info("opened %s: %d pages, %d passages", self._index, manifest.pages, manifest.passages)
        return lambda searches: _search_batch(searcher, searches)

    def close(self) -> None:
        """Closes the index."""
        searcher, self._searcher = self._searcher, None
        if searcher is not None:
            searcher.close()


@dataclass(frozen=True, slots=True)
class _Search:
    """A search that waits for its turn."""

    query: str
    limit: int
    finish: Callable[[list[Hit], Searcher], Any]


def _search_batch(searcher: Searcher, batch: Sequence[_Search]) -> list[Any]:
    """The outcome of each search, or the exception it ends with; a fault of Java's is everyone's."""
    try:
        found = searcher.search([essence(search.query) for search in batch], max(search.limit for search in batch))
    except Exception as error:
        return [error] * len(batch)
    return [_outcome(search, hits, searcher) for search, hits in zip(batch, found, strict=True)]


def _outcome(search: _Search, hits: list[Hit], searcher: Searcher) -> Any:
    try:
        return search.finish(hits[: search.limit], searcher)
    except Exception as error:
        return error
