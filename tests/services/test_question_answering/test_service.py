"""The service over HTTP, on a tiny random model: what it answers is nonsense, but always the reader's."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.base import Call, ToolFailure
from services.question_answering.app import build_app
from services.question_answering.checkpoint import Model
from services.question_answering.engine import QuestionAnsweringEngine, QuestionAnsweringSettings, require_question
from services.question_answering.reader import Answer, Reader
from tests.services.test_question_answering.tiny import PASSAGES, QUESTIONS, model_and_index
from tests.toolformer.http_api.asgi import running


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Model]:
    return model_and_index(tmp_path_factory.mktemp("model"))


async def ready_engine(folders: tuple[Path, Path, Model], **more: Any) -> QuestionAnsweringEngine:
    engine = QuestionAnsweringEngine(QuestionAnsweringSettings(model=folders[0], index=folders[1], **more))
    await engine.start()
    return engine


async def until_ready(client: httpx.AsyncClient) -> None:
    """The model loads in a thread, so turns of the event loop are no measure of it."""
    async with asyncio.timeout(60):
        while (await client.get("/ready")).status_code != 200:
            await asyncio.to_thread(lambda: None)


@pytest.fixture
async def client(folders: tuple[Path, Path, Model]) -> AsyncIterator[httpx.AsyncClient]:
    async with running(build_app(QuestionAnsweringSettings(model=folders[0], index=folders[1]))) as client:
        await until_ready(client)
        yield client


async def test_answers_are_the_readers(client: httpx.AsyncClient, folders: tuple[Path, Path, Model]) -> None:
    response = await client.get("/answer", params={"question": QUESTIONS[0]})
    body = response.json()
    texts = {passage.id: passage for passage in PASSAGES}
    used = [texts[one["id"]] for one in body["passages"]]
    assert [one["text"] for one in body["passages"]] == [passage.text for passage in used]
    assert [one["score"] for one in body["passages"]] == sorted(
        (one["score"] for one in body["passages"]), reverse=True
    )
    assert len(used) == folders[2].settings.passages
    [expected] = folders[2].reader.answer([QUESTIONS[0]], [used])
    assert body["answer"] == expected.text
    assert body["score"] == pytest.approx(expected.score, abs=1e-3)


async def test_concurrent_calls_are_read_together(
    folders: tuple[Path, Path, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    answer = Reader.answer

    def counting(self: Reader, questions: list[str], passages: list[list[object]]) -> list[Answer]:
        sizes.append(len(questions))
        return answer(self, questions, passages)  # type: ignore[arg-type]

    monkeypatch.setattr(Reader, "answer", counting)
    engine = await ready_engine(folders, wait_ms=0.0)
    alone = [await engine.ask(asked) for asked in QUESTIONS]
    assert sizes == [1] * len(QUESTIONS)
    sizes.clear()
    together = await asyncio.gather(*map(engine.ask, QUESTIONS))
    assert sum(sizes) == len(QUESTIONS)
    assert len(sizes) <= 2
    assert [answered.answer for answered in together] == [answered.answer for answered in alone]
    await engine.stop()


async def test_an_unsure_reader_gives_no_answer(folders: tuple[Path, Path, Model]) -> None:
    engine = await ready_engine(folders, min_score=1.0)
    [outcome] = await engine.answer([Call(QUESTIONS[0])])
    assert isinstance(outcome, ToolFailure)
    assert (outcome.code, "not sure" in outcome.message) == ("no_answer", True)
    await engine.stop()


async def test_more_passages_can_be_asked_for(folders: tuple[Path, Path, Model]) -> None:
    engine = await ready_engine(folders, passages=50, threads=1)
    assert len((await engine.ask(QUESTIONS[0])).found) == len(PASSAGES)
    await engine.stop()


def test_control_characters_are_spaces() -> None:
    assert require_question(" Where\x00is\r\n Ljubljana? ") == "Where is Ljubljana?"
