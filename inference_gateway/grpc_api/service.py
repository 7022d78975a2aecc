"""``CompletionService``: completions as streams of events."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from inference_gateway.grpc_api.calls import COMPLETE, Calls, ServicerContext
from inference_gateway.grpc_api.interceptor import client
from inference_gateway.grpc_api.messages import body_of, message_of, renamed
from inference_gateway.quotas import OverQuota, Quotas
from inference_gateway.serving.choices import Progress, RunningChoices
from inference_gateway.serving.completion_log import log_completion
from inference_gateway.serving.gateway import Gateway
from inference_gateway.serving.planning import plan
from inference_gateway.serving.refusals import no_room
from toolformer.http_api import ApiError, request_id
from toolformer.v1.completion_pb2 import DESCRIPTOR, CompletionEvent, CompletionRequest

SEND_SECONDS: Final = 60.0
"""How long a client may leave the connection's buffers full before it counts as gone."""

_MALFORMED: Final = f"the request is no {CompletionRequest.DESCRIPTOR.full_name}; make it with proto/toolformer/v1"


class CompletionService:
    """Completions of ``gateway``, as far as ``quotas`` has room for them.

    Requests are decoded here and not by the generated handler: what it cannot decode never reaches a method, and ends
    in a status that says nothing, a traceback in the log, and no count.
    """

    def __init__(self, gateway: Gateway, quotas: Quotas, calls: Calls) -> None:
        self._gateway = gateway
        self._quotas = quotas
        self._calls = calls

    def handlers(self) -> grpc.GenericRpcHandler:
        """What a server answers calls of the service with."""
        complete: grpc.RpcMethodHandler[bytes, CompletionEvent] = grpc.unary_stream_rpc_method_handler(
            self._answer, request_deserializer=None, response_serializer=CompletionEvent.SerializeToString
        )
        [service] = DESCRIPTOR.services_by_name.values()
        return grpc.method_handlers_generic_handler(service.full_name, {"Complete": complete})

    async def _answer(self, message: bytes, context: ServicerContext) -> None:
        """Write the events of one completion. An RPC that is cancelled, or whose deadline passes, is cancelled here."""
        async with self._calls.around(COMPLETE, context):
            try:
                request = CompletionRequest.FromString(message)
            except DecodeError:
                raise ApiError(400, _MALFORMED, code="malformed_message") from None
            try:
                with self._quotas.admitted(client.get()):
                    await self._complete(request, context)
            except OverQuota as over:
                raise no_room(over) from over

    async def _complete(self, request: CompletionRequest, context: ServicerContext) -> None:
        settings, began = self._gateway.settings, time.perf_counter()
        completer = self._gateway.completer()
        try:
            planned = await plan(
                body_of(request), completer, settings, request_id=request_id.get(), client=client.get()
            )
        except ApiError as error:
            raise renamed(error, request) from error
        progress = Progress(0, planned)
        try:
            async with RunningChoices(completer, planned, self._gateway.metrics) as running:
                while progress.finished is None:
                    if (item := await running.next()) is not None:
                        _, event = item
                        progress.take(event)
                        if (message := message_of(event, progress)) is not None:
                            await _write(context, message)
        finally:
            log_completion(
                f"cmpl-{uuid.uuid4().hex}",
                client.get(),
                planned,
                [progress],
                seconds=time.perf_counter() - began,
                with_text=settings.log_prompts,
            )


async def _write(context: ServicerContext, message: CompletionEvent) -> None:
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await context.write(message)
    except TimeoutError:
        raise ApiError(408, f"nothing was read for {SEND_SECONDS:g} s; read the stream as it comes") from None
