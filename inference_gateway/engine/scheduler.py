"""Who is computed next, and who makes way when the cache is full.

A sequence waits, then has a row of the cache and runs, pauses in a tool call with its row, runs again, and ends. What
it computed stays in the cache after it has left its row, for requests that begin alike, until the memory is needed.
So a sequence that is put aside for want of memory finds again what nobody else needed meanwhile.

Memory is freed in this order: what is kept, of the longest unused first; the cache of sequences in a tool call; for
sequences that decode, that of the newest running one. A request that waits takes from none but the first, unless
nothing runs. The oldest sequence is never put aside, so there is always progress.

Between clients it takes turns: the next to run is one of the client with the fewest running. Where all places are
taken and a client has two more than one that waits, its newest is put aside."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable
from collections.abc import Sequence as Many
from typing import Final

from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.rows import WORTH_SHARING, RowTable, common_prefix
from inference_gateway.engine.sequence import Sequence, State

Work = list[tuple[Sequence, list[int]]]
"""Sequences of a step and the tokens to compute for each: the decoding ones first, in the order of their rows."""

_SPARE: Final = 32
"""A waiting request leaves one part in so many of the cache free, for those that run to grow into."""


class Scheduler:
    """Plans steps within ``limits``. Everything here happens in the engine's thread."""

    def __init__(self, rows: RowTable, limits: EngineLimits) -> None:
        self.rows = rows
        self._limits = limits
        self._waiting: deque[Sequence] = deque()
        self._ready: deque[Sequence] = deque()
        """Have a row and tokens to compute: a prompt or, before those, a result."""
        self._in_call: dict[Sequence, float] = {}
        """Sequences in a tool call and since when, the oldest call first."""
        self.left_queue = 0
        """Requests that stopped waiting, less those that came back to it."""
        self.preemptions = self.dropped_pauses = 0
        self.recomputed = self.prefix_queries = self.prefix_hits = 0

    # What happens to a sequence ------------------------------------------------------------------------------------

    def submit(self, sequence: Sequence) -> None:
        """A request has come."""
        self._waiting.append(sequence)

    def decode(self, sequence: Sequence) -> None:
        """All its tokens but the next are computed."""
        if sequence.state is State.READY:
            self._ready.remove(sequence)
            self.rows.decode(sequence)
            sequence.state = State.DECODING

    def pause(self, sequence: Sequence) -> None:
        """It waits for a tool."""
        self.rows.hold(sequence)
        self._in_call[sequence] = time.monotonic()
        sequence.state = State.IN_CALL

    def resume(self, sequence: Sequence) -> None:
        """Its tool has answered: it goes on before all that is new."""
        del self._in_call[sequence]
        if sequence.row >= 0:
            self._ready.appendleft(sequence)
            sequence.state = State.READY
        else:
            self._wait_again(sequence)

    def release(self, sequence: Sequence, *, keep: bool = True) -> None:
        """It has ended, in whatever state it was; safe to repeat. ``keep``: its tokens may serve others."""
        if sequence.state is State.WAITING and sequence in self._waiting:
            self._waiting.remove(sequence)
            self.left_queue += 1
        if sequence.state is State.READY:
            self._ready.remove(sequence)
        self._in_call.pop(sequence, None)
        self.rows.leave(sequence, keep=keep)
        sequence.state = State.DONE

    # What is there -------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether there is anything to compute."""
        return bool(self._waiting or self._ready or self.rows.decoding)

    @property
    def in_call(self) -> list[Sequence]:
        return list(self._in_call)

    @property
    def running(self) -> list[Sequence]:
        """Sequences that decode or have tokens to compute, and a row for them."""
        return [*self.rows.decoding, *self._ready]

    @property
    def everyone(self) -> list[Sequence]:
        """All sequences that have not ended."""
        return [*self._waiting, *self.running, *self._in_call]

    # Planning ------------------------------------------------------------------------------------------------------

    def plan(self) -> Work:
        """What the next step computes: a token for each decoding sequence and, up to the limit, tokens of results and
        prompts. Empty only if there is nothing to do."""
        self._drop_stale_pauses()
        while not self._make_room(len(self.rows.decoding)):
            self._put_aside(self._newest())
        while self._waiting and self._richest_beside(self._next_waiting()) and self._admit([]):
            pass  # before others' prompts take all that a step may compute
        work: Work = [(sequence, sequence.tokens_from(self.rows.held(sequence))) for sequence in self.rows.decoding]
        left = self._limits.prefill_tokens
        for sequence in _in_turns(self._ready):
            left -= self._add(sequence, work, left)
        while left > 0 and (admitted := self._admit(work)) is not None:
            left -= self._add(admitted, work, left)
        if not work and self._ready:
            self._put_aside(self._newest())
            return self.plan()
        return work

    def _add(self, sequence: Sequence, work: Work, limit: int) -> int:
        """Plan up to ``limit`` pending tokens of ``sequence``, if memory for them is available; how many."""
        pending = sequence.tokens_from(self.rows.held(sequence))[: max(0, limit)]
        if not pending or not self._make_room(_tokens(work) + len(pending)):
            return 0
        work.append((sequence, pending))
        return len(pending)

    def _admit(self, work: Work) -> Sequence | None:
        """Give the next waiting sequence a row, if it may run now."""
        if not self._waiting:
            return None
        sequence = self._next_waiting()
        while not self._has_place(sequence):
            aside = self._richest_beside(sequence)
            if work or aside is None:  # what a step computes is not taken from under it
                return None
            self._put_aside(aside)
        running = self.running
        ids = sequence.reusable if self._limits.reuse_prefixes else []
        if running and self._soon_there(ids, work):
            return None
        while not self.rows.available:
            self._drop_pause()
        self._waiting.remove(sequence)
        self.left_queue += 1
        found = self.rows.take(sequence, ids)
        if sequence.computed:
            self.recomputed += max(0, min(sequence.computed, sequence.length - 1) - found)
        else:
            self.prefix_queries += len(ids)
            self.prefix_hits += found
            sequence.machine.cached_tokens = found
        sequence.state = State.READY
        self._ready.append(sequence)
        return sequence

    def _has_place(self, sequence: Sequence) -> bool:
        """Whether ``sequence`` may run beside those that do."""
        if not (running := self.running):
            return True
        promised = sum(one.length for one in running) + sum(map(self.rows.held, self._in_call))
        fits = promised + sequence.length + self._limits.budget // _SPARE <= self._limits.budget
        return len(running) < self._limits.max_sequences and fits and self.rows.available

    def _next_waiting(self) -> Sequence:
        """The first that waits, of the client with the fewest running."""
        counts = Counter(one.request.client for one in self.running)
        return min(self._waiting, key=lambda one: counts[one.request.client])

    def _richest_beside(self, sequence: Sequence) -> Sequence | None:
        """The newest running sequence of the client with the most, if that has at least two more than the client of
        ``sequence``: less would only swap the two."""
        counts = Counter(one.request.client for one in self.running)
        [(client, most)] = counts.most_common(1) or [("", 0)]
        if most < counts[sequence.request.client] + 2:
            return None
        return max((one for one in self.running if one.request.client == client), key=lambda one: one.arrived)

    def _soon_there(self, ids: Many[int], work: Work) -> bool:
        """Whether this step computes a beginning of ``ids`` that can be copied a step later."""
        return any(
            len(tokens) >= WORTH_SHARING
            and common_prefix(sequence.tokens_from(0), ids) >= self.rows.held(sequence) + WORTH_SHARING
            for sequence, tokens in work
        )

    # Making way ----------------------------------------------------------------------------------------------------

    def _make_room(self, tokens: int) -> bool:
        """Free memory for ``tokens`` more, from those that do not run; false if that is not enough."""
        while (missing := self.rows.total + tokens - self._limits.budget) > 0:
            if not self.rows.shrink_kept(missing) and not self._drop_pause():
                return False
        return True

    def _drop_pause(self) -> bool:
        """Take the cache of the sequence whose tool call began last: it will need it the latest."""
        for sequence in reversed(self._in_call):
            if sequence.row >= 0:
                self._forget(sequence)
                self.dropped_pauses += 1
                return True
        return False

    def _drop_stale_pauses(self) -> None:
        limit = time.monotonic() - self._limits.hold_seconds
        for sequence, since in self._in_call.items():
            if since > limit:
                return
            if sequence.row >= 0:
                self._forget(sequence)
                self.dropped_pauses += 1

    def _newest(self) -> Sequence:
        return max(self.running, key=lambda sequence: sequence.arrived)

    def _put_aside(self, sequence: Sequence) -> None:
        """Let a running sequence wait."""
        if sequence.state is State.READY:
            self._ready.remove(sequence)
        self._forget(sequence)
        self._wait_again(sequence)
        self.preemptions += 1

    def _forget(self, sequence: Sequence) -> None:
        sequence.computed = max(sequence.computed, self.rows.held(sequence))
        self.rows.leave(sequence)

    def _wait_again(self, sequence: Sequence) -> None:
        self._waiting.appendleft(sequence)
        self.left_queue -= 1
        sequence.state = State.WAITING


def _in_turns(sequences: Iterable[Sequence]) -> list[Sequence]:
    """The first of each client, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    turns = []
    for sequence in sequences:
        turns.append((seen[sequence.request.client], sequence))
        seen[sequence.request.client] += 1
    return [sequence for _, sequence in sorted(turns, key=lambda turn: turn[0])]


def _tokens(work: Work) -> int:
    return sum(len(tokens) for _, tokens in work)
