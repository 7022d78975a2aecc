"""The training job: seeded, resumable, and what it makes is served."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from demo_world import encyclopedia, questions
from services.question_answering.build_index import Source, ensure_index
from services.question_answering.checkpoint import load_model
from services.question_answering.engine import QuestionAnsweringEngine
from services.question_answering.evaluate import evaluate
from services.question_answering.index_folder import open_index
from services.question_answering.train import Models, Recipe, save_model, train
from services.question_answering.training_data import TrainingSet, bundled_passages

pytestmark = pytest.mark.slow

SMALL = Recipe(
    steps=6, batch=8, passages=2, width=32, heads=2, inner_width=32, encoder_layers=1, decoder_layers=1,
    retriever_layers=1, checkpoint_every=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Models]:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("run")
    return out, train(out, SMALL)


def losses(out: Path) -> list[tuple[float | None, float]]:
    lines = [json.loads(line) for line in (out / "loss.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, SMALL.steps + 1))
    return [(line.get("retriever_loss"), line["reader_loss"]) for line in lines]


def test_a_killed_run_ends_as_one_that_was_not(straight: tuple[Path, Models], tmp_path: Path) -> None:
    train(tmp_path, SMALL, stop_after=3)
    resumed = train(tmp_path, SMALL)
    assert losses(tmp_path) == losses(straight[0])
    for ours, theirs in (
        (resumed.reader.state_dict(), straight[1].reader.state_dict()),
        (resumed.retriever.state_dict(), straight[1].retriever.state_dict()),
    ):
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_another_recipe_may_not_go_on_in_its_folder(straight: tuple[Path, Models]) -> None:
    changed = Recipe(**{name: getattr(SMALL, name) for name in Recipe.__dataclass_fields__} | {"seed": 1})
    with pytest.raises(ValueError, match="seed differ"):
        train(straight[0], changed)


def test_losses_fall_on_what_is_seen_again(straight: tuple[Path, Models]) -> None:
    models = straight[1]
    data = TrainingSet(list(bundled_passages(SMALL.passage_words)), seed=0, distractors=1)
    examples = [data.example(number) for number in range(8)]
    parameters = [*models.reader.parameters(), *models.retriever.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    seen = []
    for _ in range(40):
        optimizer.zero_grad()
        found = (models.retriever_loss(examples), models.reader_loss(examples))
        sum(found, start=torch.zeros(())).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        seen.append([loss.item() for loss in found])
    assert seen[-1][0] < 0.5 * seen[0][0]
    assert seen[-1][1] < 0.5 * seen[0][1]


def test_examples_hold_their_answer_in_their_passage_alone() -> None:
    data = TrainingSet(list(bundled_passages(28)), seed=0, distractors=3)
    for number in range(300):
        example = data.example(number)
        assert example.answer in example.gold.text
        assert example == data.example(number)
        own_page = example.gold.id.rpartition("-")[0]
        for distractor in example.distractors:
            assert distractor != example.gold
            if distractor.id.rpartition("-")[0] == own_page:
                assert example.answer not in distractor.text


def test_an_imagined_example_says_its_new_answer_where_the_old_one_stood() -> None:
    data = TrainingSet(list(bundled_passages(28)), seed=0, distractors=1)
    changed = 0
    for number in range(300):
        true, imagined = data.example(number), data.imagined(number)
        assert imagined == data.imagined(number)
        assert imagined.gold.text == true.gold.text.replace(true.answer, imagined.answer)
        assert (imagined.question, imagined.gold.heading) == (true.question, true.gold.heading)
        changed += imagined.answer != true.answer
    assert 150 < changed < 250, "of 300, one in four stays true and some draw the same word"


def test_the_small_files_of_a_full_model_fit_into_the_repository(tmp_path: Path, straight: tuple[Path, Models]) -> None:
    full = Models(Recipe(steps=1), (straight[1].retriever_tokenizer, straight[1].reader_tokenizer))
    save_model(full, tmp_path, 0)
    sizes = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(sizes) <= 20_000_000
    assert max(sizes) <= 18_000_000


async def test_what_was_trained_is_served(straight: tuple[Path, Models], tmp_path: Path) -> None:
    model = load_model(straight[0] / "model")
    asked = questions.suite("held-out entities", count=5)
    wanted = {question.title for question in asked}
    pages = [record for record in encyclopedia.kilt_records() if record["wikipedia_title"] in wanted]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    ensure_index(tmp_path / "index", model, Source(pages=str(tmp_path / "pages.jsonl")))
    engine = QuestionAnsweringEngine(straight[0] / "model", tmp_path / "index")
    await engine.start()
    answered = await engine._gatherer.ask(asked[0].question)  # type: ignore[union-attr]
    await engine.stop()
    assert {one.passage.heading.partition(": ")[0] for one in answered.found} <= wanted
    index = open_index(tmp_path / "index", model.settings.retriever_digest, model.retriever.width)
    report = evaluate(model, index, asked)
    assert report.questions == 5
    assert report.recall[20] >= report.recall[5] >= report.recall[1]
    assert sum(count for _, count in report.by_relation.values()) == 5


@pytest.mark.timeout(600)
async def test_without_an_index_the_bundled_encyclopedia_is_embedded_once(
    straight: tuple[Path, Models], tmp_path: Path
) -> None:
    index = tmp_path / "var" / "index"
    written = []
    for _ in range(2):
        engine = QuestionAnsweringEngine(straight[0] / "model", index, build_bundled=True)
        await engine.start()
        answered = await engine._gatherer.ask("What is the population of Ljubljana?")  # type: ignore[union-attr]
        assert len(answered.found) == 1
        await engine.stop()
        written.append((index / "vectors.faiss").stat().st_mtime_ns)
    assert written[0] == written[1]
