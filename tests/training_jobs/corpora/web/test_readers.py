"""Readers: three forms of files give the same documents; a damaged one is reported in one line."""

import datetime
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from training_jobs.corpora.web.readers import CorpusError, Read, read
from training_jobs.records import Document

TEXT = "On 3 days 4 ships came.\nŽena said: 7 — naïve 🙂"
URL = "https://a.example/2019/03/23/ships.html"


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)
    return path


def test_ccnet_json_lines_and_parquet_give_the_same_document(tmp_path: Path) -> None:
    ccnet = {
        "url": URL, "date_download": "2020-03-29T09:04:10Z", "title": "Ships", "raw_content": TEXT, "language": "en",
        "nlines": 2,
    }  # fmt: skip
    plain = {"id": "ships", "url": URL, "text": TEXT}
    pyarrow.parquet.write_table(
        pyarrow.table({"text": [TEXT], "url": [URL], "id": ["ships"], "score": [0.5]}), tmp_path / "p.parquet"
    )
    shard = written(tmp_path / "en_head_0000.json.gz", [ccnet])
    assert list(read(shard)) == [
        Read(Document("en_head_0000:1", TEXT, URL, "2019-03-23", "en_head_0000"), language="en")
    ]
    expected = Document("ships", TEXT, URL, "2019-03-23", "p")
    for path in (
        written(tmp_path / "p.jsonl", [plain]),
        written(tmp_path / "p.jsonl.gz", [plain]),
        tmp_path / "p.parquet",
    ):
        assert list(read(path)) == [Read(expected)]


def test_a_given_date_wins_over_the_urls(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    table = pyarrow.table({"text": ["a"], "url": [URL], "date": [datetime.date(2001, 2, 3)]})
    pyarrow.parquet.write_table(table, path)
    lines = written(tmp_path / "p.jsonl", [{"text": "a", "url": URL, "date": "2001-02-03"}])
    assert [one.document.date for file in (path, lines) for one in read(file)] == ["2001-02-03", "2001-02-03"]


def test_a_url_names_no_day_after_the_download(tmp_path: Path) -> None:
    row = {"url": URL, "raw_content": "a", "date_download": "2018-01-01T00:00:00Z"}
    [found] = read(written(tmp_path / "c.json", [row]))
    assert found.document.date is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"text": "a"}, {"url": "b"}], ":2: text: is missing"),
        ([{"raw_content": 5}], ":1: raw_content: must be a string, not int"),
        ([{"text": "a", "url": 7}], ":1: url: must be a string"),
        ([{"text": "a", "date": "23.3.2019"}], ":1: date must be a day as YYYY-MM-DD"),
        ([["text"]], ":1: a record is an object"),
        ([{"text": "\ud800"}], ":1: text is not Unicode"),
    ],
)
def test_a_record_that_is_no_text_is_named(tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
    path = written(tmp_path / "x.jsonl", rows)
    with pytest.raises(CorpusError) as raised:
        list(read(path))
    assert str(raised.value).startswith(f"{path}{said}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.json.gz", gzip.compress(b'{"text": "a"}\n' * 999, mtime=0)[:-20], "is not a whole gzip file"),
        ("x.json.gz", b"not gzip", "is not a whole gzip file"),
        ("x.jsonl", b'{"text": "a"\n', "1: is not JSON"),
        ("x.jsonl", b'{"text": "\xff"}\n', "1: is not JSON"),
        ("x.parquet", b"PAR1 and no more", "is not a whole Parquet file"),
        ("x.txt", b"a", "texts are read from"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=said) as raised:
        list(read(path))
    assert str(path) in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="cannot be read"):
        list(read(tmp_path / "nothing.jsonl"))
