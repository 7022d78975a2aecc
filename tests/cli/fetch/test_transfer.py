"""One file over HTTP from a server that misbehaves: it arrives as it was published, or not at all."""

import asyncio
import hashlib
import random
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from cli.fetch.part_manifest import FetchedFile
from cli.fetch.transfer import Digest, Network, RemoteFile, Retries, StoppedError, Transfer, TransferError, partial_of
from tests.cli.fetch.stand_in import StandIn, serve

CONTENT = random.Random(1).randbytes(3_000_000)
SHA256 = Digest("sha256", hashlib.sha256(CONTENT).hexdigest())
QUICK = Retries(attempts=3, first_s=0.001)


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    async with serve() as stand_in:
        stand_in.files["/weights.bin"] = CONTENT
        yield stand_in


@pytest.fixture
def file(server: StandIn) -> RemoteFile:
    return RemoteFile("weights.bin", f"{server.url}/weights.bin")


async def bring(file: RemoteFile, folder: Path, stop_after: int | None = None) -> FetchedFile:
    stop = threading.Event()
    came = 0

    def advance(more: int) -> None:
        nonlocal came
        came += more
        if stop_after is not None and came >= stop_after:
            stop.set()

    with httpx.Client(follow_redirects=True, timeout=10, trust_env=False) as client:
        transfer = Transfer(Network(client, stop, QUICK), file, folder / file.name, advance)
        fetched = await asyncio.to_thread(transfer.run)
    assert came == fetched.size, "what the progress bar was given"
    return fetched


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_connection_that_is_cut_again_and_again(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    server.cuts["/weights.bin"] = [1_000_000, 500_000, 0, 0, 700_000, 0]  # never three times in a row for nothing
    fetched = await bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == CONTENT
    assert fetched.sha256 == SHA256.value
    assert only(tmp_path) == ["weights.bin"]
    asked = [headers.get("range") for headers in server.gets("/weights.bin")]
    assert asked[0] is None
    assert asked[-1] == "bytes=2200000-", "nothing comes twice"


async def test_what_stopped_in_the_middle_goes_on_there(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        await bring(file, tmp_path, stop_after=1_000_000)
    assert only(tmp_path) == ["weights.bin.partial", "weights.bin.source.partial"]
    have = (tmp_path / "weights.bin.partial").stat().st_size
    assert 1_000_000 <= have < len(CONTENT)
    await bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == CONTENT
    assert server.gets("/weights.bin")[-1]["range"] == f"bytes={have}-"


async def test_bytes_of_two_files_are_never_joined(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        await bring(file, tmp_path, stop_after=1_000_000)
    newer = server.files["/weights.bin"] = CONTENT[::-1]
    await bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == newer


@pytest.mark.parametrize("how", ["no ranges", "no name for its bytes"])
async def test_a_server_that_cannot_resume(server: StandIn, file: RemoteFile, tmp_path: Path, how: str) -> None:
    if how == "no ranges":
        server.plain.add("/weights.bin")
    else:
        server.etags["/weights.bin"] = ""
    server.cuts["/weights.bin"] = [1_000_000]
    await bring(file, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == CONTENT


async def test_the_wrong_size_is_refused_at_once(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match=r"weights\.bin has 3,000,000 bytes, expected are 2,999,999"):
        await bring(replace(file, size=2_999_999), tmp_path)
    assert not only(tmp_path)
    assert len(server.service.seen) == 1, "it is not tried again"


@pytest.mark.parametrize("algorithm", ["sha256", "md5", "git-blob"])
async def test_the_published_digest(server: StandIn, file: RemoteFile, tmp_path: Path, algorithm: str) -> None:
    right = {
        "sha256": SHA256,
        "md5": Digest("md5", hashlib.md5(CONTENT).hexdigest()),
        "git-blob": Digest("git-blob", hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()),
    }[algorithm]
    assert (await bring(replace(file, size=len(CONTENT), digest=right), tmp_path)).verified == "published digest"
    (tmp_path / "weights.bin").unlink()
    wrong = replace(right, value=right.value[::-1])
    with pytest.raises(TransferError, match=f"its {algorithm} is {right.value}, published is {wrong.value}"):
        await bring(replace(file, size=len(CONTENT), digest=wrong), tmp_path)
    assert not only(tmp_path)


async def test_a_bad_beginning_is_fetched_anew(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    for beginning in (b"\0" * 1_000_000, b"\0" * len(CONTENT), b"\0" * 4_000_000):
        partial_of(tmp_path / "weights.bin").write_bytes(beginning)
        await bring(replace(file, size=len(CONTENT), digest=SHA256), tmp_path)
        assert (tmp_path / "weights.bin").read_bytes() == CONTENT


async def test_a_whole_partial_is_only_verified(server: StandIn, file: RemoteFile, tmp_path: Path) -> None:
    partial_of(tmp_path / "weights.bin").write_bytes(CONTENT)
    await bring(replace(file, size=len(CONTENT), digest=SHA256), tmp_path)
    assert only(tmp_path) == ["weights.bin"]
    assert not server.service.seen


async def test_what_will_pass_is_waited_for_and_what_will_not_is_said(
    server: StandIn, file: RemoteFile, tmp_path: Path
) -> None:
    server.statuses["/weights.bin"] = [503, 429]
    await bring(file, tmp_path)
    for status, remedy in ((404, "it has moved"), (403, "accept its licence"), (401, "set HF_TOKEN")):
        server.statuses["/weights.bin"] = [status]
        before = len(server.service.seen)
        with pytest.raises(TransferError, match=rf"weights\.bin: status {status}; {remedy}"):
            await bring(replace(file, name="other"), tmp_path)
        assert len(server.service.seen) == before + 1
    server.statuses["/weights.bin"] = [500] * 9
    with pytest.raises(TransferError, match=r"status 500 \(3 attempts\); check the network"):
        await bring(replace(file, name="other"), tmp_path)


async def test_nobody_there(tmp_path: Path) -> None:
    async with serve() as gone:
        url = gone.url
    with pytest.raises(TransferError, match="3 attempts"):
        await bring(RemoteFile("weights.bin", f"{url}/weights.bin"), tmp_path)
    assert not only(tmp_path)
