"""A real server process: it drains on SIGTERM, says what hinders it, and logs a line for each request."""

import asyncio
import logging
import re
import signal
import socket
import struct
import sys

import httpx
import pytest

from tests.support.processes import SECONDS, started
from tests.toolformer.http_api.asgi import error_of
from toolformer.http_api.logs import AccessLines, LineFormatter

APP = "tests.toolformer.http_api.draining_app"
PREFIX = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "


async def test_sigterm_lets_requests_end_and_takes_no_new_ones() -> None:
    async with started(APP, "0", "30") as server, httpx.AsyncClient(timeout=SECONDS) as client:
        url = await server.url()
        request = asyncio.create_task(client.get(f"{url}/slow"))
        await server.line_with("slow began")
        server.process.send_signal(signal.SIGTERM)
        await server.line_with("draining: no new connections, 1 in progress")
        with pytest.raises(httpx.ConnectError):
            async with httpx.AsyncClient() as late:
                await late.get(f"{url}/health")

        assert server.process.stdin is not None
        server.process.stdin.write(b"done after the signal\n")
        await server.process.stdin.drain()
        response = await request
        assert response.json() == "done after the signal"
        assert await server.ended() == 0
        assert server.lines["log"][-1].endswith("stopped\n")


async def test_who_had_connected_before_the_drain_is_heard() -> None:
    async with started(APP, "0", "30") as server:
        url = httpx.URL(await server.url())
        reader, writer = await asyncio.open_connection(url.host, url.port)
        server.process.send_signal(signal.SIGTERM)
        await server.line_with("draining")
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(SECONDS):
            answer = await reader.read()  # to the end: the connection closes behind the answer
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b'"ok"')
        assert await server.ended() == 0
        writer.close()


async def test_who_waits_to_be_accepted_at_the_signal_is_heard() -> None:
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with started(APP, "0", "30") as server, httpx.AsyncClient(timeout=SECONDS) as client:
        url = httpx.URL(await server.url())
        holding = asyncio.create_task(client.get(f"{url}/holds"))
        await server.line_with("holds")
        server.process.send_signal(signal.SIGTERM)
        waiting = [await asyncio.open_connection(url.host, url.port) for _ in range(20)]
        for _, writer in waiting:
            writer.write(request)
        await server.line_with("draining: no new connections")
        assert "stopped" not in server.log
        answers = [await reader.read() for reader, _ in waiting]
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers), answers
        assert (await holding).status_code == 200
        assert await server.ended() == 0
        for _, writer in waiting:
            writer.close()


async def test_who_gave_up_while_waiting_to_be_accepted_does_not_end_the_drain() -> None:
    async with started(APP, "0", "30") as server, httpx.AsyncClient(timeout=SECONDS) as client:
        url = httpx.URL(await server.url())
        holding = asyncio.create_task(client.get(f"{url}/holds"))
        await server.line_with("holds")
        server.process.send_signal(signal.SIGTERM)
        gone = [await asyncio.open_connection(url.host, url.port) for _ in range(5)]
        for _, writer in gone:
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()  # closes with a reset
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        assert (await holding).status_code == 200
        assert await server.ended() == 0
        assert "Traceback" not in server.log
        writer.close()


async def test_a_connection_that_stays_silent_does_not_keep_the_server() -> None:
    async with started(APP, "0", "30") as server:
        url = httpx.URL(await server.url())
        reader, writer = await asyncio.open_connection(url.host, url.port)
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
        assert await reader.read() == b""
        writer.close()


async def test_a_drain_has_an_end() -> None:
    async with started(APP, "0", "1") as server, httpx.AsyncClient(timeout=SECONDS) as client:
        url = await server.url()
        request = asyncio.create_task(client.get(f"{url}/stuck"))
        await server.line_with("stuck began")
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
        response = await request
        assert response.status_code == 503
        assert error_of(response)["code"] == "shutting_down"
        assert "Traceback" not in server.log


async def test_one_access_line_a_request_and_none_for_probes() -> None:
    async with started(APP, "0", "5") as server, httpx.AsyncClient(timeout=SECONDS) as client:
        url = await server.url()
        await client.get(f"{url}/health")
        await client.get(f"{url}/nothing%0Ahere?a=%0A")
        line = (await server.line_with("404")).string
        assert re.fullmatch(
            PREFIX + r'INFO uvicorn\.access: 127\.0\.0\.1:\d+ - "GET /nothing%0Ahere HTTP/1\.1" 404\n', line
        )
        assert not any("/health" in line for line in server.lines["log"])
        server.process.send_signal(signal.SIGINT)
        assert await server.ended() == 0


async def test_an_unforeseen_error_is_logged_once() -> None:
    async with started(APP, "0", "5") as server, httpx.AsyncClient(timeout=SECONDS) as client:
        url = await server.url()
        assert (await client.get(f"{url}/broken")).status_code == 500
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
        log = server.log
        assert log.count("Traceback") == 1
        assert len(re.findall(PREFIX + "ERROR", log)) == 1


async def test_a_port_in_use_is_a_clear_word_and_an_exit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with started(APP, str(port), "5") as server:
            assert await server.ended() == 1
    [line] = server.lines["log"]
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use; stop what uses it" in line


def record(*args: object, level: int = logging.INFO, exc: BaseException | None = None) -> logging.LogRecord:
    exc_info = (type(exc), exc, exc.__traceback__) if exc else None
    return logging.LogRecord("some.logger", level, "file", 1, "said %s" if len(args) == 1 else "said", args, exc_info)


def test_lines_are_coloured_only_when_asked() -> None:
    failure = record("twice", level=logging.ERROR)
    assert re.fullmatch(PREFIX + "ERROR some.logger: said twice", LineFormatter(colour=False).format(failure))
    assert "\033[31mERROR\033[0m some.logger" in LineFormatter(colour=True).format(failure)
    assert "\033" not in LineFormatter(colour=True).format(record())


def test_a_traceback_follows_its_line() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        lines = LineFormatter(colour=False).format(record(exc=error)).splitlines()
    assert lines[0].endswith("said")
    assert lines[1].startswith("Traceback")
    assert lines[-1] == "ValueError: why"
    assert sys.exc_info() == (None, None, None)


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics", "/ready?x=1"])
def test_probes_are_quiet(path: str) -> None:
    assert not AccessLines().filter(record("1.2.3.4:5", "GET", path, "1.1", 200))


@pytest.mark.parametrize("path", ["/healthy", "/call", "/v1/ready"])
def test_other_paths_are_not(path: str) -> None:
    assert AccessLines().filter(record("1.2.3.4:5", "GET", path, "1.1", 200))
