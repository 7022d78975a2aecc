"""One file over HTTP from a server that misbehaves: it arrives as it was published, or not at all."""

import hashlib
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from cli.fetch.digests import Digest
from cli.fetch.part_manifest import FetchedFile
from cli.fetch.transfer import RemoteFile, Retries, StoppedError, Transfer, TransferError, partial_of
from tests.cli.fetch.stand_in import StandIn, serve

CONTENT = random.Random(1).randbytes(3_000_000)
SHA256 = Digest("sha256", hashlib.sha256(CONTENT).hexdigest())
QUICK = Retries(attempts=3, first_s=0.001)


@pytest.fixture
def server() -> Iterator[StandIn]:
    with serve() as stand_in:
        stand_in.files["/weights.bin"] = CONTENT
        yield stand_in


@pytest.fixture
def file(server: StandIn) -> RemoteFile:
    return RemoteFile("weights.bin", f"{server.url}/weights.bin")


def bring(file: RemoteFile, folder: Path, stop_after: int | None = None) -> FetchedFile:
    stop = threading.Event()
    came = 0

    def advance(more: int) -> None:
        nonlocal came
        came += more
        if stop_after is not None and came >= stop_after:
            stop.set()

    with httpx.Client(follow_redirects=True, timeout=10, trust_env=False) as client:
        fetched = Transfer(client, file, folder / file.name, stop=stop, advance=advance, retries=QUICK).run()
    assert came == fetched.size, "what the progress bar was told"
    return fetched


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_connection_that_is_cut_again_and_again(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    server.cuts["/weights.bin"] = [1_000_000, 500_000, 0, 0, 700_000, 0]  # never three times in a row for nothing
    fetched = bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == CONTENT
    assert fetched.sha256 == SHA256.value
    assert only(tmp_path) == ["weights.bin"]
    asked = [headers.get("Range") for headers in server.gets("/weights.bin")]
    assert asked[0] is None
    assert asked[-1] == "bytes=2200000-", "nothing comes twice"


def test_what_stopped_in_the_middle_goes_on_there(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        bring(file, tmp_path, stop_after=1_000_000)
    assert only(tmp_path) == ["weights.bin.partial", "weights.bin.source.partial"]
    have = (tmp_path / "weights.bin.partial").stat().st_size
    assert 1_000_000 <= have < len(CONTENT)
    bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == CONTENT
    assert server.gets("/weights.bin")[-1]["Range"] == f"bytes={have}-"


def test_bytes_of_two_files_are_never_joined(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        bring(file, tmp_path, stop_after=1_000_000)
    newer = server.files["/weights.bin"] = CONTENT[::-1]
    bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == newer


@pytest.mark.parametrize("how", ["no ranges", "no name for its bytes"])
def test_a_server_that_cannot_resume(server: StandIn, file: RemoteFile, tmp_path: Path, how: str) -> None:
    if how == "no ranges":
        server.plain.add("/weights.bin")
    else:
        server.etags["/weights.bin"] = ""
    server.cuts["/weights.bin"] = [1_000_000]
    bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == CONTENT


def test_the_wrong_size_is_refused_before_anything_comes(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match=r"weights\.bin has 3,000,000 bytes, expected are 2,999,999"):
        bring(replace(file, size=2_999_999), tmp_path)
    assert not only(tmp_path)
    assert len(server.requests) == 1, "it is not tried again"


@pytest.mark.parametrize("algorithm", ["sha256", "md5", "git-blob"])
def test_the_published_digest(server: StandIn, file: RemoteFile, tmp_path: Path, algorithm: str) -> None:
    right = {
        "sha256": SHA256,
        "md5": Digest("md5", hashlib.md5(CONTENT).hexdigest()),
        "git-blob": Digest("git-blob", hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()),
    }[algorithm]
    assert bring(replace(file, size=len(CONTENT), digest=right), tmp_path).verified == "published digest"
    (tmp_path / "weights.bin").unlink()
    wrong = replace(right, value=right.value[::-1])
    with pytest.raises(TransferError, match=f"its {algorithm} is {right.value}, published is {wrong.value}"):
        bring(replace(file, size=len(CONTENT), digest=wrong), tmp_path)
    assert not only(tmp_path)


def test_a_bad_beginning_is_fetched_anew(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    for beginning in (b"\0" * 1_000_000, b"\0" * len(CONTENT), b"\0" * 4_000_000):
        partial_of(tmp_path / "weights.bin").write_bytes(beginning)
        bring(replace(file, size=len(CONTENT), digest=SHA256), tmp_path)
        assert (tmp_path / "weights.bin").read_bytes() == CONTENT


def test_a_whole_partial_is_only_verified(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    partial_of(tmp_path / "weights.bin").write_bytes(CONTENT)
    bring(replace(file, size=len(CONTENT), digest=SHA256), tmp_path)
    assert only(tmp_path) == ["weights.bin"]
    assert not server.requests


def test_what_will_pass_is_waited_for_and_what_will_not_is_said(
    server: StandIn, file: RemoteFile, tmp_path: Path
) -> None:
    server.statuses["/weights.bin"] = [503, 429]
    bring(file, tmp_path)
    for status, remedy in ((404, "it has moved"), (403, "accept its licence"), (401, "set HF_TOKEN")):
        server.statuses["/weights.bin"] = [status]
        before = len(server.requests)
        with pytest.raises(TransferError, match=rf"weights\.bin: status {status}; {remedy}"):
            bring(replace(file, name="other"), tmp_path)
        assert len(server.requests) == before + 1
    server.statuses["/weights.bin"] = [500] * 9
    with pytest.raises(TransferError, match=r"status 500 \(3 attempts\); check the network"):
        bring(replace(file, name="other"), tmp_path)


def test_nobody_there(tmp_path: Path) -> None:
    with serve() as gone:
        url = gone.url
    with pytest.raises(TransferError, match="3 attempts"):
        bring(RemoteFile("weights.bin", f"{url}/weights.bin"), tmp_path)
    assert not only(tmp_path)
