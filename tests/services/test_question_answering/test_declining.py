"""The bundled model declines what its passages do not say, and still answers what they do."""

import json
from pathlib import Path

import pytest

from demo_world import encyclopedia, questions
from services.base import Call, ToolFailure
from services.question_answering.agreement import agreement
from services.question_answering.build_index import Source, ensure_index
from services.question_answering.checkpoint import load_model
from services.question_answering.engine import BUNDLED_MODEL, QuestionAnsweringEngine, QuestionAnsweringSettings
from services.question_answering.evaluate import evaluate, share_declined
from services.question_answering.index_folder import open_index
from services.question_answering.passages import PagePassage

UNANSWERABLE = Path(__file__).with_name("unanswerable.txt").read_text(encoding="utf-8").splitlines()
ASKED = questions.suite("held-out entities", count=60)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages that are asked about, and every fiftieth of the others."""
    folder = tmp_path_factory.mktemp("pages")
    asked = {question.title for question in ASKED}
    lines = [
        json.dumps(page) + "\n"
        for number, page in enumerate(encyclopedia.kilt_records())
        if number % 50 == 0 or page["wikipedia_title"] in asked
    ]
    (folder / "pages.jsonl").write_text("".join(lines))
    ensure_index(folder / "index", load_model(BUNDLED_MODEL), Source(pages=str(folder / "pages.jsonl")))
    return folder / "index"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who wrote Hamlet?", 0.0),
        ("What is the population of Ljubljana?", 1.0),
        ("How many people live in Ljubljana?", 1 / 3),
        ("What is it?", 0.0),
        ("ЛЮБЛЯНА", 0.0),
    ],
)
def test_agreement_is_the_share_of_words_that_the_best_passage_says(question: str, expected: float) -> None:
    passages = [
        PagePassage("1", "Ljubljana", "A city with a population of 272,220."),
        PagePassage("2", "Peru", "A country."),
    ]
    assert agreement(question, passages) == pytest.approx(expected)


def test_without_passages_nothing_agrees() -> None:
    assert agreement("Where is Peru?", []) == 0


def test_most_nonsense_is_declined_and_few_answers_are_lost(index: Path) -> None:
    model = load_model(BUNDLED_MODEL)
    opened = open_index(index, model.settings.retriever_digest, model.retriever.width)
    assert model.settings.min_agreement > 0
    assert share_declined(model, opened, UNANSWERABLE) >= 0.8
    report = evaluate(model, opened, ASKED)
    assert report.exact_match >= 0.75
    assert report.declined_of_right <= 0.05


@pytest.mark.parametrize(("least", "declined"), [(None, True), (0.0, False)])
async def test_the_threshold_is_the_models_unless_a_setting_says_another(
    index: Path, least: float | None, declined: bool
) -> None:
    engine = QuestionAnsweringEngine(QuestionAnsweringSettings(index=index, min_agreement=least, threads=1))
    await engine.start()
    known, unknown = await engine.answer([Call(ASKED[0].question), Call("Who wrote Hamlet?")])
    await engine.stop()
    assert known == ASKED[0].answer
    assert isinstance(unknown, ToolFailure) is declined
    if isinstance(unknown, ToolFailure):
        assert (unknown.code, "agreement 0.00 of 0.2" in unknown.message) == ("no_answer", True)
