"""One file over HTTP: resumed where it was left, verified, and in its place only when it is whole.

Until then there are two files beside it: ``NAME.partial`` with the bytes, and ``NAME.source.partial`` with what the
server called them (ETag or date), so that bytes of two different files are never joined."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeVar

import httpx

from cli.fetch.part_manifest import FetchedFile, Verified
from toolformer.retry_after import retry_after_s

TIMEOUT: Final = httpx.Timeout(30.0, connect=15.0)
"""Seconds without a byte, and to connect."""
_CHUNK: Final = 1 << 20
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_REMEDIES: Final = {
    401: "set HF_TOKEN to a token that may read it",
    403: "accept its licence on its page, or set HF_TOKEN to a token that may read it",
    404: "it has moved: name another address in a file for --parts",
    410: "it is gone: name another address in a file for --parts",
}
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
Answer = TypeVar("Answer")


class TransferError(Exception):
    """The file is not available; the message names it, and what to do."""


class StoppedError(Exception):
    """The transfer was asked to stop; what has come stays for the next run."""


class TryAgainError(Exception):
    """This attempt failed; another may not. ``wait`` is what the server asked for, in seconds."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Digest:
    """A published digest, in hexadecimal. ``git-blob`` is what git, and so the hub, names a small file by: SHA-1 over
    its length and bytes."""

    algorithm: Literal["sha256", "md5", "git-blob"]
    value: str


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to fetch: its name below the part's folder, and what is known of it before. ``size`` may be the server's
    own announcement; ``published`` says that it is not. ``headers`` go to the address's own host only."""

    name: str
    url: str
    size: int | None = None
    published: bool = False
    digest: Digest | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def fetched(self, size: int, sha256: str) -> FetchedFile:
        """What the manifest says of it once it is whole."""
        verified: Verified = "nothing to compare with"
        if self.digest is not None:
            verified = "published digest"
        elif self.size is not None:
            verified = "published size" if self.published else "announced size"
        return FetchedFile(url=self.url, size=size, sha256=sha256, verified=verified)


@dataclass(frozen=True, slots=True)
class Retries:
    """``attempts`` in a row that bring nothing end a transfer; between them it waits ``first_s``, then twice as long
    each time, ``longest_s`` at most."""

    attempts: int = 6
    first_s: float = 1.0
    longest_s: float = 60.0

    def wait(self, failures: int) -> float:
        return min(self.first_s * 2.0 ** (failures - 1), self.longest_s)


@dataclass(frozen=True, slots=True)
class Network:
    """How servers are asked: again while they fail, and until ``stop`` is set."""

    client: httpx.Client
    stop: threading.Event
    retries: Retries = field(default_factory=Retries)

    def patiently(self, attempt: Callable[[], Answer], about: str, have: Callable[[], int] = lambda: 0) -> Answer:
        """What ``attempt`` gives, tried again while the network or the server fails; an attempt after which there is
        more than ``have`` counted before is no failure.

        Raises:
            TransferError: it is not available; the message begins with what it is ``about``.
            StoppedError: ``stop`` was set.
        """
        failures = 0
        while True:
            before = have()
            try:
                return attempt()
            except (httpx.TransportError, httpx.DecodingError, TryAgainError) as error:
                failures = 0 if have() > before else failures + 1
                if failures >= self.retries.attempts:
                    raise TransferError(
                        f"{about}: {str(error) or type(error).__name__} ({failures} attempts); check the network, then "
                        "give the same command again: it goes on where it was"
                    ) from error
                asked = min(getattr(error, "wait", 0.0), self.retries.longest_s)
                if self.stop.wait(asked or self.retries.wait(max(failures, 1))):
                    raise StoppedError from None
            except httpx.HTTPError as error:
                raise TransferError(f"{about}: {error}") from error

    def announced_size(self, url: str) -> int | None:
        """The bytes that the server says are at ``url``; ``None`` where it does not say.

        Raises:
            TransferError: there is nothing at the address, or nobody who answers.
            StoppedError: ``stop`` was set.
        """

        def ask() -> int | None:
            response = self.client.head(url, headers={"Accept-Encoding": "identity"})
            if response.status_code in _PASSING | _REMEDIES.keys():
                _check(response, url)
            length = response.headers.get("Content-Length", "")
            return int(length) if response.status_code == 200 and length.isdigit() else None

        return self.patiently(ask, url)


class Transfer:
    """Brings ``file`` to ``target``. ``advance`` is called with how many bytes more (or, after a new start, less)
    there are."""

    def __init__(self, network: Network, file: RemoteFile, target: Path, advance: Callable[[int], None]) -> None:
        self._network, self._file, self._target, self._advance = network, file, target, advance
        self._partial = partial_of(target)
        self._source = target.with_name(f"{target.name}.source.partial")
        self._counted = 0  # bytes that `advance` knows of

    def run(self) -> FetchedFile:
        """Fetch it, again and again if need be.

        Raises:
            TransferError: it is not available, or is not what was published.
            StoppedError: it was asked to stop.
        """
        try:
            return self._network.patiently(self._attempt, self._file.url, self._have)
        except OSError as error:
            remedy = "make room" if error.errno == errno.ENOSPC else "check the folder of --to"
            raise TransferError(f"{self._target}: {error.strerror}; {remedy}, then give the command again") from error

    def _have(self) -> int:
        return size_of(self._partial)

    def _attempt(self) -> FetchedFile:
        have, validator, size = self._have(), self._validator(), self._file.size
        # The rest could be of another file where nothing names this one, or there is too much of it.
        if (validator is None and self._file.digest is None) or (size is not None and have > size):
            have = self._forget()
        self._count(have)
        if have == 0 or have != size:
            self._receive(have, validator)
        return self._finish(resumed=have > 0)

    def _receive(self, have: int, validator: str | None) -> None:
        headers = {**self._file.headers, "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if validator is not None:
                headers["If-Range"] = validator
        with self._network.client.stream("GET", self._file.url, headers=headers) as response:
            total = self._begin(response, have)
            self._source.write_text(json.dumps({"url": self._file.url, "validator": _validator_of(response)}))
            with self._partial.open("ab") as out:
                for chunk in response.iter_raw():  # a chunk size would hold bytes back, lost when the connection is cut
                    if self._network.stop.is_set():
                        raise StoppedError
                    out.write(chunk)
                    self._count(self._counted + len(chunk))
            if total is not None and self._counted != total:
                raise TryAgainError(f"the connection ended after {self._counted:,} of {total:,} bytes")

    def _begin(self, response: httpx.Response, have: int) -> int | None:
        """Forget what there is where the response begins anew; how many bytes the whole has, if that is known."""
        if response.status_code == 416:
            self._forget()
            raise TryAgainError("the server has less than what had come before; beginning again")
        _check(response, self._file.url)
        if response.status_code == 206:
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != have:
                self._forget()
                raise TryAgainError("the server sent another range than it was asked for")
            length = found[2]
        else:
            self._forget()
            length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        if total is not None and self._file.size is not None and total != self._file.size:
            self._forget()
            raise TransferError(
                f"{self._file.url} has {total:,} bytes, expected are {self._file.size:,}: it is another file than the "
                "one described; name the right one in a file for --parts"
            )
        return total

    def _finish(self, *, resumed: bool) -> FetchedFile:
        size = self._have()
        if self._file.size is not None and size != self._file.size:
            self._forget()
            raise TryAgainError(f"{size:,} bytes came instead of {self._file.size:,}")
        sha256, wrong = hash_file(self._partial, self._file.digest, self._network.stop)
        if wrong:
            self._forget()
            if resumed:  # the beginning may be of another file; once more, from nothing
                raise TryAgainError(wrong)
            raise TransferError(f"{self._file.url}: {wrong}; what came was thrown away")
        self._partial.replace(self._target)
        self._source.unlink(missing_ok=True)
        return self._file.fetched(size, sha256)

    def _forget(self) -> int:
        self._partial.unlink(missing_ok=True)
        self._source.unlink(missing_ok=True)
        self._count(0)
        return 0

    def _count(self, bytes_there: int) -> None:
        self._advance(bytes_there - self._counted)
        self._counted = bytes_there

    def _validator(self) -> str | None:
        try:
            source = json.loads(self._source.read_text())
            validator = source["validator"] if source["url"] == self._file.url else None
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return validator if isinstance(validator, str) else None


def hash_file(path: Path, expected: Digest | None, stop: threading.Event) -> tuple[str, str | None]:
    """The SHA-256 of a file, and what differs from the ``expected`` digest, if that does; in one reading.

    Raises:
        StoppedError: ``stop`` was set.
    """
    hashes = {"sha256": hashlib.sha256()}
    if expected is not None and expected.algorithm == "md5":
        hashes["md5"] = hashlib.md5(usedforsecurity=False)
    elif expected is not None and expected.algorithm == "git-blob":
        hashes["git-blob"] = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as source:
        while data := source.read(_CHUNK):
            if stop.is_set():
                raise StoppedError
            for one in hashes.values():
                one.update(data)
    sha256 = hashes["sha256"].hexdigest()
    if expected is None or (found := hashes[expected.algorithm].hexdigest()) == expected.value:
        return sha256, None
    return sha256, f"its {expected.algorithm} is {found}, published is {expected.value}"


def partial_of(target: Path) -> Path:
    """Where the bytes of ``target`` are until it is whole."""
    return target.with_name(f"{target.name}.partial")


def size_of(path: Path) -> int:
    """The bytes of a file, 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def _check(response: httpx.Response, url: str) -> None:
    """Pass if the response has the file, or a part of it.

    Raises:
        TryAgainError: it may have it later.
        TransferError: it never will.
    """
    status = response.status_code
    if status in _PASSING:
        raise TryAgainError(f"status {status}", retry_after_s(response.headers))
    if status not in (200, 206):
        remedy = _REMEDIES.get(status, "try again later, or name another address in a file for --parts")
        raise TransferError(f"{url}: status {status}; {remedy}")


def _validator_of(response: httpx.Response) -> str | None:
    """What names the bytes for `If-Range`: a strong ETag, else the date of the last change."""
    etag = response.headers.get("ETag")
    if etag is not None and not etag.startswith("W/"):
        return str(etag)
    date = response.headers.get("Last-Modified")
    return None if date is None else str(date)
