"""The engines that are compared on the same passages, each built and asked in a process of its own.

    python -m benchmarks.search_peers tantivy build --pages PAGES --index FOLDER
    python -m benchmarks.search_peers tantivy search --index FOLDER --queries QUERIES --clients 1 16

All search the title, section and text of a passage as one field of stems without stop words; Lucene and tantivy also
the title again, with twice the weight. Asked for are the ten best passages with all that is shown of them. Clients of a
peer are threads; those of the service's engine are tasks of one event loop, as its HTTP clients are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmarks.http_load import Measured
from benchmarks.reports import percentiles, resident_mb
from services.wiki_search.engine import WikiSearchEngine
from services.wiki_search.lucene import BM25_B, BM25_K1, TITLE_BOOST, Searcher, indexed_document, stored_passage
from services.wiki_search.manifest import LUCENE_FOLDER
from services.wiki_search.passages import split_page

HITS = 10
WARM_UP = 2_000
"""Queries that are not measured, others than those that are: Java compiles what it has seen often."""

Search = Callable[[str], Sequence[str]]
"""The titles of the best passages for a query; their texts have been read."""


class Peer(Protocol):
    """An engine."""

    def open(self, index: Path) -> Search:
        """A search over a built index."""


class Builder(Peer, Protocol):
    """An engine that is built here; ours is built by `toolformer index wiki`."""

    def build(self, pages: Path, index: Path) -> None:
        """Index the pages into a new folder."""


def documents(pages: Path) -> Iterator[dict[str, str]]:
    """The passages of the pages, as the service indexes them."""
    with pages.open("rb") as lines:
        for line in lines:
            yield from map(indexed_document, split_page(json.loads(line)))


class Tantivy:
    """tantivy, which builds with all cores."""

    def build(self, pages: Path, index: Path) -> None:
        """See `Peer`."""
        import tantivy

        index.mkdir()
        writer = self._open(index).writer(1 << 30)
        for document in documents(pages):
            raw = json.dumps(document).encode()
            writer.add_document(tantivy.Document(contents=document["contents"], title=document["title"], raw=raw))
        writer.commit()
        writer.wait_merging_threads()

    def open(self, index: Path) -> Search:
        """See `Peer`."""
        opened = self._open(index)
        searcher = opened.searcher()
        boosts = {"title": TITLE_BOOST}

        def search(text: str) -> list[str]:
            words = " ".join(re.findall(r"\w+", text))  # a hyphen or a quote would make a phrase
            query = opened.parse_query(words, ["contents", "title"], field_boosts=boosts)
            hits = searcher.search(query, HITS, count=False).hits
            return [stored_passage(bytes(searcher.doc(address)["raw"][0]).decode()).title for _, address in hits]

        return search

    def _open(self, index: Path) -> Any:
        import tantivy

        schema = tantivy.SchemaBuilder()
        for name in ("contents", "title"):
            schema.add_text_field(name, index_option="freq", tokenizer_name="english")
        schema.add_bytes_field("raw", stored=True)
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        for step in (tantivy.Filter.lowercase(), tantivy.Filter.stopword("english"), tantivy.Filter.stemmer("english")):
            words = words.filter(step)
        opened = tantivy.Index(schema.build(), str(index))
        opened.register_tokenizer("english", words.build())
        return opened


class Bm25s:
    """bm25s on NumPy."""

    def build(self, pages: Path, index: Path) -> None:
        """See `Peer`."""
        import bm25s

        passages = list(documents(pages))
        tokens = self._tokens([passage["contents"] for passage in passages])
        retriever = bm25s.BM25(k1=BM25_K1, b=BM25_B, method="lucene")
        retriever.index(tokens, show_progress=False)
        retriever.save(index, corpus=passages, show_progress=False)

    def open(self, index: Path) -> Search:
        """See `Peer`."""
        import bm25s

        retriever = bm25s.BM25.load(index, load_corpus=True, mmap=False)
        passages = bm25s.utils.corpus.JsonlCorpus(index / "corpus.jsonl")

        def search(text: str) -> list[str]:
            numbers, _ = retriever.retrieve(
                self._tokens(text), k=HITS, corpus=range(len(passages)), show_progress=False, sorted=True
            )
            return [passages[int(number)]["shown_title"] for number in numbers[0]]

        return search

    def _tokens(self, texts: str | list[str]) -> Any:
        import bm25s
        import Stemmer

        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stopwords="english", stemmer=stemmer, show_progress=False)


class Lucene:
    """What the service searches with, without the service."""

    def open(self, index: Path) -> Search:
        """See `Peer`."""
        searcher = Searcher(index / LUCENE_FOLDER)
        return lambda text: [hit.passage.title for hit in searcher.search([text], HITS)[0]]


BUILDERS: dict[str, Builder] = {"tantivy": Tantivy(), "bm25s": Bm25s()}
PEERS: dict[str, Peer] = {"lucene": Lucene(), **BUILDERS}


def ask(search: Search, queries: Sequence[str], clients: int) -> Measured:
    """Every query once, by this many threads."""
    measured, waiting, lock = Measured(), iter(queries), threading.Lock()

    def client() -> None:
        while True:
            with lock:
                text = next(waiting, None)
            if text is None:
                return
            began = time.perf_counter()
            search(text)
            measured.latencies.append(time.perf_counter() - began)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    began, computed = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    measured.seconds = time.perf_counter() - began
    measured.processor_seconds = time.process_time() - computed
    return measured


async def ask_engine(engine: WikiSearchEngine, queries: Sequence[str], clients: int) -> Measured:
    """Every query once, by this many tasks."""
    measured, waiting = Measured(), iter(queries)

    async def client() -> None:
        for text in waiting:
            began = time.perf_counter()
            await engine.search(text, HITS, 0)
            measured.latencies.append(time.perf_counter() - began)

    began, computed = time.perf_counter(), time.process_time()
    await asyncio.gather(*(client() for _ in range(clients)))
    measured.seconds = time.perf_counter() - began
    measured.processor_seconds = time.process_time() - computed
    return measured


async def measure_engine(index: Path, queries: Sequence[str], clients: Sequence[int]) -> dict[str, Any]:
    """The service's engine, event loop and all, without HTTP."""
    engine = WikiSearchEngine(index)
    await engine.start()
    await ask_engine(engine, queries[-WARM_UP:], max(clients))
    measured = {str(count): summary(await ask_engine(engine, queries[:-WARM_UP], count)) for count in clients}
    memory = resident_mb(os.getpid())
    await engine.stop()
    return {"resident MiB": memory, "clients": measured}


def measure_peer(peer: Peer, index: Path, asked: Sequence[dict[str, str]], clients: Sequence[int]) -> dict[str, Any]:
    """A peer in this process; also how often the page that a query was made from comes first."""
    queries = [query["text"] for query in asked]
    search = peer.open(index)
    named = [query for query in asked if query["title"]]
    first = sum(query["title"] in search(query["text"])[:1] for query in named[:200]) / len(named[:200])
    # pyjnius is not safe with several threads: more clients than one are for the service's engine to serve.
    counts = [1] if isinstance(peer, Lucene) else clients
    ask(search, queries[-WARM_UP:], 1)
    measured = {str(count): summary(ask(search, queries[:-WARM_UP], count)) for count in counts}
    return {
        "resident MiB": resident_mb(os.getpid()),
        "page first": round(first, 4),
        "clients": measured,
    }


def summary(measured: Measured) -> dict[str, float]:
    """Milliseconds at three percentiles, answers a second, and milliseconds that one keeps a processor busy."""
    cost = 1_000 * measured.processor_seconds / len(measured.latencies)
    return {**percentiles(measured.latencies), "per second": round(measured.per_second, 1), "cpu ms": round(cost, 3)}


def main() -> None:
    """Builds an index, or measures searches over it; prints JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_peers", description=main.__doc__)
    parser.add_argument("peer", choices=[*PEERS, "engine"])
    parser.add_argument("work", choices=["build", "search"])
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    options = parser.parse_args()
    if options.work == "build":
        if options.peer not in BUILDERS:
            parser.error(f"`toolformer index wiki` builds what {options.peer} searches")
        BUILDERS[options.peer].build(options.pages, options.index)
        return
    asked = json.loads(options.queries.read_text())
    if options.peer == "engine":
        queries = [query["text"] for query in asked]
        print(json.dumps(asyncio.run(measure_engine(options.index, queries, options.clients))))
    else:
        print(json.dumps(measure_peer(PEERS[options.peer], options.index, asked, options.clients)))


if __name__ == "__main__":
    main()
