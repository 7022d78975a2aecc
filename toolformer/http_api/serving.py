"""Run an app on uvicorn: a clear word when the port is taken, a drain on SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from toolformer.http_api import connections
from toolformer.http_api.errors import ApiError, error_response
from toolformer.http_api.hosts import Hosts
from toolformer.http_api.middleware import HttpMiddleware, Sent

logger = logging.getLogger(__name__)

_FIRST_REQUEST_SECONDS: Final = 5.0
"""How long a drain waits for the request of who had connected before it and has said nothing yet."""


class _Outermost(HttpMiddleware):
    """A head too large and a foreign host are refused before anything looks at the request;
    one that outlives the drain ends with a 503 in the error shape.

    uvicorn cancels such a request and would answer in plain text with a traceback in the log. The cancelled task is the
    request's own and ends here, so the cancellation need not go further.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        super().__init__(app)
        self._hosts = hosts

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refused := connections.refusal(scope) or self._hosts.refusal(scope):
            await error_response(refused)(scope, receive, send)
            return
        sent = Sent(send)
        try:
            await self.app(scope, receive, sent)
        except asyncio.CancelledError:
            if sent.status:
                raise
            logger.warning("%s %r outlived the drain and was cancelled", scope["method"], scope["path"])
            message = "the server is shutting down; send the request again"
            error = ApiError(503, message, code="shutting_down", headers={"Retry-After": "2"})
            await error_response(error)(scope, receive, send)


class _Server(uvicorn.Server):
    """uvicorn, logging when it accepts requests and when it begins to drain, and calling ``on_drain``."""

    def __init__(self, config: uvicorn.Config, on_drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_drain = on_drain

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            for listener in sockets or []:
                host, port = listener.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                logger.info("listening on http://%s:%d", shown, port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Who waits to be accepted when the port closes is reset by the kernel, and cannot know whether it was heard. So
        # they are taken in here, with nothing between the last of them and the close that could take time.
        late = [one for listener in sockets or [] for one in _waiting(listener)]
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for one in late:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, one)
        logger.info("draining: no new connections, %d in progress", len(self.server_state.tasks))
        self._on_drain()
        await self._first_requests()
        await super().shutdown(sockets)
        logger.info("stopped")

    def _protocol(self) -> asyncio.Protocol:
        """What uvicorn gives each connection."""
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    async def _first_requests(self) -> None:
        """Wait until every connection has made its first request: uvicorn closes one that has made none, and a client
        whose request was on its way would not know whether it was heard."""
        deadline = time.monotonic() + _FIRST_REQUEST_SECONDS
        while time.monotonic() < deadline:
            if all(getattr(one, "cycle", one) is not None for one in self.server_state.connections):
                return
            await asyncio.sleep(0.01)


def _waiting(listener: socket.socket) -> list[socket.socket]:
    """The connections that wait to be accepted."""
    listener.setblocking(False)
    found: list[socket.socket] = []
    with contextlib.suppress(OSError):  # there is none left, or no file for one more
        while True:
            found.append(listener.accept()[0])
    return found


def serve(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    drain_seconds: int = 30,
    max_connections: int = 2048,
    head_seconds: float = connections.HEAD_SECONDS,
    allowed_origins: str = "",
    protocol: type[asyncio.Protocol] | None = None,
    on_drain: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Serve ``app`` until SIGTERM or SIGINT, then drain and exit with status 0.

    Call `configure_logging` before. At the signal the port closes at once; who had connected before may still make a
    request, and requests in progress get ``drain_seconds`` to end, then a 503; then the app's lifespan ends.

    Args:
        app: the ASGI application.
        host: the address to listen on, an IPv4 or IPv6 address or a name.
        port: the TCP port; 0 takes a free one, which the log names.
        drain_seconds: how long a drain may take.
        max_connections: open connections; with one more, one that says nothing is closed, or else the new one refused.
            Fewer where the process may not open so many files.
        head_seconds: how long the head of a request may take, and a connection until it begins its first.
        allowed_origins: see `Hosts`.
        protocol: a class of `connections`; by default the faster one.
        on_drain: called in the event loop when a drain begins, for what the app serves beside HTTP.

    Raises:
        SystemExit: always; 0 after a drain, another number when the port is not available or the app does not start.
    """
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn drains on both and raises the signal again for its earlier handler. That is us: a drain that was
        # asked for is a success. It also holds for a signal that comes before uvicorn listens for one.
        signal.signal(signal_number, _exit_cleanly)
    max_connections = connections.room_for(max_connections)
    listener = listen(host, port, max_connections)
    config = connections.Config(
        _Outermost(app, Hosts(host, allowed_origins)),
        most=max_connections,
        head_seconds=head_seconds,
        http=protocol or connections.best_protocol(),
        ws="none",
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=drain_seconds,
        # Longer than clients keep idle connections (httpx: 5 s), so that the server is never the one to close a
        # connection that a client is just about to use again.
        timeout_keep_alive=75,
        backlog=max_connections,
        server_header=False,
    )
    server = _Server(config, on_drain)
    with listener:
        server.run(sockets=[listener])
    sys.exit(0 if server.started else 1)


def listen(host: str, port: int, backlog: int = 1) -> socket.socket:
    """A listening socket, or a clear word in the log and the end of the process: before anything heavy is loaded.

    Raises:
        SystemExit: 1 if the port is not available.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        logger.error("cannot listen on %s port %d: %s; stop what uses it, or choose another", host, port, reason)
        sys.exit(1)
    # What is accepted takes these over: a client whose network is gone is noticed within some two minutes.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        for option, value in ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4)):
            listener.setsockopt(socket.IPPROTO_TCP, option, value)
    return listener


def _exit_cleanly(signal_number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)
