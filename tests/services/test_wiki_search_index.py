"""The index on disk: whole or not there, reused, replaced, refused."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import demo_world
from services import bundled_pages
from services.wiki_search.index import IndexBuildError, ensure_index, manifest_if_current, recipe_of
from services.wiki_search.manifest import MANIFEST_NAME, UnusableIndexError, read_manifest
from tests.services.wiki_search_pages import SECONDS, build

pytestmark = pytest.mark.timeout(400)

PAGE = {"wikipedia_id": "1", "wikipedia_title": "Oslo", "text": ["Oslo\n", "Oslo is a city.\n"]}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    path = tmp_path / "pages.jsonl"
    path.write_text(json.dumps(PAGE) + "\n")
    return path


def stamp(index: Path) -> int:
    return (index / MANIFEST_NAME).stat().st_mtime_ns


def test_an_index_is_built_reused_and_renewed(tmp_path: Path, pages: Path) -> None:
    index = tmp_path / "deep" / "index"
    abandoned = index.parent / ".index.building-abc"  # what a killed builder left
    abandoned.mkdir(parents=True)
    (abandoned / "pages.jsonl").write_text("half")
    first = ensure_index(index, str(pages), threads=1)
    assert (first.pages, first.passages) == (1, 1)
    assert first == read_manifest(index) == manifest_if_current(index, recipe_of(str(pages)))
    built = stamp(index)

    assert ensure_index(index, str(pages), threads=1) == first
    assert stamp(index) == built

    pages.write_text(json.dumps(PAGE) + "\n" + json.dumps({**PAGE, "wikipedia_id": "2"}) + "\n")
    assert ensure_index(index, str(pages), threads=1).pages == 2
    assert sorted(path.name for path in index.parent.iterdir()) == ["index", "index.lock"]


def test_two_builders_at_once_build_once(tmp_path: Path, pages: Path) -> None:
    index = str(tmp_path / "i")
    command = [sys.executable, "-m", "services.wiki_search.index", "--pages", str(pages), "--index", index]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outcomes = [builder.communicate(timeout=SECONDS) for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert outcomes[0][0] == outcomes[1][0]
    assert sum("indexed 1 pages" in errors for _, errors in outcomes) == 1


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: Expecting property name"),
        ("[]", "line 2: it is not a JSON object"),
        ('{"wikipedia_id": "2", "wikipedia_title": "X"}', "line 2: text of page 2"),
        ("[" * 100_000, "line 2: "),
    ],
)
def test_a_file_of_something_else_is_refused_and_nothing_is_left(
    tmp_path: Path, pages: Path, line: str, complaint: str
) -> None:
    pages.write_text(json.dumps(PAGE) + "\n" + line + "\n")
    message = f"pages.jsonl is not a file of KILT pages: 1 of the first 2 lines read are none; {complaint}"
    with pytest.raises(IndexBuildError, match=re.escape(message)):
        ensure_index(tmp_path / "index", str(pages), threads=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.lock", "pages.jsonl"]


def test_a_few_malformed_lines_are_left_out_counted_and_named(
    tmp_path: Path, pages: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [json.dumps({**PAGE, "wikipedia_id": str(number)}) for number in range(300)]
    lines[7] = lines[7][:20]
    lines[200] = '{"wikipedia_id": 5}'
    pages.write_text("\n".join(lines))
    manifest = ensure_index(tmp_path / "index", str(pages), threads=1)
    assert (manifest.pages, manifest.passages, manifest.malformed_lines) == (298, 298, 2)
    assert read_manifest(tmp_path / "index") == manifest
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    [warning] = [record.getMessage() for record in warnings if record.name.startswith("services.")]
    assert warning.startswith("left out 2 malformed lines, the first: line 8: ")
    assert "; line 201: wikipedia_id" in warning


def test_what_the_work_takes_is_said_before_it_begins(
    tmp_path: Path, pages: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    pages.write_text((json.dumps(PAGE) + "\n") * 20_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 3_000_000, 3_000_000))
    with pytest.raises(
        IndexBuildError, match=r"--index: building takes about 8\.\d MB of disk .* 3\.0 MB free; make room"
    ):
        ensure_index(tmp_path / "index", str(pages), threads=1, heap_mb=1_000)
    pattern = r"1\.\d MB of pages; .* 8\.\d MB of disk .* \(3\.0 MB is free\), the index 2\.\d MB .* 1\.2 GB of memory"
    assert re.search(pattern, caplog.text)


def test_pages_without_text_are_refused(tmp_path: Path, pages: Path) -> None:
    pages.write_text("\n")
    with pytest.raises(IndexBuildError, match="holds no text"):
        ensure_index(tmp_path / "index", str(pages))


def test_a_missing_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    done = build(tmp_path / "nothing.jsonl", tmp_path / "index")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "--pages" in done.stderr
    assert "nothing.jsonl" in done.stderr


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path, pages: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    (index / "thesis.txt").write_text("my only copy")
    with pytest.raises(UnusableIndexError, match="not a finished index"):
        ensure_index(index, str(pages))
    assert (index / "thesis.txt").read_text() == "my only copy"


@pytest.mark.parametrize(
    ("content", "complaint"), [(None, "no manifest.json"), ("{", "cannot be read"), ('{"pages": 3}', "cannot be read")]
)
def test_an_unfinished_index_is_refused_with_the_remedy(tmp_path: Path, content: str | None, complaint: str) -> None:
    index = tmp_path / "index"
    index.mkdir()
    (index / "lucene").mkdir()
    if content is not None:
        (index / MANIFEST_NAME).write_text(content)
    with pytest.raises(UnusableIndexError, match=f"{complaint}.*build it again"):
        read_manifest(index)


def test_an_index_of_another_format_is_refused(wiki_index: Path, tmp_path: Path) -> None:
    manifest = read_manifest(wiki_index)
    recipe = manifest.recipe.model_copy(update={"format": 99})
    manifest.model_copy(update={"recipe": recipe}).write(tmp_path)
    with pytest.raises(UnusableIndexError, match="format 99"):
        read_manifest(tmp_path)


def test_the_fingerprint_covers_every_file_the_bundled_pages_come_from() -> None:
    program = (
        "import sys\n"
        "files = set()\n"
        "sys.addaudithook(lambda event, args: files.add(str(args[0])) if event == 'open' else None)\n"
        "import demo_world.encyclopedia as pages\n"
        "next(pages.pages())\n"
        "files |= {m.__file__ for name, m in sys.modules.items() if name.startswith('demo_world')}\n"
        "print(*(f for f in files if '/demo_world/' in f and not f.endswith('.pyc')), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=SECONDS)
    read = {path.rpartition("/demo_world/")[2] for path in done.stdout.splitlines()}
    assert read == set(bundled_pages.page_sources(Path(demo_world.__path__[0])))
    assert bundled_pages.fingerprint() == bundled_pages.fingerprint()
