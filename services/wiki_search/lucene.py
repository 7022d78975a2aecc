"""Lucene's BM25 over an index that is opened for reading."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from services.sentences import without_accents
from services.wiki_search.java import LuceneError, java_classes
from services.wiki_search.passages import Passage

DEFAULT_HEAP_MB: Final = 256
"""Heap of the searching machine; the index itself is mapped by the operating system, outside of it."""

BM25_K1: Final = 1.2
BM25_B: Final = 0.75
DEFAULT_TITLE_BOOST: Final = 1.0
"""How much a match in the title counts beside one in title and text.

A page is found by its name as often as with 2, and the answers to questions more often: with 2, a page named after a
question's smallest word wins (`Start signal` behind `who started Pixar`); see docs/results.md.
"""

_KNOWN_WORDS: Final = 100_000
"""Words whose terms are remembered; then all are forgotten."""
_BETWEEN: Final = "qzxqzxq"
"""A word that stays as it is and hardly is in any text."""
_SEARCH: Final = "(Lorg/apache/lucene/search/Query;I)Lorg/apache/lucene/search/TopDocs;"


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found, and its BM25 score."""

    passage: Passage
    score: float


def indexed_document(passage: Passage) -> dict[str, str]:
    """The passage as Anserini's JsonCollection reads it; `stored_passage` is the way back.

    Anserini's English analyser keeps accents, so a title that has any is indexed without them too.
    """
    plain = without_accents(passage.title)
    title = passage.title if plain == passage.title else f"{passage.title} {plain}"
    return {
        "id": passage.id,
        "contents": f"{title}\n{passage.section}\n{passage.text}",
        "title": title,
        "shown_title": passage.title,
        "section": passage.section,
        "text": passage.text,
    }


def stored_passage(raw: str) -> Passage:
    """The passage of a stored document."""
    document = json.loads(raw)
    return Passage(document["id"], document["shown_title"], document["section"], document["text"])


class Searcher:
    """A Lucene index opened for reading. Make it and use it in one and the same thread.

    Lucene itself does not mind threads, but pyjnius keeps the object that a Java method is called on in a place that
    all threads share: two threads at once call each other's methods. So one thread talks to Java, and the searches of
    a batch run side by side in threads of Java's own.

    Lucene's searcher is called without Anserini's around it, which orders equals by a stored field while it searches
    and then scores all that it found again: half of the time at a million passages. Equals are put in order here.

    Args:
        index: the folder of the Lucene index.
        heap_mb: heap of the Java machine in MiB; it counts for the first searcher of the process only.
        threads: searches of a batch that run at once; by default one a core.
        title_boost: see `DEFAULT_TITLE_BOOST`.

    Raises:
        LuceneError: the folder holds no index that this Lucene can read.
    """

    def __init__(
        self,
        index: Path,
        *,
        heap_mb: int = DEFAULT_HEAP_MB,
        threads: int | None = None,
        title_boost: float = DEFAULT_TITLE_BOOST,
    ) -> None:
        java = java_classes(heap_mb)
        if not index.is_dir():  # Lucene would make it
            raise LuceneError(f"there is no folder {index}; build the index again")
        try:
            folder = java("java.io.File")(str(index)).toPath()
            directory = java("org.apache.lucene.store.MMapDirectory")(folder)
            self._reader = java("org.apache.lucene.index.DirectoryReader").open(directory)
        except Exception as error:  # whatever Java throws arrives as one class
            raise LuceneError(f"{index} holds no index that Lucene can read ({error}); build it again") from error
        self._searcher = java("org.apache.lucene.search.IndexSearcher")(self._reader.getContext())
        self._searcher.setSimilarity(java("org.apache.lucene.search.similarities.BM25Similarity")(BM25_K1, BM25_B))
        self._stored = self._reader.storedFields()
        self._analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        self._analyze = java("io.anserini.analysis.AnalyzerUtils").analyze
        self._queries = java("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._fields = java("java.util.HashMap")()
        number = java("java.lang.Float")
        self._fields.put("contents", number(1.0))
        self._fields.put("title", number(title_boost))
        self._side_by_side = SideBySide(java, self._searcher, threads or os.cpu_count() or 1)
        self._terms_of_word: dict[str, list[str]] = {}
        self._rarity_of_term: dict[str, float] = {}
        self._term = java("org.apache.lucene.index.Term")

    @property
    def passages(self) -> int:
        """How many passages the index holds."""
        return int(self._reader.numDocs())

    def terms(self, text: str) -> list[str]:
        """`text` as the index sees it: lower-case stems without stop words."""
        if len(self._terms_of_word) > _KNOWN_WORDS:
            self._terms_of_word.clear()
        words = text.split()
        if unknown := list(dict.fromkeys(word for word in words if word not in self._terms_of_word)):
            self._terms_of_word.update(zip(unknown, self._analyzed(unknown), strict=True))
        return [term for word in words for term in self._terms_of_word[word]]

    def rarity(self, term: str) -> float:
        """What finding `term` in a passage says, as BM25 weighs it: from 0 in all passages to about the logarithm of
        their number in none."""
        if len(self._rarity_of_term) > _KNOWN_WORDS:
            self._rarity_of_term.clear()
        if term not in self._rarity_of_term:
            having = self._reader.docFreq(self._term("contents", term))
            self._rarity_of_term[term] = math.log1p((self.passages - having + 0.5) / (having + 0.5))
        return self._rarity_of_term[term]

    def search(self, queries: Sequence[str], limit: int) -> list[list[Hit]]:
        """The best `limit` passages for each query, best first. No character of a query is an operator."""
        asked = [self._queries.buildQuery(self._fields, self._analyzer, _for_java(query)) for query in queries]
        if len(asked) == 1:
            return [self._read(self._searcher.search(asked[0], limit))]
        return list(map(self._read, self._side_by_side.search(asked, limit)))

    def close(self) -> None:
        """Releases the index's files; the searcher is of no use afterwards."""
        self._side_by_side.close()
        self._reader.close()

    def _read(self, found: Any) -> list[Hit]:
        """The hits, equals by their passages' ids: their order in the index differs from one build to the next."""
        hits = [Hit(stored_passage(self._stored.document(hit.doc).get("raw")), hit.score) for hit in found.scoreDocs]
        return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))

    def _analyzed(self, words: Sequence[str]) -> list[list[str]]:
        """Each word's terms. Java is asked once for all: a question to it costs as much as the answers to ten."""
        groups: list[list[str]] = [[]]
        for term in self._terms_in(f" {_BETWEEN} ".join(words)):
            if term == _BETWEEN:
                groups.append([])
            else:
                groups[-1].append(term)
        return groups if len(groups) == len(words) else [self._terms_in(word) for word in words]

    def _terms_in(self, text: str) -> list[str]:
        return list(self._analyze(self._analyzer, _for_java(text)).toArray())


class SideBySide:
    """Searches in Java's own threads, while one thread of Python waits for all of them.

    Java's threads cannot run Python, so each task is Lucene's own `search` with its arguments filled in: a method
    handle that is dressed as a `Callable`.
    """

    def __init__(self, java: Callable[[str], Any], searcher: Any, threads: int) -> None:
        self._handles = java("java.lang.invoke.MethodHandles")
        self._dress = java("java.lang.invoke.MethodHandleProxies").asInterfaceInstance
        self._callable = java("java.lang.Class").forName("java.util.concurrent.Callable")
        self._list, self._integer = java("java.util.ArrayList"), java("java.lang.Integer")
        self._threads = java("java.util.concurrent.Executors").newWorkStealingPool(threads)
        lucene = searcher.getClass()
        kind = java("java.lang.invoke.MethodType").fromMethodDescriptorString(_SEARCH, lucene.getClassLoader())
        self._search = self._handles.publicLookup().findVirtual(lucene, "search", kind).bindTo(searcher)

    def search(self, queries: Sequence[Any], limit: int) -> list[Any]:
        """Lucene's `TopDocs` for each of its queries."""
        search = self._handles.insertArguments(self._search, 1, self._integer(limit))
        tasks = self._list()
        for query in queries:
            tasks.add(self._dress(self._callable, search.bindTo(query)))
        return [done.get() for done in self._threads.invokeAll(tasks)]

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown()


def _for_java(text: str) -> str:
    """`text` without what the bridge to Java cannot carry: NUL ends a string there, half a character breaks it."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
