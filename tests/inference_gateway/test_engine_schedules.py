"""The engine against the plain oracle, over random schedules: whatever arrives, pauses, fails, leaves, is put aside or
begins like another in between, each step's logits are those of that sequence's own tokens computed alone.

The engine is driven step by step in this thread, so a seed always gives the same schedule."""

import random
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from inference_gateway.actions import Action, Keep
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CallStarted, CompletionRequest, Finished, PromptScored
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.engine import Engine
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.sampling import Sampler
from inference_gateway.engine.sequence import Sequence
from inference_gateway.engine.stats import EngineStats
from language_model.causal_lm import CausalLM
from language_model.native.library import Unavailable
from tests.inference_gateway.scripted_machine import TOOLS
from tests.support.models import SMALL, compiled_model, random_model, static_model
from tests.support.vocabularies import small_tokenizer
from toolformer.api_call import splice_result

VOCABULARY = CallVocabulary.of(small_tokenizer(), [SMALL.eos_token_id])
LENGTH = 90

Oracle = Callable[[Tensor], Tensor]
"""Logits ``[tokens, vocabulary]`` of ids ``[1, tokens]``, computed in one go."""


def small_gptj(ids: Tensor) -> Tensor:
    """The oracle of most tests."""
    return cast(Tensor, random_model()(ids)[0])


class Recorder(Sampler):
    """Chooses what each request's script says, and keeps the logits it was given beside the tokens they belong to."""

    def __init__(self) -> None:
        super().__init__(VOCABULARY, torch.device("cpu"))
        self.scripts: dict[str, Iterator[int]] = {}
        self.seen: dict[tuple[int, ...], list[Tensor]] = {}

    def choose(self, logits: Tensor, sequences: Many[Sequence]) -> list[tuple[int, bool]]:
        for sequence, row in zip(sequences, logits, strict=True):
            self.seen.setdefault(tuple(sequence.tokens_from(0)), []).append(row.clone())
        return [(next(self.scripts[sequence.request.request_id], 0), False) for sequence in sequences]

    def check(self, oracle: Oracle = small_gptj) -> None:
        """Every recorded row equals full recomputation."""
        logits = torch.empty(0)
        longest: tuple[int, ...] = ()
        # In falling order a list comes right behind the longest that begins with it: one computation serves both.
        for ids in sorted(self.seen, reverse=True):
            if longest[: len(ids)] != ids:
                longest, logits = ids, oracle(torch.tensor([ids]))
            for row in self.seen[ids]:
                torch.testing.assert_close(row, logits[len(ids) - 1], atol=3e-4, rtol=1e-4)


def script(rng: random.Random) -> list[int]:
    """A completion: words, calls, broken calls, brackets."""
    parts = [
        " [Calculator(24 * 17) ->",
        ' [QA("What is the capital of Peru?") ->',
        " [Calendar() ->",
        " [Calculator(3)]",
        " [QA(",
        " Each of the boxes",
        " books. [1]",
        " Today is Friday",
    ]
    return small_tokenizer().encode("".join(rng.choice(parts) for _ in range(rng.randint(1, 5))))


@dataclass
class Client:
    """One completion as its client sees it."""

    request: CompletionRequest
    machine: DecodingMachine
    sequence: Sequence | None = None
    calling: bool = False
    left: bool = False
    ends: list[Finished] = field(default_factory=list)
    scored: PromptScored | None = None

    def receive(self, actions: Iterable[Action]) -> None:
        for action in actions:
            assert not self.ends, "nothing may follow the end"
            if isinstance(action, CallStarted):
                self.calling = True
            elif isinstance(action, PromptScored):
                assert self.scored is None
                self.scored = action
            elif isinstance(action, Finished):
                self.ends.append(action)
            elif isinstance(action, Keep):
                assert len(self.machine.ids) >= action.tokens

    @property
    def over(self) -> bool:
        return bool(self.left or self.ends)


class Schedule:
    """A seeded crowd of clients on little memory."""

    def __init__(self, seed: int, model: CausalLM[Any]) -> None:
        self.rng = rng = random.Random(seed)
        self.recorder = Recorder()
        rows = rng.randint(1, 4)
        self.engine = Engine(
            model,
            self.recorder,
            EngineLimits(
                max_sequences=rows,
                max_model_len=LENGTH,
                prefill_tokens=rng.choice([1, 3, 8, 64]),
                cache_tokens=rng.choice([None, LENGTH, LENGTH + 20, 2 * LENGTH, 3 * LENGTH]) if rows > 2 else None,
                hold_seconds=rng.choice([0.0, 1e9, 1e9]),
                reuse_prefixes=rng.random() < 0.8,
            ),
        )
        self.beginnings = [rng.choices(range(1, 420), k=rng.randint(8, 30)) for _ in range(3)]
        self.clients: list[Client] = []

    def arrive(self) -> None:
        rng, name = self.rng, str(len(self.clients))
        prompt = rng.choices(range(1, 420), k=rng.randint(1, 40))
        if rng.random() < 0.6:
            prompt = rng.choice(self.beginnings) + prompt[: rng.randint(0, 20)]
        request = CompletionRequest(
            prompt_ids=tuple(prompt),
            max_tokens=rng.choice([0, 1, 20, 60, 60, 60]),
            tools=tuple(TOOLS),
            max_calls=3,
            request_id=name,
            client=("alice", "bob", "alice")[len(self.clients) % 3],
            prompt_logprobs=rng.random() < 0.1,
            logprobs=rng.choice([None, None, 2]),
        )
        self.recorder.scripts[name] = iter(script(rng))
        client = Client(request, DecodingMachine(request, VOCABULARY, TOOLS))
        self.clients.append(client)
        client.sequence = self.engine.submit(request, client.machine, client.receive)

    def act(self, client: Client) -> None:
        """What a client or its tool may do between two steps."""
        rng, sequence = self.rng, client.sequence
        assert sequence is not None
        if client.calling and rng.random() < 0.4:
            client.calling = False
            if rng.random() < 0.7:
                result = splice_result("x" * rng.randint(1, 9) + " 408", small_tokenizer(), max_tokens=20)
                assert result is not None
                self.engine.splice(sequence, result)
            else:
                self.engine.give_up(sequence)
        elif rng.random() < 0.01:
            client.left = True
            self.engine.abort(sequence)
        elif rng.random() < 0.01:
            self.engine.finish(sequence, "timeout", "too slow")

    def run(self) -> EngineStats:
        """Run to the end; every sequence must end once, and none may hold anything afterwards."""
        to_come = self.rng.randint(1, 10)
        for _ in range(5000):
            while to_come and self.rng.random() < 0.3:
                to_come -= 1
                self.arrive()
            for client in self.clients:
                if not client.over:
                    self.act(client)
            with torch.inference_mode():
                self.engine.advance()
            stats = self.engine.stats()
            assert stats.held_tokens + stats.kept_tokens <= stats.cache_tokens
            if not to_come and all(client.over for client in self.clients):
                break
        self.engine.advance()
        stats = self.engine.stats()
        assert [len(client.ends) for client in self.clients] == [int(not client.left) for client in self.clients]
        assert not any(end.reason == "error" for client in self.clients for end in client.ends), "a step failed"
        assert (stats.waiting, stats.running, stats.in_call, stats.held_tokens) == (0, 0, 0, 0)
        return stats

    def check_scores(self, oracle: Oracle) -> None:
        """Log probabilities of prompts equal the oracle's."""
        for client in self.clients:
            prompt = client.request.prompt_ids
            if client.scored is None:
                continue
            expected = torch.log_softmax(oracle(torch.tensor([prompt])), dim=-1)
            assert [token.id for token in client.scored.tokens] == list(prompt)
            assert client.scored.tokens[0].logprob is None
            for place, token in enumerate(client.scored.tokens[1:]):
                assert token.logprob == pytest.approx(expected[place, token.id].item(), abs=2e-3)
                assert len(token.top) == (client.request.logprobs or 0)


def check(seeds: Iterable[int], model: CausalLM[Any], oracle: Oracle = small_gptj) -> list[EngineStats]:
    """Run and check the schedules of ``seeds``."""
    outcomes = []
    for seed in seeds:
        schedule = Schedule(seed, model)
        outcomes.append(schedule.run())
        schedule.recorder.check(oracle)
        schedule.check_scores(oracle)
    return outcomes


def assert_all_happened(outcomes: Many[EngineStats]) -> None:
    """The schedules are only worth something if they reach every way of making room and of saving work."""
    for count in ("recomputed_tokens", "prefix_hits", "preemptions", "dropped_pauses", "generated_tokens"):
        assert sum(getattr(stats, count) for stats in outcomes) > 0, count


def test_any_schedule_equals_full_recomputation() -> None:
    assert_all_happened(check(range(40), random_model()))


def test_any_schedule_equals_full_recomputation_in_compiled_code() -> None:
    try:
        model = compiled_model()
    except Unavailable as why:
        pytest.skip(str(why))
    assert_all_happened(check(range(40, 240), model))


def test_any_schedule_equals_full_recomputation_in_steps_of_fixed_shapes() -> None:
    assert_all_happened(check(range(40), static_model()))


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a quarter of a minute on a free core, several where the machine is slow
def test_five_hundred_schedules_equal_full_recomputation() -> None:
    check(range(1000, 1500), random_model())
