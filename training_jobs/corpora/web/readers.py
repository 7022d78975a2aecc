"""Plain texts from files: CCNet's JSON lines, JSON lines with a ``text``, Parquet; gzip where the name says so."""

from __future__ import annotations

import datetime
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from training_jobs.corpora.web.url_dates import date_in_url
from training_jobs.records import Document

_LINES: Final = (".json", ".jsonl", ".ndjson")
_PARQUET: Final = ".parquet"
_BATCH: Final = 512


class CorpusError(ValueError):
    """A file cannot be read as texts. The message is one line: file, line, field, what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class Read:
    """A text as it was found: the document, and the ``language`` that its file says it is in (CCNet's ``language``)."""

    document: Document
    language: str | None = None


def read(path: Path) -> Iterator[Read]:
    """The texts of one file, in order.

    A record with ``raw_content`` is CCNet's (Wenzek et al., 2020), with ``url``, ``date_download`` and ``language``;
    any other has its text in ``text``, and may have ``url`` and ``date`` (``YYYY-MM-DD``). The document's date is
    ``date``, else the day in the URL. Its id is the record's ``id``, else file and line.

    Raises:
        CorpusError: if the file cannot be read, or a record is not a text.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    if kind not in (*_LINES, _PARQUET):
        raise CorpusError(f"{path}: texts are read from .json, .jsonl (also .gz) and .parquet; rename or convert it")
    name = path.name[: path.name.lower().index(kind)]
    rows = _parquet(path) if kind == _PARQUET else _json_lines(path)
    for number, row in rows:
        yield _text(row, f"{path}:{number}", f"{name}:{number}")


def _text(row: Any, where: str, default_id: str) -> Read:
    if not isinstance(row, Mapping):
        raise CorpusError(f"{where}: a record is an object with its fields, not {type(row).__name__}")
    field = "raw_content" if "raw_content" in row else "text"
    text = row.get(field)
    if not isinstance(text, str):
        problem = "is missing" if text is None else f"must be a string, not {type(text).__name__}"
        raise CorpusError(f"{where}: {field}: {problem}; CCNet has its text in raw_content, other files in text")
    url = row.get("url")
    if url is not None and not isinstance(url, str):
        raise CorpusError(f"{where}: url: must be a string, not {type(url).__name__}")
    downloaded = _day_of(row.get("date_download"))
    date = row.get("date")
    if date is None:
        day = date_in_url(url, latest=downloaded).day
        date = day.isoformat() if day else None
    elif isinstance(date, datetime.date):
        date = date.isoformat()[:10]
    identity = row.get("id")
    language = row.get("language")
    try:
        document = Document(
            id=identity if isinstance(identity, str) and identity else default_id,
            text=text,
            url=url,
            date=date,
            source=default_id.rpartition(":")[0],
        )
    except (ValueError, TypeError) as error:
        raise CorpusError(f"{where}: {error}") from error
    return Read(document, language if isinstance(language, str) else None)


def _day_of(stamp: object) -> datetime.date | None:
    """The day of a time stamp such as ``2020-03-29T09:04:10Z``."""
    try:
        return datetime.date.fromisoformat(str(stamp)[:10])
    except ValueError:
        return None


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with _reading(path), _open(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise CorpusError(f"{path}:{number}: is not JSON ({error}); one record a line") from error


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def _parquet(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise CorpusError(f"{path}: Parquet needs pyarrow: make setup, or pip install '.[jobs]'") from error
    with _reading(path):
        try:
            file = pyarrow.parquet.ParquetFile(path)
            known = [name for name in file.schema_arrow.names if name in _COLUMNS]
            number = 0
            for batch in file.iter_batches(_BATCH, columns=known):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except pyarrow.ArrowException as error:
            raise CorpusError(f"{path}: is not a whole Parquet file ({str(error).splitlines()[0]})") from error


_COLUMNS: Final = frozenset({"id", "text", "raw_content", "url", "date", "date_download", "language"})


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except CorpusError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"{path}: is not a whole gzip file ({error}); fetch it again") from error
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error}); correct the path") from error
