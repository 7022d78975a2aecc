"""One error shape for every status: ``{"error": {"message", "type", "param", "code"}}``, as OpenAI's API has it.

``message`` says what is wrong and what to do about it, ``type`` is the family, ``param`` the dotted path of the field
at fault (or null), ``code`` the stable word that programs compare.
"""

from __future__ import annotations

import http
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolformer.http_api.middleware import HttpMiddleware, Sent

logger = logging.getLogger(__name__)

LONGEST_PARAM: Final = 200
"""Characters of a client's own field name or path that an error repeats: a name can be as long as the body."""

_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES: Final = {413: "body_too_large", 422: "invalid_value", 500: "internal_error", 503: "unavailable"}


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorResponse(BaseModel):
    """The body of every answer whose status is 400 or above."""

    error: ErrorDetail


class ApiError(Exception):
    """An error that is reported to the client in full: raise it anywhere below a route.

    Args:
        status: the HTTP status, 400 to 599.
        message: what is wrong and the remedy, in a sentence. The client reads it: no internals.
        type: the family; by default the one OpenAI's API uses for the status.
        param: the dotted path of the field at fault, ``calls.0.input``.
        code: the word programs compare; by default one for the status, such as ``not_found``.
        headers: extra response headers, such as ``Retry-After``.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str | None = None,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code
        self.headers = dict(headers or {})


def error_body(
    status: int, message: str, *, type: str | None = None, param: str | None = None, code: str | None = None
) -> dict[str, dict[str, str | None]]:
    """The error shape as a JSON-ready dictionary; ``type`` and ``code`` default to those of ``status``."""
    return {
        "error": {
            "message": _encodable(message),
            "type": type or _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error"),
            "param": None if param is None else _encodable(param),
            "code": code or _CODES.get(status) or _phrase(status),
        }
    }


def error_response(error: ApiError) -> Response:
    """``error`` as an HTTP response."""
    body = error_body(error.status, error.message, type=error.type, param=error.param, code=error.code)
    return Response(
        json.dumps(body, ensure_ascii=False).encode(),
        error.status,
        headers=error.headers,
        media_type="application/json",
    )


def documented_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """FastAPI's ``responses=`` for a route that may answer with these statuses, in the error shape."""
    return {status: {"model": ErrorResponse, "description": http.HTTPStatus(status).phrase} for status in statuses}


def install_error_handlers(app: FastAPI) -> None:
    """Give ``app`` the error shape for all it can refuse, and for what nobody foresaw.

    Covers `ApiError`, the framework's own refusals (404, 405 with its ``Allow``), a body that is not JSON (400) or not
    what the schema asks for (422), and any other exception: 500 for the client, a logged traceback for the operator.
    """

    async def api_error(_: Request, error: ApiError) -> Response:
        return error_response(error)

    async def framework_error(request: Request, error: HTTPException) -> Response:
        return error_response(_explain_framework_error(request, error))

    async def validation_error(_: Request, error: RequestValidationError) -> Response:
        return error_response(_explain_validation_error(error))

    # Starlette types a handler as one for any Exception, although it calls each with its own class only.
    app.add_exception_handler(ApiError, api_error)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, framework_error)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, validation_error)  # type: ignore[arg-type]
    app.add_middleware(UnhandledErrors)


class UnhandledErrors(HttpMiddleware):
    """An unforeseen exception is logged once and becomes a 500.

    Starlette's own outermost handler answers and raises on, so that the server logs a second time. Once a response has
    started there is nothing left to answer: the exception goes on, the server logs it and closes the connection, which
    is how the client learns that the response is not whole.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        sent = Sent(send)
        try:
            await self.app(scope, receive, sent)
        except ClientDisconnect:
            if sent.status:
                raise  # To the server, which closes the connection. With no response begun, nobody waits for one.
        except Exception:
            if sent.status:
                raise
            logger.exception("unhandled error in %s %r", scope["method"], scope["path"])
            message = "the server met an unexpected error; it is in the server's log. Try again, or report it"
            await error_response(ApiError(500, message))(scope, receive, send)


def _explain_framework_error(request: Request, error: HTTPException) -> ApiError:
    headers = dict(error.headers or {})
    where = repr(request.url.path[:LONGEST_PARAM])
    code = None
    match error.status_code:
        case 404:
            message = f"there is nothing at {where}; /docs lists what there is"
        case 405:
            message = f"{where} does not take {request.method}; use {headers.get('Allow', 'another method')}"
        case 400:  # The framework's answer to a body it cannot even decode, such as one that is not UTF-8.
            message, code = "the body could not be read as JSON in UTF-8; send a JSON object", "invalid_json"
        case _:
            message = str(error.detail)
    return ApiError(error.status_code, message, code=code, headers=headers)


def invalid_fields(problems: Sequence[Mapping[str, Any]], *, above: int = 0) -> ApiError:
    """The error (422) for what pydantic found wrong with a body, in the form of its ``errors()``; at least one.

    ``above`` is how many parts of a place stand above the field's own path.
    """
    first, others = problems[0], len(problems) - 1
    param = ".".join(str(part) for part in first["loc"][above:])[:LONGEST_PARAM] or None
    more = f" (and {others} more)" if others else ""
    return ApiError(422, _explain_field(first, param) + more, param=param)


def _explain_validation_error(error: RequestValidationError) -> ApiError:
    first = error.errors()[0]
    place = first["loc"]
    if first["type"] == "json_invalid":
        detail = first.get("ctx", {}).get("error", "syntax error")
        position = place[1] if len(place) > 1 else 0
        message = f"the body is not valid JSON: {detail} at character {position}; correct it and send it again"
        return ApiError(400, message, code="invalid_json")

    # The first part says where the value travelled (body, query, path); the rest is the field's own path.
    return invalid_fields(error.errors(), above=1)


def _explain_field(problem: Mapping[str, Any], param: str | None) -> str:
    if param is None:
        return "the body must be a JSON object; send one with the header Content-Type: application/json"
    match problem["type"]:
        case "missing":
            return f"{param!r} is missing; add it"
        case "extra_forbidden":
            return f"{param!r} is not a known field; remove it or correct its name"
        case "too_long" | "too_short" if isinstance(problem["input"], str):  # pydantic counts "items" of such a text
            way, name = ("most", "max_length") if problem["type"] == "too_long" else ("least", "min_length")
            return f"{param!r} has {len(problem['input']):,} characters; send at {way} {problem['ctx'][name]:,}"
        case "too_long":
            return f"{param!r} has too many items; send at most {problem['ctx']['max_length']:,}"
        case _:
            message = str(problem["msg"]).removeprefix("Value error, ")
            if message.startswith("Input should"):
                return f"{param!r} must{message.removeprefix('Input should')}"
            return f"{param!r}: {message}"


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase.lower().replace(" ", "_").replace("-", "_")
    except ValueError:
        return "error"


def _encodable(text: str) -> str:
    """``text`` without lone surrogates: JSON escapes can carry them in, UTF-8 cannot carry them out."""
    return text.encode("utf-8", "replace").decode()
