"""The tool services' contract as JSON: writing calls, and reading answers with nothing taken on trust.

``POST /call {"input", "context": {"date"}?} -> {"tool", "input", "output", "error", "duration_ms"}``;
``POST /calls {"calls": [...]}`` takes and gives the same in a list, in order. Statuses other than 200 carry
``{"error": {"message", "code", ...}}``. A service that can say so names in the header ``Tool-Version`` of these answers
and of ``GET /ready`` what its outputs depend on besides the call: its own version and that of its data.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from toolformer.retry_after import retry_after_s
from toolformer.tools import Tool

VERSION_HEADER: Final = "Tool-Version"
_VERSION: Final = re.compile(r"[!-~]{1,128}")


class ErrorCode(StrEnum):
    """The client's own reasons for having no answer; a service's codes are beside them."""

    UNKNOWN_TOOL = "unknown_tool"
    """The registry has no tool of this name."""
    INVALID_INPUT = "invalid_input"
    """The input is no Unicode text, or would lead to another route, and cannot be sent."""
    TIMEOUT = "timeout"
    """The deadline passed."""
    UNREACHABLE = "unreachable"
    """No connection, or it broke off."""
    CIRCUIT_OPEN = "circuit_open"
    """The service failed several times just now and is not asked for a moment."""
    BUSY = "busy"
    """The service says that it cannot answer now (HTTP 503)."""
    BAD_RESPONSE = "bad_response"
    """The answer is not the contract's, or not to this call."""
    TOO_LARGE = "too_large"
    """The answer has more bytes than are read."""


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why there is no output: ``code`` for programs (an `ErrorCode` or the service's own), ``message`` for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call to a tool, and the date of the text it is in."""

    input: str
    date: dt.date | None = None


class Failed(Exception):  # noqa: N818 - never leaves the tool client
    """The service answered, but with no result: ``error`` says why; ``retryable`` that it may have one later."""

    def __init__(self, code: str, message: str, *, retryable: bool = False, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.error = ToolError(code, message)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


OF_THE_CLIENT: Final = frozenset(code.value for code in ErrorCode)

_ADDRESS: Final = re.compile(r"(?: (?:at|of))? ?(?:https?://|stdio:)[^\s,;()]+")


def without_addresses(message: str) -> str:
    """``message`` for people who need not know where services live."""
    return _ADDRESS.sub("", message).strip()


_CODE: Final = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
"""Codes become labels of metrics: a service may not make up any text."""


class _CallError(BaseModel):
    code: str = Field(pattern=_CODE)
    message: str


class _CallAnswer(BaseModel):
    model_config = ConfigDict(strict=True)

    tool: str
    input: str
    output: str | None
    error: _CallError | None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.output is None) == (self.error is None):
            raise ValueError("exactly one of output and error must be null")
        return self


class _BatchAnswer(BaseModel):
    model_config = ConfigDict(strict=True)

    calls: list[_CallAnswer]


class _ErrorAnswer(BaseModel):
    error: _CallError


_Model = TypeVar("_Model", bound=BaseModel)


def refusal(tool: Tool, request: Request) -> ToolError | None:
    """Why ``request`` cannot be sent at all, if so: half of a surrogate pair has no UTF-8, and an input may not lead to
    another route of an API."""
    try:
        request.input.encode()
    except UnicodeEncodeError:
        return ToolError(ErrorCode.INVALID_INPUT, "the input contains half of a surrogate pair and is no Unicode text")
    if tool.http is not None and tool.http.path_for(request.input) is None:
        return ToolError(ErrorCode.INVALID_INPUT, f"the input cannot be in the path of {tool.name}")
    return None


def call_body(tool: Tool, request: Request) -> bytes:
    """The body of ``POST /call``. The date goes only to a tool that takes one."""
    return json.dumps(_call(tool, request), ensure_ascii=False).encode()


def calls_body(tool: Tool, requests: Sequence[Request]) -> bytes:
    """The body of ``POST /calls``."""
    return json.dumps({"calls": [_call(tool, request) for request in requests]}, ensure_ascii=False).encode()


def read_answer(tool: Tool, request: Request, body: bytes) -> str | ToolError:
    """The output or the error that the service answered to ``request``.

    Raises:
        Failed: if ``body`` is not the contract's, or answers another call.
    """
    return _checked(tool, request, _parse(_CallAnswer, tool, body))


def read_answers(tool: Tool, requests: Sequence[Request], body: bytes) -> list[str | ToolError]:
    """The same for a batch, in its order.

    Raises:
        Failed: if any answer is not the contract's or not to the call in its place: then none can be trusted.
    """
    answers = _parse(_BatchAnswer, tool, body).calls
    if len(answers) != len(requests):
        message = f"{tool.name} gave {len(answers)} answers to {len(requests)} calls"
        raise Failed(ErrorCode.BAD_RESPONSE, message)
    return [_checked(tool, request, answer) for request, answer in zip(requests, answers, strict=True)]


async def read_body(response: httpx.Response, max_bytes: int) -> bytes:
    """The bytes of ``response``, read no further than ``max_bytes``.

    Raises:
        Failed: if there are more, or if they are compressed, which was not asked for and could hide more.
    """
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise Failed(ErrorCode.BAD_RESPONSE, f"the answer is encoded as {encoding!r}; it must be sent plain")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            raise Failed(ErrorCode.TOO_LARGE, f"the answer has more than {max_bytes:,} bytes")
    return bytes(body)


def check_status(response: httpx.Response, body: bytes) -> None:
    """Nothing if the status is 200.

    Raises:
        Failed: with ``busy`` for 503; for others with the code in the error's body, or ``bad_response``.
    """
    status = response.status_code
    if status == httpx.codes.OK:
        return
    try:
        said = _ErrorAnswer.model_validate_json(body).error
    except ValidationError:
        said = None
    if status == httpx.codes.SERVICE_UNAVAILABLE:
        wait = retry_after_s(response.headers)
        message = said.message if said else "the service cannot answer now (HTTP 503)"
        raise Failed(ErrorCode.BUSY, message, retryable=True, retry_after_s=wait)
    if said is not None:
        raise Failed(said.code, f"{said.message} (HTTP {status})")
    if response.is_redirect:
        raise Failed(ErrorCode.BAD_RESPONSE, f"HTTP {status}: redirects are not followed; correct the tool's url")
    raise Failed(ErrorCode.BAD_RESPONSE, f"HTTP {status} from {response.url}; is this the tool's service?")


def read_version(response: httpx.Response) -> str:
    """The version that the service gives its answers; empty where it gives none that can be used."""
    return usable_version(response.headers.get(VERSION_HEADER, ""))


def usable_version(version: str) -> str:
    """``version`` if it can be one; otherwise nothing."""
    return version if _VERSION.fullmatch(version) else ""


def _call(tool: Tool, request: Request) -> dict[str, Any]:
    if request.date is None or not tool.takes_date:
        return {"input": request.input}
    # A datetime is a date too, but its own isoformat has a time.
    return {"input": request.input, "context": {"date": dt.date.isoformat(request.date)}}


def _parse(model: type[_Model], tool: Tool, body: bytes) -> _Model:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        message = f"{tool.name} did not answer in the contract's form: {where}: {first['msg']}"
        raise Failed(ErrorCode.BAD_RESPONSE, message) from error


def _checked(tool: Tool, request: Request, answer: _CallAnswer) -> str | ToolError:
    if answer.tool != tool.name:
        raise Failed(ErrorCode.BAD_RESPONSE, f"{tool.url} is the service of {answer.tool[:64]!r}, not of {tool.name!r}")
    if answer.input != request.input:
        raise Failed(ErrorCode.BAD_RESPONSE, f"{tool.name} answered another call than the one it was asked")
    if answer.error is not None:
        return ToolError(answer.error.code, answer.error.message)
    assert answer.output is not None
    return answer.output
