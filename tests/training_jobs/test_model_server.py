"""A model server that is busy, refuses, is away or answers what is no answer. That good answers lead to what the model
run locally gives is tested on a real vLLM, in tests/engines."""

import random
from collections.abc import Iterator

import pytest

from language_model.bulk.interface import Place, PromptedText, SamplingRule, Targets
from language_model.bulk.server import BulkServer, ServerSettings, ServerTrouble
from tests.training_jobs.answering_server import SCORES, TARGETS, ServerState, answering_server


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerState]:
    monkeypatch.setattr("language_model.bulk.server.time.sleep", lambda seconds: None)
    with answering_server() as state:
        yield state


@pytest.fixture
def remote(state: ServerState) -> Iterator[BulkServer]:
    settings = ServerSettings(state.url, "m", 384, begin_id=0, api_key="secret", attempts=3)
    with BulkServer(settings) as opened:
        yield opened


def test_a_server_that_is_busy_is_asked_again(remote: BulkServer, state: ServerState) -> None:
    state.turn_away = 2
    assert remote.score(TARGETS) == SCORES
    assert len(state.requests) == 3


def test_not_for_ever(remote: BulkServer, state: ServerState) -> None:
    state.turn_away = 9
    with pytest.raises(ServerTrouble, match=r"/v1/completions: HTTP 503: .*busy.*see that the server runs"):
        remote.score(TARGETS)
    assert len(state.requests) == 3


def test_a_refusal_is_not_repeated(state: ServerState) -> None:
    with (
        BulkServer(ServerSettings(state.url, "m", 384)) as stranger,
        pytest.raises(ServerTrouble, match=r"HTTP 401.*who are you"),
    ):
        stranger.score(TARGETS)
    assert len(state.requests) == 1


def test_nobody_there(state: ServerState) -> None:
    settings = ServerSettings("http://127.0.0.1:9", "m", 384, attempts=1, timeout_s=2)
    with BulkServer(settings) as lost, pytest.raises(ServerTrouble, match="ConnectError"):
        lost.score(TARGETS)


def test_a_stop_string_too_many_for_the_server_still_ends_a_sample(remote: BulkServer, state: ServerState) -> None:
    reading = remote.read(remote.hold((1,)), [PromptedText((2,), 1)], 3)
    state.answer = {"choices": [{"index": 1, "text": "more"}, {"index": 0, "text": "A(1)e and more"}]}
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
def test_answers_that_are_none(remote: BulkServer, state: ServerState, wrong: object, message: str) -> None:
    state.answer = wrong
    with pytest.raises(ServerTrouble, match=message):
        remote.score(TARGETS)


def test_what_does_not_fit_is_not_asked(remote: BulkServer, state: ServerState) -> None:
    with pytest.raises(ValueError, match="do not fit a model of 384"):
        remote.score([Targets((1,) * 400, (399,))])
    assert not state.requests


def test_settings_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="url must be an address"):
        ServerSettings("localhost:8000", "m", 384)
    with pytest.raises(ValueError, match="connections must be more than 0"):
        ServerSettings("http://localhost:8000", "m", 384, connections=0)
