"""One file over HTTP: resumed where it was left, verified, and in its place only when it is whole.

Until then there are two files beside it: ``NAME.partial`` with the bytes, and ``NAME.source.partial`` with what the
server called them (ETag or date), so that bytes of two different files are never joined."""

from __future__ import annotations

import errno
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import httpx

from cli.fetch.digests import Digest, Hashing
from cli.fetch.part_manifest import FetchedFile, Verified
from toolformer.retry_after import retry_after_s

TIMEOUT: Final = httpx.Timeout(30.0, connect=15.0)
"""Seconds without a byte, and to connect."""
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_REMEDIES: Final = {
    401: "set HF_TOKEN to a token that may read it",
    403: "accept its licence on its page, or set HF_TOKEN to a token that may read it",
    404: "it has moved: name another address in a file for --parts",
    410: "it is gone: name another address in a file for --parts",
}
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class TransferError(Exception):
    """The file cannot be had; the message names it, and what to do."""


class StoppedError(Exception):
    """The transfer was told to stop; what has come stays for the next run."""


class TryAgainError(Exception):
    """This attempt failed; another may not. ``wait`` is what the server asked for, in seconds."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


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


@dataclass(frozen=True, slots=True)
class Retries:
    """``attempts`` in a row that bring nothing end a transfer; between them it waits ``first_s``, then twice as long
    each time, ``longest_s`` at most."""

    attempts: int = 6
    first_s: float = 1.0
    longest_s: float = 60.0

    def wait(self, failures: int) -> float:
        return min(self.first_s * 2.0 ** (failures - 1), self.longest_s)


PATIENT: Final = Retries()
Answer = TypeVar("Answer")


def patiently(
    attempt: Callable[[], Answer],
    about: str,
    stop: threading.Event,
    retries: Retries = PATIENT,
    have: Callable[[], int] = lambda: 0,
) -> Answer:
    """What ``attempt`` gives, tried again while the network or the server fails; an attempt after which there is more
    than ``have`` counted before is no failure.

    Raises:
        TransferError: it cannot be had; the message begins with what it is ``about``.
        StoppedError: ``stop`` was set.
    """
    failures = 0
    while True:
        before = have()
        try:
            return attempt()
        except (httpx.TransportError, httpx.DecodingError, TryAgainError) as error:
            failures = 0 if have() > before else failures + 1
            if failures >= retries.attempts:
                raise TransferError(
                    f"{about}: {str(error) or type(error).__name__} ({failures} attempts); check the network, then "
                    "give the same command again: it goes on where it was"
                ) from error
            asked = min(getattr(error, "wait", 0.0), retries.longest_s)
            if stop.wait(asked or retries.wait(max(failures, 1))):
                raise StoppedError from None
        except httpx.HTTPError as error:
            raise TransferError(f"{about}: {error}") from error


class Transfer:
    """Brings ``file`` to ``target``. ``advance`` is called with how many bytes more (or, after a new start, less)
    there are; ``stop`` ends it between two chunks."""

    def __init__(
        self,
        client: httpx.Client,
        file: RemoteFile,
        target: Path,
        *,
        stop: threading.Event,
        advance: Callable[[int], None] = lambda more: None,
        retries: Retries = PATIENT,
    ) -> None:
        self._client, self._file, self._target = client, file, target
        self._stop, self._advance, self._retries = stop, advance, retries
        self._partial = partial_of(target)
        self._source = target.with_name(f"{target.name}.source.partial")
        self._hashing = Hashing(file.digest, file.size)
        self._counted = 0  # bytes that `advance` knows of

    def run(self) -> FetchedFile:
        """Fetch it, again and again if need be.

        Raises:
            TransferError: it cannot be had, or is not what was published.
            StoppedError: ``stop`` was set.
        """
        try:
            return patiently(self._attempt, self._file.url, self._stop, self._retries, self._have)
        except OSError as error:
            remedy = "make room" if error.errno == errno.ENOSPC else "check the folder of --to"
            raise TransferError(f"{self._target}: {error.strerror}; {remedy}, then give the command again") from error

    def _have(self) -> int:
        return self._partial.stat().st_size if self._partial.exists() else 0

    def _attempt(self) -> FetchedFile:
        validator = self._validator()
        have = self._have()
        if have and validator is None and self._file.digest is None:
            have = self._forget()  # nothing could tell whether the rest is of the same file
        if self._file.size is not None and have > self._file.size:
            have = self._forget()
        resumed = have > 0
        if have != self._file.size or have == 0:
            self._receive(have, validator)
        else:
            self._take_in(have)
        return self._finish(resumed)

    def _receive(self, have: int, validator: str | None) -> None:
        headers = {**self._file.headers, "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if validator is not None:
                headers["If-Range"] = validator
        with self._client.stream("GET", self._file.url, headers=headers) as response:
            have, total = self._begin(response, have)
            self._source.write_text(json.dumps({"url": self._file.url, "validator": _validator_of(response)}))
            self._take_in(have)
            with self._partial.open("ab") as out:
                for chunk in response.iter_raw():  # a chunk size would hold bytes back, lost when the connection is cut
                    if self._stop.is_set():
                        raise StoppedError
                    out.write(chunk)
                    self._hashing.update(chunk)
                    self._count(self._counted + len(chunk))
            if total is not None and self._hashing.passed != total:
                raise TryAgainError(f"the connection ended after {self._hashing.passed:,} of {total:,} bytes")

    def _begin(self, response: httpx.Response, have: int) -> tuple[int, int | None]:
        """From which byte on the response is, and how many the whole has."""
        status = response.status_code
        if status == 416:
            self._forget()
            raise TryAgainError("the server has less than what had come before; beginning again")
        if status in _PASSING:
            raise TryAgainError(f"status {status}", retry_after_s(response.headers))
        if status not in (200, 206):
            remedy = _REMEDIES.get(status, "try again later, or name another address in a file for --parts")
            raise TransferError(f"{self._file.url}: status {status}; {remedy}")
        if status == 200:
            have = self._forget()
            length = response.headers.get("Content-Length")
            total = int(length) if length is not None and length.isdigit() else None
        else:
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != have:
                self._forget()
                raise TryAgainError("the server sent another range than it was asked for")
            total = None if found[2] == "*" else int(found[2])
        if total is not None and self._file.size is not None and total != self._file.size:
            self._forget()
            raise TransferError(
                f"{self._file.url} has {total:,} bytes, expected are {self._file.size:,}: it is another file than the "
                "one described; name the right one in a file for --parts"
            )
        return have, total

    def _take_in(self, have: int) -> None:
        """Hash what is there already, once."""
        if self._hashing.passed != have:
            self._hashing = Hashing(self._file.digest, self._file.size)
            if have:
                self._hashing.update_from(self._partial, self._stop.is_set)
        if self._stop.is_set():
            raise StoppedError
        self._count(have)

    def _finish(self, resumed: bool) -> FetchedFile:
        size = self._hashing.passed
        if self._file.size is not None and size != self._file.size:
            self._forget()
            raise TryAgainError(f"{size:,} bytes came instead of {self._file.size:,}")
        if wrong := self._hashing.wrong():
            self._forget()
            if resumed:  # the beginning may be of another file; once more, from nothing
                raise TryAgainError(wrong)
            raise TransferError(f"{self._file.url}: {wrong}; what came was thrown away")
        self._partial.replace(self._target)
        self._source.unlink(missing_ok=True)
        return fetched(self._file, size, self._hashing.sha256)

    def _forget(self) -> int:
        self._partial.unlink(missing_ok=True)
        self._source.unlink(missing_ok=True)
        self._hashing = Hashing(self._file.digest, self._file.size)
        self._count(0)
        return 0

    def _count(self, bytes_there: int) -> None:
        self._advance(bytes_there - self._counted)
        self._counted = bytes_there

    def _validator(self) -> str | None:
        try:
            told = json.loads(self._source.read_text())
            validator = told["validator"] if told["url"] == self._file.url else None
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return validator if isinstance(validator, str) else None


def partial_of(target: Path) -> Path:
    """Where the bytes of ``target`` are until it is whole."""
    return target.with_name(f"{target.name}.partial")


def fetched(file: RemoteFile, size: int, sha256: str) -> FetchedFile:
    """What the manifest says of a whole file."""
    verified: Verified = "nothing to compare with"
    if file.digest is not None:
        verified = "published digest"
    elif file.size is not None:
        verified = "published size" if file.published else "announced size"
    return FetchedFile(url=file.url, size=size, sha256=sha256, verified=verified)


def announced_size(client: httpx.Client, url: str, stop: threading.Event, retries: Retries = PATIENT) -> int | None:
    """The bytes that the server says are at ``url``; ``None`` where it does not say.

    Raises:
        TransferError: there is nothing at the address, or nobody who answers.
        StoppedError: ``stop`` was set.
    """

    def ask() -> int | None:
        response = client.head(url, headers={"Accept-Encoding": "identity"})
        if response.status_code in _PASSING:
            raise TryAgainError(f"status {response.status_code}", retry_after_s(response.headers))
        if remedy := _REMEDIES.get(response.status_code):
            raise TransferError(f"{url}: status {response.status_code}; {remedy}")
        length = response.headers.get("Content-Length", "")
        return int(length) if response.status_code == 200 and length.isdigit() else None

    return patiently(ask, url, stop, retries)


def _validator_of(response: httpx.Response) -> str | None:
    """What names the bytes for `If-Range`: a strong ETag, else the date of the last change."""
    etag = response.headers.get("ETag")
    if etag is not None and not etag.startswith("W/"):
        return str(etag)
    date = response.headers.get("Last-Modified")
    return None if date is None else str(date)
