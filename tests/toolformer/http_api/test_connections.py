"""What clients may cost before they are known: heads, bodies and connections that never end; foreign hosts."""

import asyncio
import json
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.processes import SECONDS, Command, started
from toolformer.http_api.hosts import Hosts, is_local

APP = "tests.toolformer.http_api.draining_app"
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"

pytestmark = pytest.mark.asyncio(loop_scope="module")
PARSERS = ["httptools", "h11"]
both_parsers = pytest.mark.parametrize("parser", PARSERS)


class Talk:
    """A connection on which a test says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        """Status, headers and JSON of the next answer."""
        async with asyncio.timeout(SECONDS):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, json.loads(body)

    async def ends(self) -> bytes:
        """What comes until the server closes."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""


@asynccontextmanager
async def serving(**env: str) -> AsyncIterator[tuple[Command, int]]:
    async with started(APP, "0", "5", env=env) as server:
        yield server, int((await server.url()).rpartition(":")[2])


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PARSERS)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Command, int]]:
    """A server with the usual limits and its port, for each parser."""
    async with serving(PARSER=request.param) as running:
        yield running


@asynccontextmanager
async def talking(port: int) -> AsyncIterator[Talk]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Talk(reader, writer)
    finally:
        writer.close()


async def sent_until_closed(talk: Talk, piece: bytes, most: int) -> int:
    """Bytes that could be sent before the server hung up, ``most`` at most."""
    sent = 0
    try:
        async with asyncio.timeout(SECONDS):
            while sent < most:
                talk.writer.write(piece)
                await talk.writer.drain()
                sent += len(piece)
    except ConnectionError:
        pass
    return sent


TOO_LARGE = {
    "one header": b"A: " + b"a" * 70_000,
    "many bytes": b"".join(b"A%d: %s\r\n" % (n, b"b" * 600) for n in range(120)),
    "many headers": b"".join(b"A%d: 1\r\n" % n for n in range(101)),
}


async def test_a_head_that_is_too_large_is_431(server: tuple[Command, int]) -> None:
    for kind, head in TOO_LARGE.items():
        async with talking(server[1]) as talk:
            talk.writer.write(GET + head + b"\r\n\r\n")
            status, headers, body = await talk.answer()
            assert (status, headers["connection"]) == (431, "close"), kind
            assert body["error"]["code"] == "head_too_large"
            assert "65,536 bytes or 100 headers" in body["error"]["message"]
            assert await talk.ends() == b""


async def test_a_head_of_the_usual_size_passes(server: tuple[Command, int]) -> None:
    lines = b"".join(b"A%d: %s\r\n" % (n, b"b" * 600) for n in range(98))
    async with talking(server[1]) as talk:
        for _ in range(3):  # one after the other on one connection: each is counted by itself
            talk.writer.write(GET + lines + b"\r\n")
            assert (await talk.answer())[0] == 200
        talk.writer.write(3 * (GET + lines + b"\r\n"))  # pipelined
        assert [(await talk.answer())[0] for _ in range(3)] == [200] * 3


ENDLESS = {
    "one header": (GET + b"A: ", b"a" * 65_536),
    "headers": (GET, b"".join(b"A%d: %s\r\n" % (n, b"b" * 50) for n in range(1_000))),
    "path": (b"GET /", b"a" * 65_536),
    "trailer": (
        b"POST /length HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: ",
        b"a" * 65_536,
    ),
}


async def test_what_never_ends_is_not_read_on(server: tuple[Command, int]) -> None:
    process, port = server
    for kind, (begin, piece) in ENDLESS.items():
        async with talking(port) as talk:
            talk.writer.write(begin)
            sent = await sent_until_closed(talk, piece, 1 << 28)
        assert _peak_mib(process) < 180, f"{kind}: {sent:,} bytes were taken"  # before: as much as was sent
        async with talking(port) as other:
            other.writer.write(GET + b"\r\n")
            assert (await other.answer())[0] == 200


def _peak_mib(server: Command) -> float:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


async def test_what_is_no_http_is_400_in_the_error_shape(server: tuple[Command, int]) -> None:
    async with talking(server[1]) as talk:
        talk.writer.write(b"nonsense\r\n\r\n")
        status, _, body = await talk.answer()
        assert (status, body["error"]["code"]) == (400, "invalid_http")


@both_parsers
async def test_a_head_that_does_not_end_has_a_deadline(parser: str) -> None:
    async with serving(PARSER=parser, HEAD_SECONDS="0.5") as (_, port):
        async with talking(port) as silent, talking(port) as half:
            half.writer.write(b"GET /health HT")
            status, _, body = await half.answer()
            assert (status, body["error"]["code"]) == (408, "too_slow")
            assert await silent.ends() == b""
        async with talking(port) as talk:
            talk.writer.write(GET + b"\r\n")
            assert (await talk.answer())[0] == 200
            await asyncio.sleep(1)  # idle between two requests is not slow
            talk.writer.write(GET + b"\r\n")
            assert (await talk.answer())[0] == 200
            talk.writer.write(b"GET /hea")
            assert await talk.ends() == b""


@both_parsers
async def test_an_answer_that_takes_long_is_not_a_slow_head(parser: str) -> None:
    async with serving(PARSER=parser, HEAD_SECONDS="0.2") as (server, port), talking(port) as talk:
        talk.writer.write(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await server.line_with("slow began")
        await asyncio.sleep(1)
        assert server.process.stdin is not None
        server.process.stdin.write(b"at last\n")
        assert (await talk.answer())[2] == "at last"


async def test_a_body_that_does_not_come_has_a_deadline(server: tuple[Command, int]) -> None:
    async with talking(server[1]) as talk:
        talk.writer.write(b"POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{")
        status, headers, body = await talk.answer()
        assert (status, body["error"]["code"], headers["connection"]) == (408, "too_slow", "close")
        assert await talk.ends() == b""


@both_parsers
async def test_silent_connections_make_way_for_new_ones_and_the_log_says_so(parser: str) -> None:
    async with serving(PARSER=parser, MAX_CONNECTIONS="8") as (server, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        async with talking(port) as talk:
            talk.writer.write(GET + b"\r\n")
            assert (await talk.answer())[0] == 200
        await server.line_with("8 connections are open, as many as may be; silent ones are closed")
        async with asyncio.timeout(SECONDS):
            assert await silent[0][0].read() == b""  # the first of them had to leave
        for _, writer in silent:
            writer.close()
        server.process.terminate()
        assert await server.ended() == 0
        assert server.log.count("connections are open") == 1  # not a line for each


async def test_with_requests_on_all_connections_a_new_one_is_refused() -> None:
    async with serving(MAX_CONNECTIONS="2") as (server, port), talking(port) as one, talking(port) as two:
        for talk in (one, two):
            talk.writer.write(b"GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await server.line_with("stuck began")
        async with talking(port) as three:
            status, _, body = await three.answer()
        assert (status, body["error"]["code"]) == (503, "busy")


async def test_few_files_mean_few_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = "import resource as r, toolformer.http_api.connections as c; r.setrlimit(r.RLIMIT_NOFILE, (128, 128)); "
    code += "print(c.room_for(2048))"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code + "; print(room_for(2048))",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert out == b"48\n"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


async def test_a_loopback_server_answers_to_its_own_names() -> None:
    cases = [
        ("localhost:8080", None, 200),
        ("127.0.0.1", None, 200),
        ("[::1]:8080", None, 200),
        ("LOCALHOST", "http://localhost:3000", 200),
        ("evil.example", None, 403),
        ("127.0.0.1.evil.example", None, 403),
        ("localhost", "https://evil.example", 403),
        ("localhost", "null", 403),
        ("friend.example", "https://friend.example", 200),
    ]
    async with serving(TOOLFORMER_ALLOWED_HOSTS="friend.example") as (_, port):
        for host, origin, status in cases:
            async with talking(port) as talk:
                line = "" if origin is None else f"Origin: {origin}\r\n"
                talk.writer.write(f"GET /health HTTP/1.1\r\nHost: {host}\r\n{line}\r\n".encode())
                answered, _, body = await talk.answer()
            assert answered == status, (host, origin)
            if status == 403:
                assert "TOOLFORMER_ALLOWED_HOSTS" in body["error"]["message"]


async def test_elsewhere_names_are_the_deployments_to_choose_but_mcp_checks_origin() -> None:
    def refused(hosts: Hosts, path: str, **headers: str) -> bool:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        return hosts.refusal({"type": "http", "path": path, "headers": raw}) is not None

    everywhere = Hosts("0.0.0.0", environ={})
    assert not refused(everywhere, "/call", host="calculator:8101", origin="https://a.example")
    assert not refused(everywhere, "/mcp", host="calculator:8101")
    assert refused(everywhere, "/mcp", host="calculator:8101", origin="https://a.example")
    assert not refused(everywhere, "/mcp", host="calculator:8101", origin="http://localhost:6274")
    named = Hosts("0.0.0.0", environ={"TOOLFORMER_ALLOWED_HOSTS": "tools.example, calculator"})
    assert not refused(named, "/call", host="calculator:8101")
    assert not refused(named, "/mcp", host="calculator", origin="https://tools.example")
    assert not refused(named, "/health", host="127.0.0.1:8101")
    assert refused(named, "/call", host="other")
    page = Hosts("127.0.0.1", "https://page.example", environ={})
    assert not refused(page, "/v1/completions", host="localhost", origin="https://page.example")
    assert refused(page, "/v1/completions", host="localhost", origin="https://other.example")
    assert is_local("127.8.9.1")
    assert not is_local("localhost.evil.example")
