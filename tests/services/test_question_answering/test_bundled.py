"""The bundled reader over Wikipedia search: it answers what the pages say, and declines most of what they do not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from demo_world import questions
from services.base import Call, ToolFailure
from services.question_answering.checkpoint import RETRIEVER, read_settings
from services.question_answering.engine import BUNDLED_MODEL, QuestionAnsweringEngine, QuestionAnsweringSettings
from services.question_answering.formats import normalised, says
from tests.services.real_services import RunningService

NOT_SAID = (
    "Who wrote the song about a yellow submarine?",
    "What did the mayor of Ljubljana eat for breakfast?",
    "Which team won the chess olympiad in 1978?",
    "How deep is the harbour of Maribor in feet?",
    "Who painted the ceiling of the town hall in Lima?",
    "When did the first tram run in Nairobi?",
    "What is the name of the oldest bakery in Vienna?",
    "Who was the coach of the Brazilian team in 1994?",
    "Which gas makes up most of the atmosphere of Mars?",
    "How many chapters does Moby-Dick have?",
    "Who directed the film about a shark?",
    "What is the melting point of tungsten?",
)


@pytest.fixture
async def engine(wiki_search: RunningService) -> AsyncIterator[QuestionAnsweringEngine]:
    engine = QuestionAnsweringEngine(QuestionAnsweringSettings(search=wiki_search.url, threads=1))
    await engine.start()
    yield engine
    await engine.stop()


def test_it_has_no_retriever_and_is_small() -> None:
    settings = read_settings(BUNDLED_MODEL)
    assert not (BUNDLED_MODEL / RETRIEVER).exists()
    assert settings.sentences > 0
    assert sum(file.bytes for file in settings.files.values()) < 48_000_000


async def test_what_the_pages_say_is_answered(engine: QuestionAnsweringEngine, wiki_index: Path) -> None:
    pages = (wiki_index.parent / "pages.jsonl").read_text(encoding="utf-8")
    asked = [one for one in questions.suite("held-out entities", count=300) if f'"{one.title}"' in pages][:40]
    assert len(asked) == 40
    outcomes = await engine.answer([Call(one.question) for one in asked])
    right = [
        isinstance(outcome, str) and normalised(outcome) == normalised(one.answer)
        for outcome, one in zip(outcomes, asked, strict=True)
    ]
    assert sum(right) / len(right) >= 0.25


async def test_most_of_what_they_do_not_say_is_declined(engine: QuestionAnsweringEngine) -> None:
    outcomes = await engine.answer([Call(question) for question in NOT_SAID])
    declined = [outcome.code for outcome in outcomes if isinstance(outcome, ToolFailure)]
    assert set(declined) == {"no_answer"}
    assert len(declined) >= len(NOT_SAID) / 2


async def test_an_answer_stands_in_what_was_read(engine: QuestionAnsweringEngine) -> None:
    answered = await engine.ask("What is the capital of Nepal?")
    assert answered.answer == "Kathmandu"
    assert any(says(one.passage.text, answered.answer) for one in answered.found)
