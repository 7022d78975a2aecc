"""A builder killed at any moment leaves nothing to be served and nobody at work, and the next one starts cleanly."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from services.wiki_search.manifest import UnusableIndexError, read_manifest
from tests.services.wiki_search_pages import build
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blocks of pages."""
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl"
    text = ["Oslo\n", *("Oslo is a city by a fjord, and this sentence is long enough for a page.\n" * 20,) * 5]
    with path.open("w") as out:
        for number in range(1_000):
            out.write(json.dumps({"wikipedia_id": str(number), "wikipedia_title": "Oslo", "text": text}) + "\n")
    return path


def children_of(builder: int) -> list[int]:
    """The living processes that the builder started, and those that they started."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended meanwhile
        if state != "Z":
            parents[int(status.parent.name)] = int(parent)
    found = [builder]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("moment", ["cutting", "indexing"])
def test_a_killed_builder_leaves_nothing_and_nobody(tmp_path: Path, pages: Path, moment: str) -> None:
    index = tmp_path / "index"
    begun = {"cutting": ".index.building-*/passages/*", "indexing": ".index.building-*/index/lucene/*"}[moment]
    command = [sys.executable, "-m", "services.wiki_search.index", "--pages", str(pages), "--index", str(index)]
    with subprocess.Popen([*command, "--threads", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        wait_for(lambda: any(tmp_path.glob(begun)))
        workers = children_of(killed.pid)
        killed.kill()
    assert killed.returncode < 0
    assert workers
    wait_for(lambda: not any(map(is_running, workers)))

    with pytest.raises(UnusableIndexError, match=r"there is no index at .*; build one"):
        read_manifest(index)
    [left] = tmp_path.glob(".index.building-*")
    assert any(left.iterdir())

    done = build(pages, index)
    assert done.returncode == 0, done.stderr
    assert read_manifest(index).pages == 1_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "index.lock"]
