"""Finished chunks on disk, and the file that they become.

Beside ``OUT.jsonl`` stands, until it is whole, the folder ``OUT.jsonl.parts`` with ``settings.json`` and a file for
each finished chunk, ``NUMBER.DIGEST.jsonl``. A part gets its name in the instant in which it is whole (a rename), and
its name holds the digest of its bytes: whatever kills the job or the machine, a part is there and right, or it is made
again. Once all parts are there they are joined, in order, and ``OUT.jsonl.done.json`` says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from toolformer.model_files.digests import file_digest
from toolformer.model_files.whole import whole
from training_jobs.errors import StageError
from training_jobs.records import Record
from training_jobs.runner.chunks import marker_of

_PART: Final = re.compile(r"(\d{8})\.([0-9a-f]{32})\.jsonl")
_BLOCK: Final = 1 << 20


def write_whole(path: Path, data: bytes | str) -> None:
    """Write ``data`` (text as UTF-8) so that a reader, and anyone who starts after a kill, sees all of it or the file
    as it was.

    Raises:
        StageError: if it cannot be written.
    """
    with _writing(path) as partial:
        partial.write_bytes(data.encode() if isinstance(data, str) else data)


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a line for each record as :func:`write_whole` does."""
    write_whole(path, "".join(record.to_line() for record in records))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write ``value`` as :func:`write_whole` does."""
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[Path]:
    try:
        with whole(path, shared=True) as partial:
            yield partial
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StageError(f"{path} cannot be written ({error.strerror}); make room, and run again to go on") from error


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The names of the settings that differ, for people; empty if none does."""
    return ", ".join(sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)))


class Parts:
    """The parts of ``output``, which depends on ``settings`` (JSON) and nothing else, in ``count`` chunks."""

    def __init__(self, output: Path, settings: Mapping[str, Any], count: int) -> None:
        self._output = output
        self._settings = json.loads(json.dumps(settings))
        self._count = count
        self._folder = output.with_name(f"{output.name}.parts")
        self._marker = marker_of(output)

    def joined(self) -> bool:
        """Whether the output is there, whichever process joined it."""
        return self._marker.exists()

    def finished(self) -> bool:
        """Whether the output is whole.

        Raises:
            StageError: if it, or what there is of it, was made with other settings.
        """
        marker = _read(self._marker)
        if marker is not None:
            self._check(marker.get("settings"))
            return self._output.is_file() and self._whole(marker)
        if (begun := _read(self._folder / "settings.json")) is not None:
            if self._parts() or begun == self._settings:
                self._check(begun)
            else:  # begun, but nothing was done: nothing is lost with other settings
                (self._folder / "settings.json").unlink(missing_ok=True)
        return False

    def _whole(self, marker: Mapping[str, Any]) -> bool:
        if self._output.stat().st_size != marker.get("bytes"):
            return False
        if file_digest(self._output) != marker.get("sha256"):
            raise StageError(
                f"{self._output} is damaged: its digest is not the one written down; give --restart to make it again"
            )
        return True

    def fit(self) -> bool:
        """Whether what there is was made with these settings."""
        try:
            self.finished()
        except StageError:
            return False
        return True

    def forget(self) -> None:
        """Remove the output and all parts."""
        self._marker.unlink(missing_ok=True)
        self._output.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextlib.contextmanager
    def held(self, rank: int) -> Iterator[None]:
        """Keep other processes from doing the work of ``rank`` meanwhile; a killed process holds nothing.

        Raises:
            StageError: if another does it now.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / "settings.json").exists():
            write_json(self._folder / "settings.json", self._settings)
        with (self._folder / f"rank-{rank}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StageError(
                    f"{self._output}: another process is at it (rank {rank}); wait for it, or end it first"
                ) from None
            except OSError:
                pass  # a file system without locks: parts are whole or absent all the same
            yield

    def write(self, number: int, data: bytes) -> None:
        """Keep the output of chunk ``number``."""
        write_whole(self._folder / f"{number:08d}.{_digest(data)}.jsonl", data)

    def done(self) -> set[int]:
        """The chunks whose output is there. A part that is not what its name says is removed."""
        found = set()
        for number, path in self._parts().items():
            if _digest(path.read_bytes()) == path.name.split(".")[1]:
                found.add(number)
            else:
                path.unlink()
        return found

    def join(self) -> bool:
        """Make the output of the parts; false if some are still missing. Several processes may do this at once."""
        parts = self._parts()
        if len(parts) < self._count:
            return self.joined()
        digest = hashlib.sha256()
        try:
            with _writing(self._output) as partial, partial.open("wb") as joined:
                for number in range(self._count):
                    with parts[number].open("rb") as part:
                        while block := part.read(_BLOCK):
                            digest.update(block)
                            joined.write(block)
                size = joined.tell()
        except FileNotFoundError:
            if self.joined():  # another process joined them and swept up
                return True
            raise
        contents = {"settings": self._settings, "bytes": size, "sha256": digest.hexdigest()}
        write_json(self._marker, contents)
        shutil.rmtree(self._folder, ignore_errors=True)
        return True

    def sweep(self) -> None:
        """Remove parts that a kill between joining and sweeping left."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _parts(self) -> dict[int, Path]:
        """A part for each number. Two may be there where two processes took the same rank; the choice is fixed."""
        found: dict[int, Path] = {}
        with contextlib.suppress(FileNotFoundError):
            for path in sorted(self._folder.iterdir(), reverse=True):
                if (named := _PART.fullmatch(path.name)) and int(named[1]) < self._count:
                    found[int(named[1])] = path
        return found

    def _check(self, other: Any) -> None:
        if other == self._settings:
            return
        differ = differing(other if isinstance(other, dict) else {}, self._settings)
        raise StageError(
            f"{self._output} was made from other input or settings ({differ}): "
            "give --restart to make it again, or another folder"
        )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        contents = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return contents if isinstance(contents, dict) else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
