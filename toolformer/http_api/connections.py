"""What a connection may cost before it has made a request: bytes of a head, seconds, and its own place.

uvicorn bounds none of them. Here its two protocols (httptools where that is installed, else h11) are made to count.
Fits uvicorn 0.54, which is pinned; used of it are ``cycle``, ``data_received``, ``on_body``, ``on_message_begin``,
``send_400_response`` and ``shutdown`` of a protocol, and a request's end in ``cycle.response_complete``.
"""

from __future__ import annotations

import asyncio
import http
import json
import logging
import resource
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolformer.http_api.errors import ApiError, error_body

MAX_HEAD_BYTES: Final = 65_536
"""Bytes of a request's line and headers, and of what else a message holds beside its body."""

MAX_HEADERS: Final = 100

HEAD_SECONDS: Final = 15.0
"""From a connection's begin, or a head's first byte, to the head's end."""

_LINGER_SECONDS: Final = 1.0
"""How long what a refused client still sends is thrown away: closed at once, it could not read why."""

_QUIET_SECONDS: Final = 10.0
"""Between two lines of one kind in the log, so that nobody can fill it by connecting."""

_FILES_OF_OUR_OWN: Final = 64
_MOST_FILES: Final = 65_536

logger = logging.getLogger(__name__)


def room_for(wanted: int) -> int:
    """How many connections may be open, ``wanted`` at most: three quarters of the files that the process may open.

    The soft limit of files is raised to the hard one first.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    else:
        files = _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    room = max(8, (files - _FILES_OF_OUR_OWN) * 3 // 4)
    if room < wanted:
        logger.warning("at most %d connections, not %d: the process may open %d files", room, wanted, files)
    return min(wanted, room)


class Config(uvicorn.Config):
    """uvicorn's, and how many connections may be open and how long a head may take."""

    def __init__(self, *args: Any, most: int, head_seconds: float = HEAD_SECONDS, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.h11_max_incomplete_event_size = MAX_HEAD_BYTES
        self.most = most
        self.head_seconds = head_seconds
        self.in_order: dict[Counted, None] = {}
        """The open connections; the one that has sent nothing for longest first."""
        self._warned: dict[str, float] = {}

    def warn(self, message: str, *args: object) -> None:
        """Warn in the log, with a message of one kind at most every few seconds."""
        now = time.monotonic()
        if now - self._warned.get(message, -_QUIET_SECONDS) >= _QUIET_SECONDS:
            self._warned[message] = now
            logger.warning(message, *args)


if TYPE_CHECKING:
    _Base = H11Protocol
else:
    _Base = object


class Counted(_Base):
    """What both protocols have in common; stands before one of them among the bases of a class."""

    config: Config
    _head_timer: asyncio.TimerHandle | None = None
    _begun = False
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection in, if need be in the place of one that says nothing."""
        super().connection_made(transport)
        others = self.config.in_order
        if len(others) >= self.config.most:
            silent = next((one for one in others if not one._answering()), None)
            if silent is None:
                self.config.warn("%d connections are open, as many as may be; a new one is refused", len(others))
                self._refuse(ApiError(503, "the server has as many connections as it takes; try again", code="busy"))
                return
            self.config.warn("%d connections are open, as many as may be; silent ones are closed", len(others))
            silent._leave()
        others[self] = None
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the client was refused."""
        if self._refused:
            return
        self._begun = True
        super().data_received(data)
        self._look()

    def _look(self) -> None:
        """See what has come of what was received."""
        if self not in self.config.in_order:
            return  # it was refused or has left
        self.config.in_order[self] = self.config.in_order.pop(self)
        if self._answering():
            self._forget_timer()
        else:
            self._watch_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the one error shape."""
        reason = sys.exception()
        if getattr(reason, "error_status_hint", 400) == 431:
            self._refuse_head()
        else:
            self._refuse(ApiError(400, "the request is not valid HTTP/1.1; correct it", code="invalid_http"))

    def shutdown(self) -> None:
        """Begin to close, as the server drains."""
        if self._refused:
            self.transport.close()
        else:
            super().shutdown()

    def _answering(self) -> bool:
        """Whether a request, head complete, has no whole answer yet."""
        cycle: Any = self.cycle  # None before the first request, whatever uvicorn's annotation says
        return cycle is not None and not cycle.response_complete

    def _watch_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.config.head_seconds, self._late)

    def _late(self) -> None:
        self._head_timer = None
        if self._answering() or self.transport.is_closing():
            return
        first: Any = self.cycle
        if self._begun and first is None:
            message = f"the request's head was not complete after {self.config.head_seconds:g} s; send it at once"
            self._refuse(ApiError(408, message, code="too_slow"))
        else:
            self._leave()

    def _refuse_head(self) -> None:
        self.config.warn("a request's head of more than %d bytes was refused", MAX_HEAD_BYTES)
        self._refuse(head_too_large())

    def _refuse(self, error: ApiError) -> None:
        """Answer with ``error`` and close; what the client still sends is thrown away for a moment."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        if not (self._answering() and self.cycle.response_started):
            body = json.dumps(error_body(error.status, error.message, code=error.code)).encode()
            head = f"HTTP/1.1 {error.status} {http.HTTPStatus(error.status).phrase}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
            self.flow.resume_reading()
            self.loop.call_later(_LINGER_SECONDS, self.transport.close)
        else:  # an answer under way can only be broken off
            self.transport.close()
        self._forget()

    def _leave(self) -> None:
        self._refused = True
        self._forget()
        self.transport.close()

    def _forget(self) -> None:
        self._forget_timer()
        self.config.in_order.pop(self, None)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class CountedH11(Counted, H11Protocol):
    """h11 counts a head's bytes itself."""


def best_protocol() -> type[asyncio.Protocol]:
    """Counts what comes in; parses with httptools where that is installed, else with h11."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return CountedH11

    class CountedHttpTools(Counted, HttpToolsProtocol):  # type: ignore[misc]
        """httptools counts nothing: heads, trailers and a chunk's extensions are kept until they end."""

        _received = _of_bodies = 0

        def data_received(self, data: bytes) -> None:
            """Read on, as long as it is not all head."""
            if self._refused:
                return
            self._received += len(data)
            super().data_received(data)
            # A body in chunks of a byte each has five others for each.
            if self._received - self._of_bodies > MAX_HEAD_BYTES + 8 * self._of_bodies and not self._refused:
                self._refuse_head()

        def on_message_begin(self) -> None:
            """Count anew."""
            self._received = self._of_bodies = 0
            super().on_message_begin()

        def on_body(self, body: bytes) -> None:
            """What is body is counted where bodies are limited."""
            self._of_bodies += len(body)
            super().on_body(body)

    return CountedHttpTools


def refusal(scope: Scope) -> ApiError | None:
    """Why a request whose head is complete is refused, if it is."""
    headers = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) for name, value in headers)
    return head_too_large() if size > MAX_HEAD_BYTES or len(headers) > MAX_HEADERS else None


def head_too_large() -> ApiError:
    """The refusal of a head with too many bytes or headers."""
    message = f"the request's head has more than {MAX_HEAD_BYTES:,} bytes or {MAX_HEADERS} headers; send less"
    return ApiError(431, message, code="head_too_large", headers={"Connection": "close"})
