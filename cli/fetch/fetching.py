"""Bringing parts into a folder: only what is missing, only where there is room, and verified."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from cli.console import CommandError
from cli.fetch.catalogue import Part
from cli.fetch.digests import Hashing
from cli.fetch.listing import Lister
from cli.fetch.part_manifest import Manifest, ManifestError, read_manifest
from cli.fetch.transfer import (
    PATIENT,
    TIMEOUT,
    RemoteFile,
    Retries,
    StoppedError,
    Transfer,
    TransferError,
    fetched,
    partial_of,
)

CONNECTIONS: Final = 4
"""Files that come at once."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to fetch: ``endpoint`` is the hub's address where it is another, ``connections`` the files at once."""

    endpoint: str | None = None
    connections: int = CONNECTIONS
    retries: Retries = PATIENT


@dataclass(frozen=True, slots=True)
class _Work:
    """What is still to be done for one part."""

    part: Part
    folder: Path
    manifest: Manifest
    files: tuple[RemoteFile, ...]

    def left(self) -> int:
        """Bytes still to come; files of unknown size count for nothing."""
        return sum(max((file.size or 0) - self.there(file), 0) for file in self.files)

    def there(self, file: RemoteFile) -> int:
        partial = partial_of(self.folder / file.name)
        return partial.stat().st_size if partial.exists() else 0


def fetch(parts: Sequence[Part], to: Path, console: Console, settings: Settings) -> None:
    """Bring ``parts`` into folders below ``to`` and say what comes next. What is there already is not fetched again.

    Raises:
        CommandError: a part cannot be had, the disk is too small, or another process fetches into the same folder.
    """
    stop = threading.Event()
    with contextlib.ExitStack() as held, httpx.Client(timeout=TIMEOUT, follow_redirects=True) as client:
        for part in parts:
            held.enter_context(_alone_in(to / part.folder))
        lister = Lister(client, stop, endpoint=settings.endpoint, retries=settings.retries)
        try:
            works = [work for part in parts if (work := _plan(part, to, lister, console, stop)) is not None]
            _check_room(works, to)
            for work in works:
                _bring(work, client, console, stop, settings)
        except (TransferError, ManifestError) as error:
            raise CommandError(str(error)) from error
        finally:
            stop.set()
    for part in parts:
        console.print(f"{part.name}, next:", markup=False, highlight=False)
        for command in part.next_commands(str(to)):
            console.print(f"    {command}", markup=False, highlight=False, soft_wrap=True)


def _plan(part: Part, to: Path, lister: Lister, console: Console, stop: threading.Event) -> _Work | None:
    """What is to be done for ``part``, or ``None`` where it is whole."""
    folder = to / part.folder
    manifest = read_manifest(folder) or Manifest(part=part.name, licence=part.licence)
    good = {name for name in manifest.files if manifest.amiss(folder, name) is None}
    if manifest.whole and good >= manifest.files.keys() and good >= part.required():
        size = decimal(sum(file.size for file in manifest.files.values()))
        _say(console, f"{part.name} is whole in {folder} ({len(good)} files, {size}): nothing to download")
        return None
    _say(console, f"{part.name}: asking {', '.join(part.origins())}")
    listing = lister.files_of(part, manifest.revisions)
    manifest = manifest.model_copy(
        update={
            "whole": False,
            "revisions": dict(listing.revisions),
            "files": {file.name: manifest.files[file.name] for file in listing.files if file.name in good},
        }
    )
    manifest.write(folder)
    listed = [file for file in listing.files if file.name not in manifest.files]
    todo = tuple(file for file in listed if not _adopt(file, folder, manifest, console, stop))
    return _Work(part, folder, manifest, todo)


def _adopt(file: RemoteFile, folder: Path, manifest: Manifest, console: Console, stop: threading.Event) -> bool:
    """Take a file that somebody else put there, or a kill left unlisted, if it is what is wanted."""
    target = folder / file.name
    if file.size is None or not target.is_file() or target.stat().st_size != file.size:
        return False
    _say(console, f"{target} is there already: verifying it")
    hashing = Hashing(file.digest, file.size)
    hashing.update_from(target, stop.is_set)
    if wrong := hashing.wrong():
        _say(console, f"{target}: {wrong}; fetching it again")
        return False
    manifest.files[file.name] = fetched(file, file.size, hashing.sha256)
    manifest.write(folder)
    return True


def _bring(work: _Work, client: httpx.Client, console: Console, stop: threading.Event, settings: Settings) -> None:
    """Fetch the files of one part, several at once; the manifest grows with each."""
    writing = threading.Lock()
    sizes = [file.size for file in work.files]
    total = None if None in sizes else sum(size or 0 for size in sizes)

    def one(file: RemoteFile, advance: Callable[[int], None]) -> None:
        target = work.folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        came = Transfer(client, file, target, stop=stop, advance=advance, retries=settings.retries).run()
        with writing:
            work.manifest.files[file.name] = came
            work.manifest.write(work.folder)

    with Meter(console, work.part.name, total) as meter, ThreadPoolExecutor(settings.connections) as pool:
        futures = [pool.submit(one, file, meter.more) for file in work.files]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        errors = [error for future in done if (error := future.exception()) is not None]
        if errors:
            stop.set()  # what the others have brought stays
            pool.shutdown(cancel_futures=True)
            raise next((error for error in errors if not isinstance(error, StoppedError)), errors[0])
    work.manifest.whole = True
    work.manifest.write(work.folder)
    size = decimal(sum(file.size for file in work.manifest.files.values()))
    _say(console, f"{work.part.name} is whole in {work.folder} ({len(work.manifest.files)} files, {size})")
    unsure = sum(file.verified not in ("published digest", "published size") for file in work.manifest.files.values())
    if unsure:
        _say(console, f"for {unsure} of them no digest and no size is published: they are as long as the server said")


def _check_room(works: Sequence[_Work], to: Path) -> None:
    needed, free = sum(work.left() for work in works), shutil.disk_usage(to).free
    if needed > free:
        names = ", ".join(work.part.name for work in works)
        raise CommandError(
            f"{to} has {decimal(free)} free, and {names} still need {decimal(needed)}: make room, or name a folder on "
            "another disk in --to"
        )


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Make ``folder``, and hold it against other fetches while the block runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}; name another folder in --to") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"another process is fetching into {folder}: wait for it") from None
        yield
    finally:
        os.close(handle)


def _say(console: Console, message: str) -> None:
    console.print(message, markup=False, highlight=False, soft_wrap=True)


EVERY_S: Final = 10.0


class Meter(Progress):
    """Counts bytes from any thread; ``total`` is ``None`` where nobody knows it."""

    def __init__(self, console: Console, name: str, total: int | None) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self._bytes = self.add_task(name, total=total)
        self._shown_at = time.monotonic()

    def more(self, count: int) -> None:
        """So many bytes more are there."""
        self.advance(self._bytes, count)
        if self.disable and time.monotonic() - self._shown_at >= EVERY_S:
            self._shown_at = time.monotonic()
            [task] = self.tasks
            whole = "" if task.total is None else f" of {decimal(int(task.total))}"
            left = "" if task.time_remaining is None else f", {task.time_remaining / 60:,.0f} min left"
            line = f"{task.description}: {decimal(int(task.completed))}{whole}, {decimal(int(task.speed or 0))}/s{left}"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
