"""A folder that WikiExtractor wrote becomes an index: its pages, headings and damage."""

import json
from pathlib import Path

import pytest

from services.wiki_search import cutting
from services.wiki_search.cutting import Cut, UnreadablePagesError, text_bytes, write_passages
from services.wiki_search.extracted import kilt_record
from services.wiki_search.index import ensure_index, recipe_of
from services.wiki_search.passages import split_page

RIVER = """<doc id="12" url="http://en.example.org/wiki?curid=12" title="Sora &amp; Drava">
Sora &amp; Drava

Two rivers meet here; one of them carries  water below the &lt;old&gt; bridge.
History.
Bridges.
The first one was made of wood. It burned.
It was built anew.
"The Song of the Bridge".
Fish.
Trout are caught in it by people who sit on its banks for hours.
External links.

</doc>
"""
MEANINGS = """<doc id="13" url="http://en.example.org/wiki?curid=13" title="Bank">
Bank

Bank may refer to:
Bank (river), its side.

</doc>
"""


def town(number: int) -> str:
    page = f"Town {number}\n\nTown {number} is a town of {number} people.\n"
    return (
        f'<doc id="{number}" url="http://en.example.org/wiki?curid={number}" title="Town {number}">\n{page}\n</doc>\n'
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two hundred towns in one file, a river and a list of meanings in another, and a file of something else."""
    extracted = tmp_path / "extracted"
    (extracted / "AA").mkdir(parents=True)
    (extracted / "AB").mkdir()
    (extracted / "AA" / "wiki_00").write_text("".join(town(number) for number in range(1000, 1200)))
    (extracted / "AB" / "wiki_00").write_text(RIVER + MEANINGS)
    (extracted / "wiki.log").write_text("INFO: finished")
    return extracted


def documents(folder: Path) -> dict[str, dict[str, str]]:
    read = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines()]
    return {document["id"]: document for document in read}


def test_a_page_becomes_a_record_of_kilt() -> None:
    record = kilt_record(RIVER.encode())
    assert (record["wikipedia_id"], record["wikipedia_title"]) == ("12", "Sora & Drava")
    assert [(passage.section, passage.text) for passage in split_page(record)] == [
        ("", "Two rivers meet here; one of them carries water below the <old> bridge."),
        ("History > Bridges", "The first one was made of wood. It burned."),
        ("It was built anew", '"The Song of the Bridge".'),
        ("Fish", "Trout are caught in it by people who sit on its banks for hours."),
    ]


def test_a_list_of_meanings_has_no_text() -> None:
    assert list(split_page(kilt_record(MEANINGS.encode()))) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_a_folder_is_cut_page_by_page(
    tmp_path: Path, folder: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "BLOCK_BYTES", 1_000)
    assert write_passages(folder, tmp_path / "out", threads) == Cut(pages=202, passages=204)
    found = documents(tmp_path / "out")
    assert found["1117-0"]["text"] == "Town 1117 is a town of 1117 people."
    assert found["12-3"]["section"] == "Fish"
    assert len(list((tmp_path / "out").iterdir())) > 10
    assert text_bytes(folder) == sum(path.stat().st_size for path in folder.rglob("wiki_00"))


def test_what_is_no_page_is_left_out_and_named(tmp_path: Path, folder: Path) -> None:
    torn = town(2000).replace("</doc>", "")
    (folder / "AB" / "wiki_01").write_text("".join(town(number) for number in range(3000, 3100)) + torn)
    cut = write_passages(folder, tmp_path / "out", 1)
    assert (cut.pages, cut.malformed) == (302, 1)
    [named] = cut.named
    assert named.startswith("page 101 after line 0 of AB/wiki_01: it is not one <doc id=")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(UnreadablePagesError, match=r"other holds no text; give WikiExtractor's files, wiki_00"):
        write_passages(other, tmp_path / "none", 1)
    (other / "wiki_00").write_text("Town 7 is a town.\n")
    pattern = r"other is not a folder of WikiExtractor's: 1 of the first 1 pages read are none; page 1 after line 0"
    with pytest.raises(UnreadablePagesError, match=pattern):
        write_passages(other, tmp_path / "out", 1)


def test_an_index_of_a_folder_is_made_again_when_a_file_changes(tmp_path: Path, folder: Path) -> None:
    manifest = ensure_index(tmp_path / "index", str(folder), threads=1)
    assert (manifest.pages, manifest.passages, manifest.recipe.source) == (202, 204, "extracted")
    assert recipe_of(str(folder)) == manifest.recipe
    (folder / "AB" / "wiki_00").rename(folder / "AB" / "wiki_07")
    assert recipe_of(str(folder)) != manifest.recipe
