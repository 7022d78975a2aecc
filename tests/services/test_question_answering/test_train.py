"""A reader's training on real text, in small: what it is given, and that it goes on after a kill as if there were
none."""

import json
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from language_model.token_file import Tokens
from language_model.tokenizer import learn_byte_level
from services.question_answering.checkpoint import Precision, load_reader
from services.question_answering.formats import ANSWER_MARK
from services.question_answering.train import ReaderRecipe, ReaderTraining
from services.question_answering.train_gaps import CorpusTexts, completion, with_gaps
from services.question_answering.train_questions import RealQuestions
from services.question_answering.train_typed import as_typed

SENTENCES = (
    "The lighthouse of Korvin stands on a rock in the sea.",
    "It was built by Ada Merle in 1843 and is still in use.",
    "Sailors of the town say that Ada Merle never saw the sea from it.",
    "In 1843 the harbour of Korvin had only nine ships and a small market.",
    "Most of the people lived from fish, from salt and from what the ships brought.",
)
SMALL = ReaderRecipe(
    vocabulary=400, width=32, inner_width=32, head_width=16, encoder_layers=1, decoder_layers=1, max_tokens=64,
    sentences=3, gap_steps=4, gap_batch=4, answering_steps=4, single_steps=2, single_batch=4, answering_batch=4,
    examined=2, examine_every=4, precision="float32",
)  # fmt: skip


def passage(number: int, text: str) -> dict[str, str]:
    return {"id": f"{number}-0", "title": f"Page {number}", "text": text}


def write_questions(path: Path) -> Path:
    records = [
        {"source": "squad", "question": f"Who built tower {n}?", "answers": [f"Mason {n}"], "saying": 2,
         "sentences": [passage(n + 1, f"Tower {n + 1} is old."), passage(n + 2, f"Mason {n} was born in Korvin."),
                       passage(n + 3, "Towers are high."), passage(n, f"Tower {n} was built by Mason {n}.")]}
        for n in range(10, 20)
    ]  # fmt: skip
    records.append({"source": "trivia", "question": "Who?", "answers": ["No one"], "saying": 0, "sentences": []})
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    tokenizer = learn_byte_level(SENTENCES, r"\S+|\s+", vocab_size=300, special_tokens=["<|endoftext|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    texts = [" ".join(random.Random(n).sample(SENTENCES, len(SENTENCES))) for n in range(8)]
    rows = [([0, *tokenizer.encode(text).ids, 0], True) for text in texts] + [([0, 5, 6], False)]
    Tokens.of([(ids, [learned] * len(ids)) for ids, learned in rows]).save(folder)
    return folder


def training(out: Path, corpus: Path | None, recipe: ReaderRecipe = SMALL, *, workers: int = 0) -> ReaderTraining:
    out.mkdir(exist_ok=True)
    for name in ("questions.jsonl", "held-out.jsonl"):
        write_questions(out / name)
    return ReaderTraining(out, recipe, corpus, workers=workers)


def test_a_corpus_is_read_as_text_without_what_no_model_writes(corpus: Path) -> None:
    texts = CorpusTexts(corpus)
    assert sorted(texts[0].split()) == sorted(" ".join(SENTENCES).split())
    assert texts[len(texts) - 1] == ""
    rng = random.Random(0)
    for _ in range(20):
        assert set(texts.passage(rng)) <= set(SENTENCES)


def test_gaps_are_filled_by_what_was_there() -> None:
    text = " ".join(SENTENCES)
    named = 0
    for seed in range(50):
        left, filled = with_gaps(text, random.Random(seed))
        fillings = dict(re.findall(r"(<extra_id_\d+>) (.*?)(?= <extra_id_|$)", filled))
        for mark, filling in fillings.items():
            left = left.replace(mark, filling)
        assert left == text
        assert 0.1 < sum(len(one.split()) for one in fillings.values()) / len(text.split()) < 0.3
        gaps = Counter(fillings.values())
        named += sum(gaps[name] for name in ("Ada Merle", "1843", "Korvin"))
    assert named > 75


def test_a_sentence_is_completed_from_the_others() -> None:
    found = Counter[str]()
    for seed in range(50):
        complete = completion(SENTENCES, random.Random(seed))
        assert complete is not None
        sentence, rest, name = complete
        assert sentence.replace(ANSWER_MARK, name) in SENTENCES
        assert sentence.replace(ANSWER_MARK, name) not in rest
        assert name in rest
        found[name] += 1
    assert set(found) == {"Ada Merle", "1843", "Korvin"}
    assert completion(SENTENCES[4:], random.Random(0)) is None


def test_lessons_say_their_answer_or_decline(tmp_path: Path) -> None:
    questions = RealQuestions(write_questions(tmp_path / "questions.jsonl"), most=3)
    assert len(questions) == 10
    lesson, declined = (questions.lesson(0, answered=answered) for answered in (True, False))
    assert (lesson.question, lesson.answer) == ("Who built tower 10?", "Mason 10")
    assert [one.heading for one in lesson.passages] == ["Page 11", "Page 12", "Page 13"]
    assert declined.answer == ""
    assert [one.heading for one in declined.passages] == ["Page 11", "Page 13"]
    assert [one.heading for one in questions.lesson(0, answered=True, most=1).passages] == ["Page 12"]
    rng = random.Random(0)
    drawn = [questions.drawn(rng, most=2, without=0.25) for _ in range(400)]
    assert 70 < sum(not one.answer for one in drawn) < 130
    assert {len(one.passages) for one in drawn if one.answer} == {2}


def test_what_no_sentence_answers_teaches_to_decline(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "questions.jsonl")
    unsaid = {
        "source": "trivia",
        "question": "Who sank?",
        "answers": ["Ben"],
        "saying": 0,
        "sentences": [passage(1, "It is old.")] * 4,
    }
    path.write_text(path.read_text() + json.dumps(unsaid) + "\n")
    questions, rng = RealQuestions(path, most=3), random.Random(0)
    assert len(questions) == 10
    drawn = [one for _ in range(400) if (one := questions.drawn(rng, most=3, without=0.5)).question == "Who sank?"]
    assert 40 < len(drawn) < 120
    assert {(one.answer, len(one.passages)) for one in drawn} == {("", 3)}


def test_questions_of_an_earlier_version_are_named(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "questions.jsonl")
    path.write_text(path.read_text().replace('"saying": 2, ', ""))
    with pytest.raises(ValueError, match=r"questions\.jsonl was written by an earlier version: remove it"):
        RealQuestions(path, most=3)


def test_a_passage_without_a_heading_is_not_known_by_that(tmp_path: Path) -> None:
    gold = [{"id": "1", "title": "", "text": "Ada."}]
    others = [passage(2, "Ben.")]
    record = {"source": "tydi", "question": "Who?", "answers": ["Ada"], "saying": 1, "sentences": others + gold}
    (tmp_path / "questions.jsonl").write_text(json.dumps(record) + "\n")
    lesson = RealQuestions(tmp_path / "questions.jsonl", most=3).lesson(0, answered=True)
    assert [one.heading for one in lesson.passages] == ["", ""]


def test_a_run_that_was_killed_ends_as_one_that_was_not(corpus: Path, tmp_path: Path) -> None:
    straight, killed = training(tmp_path / "straight", corpus), training(tmp_path / "killed", corpus)
    straight.train()
    killed.train(stop_after=5)
    resumed = training(tmp_path / "killed", corpus)
    resumed.train()
    logs = [(tmp_path / name / "reader/loss.jsonl").read_text() for name in ("straight", "killed")]
    assert logs[0] == logs[1]
    assert len(logs[0].splitlines()) == 8
    expected = straight.model.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in resumed.model.state_dict().items())

    settings, reader = load_reader(tmp_path / "straight/model")
    assert settings.passages == SMALL.passages
    lesson = straight.held_out.lesson(0, answered=True)
    assert len(reader.answer([lesson.question], [lesson.passages])) == 1


def test_batches_made_ahead_are_the_same(corpus: Path, tmp_path: Path) -> None:
    for workers in (0, 2):
        training(tmp_path / str(workers), corpus, workers=workers).train(stop_after=6)
    logs = [(tmp_path / workers / "reader/loss.jsonl").read_text() for workers in ("0", "2")]
    assert logs[0] == logs[1]


def test_a_run_by_the_clock_ends_with_a_model(corpus: Path, tmp_path: Path) -> None:
    begun = training(tmp_path, corpus)
    recipe = replace(
        SMALL, gap_steps=0, single_steps=0, answering_steps=100_000, examine_every=100_000, typed=0.5, whole=0.5,
        dropout=0.1,
    )  # fmt: skip
    begun.write(tmp_path / "model")
    (tmp_path / "clock").mkdir()
    for name in ("questions.jsonl", "held-out.jsonl"):
        write_questions(tmp_path / "clock" / name)
    run = ReaderTraining(tmp_path / "clock", recipe, None, tmp_path / "model")
    run.train(seconds=1.0)
    load_reader(tmp_path / "clock/model")
    steps = (tmp_path / "clock/reader/loss.jsonl").read_text().splitlines()
    assert 1 < len(steps) < recipe.answering_steps
    rates = [recipe.rate_by_clock(progress) for progress in (0.0, 0.01, 0.02, 0.5, 1.0, 1.1)]
    assert rates[0] < rates[1] < rates[2] > rates[3] > rates[4] == rates[5] > 0


def test_a_run_with_gaps_needs_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="need a --corpus"):
        training(tmp_path, None)


def test_questions_are_typed_in_other_words() -> None:
    rng = random.Random(0)
    typed = {as_typed("Who wrote The Tower of Korvin?", rng) for _ in range(300)}
    assert {"author of The Tower of Korvin", "who wrote the tower of korvin?", "Who wrote The Tower of Korvin"} <= typed
    assert all("tower of korvin" in one.lower() for one in typed)
    capitals = {as_typed("What is the capital of Peru?", rng) for _ in range(300)}
    assert {"What is the capital city of Peru?", "capital of peru"} <= capitals
    assert {as_typed("Ships sail", rng) for _ in range(30)} == {"Ships sail", "ships sail"}


def test_a_run_of_another_recipe_is_not_gone_on_with(corpus: Path, tmp_path: Path) -> None:
    training(tmp_path, corpus).train(stop_after=1)
    training(tmp_path, corpus, replace(SMALL, answering_steps=6)).train(stop_after=2)
    with pytest.raises(ValueError, match="seed differ"):
        training(tmp_path, corpus, replace(SMALL, seed=1)).train()


def test_a_finished_model_is_trained_further(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    first = ReaderTraining(tmp_path / "first", SMALL, corpus)
    first.write(tmp_path / "model")
    (tmp_path / "second").mkdir()
    second = ReaderTraining(tmp_path / "second", replace(SMALL, seed=1, gap_steps=0), corpus, tmp_path / "model")
    for name, weight in second.model.state_dict().items():
        torch.testing.assert_close(weight, first.model.state_dict()[name].half().float())
    assert all(weight.requires_grad for weight in second.model.parameters())
    with pytest.raises(ValueError, match=r"config\.json asks for"):
        ReaderTraining(tmp_path / "second", replace(SMALL, inner_width=16), corpus, tmp_path / "model")


def test_products_in_bfloat16_learn_as_well(corpus: Path, tmp_path: Path) -> None:
    losses = []
    precisions: tuple[Precision, ...] = ("float32", "bfloat16")
    for precision in precisions:
        out = tmp_path / precision
        training(out, corpus, replace(SMALL, precision=precision)).train(stop_after=4)
        losses.append([json.loads(line)["loss"] for line in (out / "reader/loss.jsonl").read_text().splitlines()])
    assert losses[0] == pytest.approx(losses[1], abs=0.1)
