"""The engine in its thread: sequences that come, pause, resume, leave and end, as the event loop sees them."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from inference_gateway.actions import Action
from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CallStarted, CompletionRequest, Finished, SamplingParams, TextDelta
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.engine import Engine
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.stats import StepTimes
from tests.inference_gateway.scripted_machine import TOOLS
from tests.inference_gateway.test_engine_schedules import VOCABULARY, Recorder, script
from tests.support.models import random_model
from tests.support.vocabularies import small_tokenizer
from toolformer.api_call import splice_result


class Client:
    """Reads one sequence to its end, answering its calls as its random numbers say."""

    def __init__(self, engine: Engine, name: str, rng: random.Random) -> None:
        self.engine, self.rng = engine, rng
        self.actions: asyncio.Queue[Action] = asyncio.Queue()
        request = CompletionRequest(
            prompt_ids=tuple(rng.choices(range(1, 420), k=rng.randint(1, 40))),
            max_tokens=rng.randint(1, 60),
            tools=tuple(TOOLS),
            max_calls=3,
            request_id=name,
        )
        self.machine = DecodingMachine(request, VOCABULARY, TOOLS)
        self.sequence = engine.submit(request, self.machine, self._receive)
        self.ends = 0

    def _receive(self, actions: list[Action]) -> None:
        for action in actions:
            self.actions.put_nowait(action)

    async def run(self) -> None:
        leaves_at = self.rng.choice([None, None, self.rng.randint(0, 6)])
        count = 0
        while True:
            action = await asyncio.wait_for(self.actions.get(), 30)
            count += 1
            if leaves_at is not None and count > leaves_at:
                self.engine.abort(self.sequence)
                return
            if isinstance(action, CallStarted):
                for _ in range(self.rng.randint(0, 3)):
                    await asyncio.sleep(0)
                what = self.rng.random()
                if what < 0.6:
                    result = splice_result("x" * self.rng.randint(1, 9) + " 408", small_tokenizer(), max_tokens=20)
                    assert result is not None
                    self.engine.splice(self.sequence, result)
                elif what < 0.85:
                    self.engine.give_up(self.sequence)
                else:
                    self.engine.finish(self.sequence, "timeout", "too slow")
            elif isinstance(action, Finished):
                self.ends += 1
                assert self.actions.empty(), "nothing may follow the end"
                return


async def schedule(seed: int) -> Recorder:
    """A seeded crowd of clients on few rows."""
    rng = random.Random(seed)
    recorder = Recorder()
    limits = EngineLimits(max_sequences=rng.randint(1, 4), max_model_len=90, prefill_tokens=rng.choice([8, 64]))
    engine = Engine(random_model(), recorder, limits)
    engine.start()
    try:
        clients = []
        for number in range(rng.randint(1, 8)):
            name = str(number)
            recorder.scripts[name] = iter(script(rng))
            clients.append(asyncio.create_task(Client(engine, name, random.Random(rng.random())).run()))
            if rng.random() < 0.5:
                await asyncio.sleep(0)
        await asyncio.gather(*clients)
        await until_empty(engine)
    finally:
        await engine.stop()
    return recorder


async def until_empty(engine: Engine) -> None:
    """Aborts are commands, so rows are free a moment after the client has left."""
    async with asyncio.timeout(60):
        while (stats := engine.stats()).waiting or stats.running or stats.in_call:  # noqa: ASYNC110 - no event comes
            await asyncio.sleep(0.001)
    assert engine.stats().held_tokens == 0


async def test_a_crowd_on_the_real_thread_equals_full_recomputation() -> None:
    """Schedules in number are in ``test_engine_schedules.py``; here commands come whenever they come."""
    for seed in range(12):
        (await schedule(seed)).check()


@asynccontextmanager
async def started(**limits: Any) -> AsyncIterator[LocalBackend]:
    """A backend of random weights that runs."""
    local = LocalBackend(random_model(), small_tokenizer(), "random", EngineLimits(max_model_len=200, **limits))
    await local.start()
    try:
        yield local
    finally:
        await local.stop()


async def complete(of: LocalBackend, request: CompletionRequest) -> tuple[str, Finished]:
    """The text of a completion without tools."""
    text = ""
    async for action in of.open(request, {}):
        if isinstance(action, TextDelta):
            text += action.text
        if isinstance(action, Finished):
            return text, action
    raise AssertionError("no end")


async def test_many_together_give_what_each_gives_alone() -> None:
    requests = [
        CompletionRequest(prompt_ids=tuple(range(1 + n, 12 + 3 * n)), max_tokens=20, request_id=str(n))
        for n in range(12)
    ]
    async with started(max_sequences=1) as one, started(max_sequences=8) as many:
        alone = [await complete(one, request) for request in requests]
        together = await asyncio.gather(*(complete(many, request) for request in requests))
    assert [(text, done.reason) for text, done in together] == [(text, done.reason) for text, done in alone]


async def test_a_seed_repeats_whatever_else_runs() -> None:
    def request(seed: int) -> CompletionRequest:
        return CompletionRequest(
            (5, 6, 7), max_tokens=15, sampling=SamplingParams(1.0, 0.9, seed=seed), request_id=str(seed)
        )

    async with started(max_sequences=4) as local:
        alone = [await complete(local, request(seed)) for seed in range(6)]
        together = await asyncio.gather(*(complete(local, request(seed)) for seed in range(6)))
        assert together == alone
        assert len({text for text, _ in alone}) > 1


async def test_stopping_ends_what_runs_with_an_error() -> None:
    recorder = Recorder()
    engine = Engine(random_model(), recorder, EngineLimits(max_sequences=1, max_model_len=200))
    engine.start()
    recorder.scripts["0"] = iter(small_tokenizer().encode(" [Calendar() ->"))
    got: asyncio.Queue[list[Action]] = asyncio.Queue()
    request = CompletionRequest((1, 2), max_tokens=100, tools=tuple(TOOLS), request_id="0")
    engine.submit(request, DecodingMachine(request, VOCABULARY, TOOLS), got.put_nowait)
    assert isinstance((await asyncio.wait_for(got.get(), 10))[-1], CallStarted)
    await engine.stop()
    actions = got.get_nowait()
    assert isinstance(actions[-1], Finished)
    assert actions[-1].reason == "error"
    assert not engine.alive


async def test_a_failing_model_ends_its_completions_and_the_engine_lives(caplog: pytest.LogCaptureFixture) -> None:
    async with started(max_sequences=2) as local:
        text, done = await complete(local, CompletionRequest((100_000,), max_tokens=5))
        assert (text, done.reason) == ("", "error")
        assert "a step of 1 sequences failed" in caplog.text
        assert (await complete(local, CompletionRequest((5,), max_tokens=5)))[1].reason in ("length", "stop")


async def test_a_fault_outside_of_a_step_leaves_nobody_waiting(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = ["a fault of ours"]
    request = CompletionRequest(tuple(range(1, 20)), max_tokens=60)
    async with started(max_sequences=2) as local, asyncio.timeout(60):
        scheduler = local._engine._scheduler
        plan = scheduler.plan

        def fails_once() -> Any:
            if faults and len(scheduler.everyone) == 4:
                raise AssertionError(faults.pop())
            return plan()

        monkeypatch.setattr(scheduler, "plan", fails_once)
        ended = await asyncio.gather(*(complete(local, request) for _ in range(4)))
        assert [done.reason for _, done in ended] == ["error"] * 4  # two ran, two waited
        assert "a fault of ours" in caplog.text
        assert (await complete(local, request))[1].reason in ("length", "stop")
        assert local.stats().held_tokens == 0


async def test_a_failing_step_takes_nobody_else_with_it_later() -> None:
    """What a failed step may have left half written serves no other request."""
    async with started(max_sequences=2) as local:
        prompt = tuple(range(1, 40))
        good = await complete(local, CompletionRequest(prompt, max_tokens=5))
        assert (await complete(local, CompletionRequest((*prompt, 100_000), max_tokens=5)))[1].reason == "error"
        again, done = await complete(local, CompletionRequest(prompt, max_tokens=5))
        assert (again, done.usage.completion_tokens) == (good[0], good[1].usage.completion_tokens)


async def test_the_context_ends_a_completion() -> None:
    async with started(max_sequences=1) as local:
        _, done = await complete(local, CompletionRequest(tuple(range(1, 190)), max_tokens=500))
        assert done.reason in ("length", "stop")
        assert done.usage.completion_tokens <= 11


async def test_times_are_reported_once_a_token() -> None:
    observed: list[StepTimes] = []
    async with started(max_sequences=2) as local:
        local.observe(observed.append)
        dones = [(await complete(local, CompletionRequest((5, n), max_tokens=9)))[1] for n in range(3)]
    assert sum(len(times.first) for times in observed) == 3
    assert sum(len(times.between) for times in observed) == sum(done.usage.completion_tokens - 1 for done in dones)
    assert all(seconds >= 0 for times in observed for seconds in (*times.first, *times.between))


async def test_what_a_step_will_follow_is_passed_to_the_model_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its helpers then wake up while the engine's thread does; an abort is followed by no step."""
    expected: list[str] = []
    monkeypatch.setattr(random_model(), "expect_step", lambda: expected.append("expect"))
    engine = Engine(random_model(), Recorder(), EngineLimits(max_sequences=1, max_model_len=200))
    sequence = Client(engine, "0", random.Random(0)).sequence
    result = splice_result("408", small_tokenizer(), max_tokens=20)
    assert result is not None
    engine.give_up(sequence)
    engine.splice(sequence, result)
    engine.abort(sequence)
    assert expected == ["expect"] * 3
