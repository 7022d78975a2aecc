"""A gRPC client of a gateway that runs in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from inference_gateway.grpc_api.server import GrpcServer
from inference_gateway.grpc_api.status import DETAILS_KEY
from tests.inference_gateway.http_harness import Gateway
from toolformer.v1.completion_pb2 import CompletionEvent, CompletionRequest
from toolformer.v1.completion_pb2_grpc import CompletionServiceStub

Metadata = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Client:
    """A channel to ``gateway``."""

    gateway: Gateway
    channel: grpc.aio.Channel

    def begin(
        self, prompt: str = "", *, metadata: Metadata = (), seconds: float = 60, **fields: Any
    ) -> grpc.aio.UnaryStreamCall[CompletionRequest, CompletionEvent]:
        """The RPC of a completion, begun."""
        request = CompletionRequest(prompt=prompt, **{"max_tokens": 40, "tool_timeout": 60, **fields})
        stub = CompletionServiceStub(self.channel)
        return stub.Complete(request, timeout=seconds, metadata=tuple(metadata))

    async def complete(self, prompt: str = "", **fields: Any) -> list[CompletionEvent]:
        """All events of a completion, which must succeed."""
        return [event async for event in self.begin(prompt, **fields)]

    async def refused(self, prompt: str = "", **fields: Any) -> Refusal:
        """How a completion fails that must."""
        call = self.begin(prompt, **fields)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            _ = [event async for event in call]
        return Refusal.read(failure.value)


@dataclass(frozen=True)
class Refusal:
    """An RPC's failure, its details taken apart."""

    code: grpc.StatusCode
    message: str
    reason: str
    fields: list[str]
    retry_seconds: int | None

    @classmethod
    def read(cls, error: grpc.aio.AioRpcError) -> Refusal:
        """Take ``error`` apart; its details must repeat its code and message."""
        trailers = dict(error.trailing_metadata())
        status = Status.FromString(trailers[DETAILS_KEY])
        assert (status.code, status.message) == (error.code().value[0], error.details())
        info, request, retry = ErrorInfo(), BadRequest(), RetryInfo()
        found = [one for one in (info, request, retry) if any(detail.Unpack(one) for detail in status.details)]
        return cls(
            error.code(),
            error.details() or "",
            info.reason,
            [violation.field for violation in request.field_violations],
            retry.retry_delay.seconds if retry in found else None,
        )


def kinds(events: Sequence[CompletionEvent]) -> list[str | None]:
    """What each event is, texts that follow one another as one."""
    names = [event.WhichOneof("event") for event in events]
    return [name for number, name in enumerate(names) if number == 0 or names[number - 1] != name]


def text(events: Sequence[CompletionEvent]) -> str:
    """The whole text."""
    return "".join(event.text_delta.text for event in events)


@asynccontextmanager
async def client(gateway: Gateway) -> AsyncIterator[Client]:
    """A client of ``gateway``, which serves gRPC."""
    server = gateway.app.state.grpc_server
    assert isinstance(server, GrpcServer)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield Client(gateway, channel)
