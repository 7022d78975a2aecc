"""The engine's thread: it owns the model and its cache, and steps all sequences together.

The event loop speaks to it through commands; it answers each sequence's listener with the actions of its decoding
machine. A step computes what the scheduler planned: one token for each sequence that decodes, and pieces of what is
new, prompts and results of tools. A sequence that waits for a tool takes no part in steps, so it stops nobody."""

from __future__ import annotations

import asyncio
import logging
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from inference_gateway.actions import Action, Keep
from inference_gateway.core import CallStarted, CompletionRequest, FinishReason
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.outbox import Outbox
from inference_gateway.engine.rows import RowTable
from inference_gateway.engine.sampling import Sampler, Scored
from inference_gateway.engine.scheduler import Scheduler, Work
from inference_gateway.engine.scoring import UNSCORED, score
from inference_gateway.engine.sequence import Listener, Sequence, State
from inference_gateway.engine.stats import EngineStats, Observer
from language_model.causal_lm import CausalLM
from toolformer.api_call import SplicedResult

log = logging.getLogger(__name__)

_SWITCH_SECONDS: Final = 0.0001
"""After so long another thread gets Python's lock if it waits for it."""


class Engine:
    """Continuous batching. All methods may be called from the event loop's thread."""

    def __init__(self, model: CausalLM[Any], sampler: Sampler, limits: EngineLimits) -> None:
        self._model = model
        self.limits = limits
        self._cache = model.new_cache(_rows(limits, model.device), limits.max_model_len)
        model.prepare(self._cache, limits.max_sequences)
        self._rows = RowTable(self._cache, keep=limits.reuse_prefixes)
        self._scheduler = Scheduler(self._rows, limits)
        self._sampler = sampler
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._outbox = Outbox()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._computed = self._generated = self._rewound = 0
        self._submitted = 0

    # From the event loop -------------------------------------------------------------------------------------------

    def observe(self, observer: Observer) -> None:
        """Report the times of steps to ``observer``, in the event loop; to be set before :meth:`start`."""
        self._outbox.observer = observer

    def start(self) -> None:
        """Start the thread; listeners will be called in the running event loop."""
        # The thread needs Python's lock for a small part of a step, and by default may wait 5 ms for it: two steps.
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        self._outbox.post = asyncio.get_running_loop().call_soon_threadsafe
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop the thread; sequences that still run end with ``error``."""
        if self._thread is not None:
            self._commands.put(self._shut_down)
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def submit(self, request: CompletionRequest, machine: DecodingMachine, listener: Listener) -> Sequence:
        """Queue a completion."""
        sequence = Sequence(request, machine, listener)
        self._submitted += 1
        self._ask(lambda: self._scheduler.submit(sequence))
        return sequence

    def splice(self, sequence: Sequence, result: SplicedResult) -> None:
        """Resume a paused sequence with its result."""
        sequence.answered = time.monotonic()
        self._ask(lambda: self._resume(sequence, lambda: sequence.machine.splice(result)))

    def give_up(self, sequence: Sequence) -> None:
        """Resume a paused sequence without a result: its call is rolled back."""
        sequence.answered = time.monotonic()
        self._ask(lambda: self._resume(sequence, sequence.machine.give_up))

    def finish(self, sequence: Sequence, reason: FinishReason, message: str = "") -> None:
        """End a sequence now; its listener gets the terminal action."""
        self._commands.put(lambda: self._finish(sequence, reason, message))

    def abort(self, sequence: Sequence) -> None:
        """Nobody listens any more: free what the sequence holds."""
        self._commands.put(lambda: self._scheduler.release(sequence))

    def _ask(self, command: Callable[[], None]) -> None:
        """Have the thread do what a step will follow."""
        self._commands.put(command)
        self._model.expect_step()

    @property
    def waiting(self) -> int:
        """Requests that wait. Each of the two is written by one thread only, so this is true at any time."""
        return self._submitted - self._scheduler.left_queue

    def stats(self) -> EngineStats:
        """Counts for metrics; read without a lock, so they may be of neighbouring steps."""
        scheduler, total, kept = self._scheduler, self._rows.total, self._rows.kept
        in_call = scheduler.in_call
        return EngineStats(
            waiting=self.waiting,
            running=len(scheduler.running),
            in_call=len(in_call),
            cache_tokens=self.limits.budget,
            held_tokens=max(0, total - kept),
            kept_tokens=kept,
            paused_tokens=sum(map(self._rows.held, in_call)),
            bytes_per_token=self._model.cache_bytes_per_token,
            computed_tokens=self._computed,
            generated_tokens=self._generated,
            recomputed_tokens=scheduler.recomputed + self._rewound,
            prefix_queries=scheduler.prefix_queries,
            prefix_hits=scheduler.prefix_hits,
            preemptions=scheduler.preemptions,
            dropped_pauses=scheduler.dropped_pauses,
        )

    # In the engine's thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        with torch.inference_mode():
            while not self._stopping:
                try:
                    if not self._scheduler.busy:
                        self._commands.get()()  # sleep here
                    self.advance()
                except Exception:  # a fault of ours; without this every stream would wait for ever
                    log.exception("the engine failed outside of a step")
                    self._end_all("the engine failed on this completion; the server's log has the cause")

    def advance(self) -> None:
        """Do what was asked for since, one step, and report what came of it; called by the engine's thread only."""
        while not self._commands.empty():
            self._commands.get()()
        work = None if self._stopping else self._scheduler.plan()
        if work:
            self._step(work)
        self._deliver(more_follows=bool(work) and self._scheduler.busy)

    def _step(self, work: Work) -> None:
        """Compute ``work``, and choose the next token of each sequence of which nothing more is pending."""
        try:
            work, logits = self._compute(work)
            whole = [at for at, (sequence, _) in enumerate(work) if self._rows.held(sequence) == sequence.length]
            sequences = [work[at][0] for at in whole]
            for sequence in sequences:
                self._scheduler.decode(sequence)
            logits = logits if len(whole) == len(work) else logits[whole]
            scored = Scored(logits, sequences)
            chosen = self._sampler.choose(logits, sequences) if sequences else []
            scores = scored.of([token for token, _ in chosen])
        except Exception:
            log.exception("a step of %d sequences failed", len(work))
            for sequence, _ in work:
                self._finish(sequence, "error", "the model failed on this completion; the server's log has the cause")
            return
        now = time.monotonic()
        # The last row first: those that end or pause then have the least to swap.
        for sequence, (token, forced), (logprob, top) in reversed(list(zip(sequences, chosen, scores, strict=True))):
            if sequence.request.max_tokens == 0:
                self._follow(sequence, sequence.machine.finish("length"))
                continue
            self._generated += 1
            awaited = sequence.last_token is None or sequence.answered is not None
            sequence.note_token(now, self._outbox.times)
            actions = sequence.machine.accept(token, forced=forced, logprob=logprob, top=top)
            self._follow(sequence, actions, awaited=awaited)

    def _compute(self, work: Work) -> tuple[Work, Tensor]:
        """Put the tokens of ``work`` into the cache; logits ``[len(work), vocabulary]`` after the last of each, and the
        order in which they are."""
        usual = [item for item in work if item[0].prompt_scores is None]
        scoring = [item for item in work if item[0].prompt_scores is not None]
        parts = [self._score_prompt(sequence, tokens) for sequence, tokens in scoring]
        if usual:
            rows = [sequence.row for sequence, _ in usual]
            parts.insert(0, self._model.extend(self._cache, rows, [tokens for _, tokens in usual]))
        for sequence, tokens in work:
            self._rows.extended(sequence, tokens)
            self._computed += len(tokens)
        return [*usual, *scoring], torch.cat(parts) if len(parts) > 1 else parts[0]

    def _score_prompt(self, sequence: Sequence, tokens: list[int]) -> Tensor:
        """Compute a piece of a prompt and the log probabilities of its visible tokens but the first; the logits after
        the last."""
        start, prompt, hidden = self._rows.held(sequence), sequence.request.prompt_ids, sequence.request.hidden
        logits = self._model.extend_every(self._cache, sequence.row, tokens)
        unscored = max(0, hidden - start)
        following = prompt[start + unscored + 1 : start + len(tokens) + 1]
        log_probabilities = torch.log_softmax(logits[unscored : unscored + len(following)].float(), dim=-1)
        # It begins anew after it was put aside: no more than what is hidden was found in the cache then.
        earlier = (sequence.prompt_scores or []) if start > hidden else [UNSCORED]
        sequence.prompt_scores = [*earlier, *score(log_probabilities, following, sequence.request.logprobs or 0)]
        if start + len(tokens) == len(prompt):
            self._outbox.put(sequence.listener, [sequence.machine.describe_prompt(sequence.prompt_scores)])
            sequence.prompt_scores = None
        return logits[-1:]

    def _follow(self, sequence: Sequence, actions: list[Action], *, awaited: bool = False) -> None:
        """Do what the machine asks of the engine, and pass its actions on; ``awaited``: without delay."""
        if not sequence.machine.done and sequence.length >= self.limits.max_model_len:
            actions += sequence.machine.run_out()
        if actions:
            self._outbox.put(sequence.listener, actions, urgent=awaited)
        for action in actions:
            if isinstance(action, Keep):
                self._cut(sequence, len(sequence.request.prompt_ids) + action.tokens)
            elif isinstance(action, CallStarted):
                self._scheduler.pause(sequence)
        if sequence.machine.done:
            self._scheduler.release(sequence)

    def _cut(self, sequence: Sequence, length: int) -> None:
        """Forget tokens past ``length``, and one more where nothing else would be left to compute the next logits
        from."""
        held = self._rows.held(sequence)
        left = min(length, sequence.length - 1, held)
        if left < held:
            self._rows.cut(sequence, left)
            self._rewound += max(0, min(length, held) - left)

    def _resume(self, sequence: Sequence, how: Callable[[], list[Action]]) -> None:
        if sequence.state is not State.IN_CALL:
            return  # it was aborted or timed out while the tool answered
        self._scheduler.resume(sequence)
        self._follow(sequence, how())

    def _finish(self, sequence: Sequence, reason: FinishReason, message: str) -> None:
        if sequence.state is State.DONE:
            return
        self._outbox.put(sequence.listener, sequence.machine.finish(reason, message))
        self._scheduler.release(sequence, keep=reason != "error")

    def _deliver(self, *, more_follows: bool) -> None:
        try:
            self._outbox.deliver(more_follows=more_follows)
        except RuntimeError:
            self._stopping = True  # the event loop has closed: nobody is left to serve

    def _shut_down(self) -> None:
        self._end_all("the server is shutting down")
        self._stopping = True

    def _end_all(self, message: str) -> None:
        for sequence in self._scheduler.everyone:
            self._finish(sequence, "error", message)
        self._deliver(more_follows=False)


def _rows(limits: EngineLimits, device: torch.device) -> int:
    """Rows of the cache: as many again as run at once, for sequences in tool calls and for what is kept. Where a row
    takes all its memory from the start there are no more than the budget pays for."""
    wanted = 2 * limits.max_sequences
    return wanted if device.type == "cpu" else max(1, min(wanted, limits.budget // limits.max_model_len))
