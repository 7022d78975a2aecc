"""API keys in front of every method but those that are open on purpose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import grpc

from inference_gateway.api_keys import ApiKeys
from inference_gateway.grpc_api.calls import Calls, ServicerContext
from inference_gateway.serving.refusals import client_of
from toolformer.http_api import ApiError

OPEN_SERVICES: Final = ("/grpc.health.v1.Health/", "/grpc.reflection.v1alpha.ServerReflection/")
"""Open to everybody: probes, and the description of the API, as over HTTP."""

client: ContextVar[str | None] = ContextVar("client", default=None)
"""The name of the key of the RPC that is being answered here; ``None`` where no keys are asked for."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class KeyInterceptor(grpc.aio.ServerInterceptor):
    """Metadata ``authorization: Bearer <key>``, or UNAUTHENTICATED: also for what does not exist."""

    def __init__(self, keys: ApiKeys, calls: Calls) -> None:
        self._keys = keys
        self._calls = calls

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Go on to the method, or to a refusal."""
        method = handler_call_details.method
        if not method.startswith(OPEN_SERVICES):
            metadata = dict(handler_call_details.invocation_metadata)
            try:
                client.set(client_of(self._keys, str(metadata.get("authorization", ""))))
            except ApiError as error:
                return self._refusing(method, error)
        return await continuation(handler_call_details)

    def _refusing(self, method: str, error: ApiError) -> Handler:
        async def refuse(_: Any, context: ServicerContext) -> None:
            async with self._calls.around(method, context):
                raise error

        return grpc.unary_unary_rpc_method_handler(refuse)
