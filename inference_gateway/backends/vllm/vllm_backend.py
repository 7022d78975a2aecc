"""The backend that is vLLM.

`AsyncLLM` is in the gateway's process, and vLLM's own processes below it: for any model that vLLM serves with a
byte-level vocabulary, on as many GPUs as it is given. A completion waits for a tool inside vLLM, with its keys and
values.

vLLM never takes memory from a sequence that waits for input. So the backend does: it counts what its completions need,
and where that is more than the cache has, or a tool takes longer than ``hold_seconds``, it ends waiting sequences, the
one whose call began last first. Such a completion goes on in a new sequence, and what vLLM's prefix cache lost
meanwhile is computed again."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vllm import AsyncEngineArgs
from vllm.platforms import current_platform
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.async_llm import AsyncLLM

from inference_gateway.backends.base import BackendBusy
from inference_gateway.backends.vllm.call_rules import END_IDS
from inference_gateway.backends.vllm.replay import History, RecordedMachine
from inference_gateway.backends.vllm.vllm_session import TokenTotals, VllmSession
from inference_gateway.call_vocabulary import CallForm, CallVocabulary
from inference_gateway.core import OPTIONAL_SAMPLING, CompletionRequest
from inference_gateway.engine.stats import EngineStats, Observer, StepTimes
from language_model.tokenizer import ByteLevelTokenizer

log = logging.getLogger(__name__)

_RULES: Final = "inference_gateway.backends.vllm.call_rules:CallRules"
_MOST_SCORES: Final = 1000
"""Likely tokens that a request may ask for; the API's own limit is lower."""


@dataclass(frozen=True, slots=True)
class VllmLimits:
    """``max_sequences``: completions that decode at once, without those in a tool call. ``max_waiting``: completions
    that may wait for their turn before more are refused. ``hold_seconds``: how long a completion keeps its memory for
    itself while a tool works."""

    max_sequences: int = 64
    max_waiting: int = 256
    hold_seconds: float = 30.0

    @property
    def slots(self) -> int:
        """Sequences in vLLM at most; those in a tool call count too."""
        return 2 * self.max_sequences


class VllmBackend:
    """Completions of the model that ``engine`` runs, whose vocabulary is ``tokenizer``'s."""

    notices: tuple[str, ...] = ()
    scores_prompts = True
    sampling_fields = OPTIONAL_SAMPLING

    def __init__(
        self,
        engine: AsyncLLM,
        tokenizer: ByteLevelTokenizer,
        vocabulary: CallVocabulary,
        limits: VllmLimits,
        model_name: str,
    ) -> None:
        self.model_name = model_name
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.max_model_len: int = engine.model_config.max_model_len
        self._engine = engine
        self._limits = limits
        cache = engine.vllm_config.cache_config
        self._block: int = cache.block_size
        self._blocks: int = cache.num_gpu_blocks - 1  # one of them is never a sequence's
        self._totals = TokenTotals()
        self._observer: Observer | None = None
        self._numbers = itertools.count()
        self._waiting: deque[VllmSession] = deque()
        self._running: set[VllmSession] = set()
        self._paused: dict[VllmSession, asyncio.TimerHandle] = {}
        """Those in a tool call, the oldest call first, with what ends their hold."""
        self._closing: set[asyncio.Task[None]] = set()

    @classmethod
    def load(
        cls,
        directory: Path,
        end_ids: Sequence[int],
        *,
        limits: VllmLimits,
        max_model_len: int,
        tensor_parallel: int = 1,
        cache_bytes: int | None = None,
        dtype: str = "float32",
        reuse_prefixes: bool = True,
        model_name: str | None = None,
        stat_loggers: Sequence[Callable[..., Any]] = (),
        **more: Any,
    ) -> VllmBackend:
        """Start vLLM on a checkpoint directory; takes minutes. ``max_model_len`` is capped by the model's positions.
        ``stat_loggers`` make vLLM's `StatLoggerBase`, which get its own counts; ``more`` are arguments of its engine.

        Raises:
            CheckpointError: if the vocabulary cannot be used.
        """
        tokenizer = ByteLevelTokenizer.from_pretrained(directory)
        model: dict[str, Any] = {"model": str(directory), "skip_tokenizer_init": True, "dtype": dtype}
        length = min(max_model_len, AsyncEngineArgs(**model).create_model_config().max_model_len)
        if current_platform.is_cpu():
            # On a CPU vLLM dies of a prompt that is computed in parts and has a seed (0.32), so a step takes whole
            # prompts, the longest beside all other sequences.
            model |= {"enable_chunked_prefill": False, "max_num_batched_tokens": length + limits.slots}
        arguments = AsyncEngineArgs(
            **model,
            max_model_len=length,
            max_num_seqs=limits.slots,
            max_logprobs=_MOST_SCORES,
            tensor_parallel_size=tensor_parallel,
            kv_cache_memory_bytes=cache_bytes,
            enable_prefix_caching=reuse_prefixes,
            # A rule follows from the token before, so no step may begin before that is known.
            async_scheduling=False,
            logits_processors=[_RULES],
            additional_config={END_IDS: sorted(end_ids)},
            **more,
        )
        config = arguments.create_engine_config(UsageContext.ENGINE_CONTEXT)
        if tensor_parallel == 1 and os.environ.get("VLLM_CPU_OMP_THREADS_BIND") == "nobind":
            # On a CPU vLLM gives even one worker a process of its own, to bind its threads, and keeps a core busy with
            # waiting for it. Where none are bound that is a core lost.
            config.parallel_config.distributed_executor_backend = "uni"
        engine = AsyncLLM.from_vllm_config(config, stat_loggers=list(stat_loggers), disable_log_stats=True)
        vocabulary = CallVocabulary.of(tokenizer, end_ids)
        return cls(engine, tokenizer, vocabulary, limits, model_name or directory.name)

    async def start(self) -> None:
        """vLLM runs already."""

    async def stop(self) -> None:
        for session in [*self._waiting, *self._running, *self._paused]:
            session.finish("error", "the server is shutting down")
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._engine.output_handler is not None:
            self._engine.output_handler.cancel()  # it would log the end of vLLM's processes as `EngineDeadError`
        await asyncio.to_thread(self._engine.shutdown)
        self._engine.shutdown = lambda: None  # its `__del__` calls it once more, when modules are gone, and fails

    def ready(self) -> bool:
        return not self._engine.errored

    def why_not_ready(self) -> str:
        return "vLLM has stopped; restart the gateway"

    def open(self, request: CompletionRequest, tools: Mapping[str, CallForm]) -> VllmSession:
        session = VllmSession(
            self._engine,
            RecordedMachine(History.begin(request, tools, self.max_model_len), self.vocabulary),
            self.vocabulary,
            name=f"{request.request_id}-{next(self._numbers)}",
            totals=self._totals,
            observe=self._observed,
            on_change=self._changed,
        )
        if len(self._running) < self._limits.max_sequences:
            self._begin(session)
        elif len(self._waiting) < self._limits.max_waiting:
            self._waiting.append(session)
        else:
            raise BackendBusy(f"{self._limits.max_waiting} completions are waiting already")
        return session

    def observe(self, observer: Observer) -> None:
        """Report to ``observer`` when tokens came; to be set before :meth:`start`."""
        self._observer = observer

    def stats(self) -> EngineStats:
        """Counts for metrics."""
        totals = self._totals
        paused = sum(session.length for session in self._paused if session.resting)
        return EngineStats(
            waiting=len(self._waiting),
            running=len(self._running),
            in_call=len(self._paused),
            cache_tokens=self._blocks * self._block,
            held_tokens=paused + sum(session.length for session in self._running),
            paused_tokens=paused,
            bytes_per_token=_bytes_per_token(self._engine.vllm_config),
            computed_tokens=totals.computed,
            generated_tokens=totals.generated,
            recomputed_tokens=totals.recomputed,
            prefix_queries=totals.prefix_queries,
            prefix_hits=totals.prefix_hits,
            dropped_pauses=totals.dropped_pauses,
        )

    def _observed(self, times: StepTimes) -> None:
        if self._observer is not None:
            self._observer(times)

    def _begin(self, session: VllmSession) -> None:
        self._running.add(session)
        self._make_room()
        session.begin()

    def _changed(self, session: VllmSession) -> None:
        """``session`` has one token more, has paused, resumed or ended."""
        if session in self._running and not session.paused and not session.ended:
            if session.length % self._block == 0:
                self._make_room()
            return
        self._running.discard(session)
        if session in self._paused:
            self._paused.pop(session).cancel()
        if session.ended:
            if session in self._waiting:
                self._waiting.remove(session)
            if session.task is not None:
                self._watch(session.task)
        elif session.paused:
            hold = asyncio.get_running_loop().call_later(self._limits.hold_seconds, self._drop, session)
            self._paused[session] = hold
        else:
            self._running.add(session)
        self._make_room()
        while self._waiting and len(self._running) < self._limits.max_sequences:
            self._begin(self._waiting.popleft())

    def _make_room(self) -> None:
        """End waiting sequences while those that run and those that wait need more than the cache has."""
        resting = [session for session in self._paused if session.resting]
        needed = sum(map(self._blocks_of, [*self._running, *resting]))
        while resting and (needed > self._blocks or len(self._running) + len(resting) > self._limits.slots):
            session = resting.pop()
            needed -= self._blocks_of(session)
            self._drop(session)

    def _blocks_of(self, session: VllmSession) -> int:
        """Blocks of the cache for the tokens of ``session`` and the next one."""
        return session.length // self._block + 1

    def _drop(self, session: VllmSession) -> None:
        self._watch(asyncio.create_task(session.drop(), name="end a waiting sequence"))

    def _watch(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def _bytes_per_token(config: Any) -> int:
    """Bytes of keys and values of one token in all layers and on all ranks."""
    model, parallel = config.model_config, config.parallel_config
    heads = model.get_num_kv_heads(parallel) * parallel.tensor_parallel_size
    width = 2 * heads * model.get_head_size() * model.get_num_layers(parallel)
    return int(width * model.dtype.itemsize)
