"""Annotating and scoring with a model on a server, over real HTTP, beside the same model at hand."""

import dataclasses
import random
from collections.abc import Iterator

import pytest

from language_model.bulk.interface import Place, PromptedText, SamplingRule, Targets
from language_model.bulk.loading import as_bulk
from language_model.bulk.server import BulkServer, ServerSettings, ServerTrouble
from tests.support.vocabularies import small_tokenizer
from tests.training_jobs.calling_models import CALLS, calling_model
from tests.training_jobs.vllm_server import ServerState, vllm_server
from toolformer.tools import ToolRegistry
from training_jobs.annotate import Annotator
from training_jobs.filter import Scorer
from training_jobs.records import Annotated, Document

TOKENIZER = small_tokenizer()
MODEL = calling_model(TOKENIZER, 0)
DOCUMENTS = [Document("a", "One A(1) is 1."), Document("b", ""), Document("c", "T")]


@pytest.fixture(scope="module")
def running() -> Iterator[ServerState]:
    with vllm_server(MODEL, TOKENIZER) as state:
        yield state


@pytest.fixture
def state(running: ServerState, monkeypatch: pytest.MonkeyPatch) -> ServerState:
    monkeypatch.setattr("language_model.bulk.server.time.sleep", lambda seconds: None)
    running.turn_away, running.wrong = 0, None
    running.requests.clear()
    return running


@pytest.fixture
def remote(state: ServerState) -> Iterator[BulkServer]:
    settings = ServerSettings(state.url, "m", MODEL.max_positions, begin_id=0, api_key="secret", attempts=3)
    with BulkServer(settings) as opened:
        yield opened


def annotated_here() -> list[Annotated]:
    return Annotator(MODEL, TOKENIZER, CALLS).annotate(DOCUMENTS, seed=5)


def test_positions_are_those_of_the_model_at_hand(remote: BulkServer, state: ServerState) -> None:
    tool = CALLS.model_copy(update={"sampling_threshold": 0.05})
    here = Annotator(MODEL, TOKENIZER, tool)
    there = Annotator(remote, TOKENIZER, tool)
    asked = PromptedText((5, 6, 7, 8, 9, 10), 2)
    [opening] = TOKENIZER.encode(" [")
    [want] = here._model.read(here._prompt, [asked], opening).log_probabilities
    [got] = there._model.read(there._prompt, [asked], opening).log_probabilities
    told = [(a, b) for a, b in zip(got, want, strict=True) if a > float("-inf")]
    assert told, "the model is made to like calls"
    assert all(a == pytest.approx(b, abs=1e-4) for a, b in told)
    assert all(b < -3.04 for a, b in zip(got, want, strict=True) if a == float("-inf")), "above 1/21 all is told"


def test_calls_are_sampled_and_read_as_the_models_own(remote: BulkServer, state: ServerState) -> None:
    tool = CALLS.model_copy(update={"sampling_threshold": 0.0})
    first = Annotator(remote, TOKENIZER, tool).annotate(DOCUMENTS, seed=5)
    assert [one.document.id for one in first] == ["a", "b", "c"]
    assert any(one.candidates for one in first)
    for one in first:
        positions = {candidate.position for candidate in one.candidates}
        assert sum(one.dropped.values()) + len(one.candidates) <= tool.max_positions * tool.max_samples
        assert len(positions) <= tool.max_positions
    sampling = [request for request in state.requests if "n" in request]
    assert {request["n"] for request in sampling} == {tool.max_samples}
    again = Annotator(remote, TOKENIZER, tool).annotate(DOCUMENTS, seed=5)
    assert again == first, "a server that honours its seed gives the same"
    assert Annotator(remote, TOKENIZER, tool).annotate(DOCUMENTS, seed=6) != first


def test_losses_are_those_of_the_model_at_hand(remote: BulkServer) -> None:
    asked = [
        dataclasses.replace(one, candidates=tuple(dataclasses.replace(c, output="12") for c in one.candidates))
        for one in annotated_here()
    ]
    assert any(one.candidates for one in asked)
    tools = ToolRegistry([CALLS])
    here = Scorer(MODEL, TOKENIZER, tools).score(asked)
    there = Scorer(remote, TOKENIZER, tools).score(asked)
    for want, got in zip(here, there, strict=True):
        for a, b in zip(want.candidates, got.candidates, strict=True):
            for name in ("loss_empty", "loss_call", "loss_result"):
                assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-4)


def test_a_token_that_cannot_come_is_taken_out(remote: BulkServer) -> None:
    [opening] = TOKENIZER.encode(" [")
    targets = [Targets((0, *TOKENIZER.encode("One A(1) is [1.")), (1, 2, 3, 4, 5))]
    here = as_bulk(MODEL, TOKENIZER)
    [want], [got] = here.score(targets, without=opening), remote.score(targets, without=opening)
    assert got == pytest.approx(want, abs=0.01)  # where it is not among the likeliest, the server does not tell
    [plain] = here.score(targets)
    assert sum(want) > sum(plain) + 0.01, "the model is made to like calls"


class TestTrouble:
    TARGETS = (Targets((1, 2, 3), (1, 2)),)

    def test_a_server_that_is_busy_is_asked_again(self, remote: BulkServer, state: ServerState) -> None:
        state.turn_away = 2
        [scores] = remote.score(self.TARGETS)
        assert len(scores) == 2
        assert len(state.requests) == 3

    def test_not_for_ever(self, remote: BulkServer, state: ServerState) -> None:
        state.turn_away = 9
        with pytest.raises(ServerTrouble, match=r"/v1/completions: HTTP 503: .*busy.*see that the server runs"):
            remote.score(self.TARGETS)
        assert len(state.requests) == 3

    def test_a_refusal_is_not_repeated(self, state: ServerState) -> None:
        with (
            BulkServer(ServerSettings(state.url, "m", 384)) as stranger,
            pytest.raises(ServerTrouble, match=r"HTTP 401.*who are you"),
        ):
            stranger.score(self.TARGETS)
        assert len(state.requests) == 1

    def test_nobody_there(self, state: ServerState) -> None:
        settings = ServerSettings("http://127.0.0.1:9", "m", 384, attempts=1, timeout_s=2)
        with BulkServer(settings) as lost, pytest.raises(ServerTrouble, match="ConnectError"):
            lost.score(self.TARGETS)

    def test_a_stop_string_too_many_for_the_server_still_ends_a_sample(
        self, remote: BulkServer, state: ServerState
    ) -> None:
        reading = remote.read(remote.hold((1,)), [PromptedText((2,), 1)], 3)
        state.wrong = {"choices": [{"index": 1, "text": "more"}, {"index": 0, "text": "A(1)e and more"}]}
        rule = SamplingRule(9, bool, stops=("a)", "b)", "c)", "d)", ")e"))
        written = reading.continuations([Place(0, 1)], [[random.Random(1), random.Random(2)]], rule)
        assert written == [[b"A(1)e", b"more"]]
        assert state.requests[-1]["stop"] == ["a)", "b)", "c)", "d)"]

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ([], "not a JSON object"),
            ({"choices": []}, "without the 1 choices"),
            ({"choices": [{"text": "a"}]}, "without prompt_logprobs for each of 3 tokens"),
            ({"choices": [{"prompt_logprobs": [None, {}, {}]}]}, "does not report the log probability"),
            ({"choices": [{"prompt_logprobs": [None, {"2": {"logprob": "x"}}, {"3": 5}]}]}, "does not report"),
        ],
    )
    def test_answers_that_are_none(self, remote: BulkServer, state: ServerState, wrong: object, message: str) -> None:
        state.wrong = wrong
        with pytest.raises(ServerTrouble, match=message):
            remote.score(self.TARGETS)

    def test_what_does_not_fit_is_not_asked(self, remote: BulkServer, state: ServerState) -> None:
        with pytest.raises(ValueError, match="do not fit a model of 384"):
            remote.score([Targets((1,) * 400, (399,))])
        assert not state.requests

    def test_settings_that_cannot_be(self) -> None:
        with pytest.raises(ValueError, match="url must be an address"):
            ServerSettings("localhost:8000", "m", 384)
        with pytest.raises(ValueError, match="connections must be more than 0"):
            ServerSettings("http://localhost:8000", "m", 384, connections=0)
