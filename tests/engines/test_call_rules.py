"""vLLM's logits processor beside the local engine's sampler, on random logits."""

import random
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import torch
from torch import Tensor
from vllm import AsyncEngineArgs
from vllm import SamplingParams as VllmSampling
from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality

from inference_gateway.backends.loading import end_ids
from inference_gateway.backends.vllm.call_rules import END_IDS, HISTORY, TURN, CallRules
from inference_gateway.backends.vllm.replay import History, RecordedMachine
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CompletionRequest, SamplingParams
from inference_gateway.engine.sampling import Sampler
from inference_gateway.engine.sequence import Sequence
from tests.engines.harness import MODEL, TOKENIZER
from toolformer.api_call import splice_result
from toolformer.tools import ToolRegistry

pytestmark = pytest.mark.vllm

END: Final = end_ids(MODEL, TOKENIZER)
VOCABULARY: Final = CallVocabulary.of(TOKENIZER, END)
REGISTRY: Final = ToolRegistry.load(files=[], environ={})
LENGTH: Final = 200
WIDTH: Final = TOKENIZER.vocab_size
CALL: Final = TOKENIZER.encode(" [Calculator(12 + 3) ->")
LIKELY: Final = [CALL[:1], *(TOKENIZER.encode(text) for text in ("]", " [1]", " text", "[", "Calculator("))]
"""What calls, brackets and text are made of; random logits alone would hardly ever write a call."""


def rules() -> CallRules:
    config = AsyncEngineArgs(
        model=str(MODEL), skip_tokenizer_init=True, dtype="float32", additional_config={END_IDS: END}
    ).create_engine_config()
    return CallRules(config, torch.device("cpu"), False)


def request(chooses: random.Random) -> CompletionRequest:
    adjusts = chooses.random() < 0.3
    sampling = SamplingParams(
        frequency_penalty=0.5 if adjusts else 0.0,
        repetition_penalty=1.2 if adjusts else 1.0,
        logit_bias=((CALL[0], 4.0), (7, -2.0)) if adjusts else (),
        min_tokens=chooses.choice([0, 0, 9]),
    )
    return CompletionRequest(
        tuple(TOKENIZER.encode(chooses.choice(["So there are", "See [1] and [2", "x"]))),
        max_tokens=chooses.choice([6, 40]),
        tools=chooses.choice([("Calculator",), ("Calculator", "QA"), ()]),
        api_top_k=chooses.choice([0, 1, 3, 10]),
        max_calls=chooses.choice([0, 1, 2]),
        sampling=sampling,
        plain=chooses.random() < 0.1,
    )


@dataclass
class Followed:
    """A completion as the gateway has it, and the list of tokens that vLLM writes for it."""

    recorded: RecordedMachine
    sequence: Sequence
    made: list[int] = field(default_factory=list)
    turn: int = 0

    @classmethod
    def begin(cls, asked: CompletionRequest) -> "Followed":
        recorded = RecordedMachine(History.begin(asked, {tool.name: tool for tool in REGISTRY}, LENGTH), VOCABULARY)
        return cls(recorded, Sequence(asked, recorded.machine, lambda actions: None))

    def added(self, row: int, name: str) -> Any:
        """As vLLM reports a request that a turn begins for."""
        self.made, self.turn = [], self.turn + 1
        extra = {HISTORY: self.recorded.history.packed(), TURN: f"{name}/{self.turn}"}
        return row, VllmSampling(extra_args=extra), list(self.sequence.request.prompt_ids), self.made


def logits_for(chooses: random.Random, rows: list[Followed]) -> Tensor:
    """Random logits; in most rows a call goes on that has begun, or something of `LIKELY` comes."""
    logits = torch.randn(len(rows), WIDTH, generator=torch.Generator().manual_seed(chooses.randrange(2**31)))
    for row, one in enumerate(rows):
        last = one.recorded.machine.ids[-1:]
        if last and last[0] in CALL[:-1] and chooses.random() < 0.9:
            logits[row, CALL[CALL.index(last[0]) + 1]] += 9
        elif chooses.random() < 0.7:
            for token in chooses.choice(LIKELY):
                logits[row, token] += 6
    return logits


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_of_random_logits_is_what_the_local_sampler_chooses(seed: int) -> None:
    chooses, processor, sampler = random.Random(seed), rules(), Sampler(VOCABULARY, torch.device("cpu"))
    rows = [Followed.begin(request(chooses)) for _ in range(5)]
    added = [one.added(row, f"{seed}-{row}") for row, one in enumerate(rows)]
    processor.update_state(BatchUpdate(batch_size=5, removed=[], added=added, moved=[]))
    calls = dropped = 0
    for step in range(400):
        logits = logits_for(chooses, rows)
        expected = sampler.choose(logits.clone(), [one.sequence for one in rows])
        chosen = processor.apply(logits.clone()).argmax(dim=-1).tolist()
        added, moved = [], []
        for row, (one, (token, forced)) in enumerate(zip(rows, expected, strict=True)):
            assert chosen[row] == token, (step, row)
            one.made.append(token)
            actions = one.recorded.accept(token, forced=forced)
            if not one.recorded.leaves_sequence(actions):
                continue
            if one.recorded.paused:
                calls += 1
                result = splice_result("15", TOKENIZER, max_tokens=8)
                one.recorded.answer(result if chooses.random() < 0.5 else None)
            dropped += bool(one.recorded.machine.usage.rolled_back_tokens)
            if one.recorded.machine.done:
                rows[row] = Followed.begin(request(chooses))
            added.append(rows[row].added(row, f"{seed}-{row}-{step}"))
        if chooses.random() < 0.1:  # vLLM moves requests within its batch
            rows[0], rows[3] = rows[3], rows[0]
            moved.append((0, 3, MoveDirectionality.SWAP))
        if added or moved:
            processor.update_state(BatchUpdate(batch_size=5, removed=[], added=added, moved=moved))
    assert calls > 3
    assert dropped > 3


def test_a_turn_that_is_over_is_ended_by_a_stop_token() -> None:
    asked = CompletionRequest((1, 2), max_tokens=2, tools=("Calculator",))
    processor, one = rules(), Followed.begin(asked)
    processor.update_state(BatchUpdate(batch_size=1, removed=[], added=[one.added(0, "over")], moved=[]))
    for token in TOKENIZER.encode(" two words")[:2]:
        processor.apply(torch.zeros(1, WIDTH))
        one.made.append(token)
    left = processor.apply(torch.zeros(1, WIDTH))
    assert left.isfinite().nonzero().tolist() == [[0, min(END)]]


def test_requests_of_others_are_left_alone() -> None:
    processor = rules()
    update = BatchUpdate(batch_size=1, removed=[], added=[(0, VllmSampling(), [1], [])], moved=[])
    processor.update_state(update)
    logits = torch.randn(1, WIDTH)
    assert torch.equal(processor.apply(logits.clone()), logits)
