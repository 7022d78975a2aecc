"""Questions for a reader: with the passage that says their answer, without what the exams ask."""

import json
from pathlib import Path

import pytest

from services.pages import cut_page
from tests.training_jobs.corpora.test_real_text import write_squad
from training_jobs.corpora.reading.__main__ import around, make
from training_jobs.corpora.real_text.overlap import Exams
from training_jobs.corpora.real_text.sources import squad

LONG = " ".join(f"Sentence {number} has {'very ' * 17}many words." for number in range(20))


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("Ada owned a kite. It was red.", "red", "Ada owned a kite. It was red."),
        ("Ada owned a kite. It was red.", "re", None),
        ("Ada owned a kite.", "", None),
    ],
)
def test_a_short_text_is_a_passage_if_it_says_the_answer(text: str, answer: str, expected: str | None) -> None:
    assert around(text, answer) == expected


@pytest.mark.parametrize("number", [0, 7, 19])
def test_a_long_text_is_cut_about_the_answer(number: int) -> None:
    found = around(LONG, str(number))
    assert found is not None
    assert f"Sentence {number} " in found
    assert 80 <= len(found.split()) <= 100
    assert found in LONG


def test_questions_come_with_their_passage_and_its_page(tmp_path: Path) -> None:
    write_squad(tmp_path)
    trivia = tmp_path / "opentriviaqa/categories"
    trivia.mkdir(parents=True)
    (trivia / "lakes").write_text("#Q Which lake is the deepest?\n^ Lake Baikal\n#Q Which is it?\n^ A\n")
    (tmp_path / "webquestions_trainmodel/main").mkdir(parents=True)
    (tmp_path / "webquestions_trainmodel/main/trainmodel.json").write_text("[]")
    exams = Exams(questions=["Who owned it?"])
    counts = make(tmp_path, exams, tmp_path / "out")
    lines = {name: (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines() for name in counts}
    assert {name: len(found) for name, found in lines.items()} == counts
    told = {name: [json.loads(line) for line in lines[name]] for name in ("questions", "held-out")}
    facts = {name: [one for one in rows if one["source"] == "facts"] for name, rows in told.items()}
    assert min(map(len, facts.values())) > 100
    assert any(one["question"].startswith("Who wrote") for one in facts["questions"])
    asked = [one for rows in told.values() for one in rows if one["source"] != "facts"]
    [passage] = squad(tmp_path)
    [page] = [json.loads(line) for line in lines["pages"]]
    assert sorted(asked, key=lambda one: str(one["source"])) == [
        {"source": "squad", "question": "What colour was it?", "answers": ["red"], "title": "A", "text": passage.text,
         "page": page["wikipedia_id"]},
        {"source": "trivia", "question": "Which lake is the deepest?", "answers": ["Lake Baikal"]},
    ]  # fmt: skip
    assert [cut.text for cut in cut_page(page, 100, lambda section: section)] == [passage.text]
