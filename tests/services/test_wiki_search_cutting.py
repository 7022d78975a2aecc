"""A file of pages cut into passages: by several processes, compressed or not, and what is said of a broken one."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.wiki_search import cutting
from services.wiki_search.cutting import Cut, UnreadablePagesError, text_bytes, write_passages
from services.wiki_search.progress import EVERY_SECONDS, Progress


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "BLOCK_BYTES", 1_000)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Two hundred pages of two sections, some of them not ASCII."""
    path = tmp_path / "pages.jsonl"
    lines = ["Škofja Loka\n", "Škofja Loka is a town.\n", "Section::::History.\n", "It is old.\n"]
    records = [{"wikipedia_id": str(n), "wikipedia_title": f"Škofja Loka {n}", "text": lines} for n in range(200)]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def documents(folder: Path) -> list[dict[str, str]]:
    found = [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    return sorted(found, key=lambda document: [int(part) for part in document["id"].split("-")])


def test_several_processes_cut_as_one_does(tmp_path: Path, pages: Path) -> None:
    assert write_passages(pages, tmp_path / "one", 1) == Cut(200, 400)
    assert write_passages(pages, tmp_path / "three", 3) == Cut(200, 400)
    alone = documents(tmp_path / "one")
    assert documents(tmp_path / "three") == alone
    assert [document["id"] for document in alone] == [f"{page}-{place}" for page in range(200) for place in (0, 1)]
    assert alone[1]["section"] == "History"
    assert len(list((tmp_path / "three").iterdir())) > 10


def test_compressed_pages_are_read_whatever_their_name(tmp_path: Path, pages: Path) -> None:
    compressed = tmp_path / "pages.of.wikipedia"
    compressed.write_bytes(gzip.compress(pages.read_bytes()))
    assert write_passages(compressed, tmp_path / "out", 1) == Cut(200, 400)
    write_passages(pages, tmp_path / "plain", 1)
    assert documents(tmp_path / "out") == documents(tmp_path / "plain")


def test_the_size_of_the_text_is_known_before_it_is_read(tmp_path: Path, pages: Path) -> None:
    plain = pages.stat().st_size
    assert text_bytes(pages) == plain
    (tmp_path / "empty").write_bytes(b"")
    assert text_bytes(tmp_path / "empty") == 0


def test_the_size_of_compressed_text_is_estimated_by_its_beginning(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "BLOCK_BYTES", 1 << 20)
    compressed = tmp_path / "pages.gz"
    compressed.write_bytes(gzip.compress(pages.read_bytes()))
    assert text_bytes(compressed) == pages.stat().st_size


def test_a_torn_file_says_where(tmp_path: Path, pages: Path) -> None:
    whole = gzip.compress(pages.read_bytes())
    torn = tmp_path / "torn.gz"
    torn.write_bytes(whole[:-20])
    with pytest.raises(UnreadablePagesError, match=r"torn\.gz is torn after line \d+ .*copy it again"):
        write_passages(torn, tmp_path / "out", 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_of_another_kind_is_refused_at_its_beginning(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "pages.csv"
    path.write_text("id,title,text\n" * 100_000)
    with pytest.raises(UnreadablePagesError, match=r"not a file of KILT pages: .* line 1: Expecting value.*; line 2: "):
        write_passages(path, tmp_path / "out", threads)
    assert len(list((tmp_path / "out").iterdir())) < 20


def test_a_file_without_line_breaks_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "MAX_LINE_BYTES", 5_000)
    path = tmp_path / "pages.json"
    path.write_text("[" + "1," * 10_000)
    with pytest.raises(UnreadablePagesError, match="no line breaks"):
        write_passages(path, tmp_path / "out", 1)


def test_half_a_character_costs_no_page(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text('{"wikipedia_id": "1", "wikipedia_title": "A", "text": ["One \\ud83d half.\\n"]}\n')
    assert write_passages(path, tmp_path / "out", 1) == Cut(1, 1)
    assert documents(tmp_path / "out")[0]["text"] == "One ? half."


def test_progress_shows_rate_and_time_left_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    times: Iterator[float] = iter([0.0, 1.0, EVERY_SECONDS, EVERY_SECONDS + 1, 1_000.0, 100_000.0])
    progress = Progress("cutting", "pages", clock=lambda: next(times))
    for share, count in ((0.01, 1), (0.1, 5_000), (0.11, 6_000), (0.2, 1_000_000), (0.5, 2_000_000)):
        progress.report(share, count)
    assert [record.getMessage() for record in caplog.records] == [
        "cutting: 10 %, 5,000 pages, 500 a second, 2 min left",
        "cutting: 20 %, 1,000,000 pages, 1,000 a second, 67 min left",
        "cutting: 50 %, 2,000,000 pages, 20 a second, 27.8 h left",
    ]
