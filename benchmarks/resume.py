"""What it costs to resume a sequence after a tool call, beside a decode step; ``decode.py`` runs it."""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from inference_gateway.backends.local import LocalBackend
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CallStarted, CompletionRequest
from inference_gateway.engine.sampling import Sampler
from inference_gateway.engine.sequence import Sequence as EngineSequence
from language_model.causal_lm import CausalLM
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import splice_result
from toolformer.tools import ToolRegistry

PROMPTS = (
    "Each of the 24 boxes holds 17 books, so together they hold",
    "Today is",
    "The population of Ljubljana is",
    "The train left the station in the morning and",
)
CALLING_PROMPT = PROMPTS[0]


def prompts(tokenizer: ByteLevelTokenizer, streams: int) -> list[list[int]]:
    """One prompt a stream, all of the same number of tokens so that batches need no padding."""
    ids = [tokenizer.encode(text) for text in PROMPTS]
    length = max(map(len, ids))
    return [(ids[n % len(ids)] * length)[:length] for n in range(streams)]


_RESULT_TOKENS: Final = 8
"""More tokens of a sequence in a step than this are a prompt's."""


class TimedSampler(Sampler):
    """Notes when each step's tokens were chosen."""

    def __init__(self, vocabulary: CallVocabulary, device: torch.device) -> None:
        super().__init__(vocabulary, device)
        self.steps: list[tuple[float, int]] = []
        self.chosen: dict[str, float] = {}

    def choose(self, logits: Tensor, sequences: Sequence[EngineSequence]) -> list[tuple[int, bool]]:
        tokens = super().choose(logits, sequences)
        now = time.perf_counter()
        self.steps.append((now, len(sequences)))
        for sequence in sequences:
            self.chosen[sequence.request.request_id] = now
        return tokens


class ClockedModel:
    """A model that notes the processor time which each step takes the engine's thread, apart for those with a result's
    tokens among them. Unlike the time of day it hardly depends on what else the machine does."""

    def __init__(self, model: CausalLM[Any]) -> None:
        self._model = model
        self.decoding: list[float] = []
        self.with_result: list[float] = []

    def extend(self, cache: Any, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        started = time.thread_time()
        logits = self._model.extend(cache, rows, ids)
        longest = max(map(len, ids))
        if longest <= _RESULT_TOKENS:
            (self.decoding if longest == 1 else self.with_result).append(time.thread_time() - started)
        return logits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


async def resume_cost(backend: LocalBackend, streams: int, calls: int) -> dict[str, float]:
    """Milliseconds from the tool's answer to the next chosen token, beside a decode step, while ``streams`` - 1 others
    decode; and how much more processor time a step takes that computes a result. Answers come after 2 to 12 ms, so at
    any moment of a step."""
    tool_seconds = random.Random(0)
    engine = backend._engine
    watch = TimedSampler(backend.vocabulary, torch.device("cpu"))
    model = engine._model
    clocked = ClockedModel(model)
    engine._sampler, engine._model = watch, clocked
    tools = {"Calculator": ToolRegistry.load(files=[], environ={}).get("Calculator")}
    tokenizer = backend.tokenizer
    stop = asyncio.Event()

    async def background(number: int) -> None:
        while not stop.is_set():
            request = CompletionRequest(
                tuple(prompts(tokenizer, 4)[number % 4]), max_tokens=200, request_id=f"b{number}"
            )
            async for _ in backend.open(request, {}):
                pass

    others = [asyncio.create_task(background(number)) for number in range(streams - 1)]
    resumes: list[float] = []
    for number in range(calls):
        request = CompletionRequest(
            tuple(tokenizer.encode(CALLING_PROMPT)), max_tokens=48, tools=("Calculator",), request_id=f"r{number}"
        )
        session = backend.open(request, tools)
        answered = 0.0
        async for action in session:
            if answered:
                break  # the call's text, which is told once the next token is chosen
            if isinstance(action, CallStarted):
                await asyncio.sleep(tool_seconds.uniform(0.002, 0.012))
                answered = time.perf_counter()
                result = splice_result("408", tokenizer, max_tokens=32)
                assert result is not None
                session.splice(result)
        resumes.append(1000 * (watch.chosen[request.request_id] - answered))
        session.close()
    stop.set()
    await asyncio.gather(*others)
    gaps = [
        1000 * (second - first)
        for (first, _), (second, size) in itertools.pairwise(watch.steps)
        if size >= max(1, streams - 1)
    ]
    engine._model = model
    return {
        "resume_ms_p50": statistics.median(resumes),
        "decode_step_ms_p50": statistics.median(gaps),
        "result_step_in_decode_steps": statistics.median(clocked.with_result) / statistics.median(clocked.decoding),
    }
