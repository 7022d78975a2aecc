"""Wikipedia search as an engine.

One thread talks to Java (see `lucene.Searcher`). While it works, further searches gather; then they run as one batch,
side by side in Java's own threads. Under load the batches grow by themselves; without it nothing waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from services.base import Call, CannotStart, Gatherer, NotReady, ToolFailure, fingerprint
from services.bundled_pages import build_beside
from services.wiki_search.index import BUNDLED, IndexBuildError, manifest_if_current, recipe_of
from services.wiki_search.java import LuceneError
from services.wiki_search.lucene import DEFAULT_HEAP_MB, Hit, Searcher
from services.wiki_search.manifest import LUCENE_FOLDER, UnusableIndexError, check_files, read_manifest
from services.wiki_search.ranking import (
    CANDIDATES,
    EmptyQueryError,
    NoResultError,
    best_snippet,
    essence,
    require_words,
)
from services.wiki_search.snippets import DEFAULT_CHARS, SnippetForm, Terms

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

_FIRST_QUERIES: Final = ("a country and its capital", "the population of a city")


class WikiSearchEngine:
    """Answers queries from one index.

    Args:
        index: the folder of the index.
        build_bundled: builds (or renews) the bundled encyclopedia's index at `index` when the engine starts.
        snippet_chars: the most characters of an answer.
        snippet_form: what is in it.
        heap_mb: heap of the Java machine in MiB.
        threads: searches of a batch that run at once; by default one a core.
    """

    def __init__(
        self,
        index: Path,
        *,
        build_bundled: bool = False,
        snippet_chars: int = DEFAULT_CHARS,
        snippet_form: SnippetForm = "title",
        heap_mb: int = DEFAULT_HEAP_MB,
        threads: int | None = None,
    ) -> None:
        self._index = index
        self._build_bundled = build_bundled
        self._snippet_chars, self._snippet_form = snippet_chars, snippet_form
        self._heap_mb = heap_mb
        self._threads = threads
        self._java = ThreadPoolExecutor(1, thread_name_prefix="java")
        self._searcher: Searcher | None = None
        self.data_version = ""
        """See `services.base.engine.HasData`: indexes of one recipe answer alike."""
        self._gatherer: Gatherer[_Search, Any] | None = None

    async def start(self) -> None:
        """Builds the bundled index where that is asked for and needed, and opens the index.

        Raises:
            CannotStart: the bundled index cannot be built, or there is no finished index, or it holds less than its
                manifest says, or Lucene cannot read it.
        """
        try:
            if self._build_bundled and not await self._in_java(self._is_current):
                logger.info("indexing the bundled encyclopedia into %s; this happens once", self._index)
                module, index = "services.wiki_search.index", str(self._index)
                if status := await build_beside(module, "--pages", BUNDLED, "--index", index):
                    raise CannotStart(
                        f"the bundled index could not be built (exit status {status}); the reason is above"
                    )
            searcher = self._searcher = await self._in_java(self._open)
        except (IndexBuildError, UnusableIndexError, LuceneError) as error:
            raise CannotStart(str(error)) from error
        self._gatherer = Gatherer(lambda searches: self._in_java(partial(_search_batch, searcher, searches)))
        self._gatherer.start()

    async def stop(self) -> None:
        """Waits for the batch that runs, closes the index and fails what still waits."""
        searcher, self._searcher = self._searcher, None
        if self._gatherer is not None:
            await self._gatherer.stop()
        if searcher is not None:
            await self._in_java(searcher.close)
        self._java.shutdown(wait=False, cancel_futures=True)

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """The best snippet for each query, or `empty_query` or `no_result`."""

        async def answer_one(query: str) -> str | ToolFailure:
            try:
                return await self._ask(
                    query, CANDIDATES, lambda hits, terms: best_snippet(query, hits, terms, limit, form)
                )
            except EmptyQueryError as error:
                return ToolFailure("empty_query", str(error))
            except NoResultError as error:
                return ToolFailure("no_result", str(error))

        limit, form = self._snippet_chars, self._snippet_form
        return list(await asyncio.gather(*(answer_one(call.input) for call in calls)))

    async def search(self, query: str, limit: int, offset: int) -> list[Hit]:
        """Hits `offset` to `offset + limit` for `query`, best first; fewer or none at the end.

        Raises:
            ToolFailure: `empty_query`.
        """

        def page(hits: list[Hit], terms: Terms) -> list[Hit]:
            require_words(query, terms)
            return hits[offset:]

        try:
            return await self._ask(query, offset + limit, page)
        except EmptyQueryError as error:
            raise ToolFailure("empty_query", str(error)) from error

    async def _ask(self, query: str, limit: int, finish: Callable[[list[Hit], Terms], ResultT]) -> ResultT:
        """What `finish` makes of the hits for `query`; it runs in the Java thread and may raise."""
        if self._searcher is None or self._gatherer is None:
            raise NotReady("the index is not open")
        return cast(ResultT, await self._gatherer.ask(_Search(query, limit, finish)))

    def _is_current(self) -> bool:
        return manifest_if_current(self._index, recipe_of(BUNDLED)) is not None

    def _open(self) -> Searcher:
        manifest = read_manifest(self._index)
        check_files(self._index)
        searcher = Searcher(self._index / LUCENE_FOLDER, heap_mb=self._heap_mb, threads=self._threads)
        if searcher.passages != manifest.passages:
            searcher.close()
            raise UnusableIndexError(
                f"{self._index} holds {searcher.passages:,} passages, its manifest says {manifest.passages:,}; "
                "remove it and build it again"
            )
        self.data_version = fingerprint(manifest.recipe, self._snippet_chars, self._snippet_form)
        # The first searches load most of Java's classes, which the first callers need not wait for.
        searcher.search(_FIRST_QUERIES[:1], CANDIDATES)
        searcher.search(_FIRST_QUERIES, CANDIDATES)
        logger.info("opened %s: %d pages, %d passages", self._index, manifest.pages, manifest.passages)
        return searcher

    async def _in_java(self, work: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._java, work)


@dataclass(frozen=True, slots=True)
class _Search:
    """A search that waits for its turn."""

    query: str
    limit: int
    finish: Callable[[list[Hit], Terms], Any]


def _search_batch(searcher: Searcher, batch: Sequence[_Search]) -> list[Any]:
    """The outcome of each search, or the exception it ends with; a fault of Java's is everyone's."""
    try:
        found = searcher.search([essence(search.query) for search in batch], max(search.limit for search in batch))
    except Exception as error:
        return [error] * len(batch)
    return [_outcome(search, hits, searcher.terms) for search, hits in zip(batch, found, strict=True)]


def _outcome(search: _Search, hits: list[Hit], terms: Terms) -> Any:
    try:
        return search.finish(hits[: search.limit], terms)
    except Exception as error:
        return error
