"""Wikipedia search as an engine: opens the index in a thread, answers in threads, builds the bundled index once."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from services.base import Call, NotReady, ToolFailure
from services.wiki_search.index import BUNDLED, IndexBuildError, manifest_if_current, recipe_of
from services.wiki_search.lucene import DEFAULT_HEAP_MB, Hit, Searcher
from services.wiki_search.manifest import LUCENE_FOLDER, UnusableIndexError, read_manifest
from services.wiki_search.ranking import EmptyQueryError, NoResultError, best_snippet, find
from services.wiki_search.snippets import DEFAULT_CHARS

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


class WikiSearchEngine:
    """Answers queries from one index.

    Args:
        index: the folder of the index.
        build_bundled: builds (or renews) the bundled encyclopedia's index at `index` when the engine starts.
        snippet_chars: the most characters of an answer.
        heap_mb: heap of the Java machine in MiB.
        threads: searches that run at once; by default one a core.
    """

    def __init__(
        self,
        index: Path,
        *,
        build_bundled: bool = False,
        snippet_chars: int = DEFAULT_CHARS,
        heap_mb: int = DEFAULT_HEAP_MB,
        threads: int | None = None,
    ) -> None:
        self._index = index
        self._build_bundled = build_bundled
        self._snippet_chars = snippet_chars
        self._heap_mb = heap_mb
        self._pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="search")
        self._searcher: Searcher | None = None

    async def start(self) -> None:
        """Builds the bundled index where that is asked for and needed, and opens the index.

        Raises:
            IndexBuildError: the bundled index cannot be built.
            UnusableIndexError: there is no finished index, or it holds less than its manifest says.
            LuceneError: Lucene cannot read it.
        """
        if self._build_bundled and not await self._in_thread(self._is_current):
            await self._build()
        self._searcher = await self._in_thread(self._open)

    async def stop(self) -> None:
        """Waits for running searches and closes the index."""
        searcher, self._searcher = self._searcher, None
        if searcher is not None:
            await self._in_thread(searcher.close)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """The best snippet for each query, or `empty_query` or `no_result`."""
        return list(await asyncio.gather(*(self._in_thread(partial(self._answer_one, call.input)) for call in calls)))

    async def search(self, query: str, limit: int, offset: int) -> list[Hit]:
        """Hits `offset` to `offset + limit` for `query`, best first.

        Raises:
            ToolFailure: `empty_query`.
        """
        try:
            return await self._in_thread(partial(find, self._opened(), query, limit, offset))
        except EmptyQueryError as error:
            raise ToolFailure("empty_query", str(error)) from error

    def _answer_one(self, query: str) -> str | ToolFailure:
        try:
            return best_snippet(self._opened(), query, self._snippet_chars)
        except EmptyQueryError as error:
            return ToolFailure("empty_query", str(error))
        except NoResultError as error:
            return ToolFailure("no_result", str(error))

    def _is_current(self) -> bool:
        return manifest_if_current(self._index, recipe_of(BUNDLED)) is not None

    async def _build(self) -> None:
        """Builds the bundled index in a process of its own, which is stopped if the service is."""
        logger.info("indexing the bundled encyclopedia into %s; this happens once", self._index)
        command = [sys.executable, "-m", "services.wiki_search.index", "--pages", BUNDLED, "--index", str(self._index)]
        # Its log lines go to our standard error; the manifest that it prints is read from the index.
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        try:
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        if status:
            raise IndexBuildError(f"the bundled index could not be built (exit status {status}); the reason is above")

    def _open(self) -> Searcher:
        manifest = read_manifest(self._index)
        searcher = Searcher(self._index / LUCENE_FOLDER, heap_mb=self._heap_mb)
        if searcher.passages != manifest.passages:
            searcher.close()
            raise UnusableIndexError(
                f"{self._index} holds {searcher.passages:,} passages, its manifest says {manifest.passages:,}; "
                "remove it and build it again"
            )
        logger.info("opened %s: %d pages, %d passages", self._index, manifest.pages, manifest.passages)
        return searcher

    def _opened(self) -> Searcher:
        if self._searcher is None:
            raise NotReady("the index is not open")
        return self._searcher

    async def _in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
