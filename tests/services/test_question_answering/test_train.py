"""The training job: seeded, resumable, and what it makes is served."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from demo_world import encyclopedia, questions
from services.question_answering import training_data
from services.question_answering.build_index import Source, ensure_index
from services.question_answering.checkpoint import load_model
from services.question_answering.engine import Asked, QuestionAnsweringEngine, QuestionAnsweringSettings
from services.question_answering.evaluate import evaluate
from services.question_answering.imagining import Example, answered, called, name_in, renamed, says
from services.question_answering.index_folder import open_index
from services.question_answering.passages import PagePassage
from services.question_answering.train import PARTS, AnsweringRecipe, Models, Training, save_part
from services.question_answering.training_data import POOL, TrainingSet, bundled_passages
from services.question_answering.training_schedule import Schedule

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # the vocabulary is learned from the whole encyclopedia

SMALL = AnsweringRecipe(
    batch=8, distractors=1, checkpoint_every=2, retriever_steps=4, retriever_drill=2, retriever_width=32,
    retriever_layers=1, reader_steps=4, reader_drill=2, reader_width=32, encoder_layers=1, decoder_layers=1,
    head_width=16,
)  # fmt: skip


def train(out: Path, *, stop_after: int | None = None, recipe: AnsweringRecipe = SMALL) -> Models:
    training = Training(out, recipe)
    for part in PARTS:
        training.train(part, stop_after=stop_after)
    return training.models


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Models]:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("run")
    return out, train(out)


def losses(out: Path) -> list[float]:
    found = []
    for part in PARTS:
        lines = [json.loads(line) for line in (out / part / "loss.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines] == list(range(1, SMALL.schedule(part).all_steps + 1))
        found += [line["loss"] for line in lines]
    return found


def test_a_killed_run_ends_as_one_that_was_not(straight: tuple[Path, Models], tmp_path: Path) -> None:
    train(tmp_path, stop_after=3)
    resumed = train(tmp_path)
    assert losses(tmp_path) == losses(straight[0])
    for ours, theirs in (
        (resumed.reader.state_dict(), straight[1].reader.state_dict()),
        (resumed.retriever.state_dict(), straight[1].retriever.state_dict()),
    ):
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_the_rate_climbs_falls_and_starts_again_from_half() -> None:
    schedule = Schedule(steps=100, peak_rate=1.0, drill_steps=50, drills=2)
    rates = [schedule.rate(step) for step in range(schedule.all_steps)]
    assert rates[:5] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert rates[5:100] == sorted(rates[5:100], reverse=True)
    assert rates[99] == pytest.approx(0.02, abs=0.001)
    assert rates[100] == 0.5
    assert rates[100:150] == rates[150:] == sorted(rates[100:150], reverse=True)


def test_what_is_written_is_the_mean_of_the_cycles_ends(tmp_path: Path) -> None:
    training = Training(tmp_path, SMALL)
    ends = []
    for stop in (4, 6):
        training.train("reader", stop_after=stop)
        ends.append({name: tensor.clone() for name, tensor in training.models.reader.state_dict().items()})
    written = load_file(tmp_path / "model" / "reader" / "model.safetensors")
    assert written
    for name, tensor in written.items():
        assert torch.equal(tensor, ((ends[0][name] + ends[1][name]) / 2).half()), name


def test_another_recipe_may_not_go_on_in_its_folder(straight: tuple[Path, Models]) -> None:
    with pytest.raises(ValueError, match="seed differ"):
        train(straight[0], recipe=replace(SMALL, seed=1))


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
                assert not says(distractor.text, example.answer)


@pytest.fixture
def unpractised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lesson is the example of its number, so that what was changed can be told."""
    monkeypatch.setattr(training_data, "_PRACTICE", 0.0)


@pytest.mark.usefixtures("unpractised")
def test_a_reader_learns_from_passages_that_say_another_answer() -> None:
    data = TrainingSet(list(bundled_passages(28)), seed=0, distractors=1)
    changed = 0
    for number in range(300):
        true, imagined = data.example(number), data.for_reader(number)
        assert imagined == data.for_reader(number)
        assert says(imagined.gold.text, imagined.answer)
        changed += imagined.answer != true.answer
    assert 150 < changed < 250, "of 300, one in four stays true and some draw the same word"


@pytest.mark.usefixtures("unpractised")
def test_a_retriever_learns_from_things_of_other_names() -> None:
    data = TrainingSet(list(bundled_passages(28)), seed=0, distractors=2)
    changed = near = 0
    for number in range(300):
        true, imagined = data.example(number), data.for_retriever(number)
        assert imagined.answer == true.answer
        assert says(imagined.gold.text, imagined.answer)
        assert imagined.gold not in imagined.distractors
        changed += imagined.question != true.question
        near += any(says(passage.text, true.answer) for passage in imagined.distractors)
    assert 150 < changed < 230, "seven of ten, but for names in their own answers"
    assert near > 100, "one in two has the passage itself under a name that is half the same"


def test_what_is_hard_is_practised() -> None:
    data = TrainingSet(list(bundled_passages(28)), seed=0, distractors=1)
    drawn = [[data.for_reader(number, drill=drill).relation for number in range(400)] for drill in (False, True)]
    assert 10 < drawn[0].count("holiday date") < drawn[1].count("holiday date")


def test_questions_that_are_alike_meet_in_a_batch() -> None:
    data = TrainingSet(list(bundled_passages(28)), seed=0, distractors=1)
    first, second = data.batches(0, 8), data.batches(1, 8)
    assert first == data.batches(0, 8)
    assert len(first) == len(second) == POOL
    asked = sorted(example.question for batch in first for example in batch)
    assert asked == sorted(data.for_retriever(number).question for number in range(POOL * 8))
    alike = [len({example.relation for example in batch}) <= 2 for batch in first]
    assert 0.4 * POOL < sum(alike) < 0.9 * POOL, "a quarter is mixed, and rare relations share a batch"


LJUBLJANA = PagePassage("1-0", "Ljubljana", "Ljubljana is a city in Slovenia with 272,220 people, number 2 of 12.2.")


ASKED = Example(
    "What is the population of Ljubljana?", "272,220", "city population", "Ljubljana", LJUBLJANA, (LJUBLJANA,)
)  # fmt: skip


def test_a_thing_is_renamed_everywhere_or_nowhere() -> None:
    other = renamed(ASKED, "Ljub (old)")
    assert (other.question, other.name) == ("What is the population of Ljub (old)?", "Ljub (old)")
    assert (other.gold.heading, other.gold.text[:10]) == ("Ljub (old)", "Ljub (old)")
    assert other.distractors == (other.gold,)
    assert renamed(replace(ASKED, answer="Ljubljana City"), "Peru").gold == LJUBLJANA
    assert called(LJUBLJANA, "Ljub", "Peru") == LJUBLJANA, "a name is whole words"


def test_a_number_is_no_part_of_another_number() -> None:
    assert not says(LJUBLJANA.text, "72,220")
    assert not says(LJUBLJANA.text, "12")
    told = answered(replace(ASKED, answer="2"), "7")
    assert told.gold.text == "Ljubljana is a city in Slovenia with 272,220 people, number 7 of 12.2."


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Springfield, Illinois", "Springfield"), ("Central (region, Ghana)", "Central"), ("Peru: Money", "Peru"),
        ("Public holidays in the Gambia: Dates", "Gambia"), ("Theni", "Theni"),
    ],
)  # fmt: skip
def test_a_title_holds_a_name(title: str, name: str) -> None:
    assert name_in(title) == name


def test_the_small_files_of_a_full_model_fit_into_the_repository(tmp_path: Path, straight: tuple[Path, Models]) -> None:
    full = Models(AnsweringRecipe(), (straight[1].retriever_tokenizer, straight[1].reader_tokenizer))
    for part in PARTS:
        save_part(full, tmp_path, part, (full.retriever if part == "retriever" else full.reader).state_dict())
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
    settings = QuestionAnsweringSettings(model=straight[0] / "model", index=tmp_path / "index")
    engine = QuestionAnsweringEngine(settings)
    await engine.start()
    [answered] = await engine.ask_all([Asked(asked[0].question)])
    await engine.stop()
    assert {one.passage.heading.partition(": ")[0] for one in answered.found} <= wanted
    index = open_index(tmp_path / "index", model.settings.retriever_digest, model.retriever.width)
    report = evaluate(model, index, asked)
    assert report.questions == 5
    assert report.recall[20] >= report.recall[5] >= report.recall[1]
    assert sum(count for _, count in report.by_relation.values()) == 5


@pytest.mark.timeout(600)
async def test_without_an_index_the_bundled_encyclopedia_is_embedded_once(
    straight: tuple[Path, Models], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLFORMER_DATA_DIR", str(tmp_path))
    index = tmp_path / "question_answering" / "index"
    written = []
    for _ in range(2):
        engine = QuestionAnsweringEngine(QuestionAnsweringSettings(model=straight[0] / "model"))
        await engine.start()
        [answered] = await engine.ask_all([Asked("What is the population of Ljubljana?")])
        assert len(answered.found) == 1
        await engine.stop()
        written.append((index / "vectors.faiss").stat().st_mtime_ns)
    assert written[0] == written[1]
