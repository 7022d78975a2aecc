"""Bringing parts into a folder: only what is missing, only where there is room, and verified."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

import httpx
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from cli.console import CommandError
from cli.fetch.catalogue import Part
from cli.fetch.listing import files_of
from cli.fetch.part_manifest import Manifest, ManifestError, read_manifest
from cli.fetch.transfer import (
    TIMEOUT,
    Network,
    RemoteFile,
    Retries,
    StoppedError,
    Transfer,
    TransferError,
    hash_file,
    partial_of,
    size_of,
)


def fetch(
    parts: Sequence[Part],
    to: Path,
    console: Console,
    *,
    connections: int,
    endpoint: str | None = None,
    retries: Retries | None = None,
) -> None:
    """Bring ``parts`` into folders below ``to`` and say what comes next. What is there already is not fetched again.

    Args:
        parts: what to bring.
        to: the folder.
        console: where to say what is going on.
        connections: files that come at once.
        endpoint: the hub's address where it is another.
        retries: how often what fails is tried again.

    Raises:
        CommandError: a part is not available, the disk is too small, or another process fetches into the same folder.
    """
    stop = threading.Event()
    with contextlib.ExitStack() as held, httpx.Client(timeout=TIMEOUT, follow_redirects=True) as client:
        for part in parts:
            held.enter_context(_alone_in(to / part.folder))
        network = Network(client, stop, retries or Retries())
        try:
            works = [_Work(part, to / part.folder, network, console) for part in parts]
            open_works = [work for work in works if not work.whole()]
            for work in open_works:
                work.plan(endpoint)
            _check_room(open_works, to)
            for work in open_works:
                work.bring(connections)
        except (TransferError, ManifestError) as error:
            raise CommandError(str(error)) from error
        finally:
            stop.set()
    for part in parts:
        console.print(f"{part.name}, next:", markup=False, highlight=False)
        for command in part.next_commands(str(to)):
            console.print(f"    {command}", markup=False, highlight=False, soft_wrap=True)


class _Work:
    """What is still to be done for one part.

    Raises:
        ManifestError: its folder's manifest cannot be read.
    """

    def __init__(self, part: Part, folder: Path, network: Network, console: Console) -> None:
        self.part, self._folder, self._network, self._console = part, folder, network, console
        self._manifest = read_manifest(folder) or Manifest(part=part.name, licence=part.licence)
        self._files: list[RemoteFile] = []

    def whole(self) -> bool:
        """Whether all is there."""
        good = self._good()
        if not (self._manifest.whole and good >= self._manifest.files.keys() | self.part.required()):
            return False
        self._say(f"{self._summary()}: nothing to download")
        return True

    def plan(self, endpoint: str | None) -> None:
        """Ask what there is to fetch, and keep what is there of it."""
        self._say(f"{self.part.name}: asking {', '.join(self.part.origins())}")
        listed, revisions = files_of(self.part, self._manifest.revisions, self._network, endpoint)
        before, good = self._manifest.files, self._good()
        self._manifest.files = {file.name: before[file.name] for file in listed if file.name in good}
        self._manifest.whole, self._manifest.revisions = False, revisions
        self._manifest.write(self._folder)
        self._files = [file for file in listed if file.name not in self._manifest.files and not self._adopt(file)]

    def left(self) -> int:
        """Bytes still to come; files of unknown size count for nothing."""
        return sum(max((file.size or 0) - size_of(partial_of(self._folder / file.name)), 0) for file in self._files)

    def bring(self, connections: int) -> None:
        """Fetch the files, several at once; the manifest grows with each."""
        writing = threading.Lock()
        sizes = [file.size for file in self._files]
        total = None if None in sizes else sum(size or 0 for size in sizes)

        def one(file: RemoteFile) -> None:
            target = self._folder / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            came = Transfer(self._network, file, target, meter.more).run()
            with writing:
                self._manifest.files[file.name] = came
                self._manifest.write(self._folder)

        with Meter(self._console, self.part.name, total) as meter, ThreadPoolExecutor(connections) as pool:
            futures = [pool.submit(one, file) for file in self._files]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                errors = [error for future in done if (error := future.exception()) is not None]
                if errors:
                    raise next((error for error in errors if not isinstance(error, StoppedError)), errors[0])
            except BaseException:
                self._network.stop.set()  # what the others have brought stays
                pool.shutdown(cancel_futures=True)
                raise
        self._manifest.whole = True
        self._manifest.write(self._folder)
        self._say(self._summary())
        published = ("published digest", "published size")
        if unsure := sum(file.verified not in published for file in self._manifest.files.values()):
            self._say(f"for {unsure} of them no digest and no size is published: they are as long as the server said")

    def _good(self) -> set[str]:
        return {name for name in self._manifest.files if self._manifest.amiss(self._folder, name) is None}

    def _adopt(self, file: RemoteFile) -> bool:
        """Take a file that somebody else put there, or a kill left unlisted, if it is what is wanted."""
        target = self._folder / file.name
        if file.size is None or not target.is_file() or target.stat().st_size != file.size:
            return False
        self._say(f"{target} is there already: verifying it")
        sha256, wrong = hash_file(target, file.digest, self._network.stop)
        if wrong:
            self._say(f"{target}: {wrong}; fetching it again")
            return False
        self._manifest.files[file.name] = file.fetched(file.size, sha256)
        self._manifest.write(self._folder)
        return True

    def _summary(self) -> str:
        files = self._manifest.files.values()
        size = decimal(sum(file.size for file in files))
        return f"{self.part.name} is whole in {self._folder} ({len(files)} files, {size})"

    def _say(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)


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
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"another process is fetching into {folder}: wait for it") from None
        except OSError as error:
            raise CommandError(f"{folder}: {error.strerror}; name another folder in --to") from error
        yield


EVERY_S: Final = 10.0


class Meter(Progress):
    """Counts bytes from any thread; ``total`` is ``None`` where nobody knows it."""

    def __init__(self, console: Console, name: str, total: int | None) -> None:
        columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
        super().__init__(TextColumn("{task.description}"), *columns, console=console, disable=not console.is_terminal)
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
