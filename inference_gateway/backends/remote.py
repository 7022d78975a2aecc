"""The backend that uses a model server elsewhere.

The gateway keeps nothing but the decoding machines of the completions it is serving, so any number of gateways can
stand before one server or one load balancer. It looks after the server from start to stop: what the server can do is
found out when it first answers and again whenever it comes back, and while it is away no completions are taken."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from inference_gateway.backends.base import BackendBusy
from inference_gateway.backends.model_server import Abilities, ModelServer, ServerError
from inference_gateway.backends.remote_session import RemoteSession, TokenCounts
from inference_gateway.call_vocabulary import CallForm, CallVocabulary
from inference_gateway.core import CompletionRequest
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.stats import EngineStats, Observer, StepTimes
from language_model.tokenizer import ByteLevelTokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RemoteLimits:
    """``max_sequences``: completions at once, those in a tool call included; each has at most one stream.
    ``max_waiting``: completions that wait for their turn before more are refused. ``max_model_len``: tokens of one
    sequence; the server's own limit holds too. ``probe_seconds``: between looks at the server."""

    max_sequences: int = 64
    max_waiting: int = 256
    max_model_len: int = 2048
    probe_seconds: float = 2.0


class RemoteBackend:
    """Completions of the model behind ``server``, whose vocabulary is ``tokenizer``'s.

    ``model_name`` is what clients call the model; by default what the server calls it."""

    scores_prompts = False
    """Servers differ in how they give the scores, and none is asked."""

    def __init__(
        self,
        server: ModelServer,
        tokenizer: ByteLevelTokenizer,
        vocabulary: CallVocabulary,
        limits: RemoteLimits,
        model_name: str | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self._server = server
        self._limits = limits
        self._model_name = model_name
        self._abilities: Abilities | None = None
        self._why_not = f"{server.url} has not been asked yet"
        self._served = "unknown"
        self._served_len = limits.max_model_len
        self._counts = TokenCounts()
        self._observer: Observer | None = None
        self._running: set[RemoteSession] = set()
        self._waiting: deque[RemoteSession] = deque()
        self._closing: set[asyncio.Task[None]] = set()
        self._watcher: asyncio.Task[None] | None = None

    @property
    def model_name(self) -> str:
        return self._model_name or self._served

    @property
    def max_model_len(self) -> int:
        return min(self._limits.max_model_len, self._served_len)

    @property
    def notices(self) -> tuple[str, ...]:
        return self._abilities.notices if self._abilities else ()

    @property
    def sampling_fields(self) -> frozenset[str]:
        return self._abilities.sampling_fields if self._abilities else frozenset()

    def ready(self) -> bool:
        return self._abilities is not None

    def why_not_ready(self) -> str:
        return f"the model server is away: {self._why_not}"

    async def start(self) -> None:
        """Ask the server once, and go on asking in the background if it is not there yet."""
        await self._look()
        self._watcher = asyncio.create_task(self._watch(), name="watch the model server")

    async def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        for session in [*self._waiting, *self._running]:
            session.finish("error", "the server is shutting down")
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self._server.aclose()

    def open(self, request: CompletionRequest, tools: Mapping[str, CallForm]) -> RemoteSession:
        if self._abilities is None:
            raise BackendBusy(self.why_not_ready(), retry_after=self._limits.probe_seconds)
        session = RemoteSession(
            self._server,
            self._abilities,
            request,
            DecodingMachine(request, self.vocabulary, tools),
            self.vocabulary,
            max_model_len=self.max_model_len,
            counts=self._counts,
            observe=self._observed,
            on_end=self._left,
        )
        if len(self._running) < self._limits.max_sequences:
            self._running.add(session)
            session.begin()
        elif len(self._waiting) < self._limits.max_waiting:
            self._waiting.append(session)
        else:
            raise BackendBusy(f"{self._limits.max_waiting} completions are waiting already")
        return session

    def observe(self, observer: Observer) -> None:
        """Report to ``observer`` when tokens came; to be set before :meth:`start`."""
        self._observer = observer

    def stats(self) -> EngineStats:
        """Counts for metrics. The cache is the server's: of it only the prefix hits that it reports are known."""
        in_call = sum(session.paused for session in self._running)
        return EngineStats(
            waiting=len(self._waiting),
            running=len(self._running) - in_call,
            in_call=in_call,
            generated_tokens=self._counts.generated_tokens,
            prefix_queries=self._counts.prefix_queries,
            prefix_hits=self._counts.prefix_hits,
        )

    def _observed(self, times: StepTimes) -> None:
        if self._observer is not None:
            self._observer(times)

    def _left(self, session: RemoteSession) -> None:
        """``session`` has ended: its place is the next one's."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(session)
        self._running.discard(session)
        if session.task is not None and not session.task.done():
            self._closing.add(session.task)
            session.task.add_done_callback(self._closing.discard)
        while self._waiting and len(self._running) < self._limits.max_sequences:
            following = self._waiting.popleft()
            self._running.add(following)
            following.begin()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._limits.probe_seconds)
            await self._look()

    async def _look(self) -> None:
        """Survey a server that is new or was away; ask one that is known whether it is still there."""
        try:
            if self._abilities is not None:
                await self._server.ping()
                return
            found = await self._server.survey()
        except ServerError as error:
            if self._abilities is not None or self._why_not != str(error):
                log.warning("the model server is away: %s", error)
            # What comes back may be another server: it is surveyed again.
            self._abilities, self._why_not = None, str(error)
            return
        except Exception as error:
            log.exception("looking at %s failed", self._server.url)
            self._abilities, self._why_not = None, f"looking at {self._server.url} failed: {error}"
            return
        self._abilities, self._served = found, found.model
        self._served_len = found.max_model_len or self._limits.max_model_len
        log.info("model server %s: model %s, %d most likely tokens", self._server.url, found.model, found.top)
        for notice in found.notices:
            log.warning("model server %s: %s", self._server.url, notice)
