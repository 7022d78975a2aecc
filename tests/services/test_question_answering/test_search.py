"""The service with Wikipedia search in place of retriever and index."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.base import Call, NotReady, ToolFailure
from services.base.wire import VERSION_HEADER
from services.question_answering.checkpoint import RETRIEVER, load_reader, write_settings
from services.question_answering.engine import QuestionAnsweringEngine, QuestionAnsweringSettings
from services.question_answering.evaluate import Shares, ask, shares
from services.question_answering.train_questions import RealQuestions, find_sentences
from tests.services.real_services import RunningService
from tests.services.test_question_answering.tiny import write_model
from tests.support.serving import serving

QUESTION = "What is the population of Ljubljana?"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has a reader alone."""
    folder = tmp_path_factory.mktemp("reader")
    settings = write_model(folder)
    shutil.rmtree(folder / RETRIEVER)
    write_settings(folder, settings)
    return folder


def engine_of(reader: Path, address: str, **more: Any) -> QuestionAnsweringEngine:
    return QuestionAnsweringEngine(QuestionAnsweringSettings(model=reader, search=address, **more))


async def test_what_the_search_finds_is_read(reader: Path, wiki_search: RunningService) -> None:
    engine = engine_of(reader, wiki_search.url)
    await engine.start()
    answered = await engine.ask(QUESTION)
    await engine.stop()
    settings, alone = load_reader(reader)
    hits = wiki_search.http.get("/search", params={"query": QUESTION, "k": settings.passages}).json()["hits"]
    assert [one.passage.id for one in answered.found] == [hit["passage_id"] for hit in hits]
    assert [one.score for one in answered.found] == [hit["score"] for hit in hits]
    first, hit = answered.found[0].passage, hits[0]
    assert (first.heading, first.text) == (
        f"{hit['title']}: {hit['section']}" if hit["section"] else hit["title"],
        hit["text"],
    )
    [expected] = alone.answer([QUESTION], [[one.passage for one in answered.found]])
    assert answered.answer == expected.text


async def test_questions_without_a_page_have_no_answer(reader: Path, wiki_search: RunningService) -> None:
    engine = engine_of(reader, wiki_search.url)
    await engine.start()
    outcomes = await engine.answer([Call("Qzxv wvut?"), Call("the of and")])
    await engine.stop()
    assert [outcome.code for outcome in outcomes if isinstance(outcome, ToolFailure)] == ["no_answer"] * 2


async def test_names_that_no_page_has_are_not_answered_unless_anything_is(
    reader: Path, wiki_search: RunningService
) -> None:
    outcomes = []
    for min_score in (1e-9, 0.0):
        engine = engine_of(reader, wiki_search.url, min_score=min_score)
        await engine.start()
        outcomes += await engine.answer([Call("What is the population of Zzyzx Creek?")])
        await engine.stop()
    [declined, taken] = outcomes
    assert isinstance(declined, ToolFailure)
    assert (declined.code, declined.message) == ("no_answer", "no page that was found says 'Zzyzx Creek'")
    assert not isinstance(taken, ToolFailure) or taken.message != declined.message


async def test_a_search_that_goes_away_is_no_answer_about_the_question(reader: Path) -> None:
    engine = engine_of(reader, "http://127.0.0.1:9")
    with pytest.raises(NotReady, match="cannot be reached"):
        await engine.answer([Call(QUESTION)])
    await engine.stop()


async def test_answers_are_named_after_what_is_searched(reader: Path, wiki_search: RunningService) -> None:
    versions = []
    for passages in (2, 2, 3):
        engine = engine_of(reader, wiki_search.url, passages=passages)
        await engine.start()
        versions.append(engine.data_version)
        await engine.stop()
    assert versions[0] == versions[1] != versions[2]


def test_a_model_without_a_retriever_asks_wikipedia_search_where_the_gateway_asks_it(
    reader: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOOLFORMER_TOOL_WIKISEARCH_URL", raising=False)
    assert QuestionAnsweringSettings(model=reader).searched == "http://127.0.0.1:8103"
    monkeypatch.setenv("TOOLFORMER_TOOL_WIKISEARCH_URL", "http://127.0.0.1:9103")
    assert QuestionAnsweringSettings(model=reader).searched == "http://127.0.0.1:9103"
    assert QuestionAnsweringSettings(model=reader, search="http://127.0.0.1:9").searched == "http://127.0.0.1:9"
    (reader.parent / "whole").mkdir()
    write_model(reader.parent / "whole")
    assert QuestionAnsweringSettings(model=reader.parent / "whole").searched is None


def test_passages_are_found_for_questions_and_a_killed_search_goes_on(
    wiki_search: RunningService, tmp_path: Path
) -> None:
    asked = [
        {"source": "squad", "question": QUESTION, "answers": ["272,220"], "title": "Ljubljana",
         "text": "It is 272,220.", "page": "mine"},
        {"source": "trivia", "question": "Which country has the capital Ljubljana?", "answers": ["no one", "Slovenia"]},
        {"source": "trivia", "question": "Which country has the capital Ljubljana?", "answers": ["Atlantis"]},
    ]  # fmt: skip
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    out = tmp_path / "found.jsonl"
    assert list(find_sentences(tmp_path / "asked.jsonl", out, wiki_search.url, 5)) == [3]
    whole = out.read_text()
    out.write_text(whole[:-100])
    assert list(find_sentences(tmp_path / "asked.jsonl", out, wiki_search.url, 5)) == [3]
    assert out.read_text() == whole
    assert list(find_sentences(tmp_path / "asked.jsonl", out, "http://127.0.0.1:9", 5)) == []

    first, second, _ = (json.loads(line) for line in whole.splitlines())
    assert {"id": "mine", "title": "Ljubljana", "text": "It is 272,220."} in first["sentences"]
    assert 5 < len(first["sentences"]) <= 17
    assert any("Slovenia" in one["text"] for one in second["sentences"])
    questions = RealQuestions(out, most=4)
    assert [questions.lesson(number, answered=True).answer for number in range(len(questions))] == [
        "272,220",
        "Slovenia",
    ]


def search_stub(answer: dict[str, str]) -> Starlette:
    """A search service that answers as ``answer`` says: ``version`` and ``body``."""

    async def said(_: Request) -> Response:
        return Response(answer["body"], headers={VERSION_HEADER: answer["version"]})

    return Starlette(routes=[Route("/{path}", said)])


async def test_a_search_with_another_index_gives_answers_another_name(reader: Path) -> None:
    hit = {"passage_id": "1-0", "title": "Ljubljana", "section": "", "text": "It has 272,220 people.", "score": 1.0}
    answer = {"version": "one", "body": json.dumps({"hits": [hit]})}
    versions = []
    async with serving(search_stub(answer)) as address:
        engine = engine_of(reader, address)
        await engine.start()
        for answer["version"] in ("one", "one", "two"):
            await engine.answer([Call(QUESTION)])
            versions.append(engine.data_version)
        await engine.stop()
    assert versions[0] == versions[1] != versions[2]


async def test_an_endless_answer_of_the_search_is_not_read(reader: Path) -> None:
    async with serving(search_stub({"version": "one", "body": " " * (5 << 20)})) as address:
        engine = engine_of(reader, address)
        with pytest.raises(NotReady, match="more than"):
            await engine.answer([Call(QUESTION)])
        await engine.stop()


async def test_a_reader_is_examined_over_a_running_search(reader: Path, wiki_search: RunningService) -> None:
    settings, alone = load_reader(reader)
    questions = [(QUESTION, ["272,220"]), ("Who ate the last plum of Ljubljana?", ["nobody at all"])]
    asked = await ask(alone, wiki_search.url, questions, settings.passages)
    assert [one.said for one in asked] == [True, False]
    assert all(one.named for one in asked)
    sure = [replace(asked[0], right=True, score=0.9), replace(asked[1], right=False, score=0.4)]
    assert shares(sure, 0.0) == Shares(answered=1.0, right=1.0, declined=0.0, right_of_all=0.5)
    assert shares(sure, 0.5) == Shares(answered=1.0, right=1.0, declined=1.0, right_of_all=0.5)
    assert shares(sure, 0.95) == Shares(answered=0.0, right=0.0, declined=1.0, right_of_all=0.0)
    unnamed = [replace(one, named=False) for one in sure]
    assert shares(unnamed, 0.0) == shares(sure, 0.0)
    assert shares(unnamed, 0.1) == shares(sure, 0.95)
