"""The engine's thread: it owns the model and its cache, and steps all sequences together.

The event loop speaks to it through commands; it answers each sequence's listener with the actions of its decoding
machine. A step first computes what is pending for sequences that are new or resume (a prompt, a spliced result),
then one token for all that decode. A sequence that waits for a tool keeps its row and takes no part in steps, so it
stops nobody."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from inference_gateway.core import CompletionRequest, FinishReason
from inference_gateway.decoding import Action, DecodingMachine, Keep, Pause
from inference_gateway.engine.rows import RowTable
from inference_gateway.engine.sampling import Sampler, Scored
from inference_gateway.engine.sequence import Listener, Sequence, State
from inference_gateway.engine.stats import EngineStats, Observer, StepTimes
from language_model.gptj import GPTJ
from toolformer.api_call import SplicedResult

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """``max_sequences``: rows of the cache. ``max_model_len``: tokens of one sequence, prompt and results included.
    ``max_waiting``: requests without a row before more are refused. ``prefill_tokens``: pending tokens computed a
    step before decoding goes on, so that a burst of prompts cannot stall the sequences that stream."""

    max_sequences: int = 64
    max_model_len: int = 2048
    max_waiting: int = 256
    prefill_tokens: int = 1024


class Engine:
    """Continuous batching for GPT-J. All methods may be called from the event loop's thread."""

    def __init__(self, model: GPTJ, sampler: Sampler, limits: EngineLimits) -> None:
        self._model = model
        self.limits = limits
        self._cache = model.new_cache(limits.max_sequences, limits.max_model_len)
        self._rows = RowTable(self._cache)
        self._sampler = sampler
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._waiting: deque[Sequence] = deque()
        self._ready: deque[Sequence] = deque()
        self._in_call: set[Sequence] = set()
        self._outbox: list[tuple[Listener, list[Action]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._computed = self._generated = 0
        self.observer: Observer | None = None
        """Told the times of each step, in the event loop; to be set before :meth:`start`."""
        self._times = StepTimes()
        # Each is written by one thread only, so their difference is the true queue length at any time.
        self._submitted = self._left_queue = 0

    # From the event loop -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; listeners will be called in the running event loop."""
        self._loop = asyncio.get_running_loop()
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
        self._commands.put(lambda: self._waiting.append(sequence))
        return sequence

    def splice(self, sequence: Sequence, result: SplicedResult) -> None:
        """Resume a paused sequence with its result."""
        sequence.answered = time.monotonic()
        self._commands.put(lambda: self._resume(sequence, lambda: sequence.machine.splice(result)))

    def give_up(self, sequence: Sequence) -> None:
        """Resume a paused sequence without a result: its call is rolled back."""
        sequence.answered = time.monotonic()
        self._commands.put(lambda: self._resume(sequence, sequence.machine.give_up))

    def finish(self, sequence: Sequence, reason: FinishReason, message: str = "") -> None:
        """End a sequence now; its listener gets the terminal action."""
        self._commands.put(lambda: self._finish(sequence, reason, message))

    def abort(self, sequence: Sequence) -> None:
        """Nobody listens any more: free what the sequence holds."""
        self._commands.put(lambda: self._release(sequence))

    def stats(self) -> EngineStats:
        """Counts for metrics; read without a lock, so they may be of neighbouring steps."""
        return EngineStats(
            waiting=self._submitted - self._left_queue,
            running=len(self._rows) - len(self._in_call),
            in_call=len(self._in_call),
            cache_tokens=self._cache.rows * self._cache.max_length,
            held_tokens=sum(self._cache.lengths),
            bytes_per_token=self._cache.bytes_per_token,
            computed_tokens=self._computed,
            generated_tokens=self._generated,
        )

    # In the engine's thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        with torch.inference_mode():
            while not self._stopping:
                self._take_commands()
                self._admit()
                self._compute_pending()
                self._decode()
                self._deliver()

    def _take_commands(self) -> None:
        """Run what the event loop asked for; sleep here when there is nothing to compute."""
        while not self._stopping:
            idle = not (self._ready or self._rows.decoding or (self._waiting and not self._rows.full))
            if idle:
                self._deliver()
            try:
                self._commands.get(block=idle)()
            except queue.Empty:
                return

    def _admit(self) -> None:
        while self._waiting and not self._rows.full:
            sequence = self._waiting.popleft()
            self._left_queue += 1
            self._rows.add(sequence)
            self._make_ready(sequence)

    def _compute_pending(self) -> None:
        budget = self.limits.prefill_tokens
        while self._ready and budget > 0:
            sequence = self._ready.popleft()
            budget -= sequence.length - self._cache.lengths[sequence.row]
            self._rows.decode(sequence)
            sequence.state = State.DECODING
            self._step([sequence])

    def _decode(self) -> None:
        # A sequence that came from `_compute_pending` has one pending token now, as all the others.
        if decoding := self._rows.decoding:
            self._step(decoding)

    def _step(self, sequences: list[Sequence]) -> None:
        """Compute what is pending for ``sequences`` (neighbouring rows), choose their next tokens and follow the
        machines."""
        rows = [sequence.row for sequence in sequences]
        pending = [sequence.tokens_from(self._cache.lengths[sequence.row]) for sequence in sequences]
        try:
            logits = self._model.extend(self._cache, rows, pending)
            scored = Scored(logits, sequences)
            chosen = self._sampler.choose(logits, sequences)
            scores = scored.of([token for token, _ in chosen])
        except Exception:
            log.exception("a step of %d sequences failed", len(sequences))
            for sequence in list(sequences):
                self._finish(sequence, "error", "the model failed on this completion; the server's log has the cause")
            return
        self._computed += sum(map(len, pending))
        self._generated += len(sequences)
        now = time.monotonic()
        for sequence in sequences:
            sequence.note_token(now, self._times)
        for sequence, (token, forced), (logprob, top) in zip(list(sequences), chosen, scores, strict=True):
            self._follow(sequence, sequence.machine.accept(token, forced=forced, logprob=logprob, top=top))

    def _follow(self, sequence: Sequence, actions: list[Action]) -> None:
        """Do what the machine asks of the engine, and pass its actions on."""
        if not sequence.machine.done and sequence.length >= self.limits.max_model_len:
            actions += sequence.machine.finish("length")
        if actions:
            self._outbox.append((sequence.listener, actions))
        for action in actions:
            if isinstance(action, Keep):
                self._cut(sequence, len(sequence.request.prompt_ids) + action.tokens)
            elif isinstance(action, Pause):
                self._rows.hold(sequence)
                self._in_call.add(sequence)
                sequence.state = State.IN_CALL
        if sequence.machine.done:
            self._release(sequence)

    def _cut(self, sequence: Sequence, length: int) -> None:
        """Forget tokens past ``length``, and one more where nothing else would be left to compute the next logits
        from."""
        length = min(length, sequence.length - 1, self._cache.lengths[sequence.row])
        self._cache.cut(sequence.row, length)

    def _resume(self, sequence: Sequence, how: Callable[[], list[Action]]) -> None:
        if sequence.state is not State.IN_CALL:
            return  # it was aborted or timed out while the tool answered
        self._in_call.discard(sequence)
        self._make_ready(sequence)
        self._follow(sequence, how())

    def _make_ready(self, sequence: Sequence) -> None:
        sequence.state = State.READY
        self._ready.append(sequence)

    def _finish(self, sequence: Sequence, reason: FinishReason, message: str) -> None:
        if sequence.state is State.DONE:
            return
        self._outbox.append((sequence.listener, sequence.machine.finish(reason, message)))
        self._release(sequence)

    def _release(self, sequence: Sequence) -> None:
        """Free the row, from whatever state; safe to repeat."""
        if sequence.state is State.WAITING and sequence in self._waiting:
            self._waiting.remove(sequence)
            self._left_queue += 1
        if sequence.state is State.READY:
            self._ready.remove(sequence)
        self._in_call.discard(sequence)
        if sequence.row >= 0:
            self._rows.remove(sequence)
        sequence.state = State.DONE

    def _deliver(self) -> None:
        """Hand the actions and times of this step to the event loop in one go."""
        if self._loop is None:
            return
        try:
            if self._outbox:
                batch, self._outbox = self._outbox, []
                self._loop.call_soon_threadsafe(_call_listeners, batch)
            if self._times.any:
                times, self._times = self._times, StepTimes()
                if self.observer is not None:
                    self._loop.call_soon_threadsafe(self.observer, times)
        except RuntimeError:
            self._stopping = True  # the event loop has closed: nobody is left to serve

    def _shut_down(self) -> None:
        for sequence in [*self._waiting, *self._ready, *self._rows.decoding, *self._in_call]:
            self._finish(sequence, "error", "the server is shutting down")
        self._deliver()
        self._stopping = True


def _call_listeners(batch: Iterable[tuple[Listener, list[Action]]]) -> None:
    for listener, actions in batch:
        listener(actions)
