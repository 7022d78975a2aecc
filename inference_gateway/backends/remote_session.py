"""One completion on a remote server: segments of tokens into a decoding machine.

A server cannot pause inside a sequence, so a completion is several requests, *segments*: one ends where the machine
pauses, rolls back or takes another token than the server did, and the next continues the machine's ids. The server's
prefix cache is what keeps that cheap. The stream is closed by us and never by a stop string of the server's, because
only what a stream says token by token is exact (decision record 012)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from inference_gateway.actions import Action, Keep
from inference_gateway.backends.model_server import Abilities, Cached, ModelServer, Segment, ServerError, Step
from inference_gateway.backends.sessions import TaskSession, seed_behind
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CompletionRequest, SamplingParams
from inference_gateway.decoding import DecodingMachine, Phase, StepRule
from inference_gateway.engine.stats import Observer
from toolformer.api_call import SplicedResult

log = logging.getLogger(__name__)

_UNADJUSTED: Final[dict[str, Any]] = {
    "frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0, "logit_bias": (), "min_tokens": 0
}  # fmt: skip
_NONE: Final[frozenset[int]] = frozenset()
_SPARE_TOKENS = 10
"""Most likely tokens to ask for where the likeliest may be one that must not be there."""


def choose(rule: StepRule, step: Step, vocabulary: CallVocabulary, *, greedy: bool) -> tuple[int, bool]:
    """The token that ``rule`` takes where the server took ``step``, and whether it was taken as an API start
    (section 4.2 of the paper). The same as the local engine's choice wherever ``step.top`` reaches far enough."""
    if rule.start_top_k > 0:
        likely = dict(step.top)
        start = max((s for s in vocabulary.start_ids if s in likely), key=likely.__getitem__, default=None)
        if start is not None and sum(other > likely[start] for other in likely.values()) < rule.start_top_k:
            return start, True
        # Where nothing is reported of other tokens, a greedy choice is known to be the most likely one.
        if greedy and not step.top and step.id in vocabulary.start_ids:
            return step.id, True
    # A name is what the model finds likeliest, whatever the penalties; elsewhere a token that must not stand gives way.
    if rule.forbids(step.id) or (rule.allowed and greedy):
        return next((other for other, _ in step.top if not rule.forbids(other)), step.id), False
    return step.id, False


@dataclass(slots=True)
class TokenCounts:
    """Tokens since the start: those that servers chose; those of prompts of which a server reported how many it had in
    its cache, and these."""

    generated_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0


def continued(sampling: SamplingParams, made: Sequence[int]) -> SamplingParams:
    """``sampling`` for a segment that goes on behind the tokens ``made``: a server knows only what it makes itself.

    Penalties for tokens that are there already are biases on them. For ``frequency_penalty`` that is the same; of
    ``presence_penalty`` a token that comes once more has it twice; beside ``repetition_penalty`` neither is exact, for
    vLLM multiplies what has the bias already."""
    if not made:
        return sampling
    bias = dict(sampling.logit_bias)
    if sampling.frequency_penalty or sampling.presence_penalty:
        for token, times in Counter(made).items():
            bias[token] = bias.get(token, 0.0) - sampling.frequency_penalty * times - sampling.presence_penalty
    return replace(sampling, seed=seed_behind(sampling, len(made)), logit_bias=tuple(bias.items()))


class RemoteSession(TaskSession):
    """A completion on ``server``; see :class:`~inference_gateway.backends.base.Session`.

    It does nothing until :meth:`begin`. ``on_end`` is called once, when it has ended or was closed."""

    def __init__(
        self,
        server: ModelServer,
        abilities: Abilities,
        request: CompletionRequest,
        machine: DecodingMachine,
        vocabulary: CallVocabulary,
        *,
        max_model_len: int,
        counts: TokenCounts,
        observe: Observer,
        on_end: Callable[[RemoteSession], None],
    ) -> None:
        super().__init__(machine, observe)
        self._server = server
        self._abilities = abilities
        self._max_model_len = max_model_len
        self._request = request
        self._vocabulary = vocabulary
        self._counts = counts
        self._on_end = on_end
        self._segments = 0
        self._strict = False
        """Whether the next token is asked for by itself, with biases for those that are allowed."""

    @property
    def room(self) -> int:
        return self._max_model_len - len(self._request.prompt_ids) - len(self._machine.ids)

    @property
    def paused(self) -> bool:
        """Whether a tool is being called."""
        return self._machine.phase is Phase.PAUSED

    def begin(self) -> None:
        """Ask the server for tokens, from now on."""
        if self._task is not None and not self._task.done():
            return  # it is still closing the stream it paused in, and will see that there is more to do
        self._task = asyncio.create_task(self._advance(), name=f"remote completion {self._request.request_id}")

    def splice(self, result: SplicedResult) -> None:
        if self.paused:  # it may have timed out while the tool answered
            self._resume(self._machine.splice(result))

    def give_up(self) -> None:
        if self.paused:
            self._resume(self._machine.give_up())

    def _resume(self, actions: list[Action]) -> None:
        self._note_answer()
        self._pass_on(actions)
        if self._machine.done:
            self._end()
        else:
            self.begin()

    def _has_ended(self) -> None:
        self._on_end(self)

    async def _advance(self) -> None:
        """Segment after segment, until the machine pauses or ends."""
        try:
            if self._request.prompt_logprobs:
                raise ServerError("prompts cannot be scored on a model server: leave out 'echo' or 'logprobs'")
            if self._request.max_tokens == 0:
                self.finish("length")
            while not (self._machine.done or self.paused):
                await self._read_segment()
        except ServerError as error:
            log.warning("a completion ended early: %s", error)
            self.finish("error", str(error))
        except Exception:
            log.exception("a completion on %s failed", self._server.url)
            self.finish("error", "the gateway failed on the model server's answer; the log has the cause")
        if self._machine.done:
            self._end()

    async def _read_segment(self) -> None:
        segment = self._next_segment()
        made = 0
        async with contextlib.aclosing(self._server.stream(segment)) as items:
            async for item in items:
                if isinstance(item, Cached):
                    self._counts.prefix_queries += len(segment.ids)
                    self._counts.prefix_hits += min(item.tokens, len(segment.ids))
                    if self._segments == 1:
                        self._machine.cached_tokens = min(item.tokens, len(self._request.prompt_ids))
                elif isinstance(item, Step):
                    made += 1
                    self._note_token()
                    self._counts.generated_tokens += 1
                    if not self._take(item, segment):
                        return
                elif item.reason == "stop":
                    if segment.allowed or not self._asks_for_name(known=False):
                        self._end_of_text()
                elif not made:
                    # At its own limit; or at ours inside a character, whose tokens llama.cpp reports only as a whole.
                    self.finish("length")

    def _next_segment(self) -> Segment:
        request, machine = self._request, self._machine
        left = max(0, request.sampling.min_tokens - machine.usage.completion_tokens)
        sampling = replace(continued(request.sampling, machine.ids), min_tokens=left)
        if self._strict:
            sampling = replace(sampling, **_UNADJUSTED)
        rule = machine.rule()
        top, banned = request.logprobs or 0, _NONE
        # A lone `]` is rare: where the server's own probabilities decide, it is replaced when it comes.
        own = request.sampling.temperature == 0 and not request.sampling.adjusts
        if self._abilities.bans and not (own and rule.banned <= self._vocabulary.closers):
            banned = rule.banned
        if not request.plain and not banned & self._vocabulary.openings:
            # To see where a call may start, and to choose another token from where one must not stand.
            top = max(top, request.api_top_k, _SPARE_TOKENS)
        self._segments += 1
        return Segment(
            ids=(*request.prompt_ids, *machine.ids),
            max_tokens=1 if self._strict else min(request.max_tokens - machine.usage.completion_tokens, self.room),
            sampling=sampling,
            top=min(top, self._abilities.top),
            logprobs=request.logprobs is not None,
            banned=banned,
            allowed=rule.allowed if self._strict else _NONE,
            request_id=request.request_id,
        )

    def _take(self, step: Step, segment: Segment) -> bool:
        """Give the machine its next token; whether the stream still continues what it has."""
        request, machine, rule = self._request, self._machine, self._machine.rule()
        token, forced = choose(rule, step, self._vocabulary, greedy=request.sampling.temperature == 0)
        if segment.allowed:
            self._strict = False
        elif self._asks_for_name(known=not rule.forbids(token) and token in dict(step.top)):
            return False
        shown = request.logprobs is not None
        actions = machine.accept(
            token,
            forced=forced,
            as_text=token in rule.banned,
            logprob=(step.logprob if token == step.id else dict(step.top).get(token)) if shown else None,
            top=step.top[: request.logprobs or 0],
        )
        if not machine.done and self.room <= 0:
            actions += machine.run_out()
        self._pass_on(actions)
        if token != step.id or machine.done or self.paused or any(isinstance(action, Keep) for action in actions):
            return False
        return not segment.banned or segment.banned == machine.rule().banned

    def _asks_for_name(self, *, known: bool) -> bool:
        """Whether the next token writes a tool's name and is not ``known`` from what the server reports; it is then
        asked for by itself, with biases, if the server takes them."""
        self._strict = bool(self._machine.rule().allowed) and not known and self._abilities.bans
        return self._strict

    def _end_of_text(self) -> None:
        """The server's stream ended with the text, without a token that says so."""
        self._pass_on(self._machine.accept(next(iter(self._vocabulary.end_ids))))
