"""The process's log on standard error: a line each, for people or as JSON for machines.

A record may carry fields of its own (``logger.info("...", extra={...})``): JSON has them beside the message, together
with the id of the request that is being answered and the trace it belongs to. The text form leaves them out.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal

from opentelemetry import trace

from toolformer.http_api.request_id import request_id

QUIET_PATHS: Final = frozenset({"/health", "/ready", "/metrics"})
"""Asked every few seconds by machines; a line for each would bury the rest."""

LogFormat = Literal["text", "json"]

_LONGEST_PATH: Final = 1_000
_COLOURS: Final = {"WARNING": "\033[33m", "ERROR": "\033[31m", "CRITICAL": "\033[31m"}
_RESET: Final = "\033[0m"
_USUAL: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "color_message"})
"""What every record has; the rest is its own."""


class LineFormatter(logging.Formatter):
    """``2026-11-20T09:30:00.123Z INFO services.base: message``: ISO 8601 in UTC, coloured only where asked."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self.colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """One line, and below it the traceback if the record has one."""
        level = record.levelname
        if self.colour and level in _COLOURS:
            level = f"{_COLOURS[level]}{level}{_RESET}"
        line = f"{_moment(record)} {level} {record.name}: {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """``{"time", "level", "logger", "message", ...}``: one object a line, its traceback included."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of ASCII."""
        data: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            data["request_id"] = current
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            data["trace_id"], data["span_id"] = trace.format_trace_id(span.trace_id), trace.format_span_id(span.span_id)
        data |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.name == "uvicorn.access" and isinstance(record.args, tuple) and len(record.args) == 5:
            data |= zip(("client", "method", "path", "http_version", "status"), record.args, strict=True)
        if record.exc_info:
            data["exception"] = self.formatException(record.exc_info)
        return json.dumps(data, default=str)


class AccessLines(logging.Filter):
    """Drops uvicorn's access lines for `QUIET_PATHS`, and from the others what stands behind ``?``: a query may hold
    what a user wrote, which is nobody's to read in a log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be written."""
        # uvicorn's access records carry (client, method, path with query, HTTP version, status).
        if not isinstance(record.args, tuple) or len(record.args) != 5:
            return True
        client, method, target, version, status = record.args
        path = str(target).partition("?")[0]
        record.args = (client, method, path[:_LONGEST_PATH], version, status)
        return path not in QUIET_PATHS


def configure_logging(level: str = "INFO", form: LogFormat = "text") -> None:
    """Send the process's log to standard error, a line each; access lines are silent for `QUIET_PATHS`.

    Args:
        level: the least severe level written: DEBUG, INFO, WARNING or ERROR.
        form: ``text`` for people, ``json`` for machines.
    """
    handler = logging.StreamHandler()
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    handler.setFormatter(JsonFormatter() if form == "json" else LineFormatter(colour=colour))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)
    # What these say at INFO (one line a request, or of a lifecycle that we log) is logged better elsewhere.
    for talkative in ("uvicorn.error", "mcp", "httpx", "httpx2"):
        logging.getLogger(talkative).setLevel(max(logging.WARNING, logging.getLogger().level))
    # What a request or an answer holds, these would write at DEBUG.
    for revealing in ("httpcore", "httpcore2", "urllib3"):
        logging.getLogger(revealing).setLevel(max(logging.INFO, logging.getLogger().level))
    # An earlier server of this process may have set these with uvicorn's own configuration, which lasts.
    access = logging.getLogger("uvicorn.access")
    access.filters = [AccessLines()]
    access.handlers, access.propagate = [], True
    access.setLevel(logging.NOTSET)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
