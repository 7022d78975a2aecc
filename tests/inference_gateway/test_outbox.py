"""What waits for company and what does not, on a clock that the test moves."""

import time
from collections.abc import Callable

import pytest

from inference_gateway.actions import Action
from inference_gateway.core import Finished, TextDelta, Usage
from inference_gateway.engine.outbox import Outbox
from inference_gateway.engine.stats import StepTimes


class Loop:
    """Takes the event loop's place, and keeps what each of two listeners received."""

    def __init__(self, box: Outbox) -> None:
        self.first: list[Action] = []
        self.second: list[Action] = []
        self.times: list[float] = []
        self.wakes = 0
        box.post = self.post
        box.observer = lambda times: self.times.extend(times.between)

    def post(self, call: Callable[..., None], actions: dict[object, list[Action]], times: StepTimes) -> None:
        self.wakes += 1
        call(actions, times)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in its one element."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_text_waits_a_moment_and_is_joined(clock: list[float]) -> None:
    box = Outbox()
    loop = Loop(box)
    for word in ("one", " two", " three"):
        box.put(loop.first.extend, [TextDelta(word)])
        box.times.between.append(0.1)
        box.deliver(more_follows=True)
        clock[0] += 0.0005
    assert (loop.first, loop.times) == ([TextDelta("one")], [0.1])
    clock[0] += 0.01
    box.deliver(more_follows=True)
    assert (loop.first, loop.wakes, loop.times) == ([TextDelta("one"), TextDelta(" two three")], 2, [0.1, 0.1, 0.1])


def test_an_end_goes_out_at_once_and_alone(clock: list[float]) -> None:
    box = Outbox()
    loop = Loop(box)
    box.deliver(more_follows=True)
    done = Finished("stop", Usage(1, 2))
    clock[0] += 0.0001
    box.put(loop.first.extend, [TextDelta("text")])
    box.put(loop.second.extend, [TextDelta("last"), done])
    box.deliver(more_follows=True)
    assert (loop.first, loop.second) == ([], [TextDelta("last"), done])
    box.put(loop.first.extend, [TextDelta(" awaited")], urgent=True)
    box.deliver(more_follows=True)
    assert loop.first == [TextDelta("text awaited")]


def test_nothing_waits_when_no_step_follows(clock: list[float]) -> None:
    box = Outbox()
    loop = Loop(box)
    for _ in range(2):
        box.put(loop.first.extend, [TextDelta("text")])
        box.deliver(more_follows=False)
    assert loop.first == [TextDelta("text"), TextDelta("text")]
    box.deliver(more_follows=False)
    assert loop.wakes == 2
