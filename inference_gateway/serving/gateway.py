"""What the gateway's routes need: the backend and the tool client, from start to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence

from opentelemetry.trace import Tracer
from prometheus_client import CollectorRegistry

from inference_gateway.api_keys import ApiKeys
from inference_gateway.backends.base import Backend
from inference_gateway.completion import Completer
from inference_gateway.serving.metrics import GatewayMetrics
from inference_gateway.settings import GatewaySettings
from language_model.config import CheckpointError
from toolformer.http_api import ApiError
from toolformer.result_cache import ResultCache
from toolformer.tool_client import Readiness, ToolClient
from toolformer.tool_wire import without_addresses
from toolformer.tools import Tool, ToolRegistry

logger = logging.getLogger(__name__)


class Gateway:
    """Loads the backend in the background, so that the process answers meanwhile, and stops it at the end.

    Args:
        load_backend: gives a backend that is not started yet. It is called in a thread and may take its time.
        registry: the tools.
        settings: limits and defaults of requests.
        metrics_registry: where the gateway's metrics go.
        keys: the API keys, whose file is watched as long as the gateway runs.
        cache: keeps tools' results, if they are to be kept.
        tracer: makes the spans of completions and tool calls.
    """

    def __init__(
        self,
        load_backend: Callable[[], Backend],
        registry: ToolRegistry,
        settings: GatewaySettings,
        metrics_registry: CollectorRegistry,
        keys: ApiKeys,
        cache: ResultCache | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.settings = settings
        self.keys = keys
        self.registry = registry
        self.metrics = GatewayMetrics(metrics_registry, lambda: self.backend)
        self.tools = ToolClient(registry, cache=cache, saw_lookup=self.metrics.saw_lookup)
        self.backend: Backend | None = None
        """The backend once it is loaded and started."""
        self.loaded_at = 0
        """When that was, in Unix seconds."""
        self._tracer = tracer
        self._load_backend = load_backend
        self._why_not = "the gateway has not been started"
        self._reported: dict[str, str] = {}
        """What was logged last of each tool's readiness, with its address."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the gateway running as long as the context is open."""
        async with self.tools:
            self._why_not = "the model is still loading"
            loading = asyncio.create_task(self._load(), name="load the backend")
            watching = asyncio.create_task(self.keys.watch(), name="watch the API keys")
            try:
                yield
            finally:
                loading.cancel()
                watching.cancel()
                await asyncio.gather(loading, watching, return_exceptions=True)
                self._why_not = "the gateway is shutting down"
                if self.backend is not None:
                    await self.backend.stop()

    def ready_backend(self) -> Backend:
        """The backend, which takes completions now.

        Raises:
            ApiError: 503 while there is none.
        """
        if self.backend is None or not self.backend.ready():
            why = self._why_not if self.backend is None else self.backend.why_not_ready()
            raise ApiError(
                503, f"no completions now: {without_addresses(why)}", code="not_ready", headers={"Retry-After": "2"}
            )
        return self.backend

    def completer(self) -> Completer:
        """What completes prompts.

        Raises:
            ApiError: 503 while nothing can.
        """
        return Completer(
            self.ready_backend(), self.registry, self.tools, self._tracer, saw_early=self.metrics.saw_early
        )

    async def tool_readiness(self, *, seconds: float) -> Sequence[tuple[Tool, Readiness]]:
        """Every tool and whether its service can answer, all asked at once, within that many ``seconds``."""
        tools = self.registry.select(None)
        answers = await asyncio.gather(*(self.tools.ready(tool.name, timeout=seconds) for tool in tools))
        for tool, answer in zip(tools, answers, strict=True):
            if answer.reason != self._reported.get(tool.name, ""):
                self._reported[tool.name] = answer.reason
                logger.info("%s: %s", tool.name, answer.reason or "ready")
        return [
            (tool, Readiness(answer.ok, without_addresses(answer.reason)))
            for tool, answer in zip(tools, answers, strict=True)
        ]

    async def _load(self) -> None:
        began = time.monotonic()
        try:
            backend = await asyncio.to_thread(self._load_backend)
            backend.observe(self.metrics.saw_step)
            await backend.start()
        except Exception as error:
            self._why_not = f"the model could not be loaded ({error}); mend that and restart the gateway"
            # A checkpoint's or a server's fault is said by the error; where in our code it came up helps nobody.
            with_trace = not isinstance(error, CheckpointError)
            logger.error("the model could not be loaded: %s", error, exc_info=with_trace)
        else:
            self.loaded_at = int(time.time())
            self.backend = backend
            if backend.ready():
                logger.info("ready: model %s after %.1f s", backend.model_name, time.monotonic() - began)
            else:
                logger.warning("not ready yet: %s", backend.why_not_ready())
