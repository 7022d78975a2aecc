"""One session of vLLM: turns of tokens over one key-value cache."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vllm import TokensPrompt
from vllm.engine.protocol import StreamingInput
from vllm.v1.engine.async_llm import AsyncLLM

_END: Final = None


@dataclass(frozen=True, slots=True)
class Made:
    """A token that vLLM chose, and its rank by the model's own logits (1: the likeliest; 0: not asked for).

    ``logprob`` and ``top`` as in `~inference_gateway.core.TokenLogprob`."""

    id: int
    rank: int = 0
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


class VllmStream:
    """A sequence in vLLM, which waits there between turns. ``name`` must be its own.

    vLLM keeps the keys and values of a turn's tokens but the last, which it drops when the next turn begins; ``held``
    are the tokens whose it keeps. While a turn runs that is what it began with."""

    def __init__(self, engine: AsyncLLM, name: str, top: int | None) -> None:
        """``top``: the number of most likely tokens that ``Made.top`` has; ``None`` where no scores are asked for."""
        self._engine = engine
        self._name = name
        self._top = top
        self._inputs: asyncio.Queue[StreamingInput | None] = asyncio.Queue()
        self._outputs: Any = None
        self.held: list[int] = []
        self.busy = False
        """Whether a turn runs."""
        self.cached_tokens = 0
        """Tokens of the first turn's input that vLLM had already."""

    def continues(self, ids: Sequence[int]) -> bool:
        """Whether a turn after ``ids`` only adds tokens to what is held."""
        return len(ids) > len(self.held) and list(ids[: len(self.held)]) == self.held

    async def turn(self, ids: Sequence[int], params: Any) -> AsyncGenerator[Made, None]:
        """The tokens that follow ``ids``, which continue what is held, until vLLM ends the turn."""
        self._inputs.put_nowait(
            StreamingInput(prompt=TokensPrompt(prompt_token_ids=list(ids[len(self.held) :])), sampling_params=params)
        )
        self.busy, first = True, self._outputs is None
        if first:
            self._outputs = self._engine.generate(self._read_inputs(), params, self._name)
        made: list[int] = []
        async for output in self._outputs:
            if first:
                self.cached_tokens, first = output.num_cached_tokens or 0, False
            [completion] = output.outputs
            for at, token in enumerate(completion.token_ids):
                made.append(token)
                yield self._scored(token, completion.logprobs[at] if completion.logprobs else None)
            if completion.finish_reason is not None:
                break
        self.held, self.busy = [*ids, *made[:-1]], False

    async def aclose(self) -> None:
        """End the sequence, in or between turns, and free its memory."""
        self._inputs.put_nowait(_END)
        if self._outputs is not None:
            with contextlib.suppress(Exception):
                await self._outputs.aclose()

    async def _read_inputs(self) -> AsyncGenerator[StreamingInput, None]:
        while (given := await self._inputs.get()) is not _END:
            yield given

    def _scored(self, token: int, scores: Any) -> Made:
        if scores is None:
            return Made(token)
        own = scores[token]
        return Made(token, own.rank, None if self._top is None else own.logprob, best(scores, self._top or 0))


def best(scores: Any, top: int) -> tuple[tuple[int, float], ...]:
    """The ``top`` most likely of vLLM's ``scores`` of one place, best first."""
    ranked = sorted((score.rank, token, score.logprob) for token, score in scores.items())
    return tuple((token, logprob) for _, token, logprob in ranked[:top])
