"""Questions for a reader: with the passage that says their answer, without what the exams ask."""

import json
import random
import re
from itertools import islice
from pathlib import Path

import pytest

from services.pages import cut_page
from services.question_answering.train_questions import RealQuestions, find_sentences
from tests.training_jobs.corpora.test_real_text import write_squad
from training_jobs.corpora.reading.__main__ import around, make
from training_jobs.corpora.reading.cloze import cloze, cloze_questions
from training_jobs.corpora.real_text.facts_part import facts
from training_jobs.corpora.real_text.overlap import Exams, Part
from training_jobs.corpora.real_text.sources import SENTENCE, squad

SENTENCES = (
    "The lighthouse of Korvin was built for the sailors by Ada Merle in 1843.",
    "It is one of 120 towers on that long and very lonely coast.",
    "On the first day of the year the sailors still thank Ada Merle for it.",
    "Most people in the town live from fish and from the salt of the sea.",
    "The lamp was lit for the first time on March 3, 1844 by a sailor.",
)
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
    known = {one.question for one in islice(facts(random.Random(0), Exams(), "read"), 100)}
    exams = Exams(questions=["Who owned it?", *known])
    counts = make(tmp_path, exams, tmp_path / "out")
    lines = {name: (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines() for name in counts}
    assert {name: len(found) for name, found in lines.items()} == counts
    records = {name: [json.loads(line) for line in lines[name]] for name in ("questions", "held-out")}
    of_facts = {
        name: {kind: {one["question"] for one in rows if one["source"] == kind} for kind in ("facts", "places")}
        for name, rows in records.items()
    }
    trained = of_facts["questions"]["facts"] | of_facts["questions"]["places"]
    assert min(len(questions) for kinds in of_facts.values() for questions in kinds.values()) > 50
    assert any(one.startswith("Who wrote") for one in trained)
    assert 0.1 < sum(not one.endswith("?") for one in trained) / len(trained) < 0.25
    assert trained.isdisjoint(known)
    assert trained.isdisjoint(one.question for one in islice(facts(random.Random(1), Exams(), "taught"), 2_000))
    asked = [one for rows in records.values() for one in rows if one["source"] not in ("facts", "places")]
    [passage] = squad(tmp_path)
    [page] = [json.loads(line) for line in lines["pages"]]
    assert sorted(asked, key=lambda one: str(one["source"])) == [
        {"source": "squad", "question": "What colour was it?", "answers": ["red"], "title": "A", "text": passage.text,
         "page": page["wikipedia_id"]},
        {"source": "trivia", "question": "Which lake is the deepest?", "answers": ["Lake Baikal"]},
    ]  # fmt: skip
    assert [cut.text for cut in cut_page(page, 100, lambda section: section)] == [passage.text]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (SENTENCES[0], {"Korvin": {"who", "what", "which"}, "Ada Merle": {"who", "what", "which"}, "1843": {"when"}}),
        (SENTENCES[1], {"120": {"how", "many"}}),
        (SENTENCES[3], {}),
        (SENTENCES[4], {"March 3, 1844": {"when"}}),
        ("A small old lamp was seen at Ostrava by all that came.", {"Ostrava": {"where", "who", "what", "which"}}),
    ],
)
def test_a_cloze_question_asks_in_the_words_of_its_sentence(sentence: str, expected: dict[str, set[str]]) -> None:
    asking: dict[str, set[str]] = {}
    for seed in range(200):
        if asked := cloze(sentence, random.Random(seed)):
            question, answer = asked
            assert re.fullmatch(r"[A-Z0-9]\S*( \S+){4,}\?", question)
            added = set(re.findall(r"\w+", question.lower())) - set(re.findall(r"\w+", sentence.lower()))
            asking.setdefault(answer, set()).update(added)
    assert asking == expected


def test_a_cloze_question_is_asked_of_its_article_alone(tmp_path: Path) -> None:
    folder = tmp_path / "enwiki2015/text/AA"
    folder.mkdir(parents=True)
    text = " ".join(SENTENCES)
    (folder / "wiki_00").write_text(f'<doc id="1" url="u" title="Korvin">\nKorvin\n\n{text}\n</doc>\n')
    rows = [one for seed in range(20) for one in cloze_questions(tmp_path, Part(Exams()), random.Random(seed))]
    assert {one["answers"][0] for one in rows} == {"Korvin", "Ada Merle", "1843", "120", "March 3, 1844"}
    for one in rows:
        saying = [sentence for sentence in SENTENCE.split(one["text"]) if one["answers"][0] in sentence]
        assert len(saying) == 1
        assert saying[0] in SENTENCES
    exams = [Exams(questions=[one["question"] for one in rows]), Exams([text])]
    assert not [one for left_out in exams for one in cloze_questions(tmp_path, Part(left_out), random.Random(0))]

    (tmp_path / "asked.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    no_service = "http://127.0.0.1:9"
    assert list(find_sentences(tmp_path / "asked.jsonl", tmp_path / "found.jsonl", no_service, 5))[-1] == len(rows)
    questions = RealQuestions(tmp_path / "found.jsonl", most=8)
    lessons = [questions.lesson(number, answered=True) for number in range(len(questions))]
    assert [(one.question, one.answer) for one in lessons] == [(one["question"], one["answers"][0]) for one in rows]
    assert {passage.heading for one in lessons for passage in one.passages} == {"Korvin"}


def test_a_whole_article_is_asked_about_where_that_is_wanted(tmp_path: Path) -> None:
    folder = tmp_path / "enwiki2015/text/AA"
    folder.mkdir(parents=True)
    text = " ".join(f"{sentence[:-1]} of {number}." for number in range(4) for sentence in SENTENCES)
    (folder / "wiki_00").write_text(f'<doc id="1" url="u" title="Korvin">\nKorvin\n\n{text}\n</doc>\n')
    asked = [len(list(cloze_questions(tmp_path, Part(Exams()), random.Random(0), whole=one))) for one in (False, True)]
    assert 0 < asked[0] < asked[1]
