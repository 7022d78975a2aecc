"""Real text for a base model: problems that come out right, exams that stay out, a corpus of the given size."""

import json
import random
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest

from training_jobs.corpora.real_text import __main__ as corpus
from training_jobs.corpora.real_text.generated_part import days, foreign
from training_jobs.corpora.real_text.overlap import Exams
from training_jobs.corpora.real_text.problems import Problem, bare, cut, made, solved
from training_jobs.corpora.real_text.sources import SOURCES, articles, squad
from training_jobs.pretrain.rows import Tokens

NAMES, THINGS = ("Ada", "Ben", "Cem"), ("pens", "plums")
PAIRS = "sentence\tfra_Latn\tIl neige.\tIt is snowing.\n"


def test_a_solution_line_becomes_a_problem_of_its_own() -> None:
    question = "A hall has 12 rows. Each row has 9 seats. It was built in 1950. How many seats are free if 8 are taken?"
    solution = "There are 12*9=<<12*9=108>>108 seats.\nSo 108-8=<<108-8=100>>100 are free.\n#### 100"
    assert list(cut(question, solution)) == [
        Problem("A hall has 12 rows. Each row has 9 seats. There are", "12 * 9", "108", " seats.")
    ]


@pytest.mark.parametrize("maker", ["made", "bare"])
def test_the_answers_of_problems_are_right(maker: str) -> None:
    rng = random.Random(3)
    found = [made(rng, NAMES, THINGS) if maker == "made" else bare(rng) for _ in range(2_000)]
    for one in found:
        exact = Fraction(str(eval(one.sum.replace("/", "*1.0/"), {})))  # noqa: S307 - digits and signs of our own
        assert abs(Fraction(Decimal(one.answer)) - exact) <= Fraction(1, 190), one
    if maker == "made":
        assert {sign: sum(f" {sign} " in one.sum for one in found) > 400 for sign in "+-*/"} == dict.fromkeys(
            "+-*/", True
        )
        assert not any(one.answer.startswith("-") for one in found)


def test_a_solved_problem_holds_its_answer() -> None:
    rng = random.Random(1)
    for _ in range(200):
        one = bare(rng)
        assert one.answer in solved(one, rng).removeprefix(one.text)


def test_sentences_of_the_exams_are_left_out() -> None:
    exams = Exams(["The old stone bridge over the river was built by three brothers in 1488."])
    assert exams.overlaps("the old stone bridge over the river was built by three brothers in 1488")
    assert not exams.overlaps("The old stone bridge over the river was repaired by nobody at all for years.")
    assert not exams.overlaps("Short.")


def test_without_exams_there_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="name the exams' folder"):
        Exams.read(tmp_path)


def test_an_article_is_read_without_gaps_lists_and_exams(tmp_path: Path) -> None:
    folder = tmp_path / "enwiki2015/text/AA"
    folder.mkdir(parents=True)
    good = "A lighthouse is a tower that shows ships the way at night. Its lamp is seen from far. It is about  high."
    doc = '<doc id="{}" url="u" title="{}">\n{}\n\n{}\n</doc>\n'
    (folder / "wiki_00").write_text(
        doc.format(1, "Lighthouse", "Lighthouse", good)
        + doc.format(2, "Nero", "Nero", good)
        + doc.format(3, "Mercury", "Mercury", "Mercury may refer to: a planet, a metal, a god, a car and more."),
        encoding="utf-8",
    )
    assert [title for title, _ in articles(tmp_path)] == ["Lighthouse"]
    assert list(SOURCES["encyclopedia"](tmp_path, Exams(), random.Random(0))) == [good.rpartition(" It is")[0]]


def test_questions_that_an_exam_was_made_of_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "squad_v1.1_dev_html/explore/1.1/dev"
    folder.mkdir(parents=True)
    asked = '<div data-id="{}"><strong class="question">{}</strong><span class="answer">{}</span></div>'
    (folder / "A.html").write_text(
        f"<pre>It is red.</pre>{asked.format('1a', 'What?', 'it')}{asked.format('2b', 'How?', 'red')}"
    )
    assert list(squad(tmp_path)) == [("It is red.", [("What?", "it"), ("How?", "red")])]
    assert list(squad(tmp_path, {"1a"})) == [("It is red.", [("How?", "red")])]


def test_days_and_foreign_sentences(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    assert all(row for row in islice(days(random.Random(0)), 50))
    assert all(
        "Il neige." in row and "snowing" in row for row in islice(foreign(random.Random(0), tmp_path / "pairs.tsv"), 20)
    )


def test_a_corpus_is_the_same_for_the_same_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "gsm8k/grade_school_math/data"
    data.mkdir(parents=True)
    rows = [
        {
            "question": f"{name} has {n} pens. {name} buys {n} more. How many pens is that?",
            "answer": f"{n}+{n}=<<{n}+{n}={2 * n}>>{2 * n}.\n#### {2 * n}",
        }
        for n, name in enumerate(["Ada", "Ben", "Cem"] * 4, start=3)
    ]
    (data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(PAIRS, encoding="utf-8")
    shares = {"grade school": 0.3, "one step": 0.2, "problems": 0.2, "sums": 0.1, "days": 0.1, "foreign": 0.1}
    monkeypatch.setattr(corpus, "MIXTURE", shares)
    monkeypatch.setattr(corpus, "_BATCH", 20)
    monkeypatch.setattr(corpus, "_VOCABULARY_CHARACTERS", 50_000)

    manifests = [
        corpus.make(tmp_path, Exams(), pairs, tmp_path / out, tokens=20_000, vocabulary=700, seed=5)
        for out in ("a", "b")
    ]
    assert manifests[0] == manifests[1]
    assert manifests[0]["tokens"] >= 20_000
    assert set(manifests[0]["sources"]) == set(shares)
    tokens = Tokens.load(tmp_path / "a")
    assert (tokens.documents, len(tokens.ids)) == (manifests[0]["documents"], manifests[0]["tokens"])
