"""What the scheduler promises of memory, prefixes and long prompts, seen step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inference_gateway.actions import Action
from inference_gateway.core import CompletionRequest, Finished, PromptScored, SamplingParams, TextDelta
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.engine import Engine
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.rows import common_prefix
from inference_gateway.engine.sampling import Sampler
from inference_gateway.engine.sequence import Sequence, State
from tests.inference_gateway.scripted_machine import TOOLS
from tests.inference_gateway.test_engine_schedules import VOCABULARY, Recorder
from tests.support.models import random_model
from tests.support.vocabularies import small_tokenizer
from toolformer.api_call import splice_result

PROMPT = tuple(range(1, 41))
CALL = small_tokenizer().encode(" [Calculator(24 * 17) ->")


class Driver:
    """An engine that is stepped by hand, and what its sequences said."""

    def __init__(self, sampler: Sampler | None = None, **limits: Any) -> None:
        self.recorder = Recorder()
        settings = EngineLimits(**{"max_model_len": 100, **limits})
        self.engine = Engine(random_model(), sampler or self.recorder, settings)
        self.said: list[list[Action]] = []

    def submit(self, prompt: tuple[int, ...] = PROMPT, script: list[int] | None = None, **request: Any) -> Sequence:
        """Queue a completion that writes ``script`` (by default a word for ever)."""
        name = str(len(self.said))
        wanted = CompletionRequest(prompt, tools=tuple(TOOLS), request_id=name, **{"max_tokens": 30, **request})
        self.recorder.scripts[name] = iter(script or [300] * 1000)
        said: list[Action] = []
        self.said.append(said)
        return self.engine.submit(wanted, DecodingMachine(wanted, VOCABULARY, TOOLS), said.extend)

    def step(self, times: int = 1) -> None:
        with torch.inference_mode():
            for _ in range(times):
                self.engine.advance()

    def finish(self) -> None:
        """Step to the end of all that can end."""
        for _ in range(1000):
            if not self.engine.stats().running + self.engine.stats().waiting:
                return
            self.step()
        raise AssertionError("no end")

    def answer(self, sequence: Sequence) -> None:
        result = splice_result("408", small_tokenizer(), max_tokens=9)
        assert result is not None
        self.engine.splice(sequence, result)


def done(actions: list[Action]) -> Finished:
    assert isinstance(actions[-1], Finished)
    return actions[-1]


def test_choices_of_one_prompt_compute_it_once() -> None:
    driver = Driver()
    sequences = [driver.submit() for _ in range(5)]
    driver.step(4)
    assert all(sequence.state is State.DECODING for sequence in sequences)
    stats = driver.engine.stats()
    decoded = stats.generated_tokens - len(sequences)
    assert stats.computed_tokens - decoded == len(PROMPT) + 4  # of each copy only its last token
    driver.finish()
    cached = [done(said).usage.cached_tokens for said in driver.said]
    assert cached == [0, 39, 39, 39, 39]
    driver.recorder.check()


def test_a_request_that_begins_like_an_earlier_one_computes_the_rest() -> None:
    driver = Driver()
    driver.submit()
    driver.finish()
    before = driver.engine.stats()
    driver.submit((*PROMPT[:30], *range(100, 120)), max_tokens=1)
    driver.finish()
    after = driver.engine.stats()
    assert after.computed_tokens - before.computed_tokens == 20
    assert after.prefix_hits - before.prefix_hits == 30 == done(driver.said[1]).usage.cached_tokens
    driver.recorder.check()


def test_a_resubmitted_completion_finds_all_of_it() -> None:
    """As a client without tool calls inside would do it: prompt and completion so far are the next prompt."""
    driver = Driver()
    driver.submit(max_tokens=20)
    driver.finish()
    driver.submit((*PROMPT, *[300] * 20), max_tokens=1)
    driver.finish()
    assert done(driver.said[1]).usage.cached_tokens == len(PROMPT) + 19


def test_nothing_is_kept_or_shared_where_that_is_switched_off() -> None:
    driver = Driver(reuse_prefixes=False)
    driver.submit(max_tokens=50)
    driver.step(4)
    driver.submit()
    driver.finish()
    driver.submit()
    driver.finish()
    stats = driver.engine.stats()
    assert (stats.prefix_queries, stats.prefix_hits, stats.kept_tokens) == (0, 0, 0)
    assert [done(said).usage.cached_tokens for said in driver.said] == [0, 0, 0]


def test_a_long_prompt_comes_in_pieces_between_which_others_stream() -> None:
    driver = Driver(prefill_tokens=8)
    driver.submit(PROMPT[:8])
    driver.step(2)
    driver.submit(tuple(range(200, 260)))
    for _ in range(60 // 8):
        before = driver.engine.stats()
        driver.step()
        after = driver.engine.stats()
        assert after.computed_tokens - before.computed_tokens == 8 + 1
        assert after.generated_tokens - before.generated_tokens == 1
    driver.finish()
    driver.recorder.check()


def test_a_pause_keeps_its_cache_and_a_resume_computes_what_is_new() -> None:
    driver = Driver()
    other, paused = driver.submit(max_tokens=60), driver.submit(script=[*CALL, *[300] * 99])
    driver.step(2 + len(CALL))
    assert paused.state is State.IN_CALL
    assert other.state is State.DECODING
    driver.step(3)
    assert driver.engine.stats().paused_tokens == len(PROMPT) + len(CALL) - 1
    before = driver.engine.stats()
    driver.answer(paused)
    driver.step()
    after = driver.engine.stats()
    spliced = len(small_tokenizer().encode(" 408")) + 1
    assert after.computed_tokens - before.computed_tokens == 1 + (1 + spliced)  # the other's token, then `->` and these
    assert after.recomputed_tokens == 0
    driver.finish()
    driver.recorder.check()


def test_a_pause_makes_way_for_those_that_run_and_computes_anew_what_was_lost() -> None:
    driver = Driver(max_sequences=2, max_model_len=100, cache_tokens=100)
    paused = driver.submit(script=[*CALL, *[300] * 99])
    driver.step(1 + len(CALL))
    assert paused.state is State.IN_CALL
    driver.submit(tuple(range(200, 260)), max_tokens=30)
    driver.finish()
    stats = driver.engine.stats()
    assert stats.dropped_pauses == 1
    assert stats.held_tokens == 0
    driver.answer(paused)
    driver.step()
    driver.finish()
    assert driver.engine.stats().recomputed_tokens > 0
    driver.recorder.check()


def test_after_its_time_a_pause_holds_nothing_for_itself_but_finds_what_nobody_took() -> None:
    driver = Driver(hold_seconds=0.0)
    paused = driver.submit(script=[*CALL, *[300] * 99])
    driver.step(1 + len(CALL))
    driver.step()
    stats = driver.engine.stats()
    assert (stats.in_call, stats.held_tokens, stats.dropped_pauses) == (1, 0, 1)
    driver.answer(paused)
    driver.finish()
    assert driver.engine.stats().recomputed_tokens == 0
    driver.recorder.check()


def test_the_newest_waits_where_memory_ends_and_goes_on_later() -> None:
    driver = Driver(max_sequences=2, max_model_len=100, cache_tokens=110)
    older = driver.submit(max_tokens=50)
    newer = driver.submit(tuple(range(200, 240)), max_tokens=50)
    driver.step(20)
    assert older.state is State.DECODING
    assert newer.state is State.WAITING
    driver.finish()
    stats = driver.engine.stats()
    assert stats.preemptions >= 1
    assert [done(said).usage.completion_tokens for said in driver.said] == [50, 50]
    driver.recorder.check()


def test_who_waits_is_admitted_by_memory_and_not_by_rows() -> None:
    driver = Driver(max_sequences=8, max_model_len=100, cache_tokens=160)
    for start in (1, 100, 200):
        driver.submit(tuple(range(start, start + 60)), max_tokens=5)
    driver.step()
    driver.step()
    assert driver.engine.stats().waiting == 1
    driver.finish()
    assert all(done(said).usage.completion_tokens == 5 for said in driver.said)


def test_a_request_for_no_tokens_scores_its_prompt_and_ends() -> None:
    driver = Driver(prefill_tokens=16)
    driver.submit(max_tokens=0, prompt_logprobs=True, logprobs=0)
    driver.finish()
    scored, end = driver.said[0]
    assert end == Finished("length", done(driver.said[0]).usage)
    assert isinstance(scored, PromptScored)
    assert len(scored.tokens) == len(PROMPT)


def test_sampled_text_is_that_of_the_seed_whatever_was_put_aside() -> None:
    """Memory for one and a half of three: who samples is put aside and goes on, with the same random numbers."""

    def texts(**limits: Any) -> list[str]:
        driver = Driver(Sampler(VOCABULARY, torch.device("cpu")), **limits)
        for seed in range(3):
            driver.submit(PROMPT[: 20 + seed], max_tokens=40, sampling=SamplingParams(1.0, seed=seed), api_top_k=0)
        driver.finish()
        assert (driver.engine.stats().preemptions > 0) == ("cache_tokens" in limits)
        return ["".join(action.text for action in said if isinstance(action, TextDelta)) for said in driver.said]

    assert texts(max_sequences=3, cache_tokens=100) == texts(max_sequences=3)


def steps_until_first_token(driver: Driver, sequence: Sequence, most: int) -> int:
    for step in range(1, most + 1):
        driver.step()
        if sequence.machine.usage.completion_tokens:
            return step
    raise AssertionError(f"no token in {most} steps")


def test_one_client_s_many_completions_do_not_hold_up_another_client() -> None:
    """All places taken, many more in the queue: who comes from elsewhere begins at once, and nobody's text changes."""
    driver = Driver(max_sequences=4, max_model_len=100)
    for number in range(32):
        driver.submit((*PROMPT[:20], 100 + number), client="alice", max_tokens=40)
    driver.step(5)
    assert driver.engine.stats().running == 4
    bob = driver.submit(PROMPT[5:25], client="bob", max_tokens=40)
    assert steps_until_first_token(driver, bob, 3) <= 3
    driver.step(2)
    assert {one.request.client for one in driver.engine._scheduler.running} == {"alice", "bob"}
    driver.finish()
    assert [done(said).usage.completion_tokens for said in driver.said] == [40] * 33
    assert driver.engine.stats().preemptions == 1
    driver.recorder.check()


def test_long_prompts_of_one_client_do_not_hold_up_another_s() -> None:
    driver = Driver(max_sequences=8, max_model_len=100, prefill_tokens=10)
    for number in range(8):
        driver.submit(tuple(range(100 + number, 180 + number)), client="alice", max_tokens=5)
    driver.step(2)
    bob = driver.submit(PROMPT[:20], client="bob", max_tokens=5)
    # 20 tokens in pieces of 10, in turns with the one of alice's prompts that comes first.
    assert steps_until_first_token(driver, bob, 12) <= 12
    driver.finish()
    driver.recorder.check()


def test_memory_that_one_client_fills_is_shared_with_another() -> None:
    driver = Driver(max_sequences=8, max_model_len=100, cache_tokens=200)
    for number in range(6):
        driver.submit((*range(100 + number, 140 + number),), client="alice", max_tokens=50)
    driver.step(4)
    bob = driver.submit(PROMPT, client="bob", max_tokens=10)
    assert steps_until_first_token(driver, bob, 4) <= 4
    driver.finish()
    assert all(isinstance(said[-1], Finished) for said in driver.said)
    driver.recorder.check()


def test_clients_with_equal_numbers_put_nobody_aside() -> None:
    driver = Driver(max_sequences=2, max_model_len=100)
    for client in ("alice", "bob", "alice", "bob", "alice"):
        driver.submit((*PROMPT[:20], len(driver.said)), client=client, max_tokens=10)
    driver.finish()
    assert driver.engine.stats().preemptions == 0
    driver.recorder.check()


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [
        ([], [], 0),
        ([1], [], 0),
        ([1, 2], [1, 2], 2),
        ([1, 2, 3], [1, 2, 9, 9], 2),
        ([5], [6], 0),
        ([1] * 99, [1] * 98, 98),
    ],
)
def test_common_prefix(first: list[int], second: list[int], length: int) -> None:
    assert common_prefix(first, second) == common_prefix(second, first) == length


def test_a_cache_that_cannot_hold_one_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="give it more memory or lower max_model_len"):
        EngineLimits(max_model_len=100, cache_tokens=99)
