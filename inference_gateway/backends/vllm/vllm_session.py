"""One completion inside vLLM: turns of tokens into a decoding machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vllm import SamplingParams, TokensPrompt
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

from inference_gateway.backends.sessions import TaskSession, seed_behind
from inference_gateway.backends.vllm.call_rules import HISTORY, TURN
from inference_gateway.backends.vllm.replay import RecordedMachine
from inference_gateway.backends.vllm.stream import Made, VllmStream, best
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CompletionRequest
from inference_gateway.engine.stats import Observer
from toolformer.api_call import SplicedResult

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TokenTotals:
    """Tokens since the start, as `~inference_gateway.engine.stats.EngineStats` counts them."""

    computed: int = 0
    generated: int = 0
    recomputed: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    dropped_pauses: int = 0


class VllmSession(TaskSession):
    """A completion in ``engine``; see :class:`~inference_gateway.backends.base.Session`.

    It does nothing until :meth:`begin`. ``on_change`` is called whenever it holds more or less of vLLM's cache than
    before, when it pauses, resumes and ends."""

    def __init__(
        self,
        engine: AsyncLLM,
        recorded: RecordedMachine,
        vocabulary: CallVocabulary,
        *,
        name: str,
        totals: TokenTotals,
        observe: Observer,
        on_change: Callable[[VllmSession], None],
    ) -> None:
        """``name``: its own in ``engine``."""
        super().__init__(recorded.machine, observe)
        self._engine = engine
        self._recorded = recorded
        self._vocabulary = vocabulary
        self._name = name
        self._totals = totals
        self._on_change = on_change
        self._resumed = asyncio.Event()
        self._stream: VllmStream | None = None
        self._streams = self._turns = 0
        self._known = 0
        """Tokens of the beginning of prompt and completion that were computed once."""

    # For a completion ----------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        return self._recorded.room

    def splice(self, result: SplicedResult) -> None:
        self._resume(result)

    def give_up(self) -> None:
        self._resume(None)

    # For the backend -----------------------------------------------------------------------------------------------

    @property
    def request(self) -> CompletionRequest:
        return self._recorded.history.request

    @property
    def paused(self) -> bool:
        """Whether a tool is being called."""
        return self._recorded.paused and not self.ended

    @property
    def length(self) -> int:
        """Tokens of prompt and completion."""
        return len(self.request.prompt_ids) + len(self._machine.ids)

    @property
    def resting(self) -> bool:
        """Whether it holds memory of vLLM and waits for a tool."""
        return self.paused and self._stream is not None and not self._stream.busy

    def begin(self) -> None:
        """Ask for tokens, from now on."""
        self._task = asyncio.create_task(self._run(), name=f"vLLM completion {self.request.request_id}")

    async def drop(self) -> None:
        """Free the memory that it holds while it waits; what is lost is computed again when it resumes."""
        stream, self._stream = self._stream, None
        if stream is not None:
            self._totals.dropped_pauses += 1
            await stream.aclose()

    def _resume(self, result: SplicedResult | None) -> None:
        if not self.paused:
            return  # it timed out while the tool answered
        self._note_answer()
        self._pass_on(self._recorded.answer(result))
        self._resumed.set()
        if self._machine.done:
            self._end()
        else:
            self._on_change(self)

    def _has_ended(self) -> None:
        self._on_change(self)

    async def _run(self) -> None:
        """Turn after turn, until the machine ends."""
        try:
            if self.request.prompt_logprobs:
                await self._score_prompt()
            if self.request.max_tokens == 0:
                self.finish("length")
            while not self._machine.done:
                if self.paused:
                    self._resumed.clear()
                    self._on_change(self)
                    await self._resumed.wait()
                else:
                    await self._take_turn()
        except Exception:
            log.exception("a completion in vLLM failed")
            self.finish("error", "vLLM failed on this completion; the server's log has the cause")
        finally:
            if self._stream is not None:
                await self._stream.aclose()
            self._end()

    async def _take_turn(self) -> None:
        """Have vLLM go on until the machine pauses, ends or drops tokens."""
        ids = [*self.request.prompt_ids, *self._machine.ids]
        if self._stream is not None and not self._stream.continues(ids):
            await self._stream.aclose()
            self._stream = None
        fresh = self._stream is None
        if self._stream is None:
            self._streams += 1
            self._stream = VllmStream(self._engine, f"{self._name}-{self._streams}", self.request.logprobs)
        self._turns += 1
        over, to_compute = False, len(ids) - len(self._stream.held)
        async with contextlib.aclosing(self._stream.turn(ids, self._parameters(ids))) as tokens:
            async for token in tokens:
                if fresh:
                    to_compute -= self._count_start(len(ids), self._stream.cached_tokens)
                    fresh = False
                # What a token is chosen after was computed: the turn's input, then the token before it.
                self._totals.computed += to_compute
                to_compute = 1
                if not over:
                    over = self._take(token)
                if self._machine.done:
                    return

    def _take(self, token: Made) -> bool:
        """Give the machine the next token; whether the rest of the turn is of no use."""
        self._note_token()
        self._totals.generated += 1
        rule = self._machine.rule()
        forced = rule.start_top_k > 0 and token.id in self._vocabulary.start_ids and token.rank <= rule.start_top_k
        length = self.length
        actions = self._recorded.accept(token.id, forced=forced, logprob=token.logprob, top=token.top)
        self._pass_on(actions)
        self._known = max(self._known, length)
        if self._recorded.leaves_sequence(actions):
            return True
        self._on_change(self)
        return False

    def _count_start(self, length: int, cached: int) -> int:
        """A sequence of ``length`` tokens began, of which vLLM had the first ``cached``; these."""
        if self._streams > 1:
            self._totals.recomputed += max(0, min(self._known, length - 1) - cached)
        else:
            self._totals.prefix_queries += length
            self._totals.prefix_hits += cached
            self._machine.cached_tokens = min(cached, len(self.request.prompt_ids))
        return cached

    def _parameters(self, ids: list[int]) -> Any:
        """What vLLM is asked for in a turn after ``ids``. Penalties and biases are `CallRules`' part: vLLM would count
        each turn's tokens anew, and change what a tool's name is."""
        request, sampling = self.request, self.request.sampling
        # An API start may also be drawn: its rank says whether it was taken for that.
        ranked = not request.plain and (sampling.temperature > 0 or sampling.adjusts)
        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
            seed=seed_behind(sampling, len(ids) - len(request.prompt_ids)),
            max_tokens=max(1, request.max_tokens - self._machine.usage.completion_tokens),
            stop_token_ids=self._turn_ends(),
            ignore_eos=True,
            logprobs=request.logprobs if request.logprobs is not None else 0 if ranked else None,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args={HISTORY: self._recorded.history.packed(), TURN: f"{self._name}/{self._turns}"},
        )

    def _turn_ends(self) -> list[int]:
        """The tokens after which vLLM waits by itself. An arrow mostly pauses the completion, so that it needs no step
        more; one outside a call costs a turn. Where the arrow is several tokens, `CallRules` ends the turn."""
        arrow = self._vocabulary.tokenizer.marks.arrow
        return sorted({*self._vocabulary.end_ids, *(arrow if len(arrow) == 1 and not self.request.plain else ())})

    async def _score_prompt(self) -> None:
        """Report the log probabilities of the prompt's tokens; a request of its own, whose one token is not used."""
        top, prompt = self.request.logprobs or 0, list(self.request.prompt_ids)
        params = SamplingParams(
            max_tokens=1, prompt_logprobs=top, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY
        )
        scores: list[tuple[float | None, tuple[tuple[int, float], ...]]] = []
        async for output in self._engine.generate(
            TokensPrompt(prompt_token_ids=prompt), params, f"{self._name}-prompt"
        ):
            likeliest = list(zip(prompt, output.prompt_logprobs or [], strict=True))[self.request.hidden + 1 :]
            scores = [(None, ()), *((likely[token].logprob, best(likely, top)) for token, likely in likeliest)]
        self._pass_on([self._machine.describe_prompt(scores)])
