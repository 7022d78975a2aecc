"""Errors as gRPC statuses, with the details of ``google.rpc`` that clients know how to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from toolformer.http_api import ApiError, error_body

DETAILS_KEY: Final = "grpc-status-details-bin"
"""The trailing metadata that carries a ``google.rpc.Status``."""

DOMAIN: Final = "toolformer"

_CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
_BUSY: Final = "busy"
"""The code of a 503 that says that there is no room: a retry later helps, another connection does not."""


@dataclass(frozen=True, slots=True)
class GrpcStatus:
    """How an RPC ends that failed."""

    code: grpc.StatusCode
    message: str
    details: bytes

    @classmethod
    def of(cls, error: ApiError) -> GrpcStatus:
        """``error`` as a status whose details name its code, the field at fault, and when to try again."""
        body = error_body(error.status, error.message, param=error.param, code=error.code)["error"]
        code = _CODES.get(error.status, grpc.StatusCode.INTERNAL)
        if body["code"] == _BUSY:
            code = grpc.StatusCode.RESOURCE_EXHAUSTED
        message, reason, param = str(body["message"]), str(body["code"]), body["param"]
        details: list[Message] = [ErrorInfo(reason=reason, domain=DOMAIN)]
        if param is not None:
            violation = BadRequest.FieldViolation(field=param, description=message)
            details.append(BadRequest(field_violations=[violation]))
        if (seconds := error.headers.get("Retry-After")) is not None:
            details.append(RetryInfo(retry_delay=Duration(seconds=int(seconds))))
        status = Status(code=code.value[0], message=message, details=map(_packed, details))
        return cls(code, message, status.SerializeToString())

    @property
    def trailers(self) -> tuple[tuple[str, bytes], ...]:
        """The trailing metadata."""
        return ((DETAILS_KEY, self.details),)


def _packed(message: Message) -> Any:
    packed = Any()
    packed.Pack(message)
    return packed
