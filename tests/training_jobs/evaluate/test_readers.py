"""Each published format, read from hand-made files, with the prompt that the paper asks it with."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from tests.training_jobs.evaluate.published import lines, whole, write_all
from training_jobs.evaluate.example import Example, SuiteError
from training_jobs.evaluate.prompts import prompt_of
from training_jobs.evaluate.readers.mlqa import LANGUAGES
from training_jobs.evaluate.readers.open_questions import read_trivia_qa
from training_jobs.evaluate.readers.plain_texts import read_ccnet, read_wikitext
from training_jobs.evaluate.suites import SUITES


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_all(tmp_path / "data")


COMPLETE = "Please complete the following text so that it is factually correct:"


@pytest.mark.parametrize(
    ("suite", "prompts", "answers", "left_out"),
    [
        ("squad", [f"{COMPLETE} The gate is painted"], [("green",)], 1),
        (
            "google-re",
            [f"{COMPLETE} Ana Kos was born in", f"{COMPLETE} Eva Kos was born in"],
            [("Bled", "Bled, Slovenia"), ("Bled",)],
            1,
        ),
        ("t-rex", [f"{COMPLETE} Ana Kos works in the field of"], [("logic",)], 3),
        ("google-re-sentences", [f"{COMPLETE} Ana Kos is a potter . She was born in"], [("Bled", "Bled, Slovenia")], 2),
        ("t-rex-sentences", [f"{COMPLETE} Ana was a", f"{COMPLETE} Eva was a"], [("pottery", "potter")] * 2, 2),
        (
            "asdiv",
            [
                "Four hens laid 3 eggs each. How many eggs are there? The answer is",
                "B. How much is left? The answer is",
            ],
            [("12",), ("2.5",)],
            3,
        ),
        (
            "svamp",
            ["A cup costs 7 dollars What do 3 cups cost? The answer is", "B. What is half of a million? The answer is"],
            [("21",), ("500000",)],
            0,
        ),
        (
            "mawps",
            ["Two of 8 are gone. How many are left? The answer is", "A third of one? The answer is"],
            [("6",), ("0.3333333333",)],
            1,
        ),
        (
            "webqs",
            ["Answer the following question: what grows in bled?", "Answer the following question: where is bled?"],
            [("Lime trees", "Reed"), ('Upper "Carniola"', "Slovenia")],
            1,
        ),
        ("nq", ["Answer the following question: where is bled?"], [("Slovenia", "Upper Carniola")], 0),
        ("triviaqa", ['Answer the following question: Who said "no"?'], [("Ana", "Ana Kos")], 0),
        (
            "mlqa-es",
            [
                "Your task is to answer a question based on the following paragraph: The mill stands in Bled. It has "
                "four wheels. Now answer the following question in English: ¿Dónde está el molino?"
            ],
            [("Bled", "in Bled")],
            0,
        ),
        (
            "mlqa-es-all-english",
            [
                "Your task is to answer a question based on the following paragraph: The mill stands in Bled. It has "
                "four wheels. Now answer the following question in English: Where is the mill?"
            ],
            [("Bled", "in Bled")],
            0,
        ),
        ("templama", [f"{COMPLETE} Ana Kos works for"], [("Bled Pots", "Clay Ltd")], 1),
    ],
)
def test_what_is_asked_and_what_is_right(
    data: Path, suite: str, prompts: list[str], answers: list[tuple[str, ...]], left_out: int
) -> None:
    loaded = SUITES[suite].load(data, count=1, seed=0)
    assert [prompt_of(example, SUITES[suite].form) for example in loaded.examples] == prompts
    assert [example.answers for example in loaded.examples] == answers
    assert sum(loaded.left_out.values()) == left_out
    assert len({example.id for example in loaded.examples}) == len(prompts)


def test_the_calendar_stands_in_the_year_that_templama_asks_about(data: Path) -> None:
    [example] = SUITES["templama"].load(data, count=1, seed=0).examples
    assert example.date == dt.date(2014, 7, 1)


def test_trivia_qa_as_it_was_released(tmp_path: Path) -> None:
    answer = {"Value": "Ana", "Aliases": ["Ana Kos", "Ana"], "NormalizedAliases": ["ana kos"]}
    record = {"Data": [{"QuestionId": "tc_1", "Question": "Who threw the pot?", "Answer": answer}]}
    path = whole(tmp_path / "unfiltered-web-dev.json", record)
    [example] = read_trivia_qa([path]).examples
    assert (example.id, example.text, example.answers) == ("tc_1", "Who threw the pot?", ("Ana", "Ana Kos"))


def test_a_question_without_english_wording_is_left_out_of_all_english(data: Path) -> None:
    path = data / "mlqa/dev/dev-context-en-question-en.json"
    path.write_text(path.read_text().replace('"m1"', '"m2"'))
    with pytest.raises(SuiteError, match="mlqa-es-all-english: its files hold no example"):
        SUITES["mlqa-es-all-english"].load(data, count=1, seed=0)


def test_all_english_needs_both_files(data: Path) -> None:
    path = data / "mlqa/dev/dev-context-en-question-es.json"
    with pytest.raises(SuiteError, match=r"needs a language's file and one that ends in question-en\.json"):
        SUITES["mlqa-es-all-english"].load(None, [path], count=1, seed=0)


def test_texts(data: Path) -> None:
    articles = read_wikitext([data / "wikitext/wikitext-2-raw/wiki.test.raw"])
    assert [article.text.splitlines()[0].strip() for article in articles] == ["= Mill =", "= Gate ="]
    assert "= = Wheels = =" in articles[0].text
    [page] = read_ccnet([data / "webtext/derived/ccnet_like.json"])
    assert page.text == "A page about a mill."


def test_barred_tools_and_rules_are_the_papers() -> None:
    bars = {name: suite.barred for name, suite in SUITES.items()}
    words = {name: suite.rule.limit for name, suite in SUITES.items()}
    for name in ("squad", "google-re", "t-rex", "google-re-sentences", "t-rex-sentences"):
        assert (bars[name], words[name]) == (("WikiSearch",), 5)
    for name in ("webqs", "nq", "triviaqa"):
        assert (bars[name], words[name]) == (("QA",), 20)
    for language in LANGUAGES:
        for name in (f"mlqa-{language}", f"mlqa-{language}-all-english"):
            assert (bars[name], words[name]) == ((), 10)
    for name in ("templama", "dateset"):
        assert (bars[name], words[name]) == ((), 5)
    for name in ("asdiv", "svamp", "mawps"):
        assert (bars[name], SUITES[name].rule.kind) == ((), "number")


@pytest.mark.parametrize(
    ("suite", "content", "message"),
    [
        ("squad", "", "holds no record"),
        ("squad", "[1]\n", ":1: must be a JSON object, not list"),
        ("squad", '{"masked_sentences": "x"}\n', ":1: masked_sentences: must be list, not str"),
        ("squad", '{"masked_sentences": [1]}\n', r":1: masked_sentences\[0\]: must be str, not int"),
        ("squad", '{"a": 1}\n', ":1: masked_sentences: is missing; is this the file of another suite?"),
        ("squad", '{"masked_sentences": ["[MASK]."], "obj_label": "x", "id": 5}\n', ":1: id: must be str, not int"),
        ("squad", "{", ":1: is not JSON"),
        ("t-rex-sentences", '{"evidences": [{}]}\n', r":1: evidences\[0\]: masked_sentence: is missing"),
        ("t-rex", '{"predicate_id": "P1"}\n', ":1: predicate_id: there is no template of P1; give relations.jsonl too"),
        ("google-re", "{}", "has another name than LAMA's files"),
        ("asdiv", "<a>", "is not XML"),
        ("asdiv", "<a></a>", "holds no Problem"),
        ("asdiv", "<a><Problem><Body>b</Body></Problem></a>", "problem 1: Body, Question and Answer must all be there"),
        ("svamp", "{}", "must be a JSON array"),
        ("svamp", '[{"ID": "a", "Question": "q", "Answer": "5"}]', "record 1: Answer: must be int or float, not str"),
        ("svamp", '[{"ID": "a", "Question": "q", "Answer": true}]', "record 1: Answer: must be int or float, not bool"),
        ("mawps", '[{"iIndex": 1, "sQuestion": "q", "lSolutions": ["x"]}]', "hold no example"),
        ("nq", '{"question": "q", "answer": []}\n', ":1: answer: must hold at least one answer"),
        ("triviaqa", '{"Data": 5}', "Data: must be list, not int"),
        (
            "templama",
            '{"query": "a _X_", "answer": [{"name": "b"}], "date": "now", "id": "i"}\n',
            ":1: date: must be a year",
        ),
        ("mlqa-es", '{"data": [{"paragraphs": [{"context": "c"}]}]}', r"paragraphs\[0\]: qas: is missing"),
    ],
)
def test_what_a_file_has_wrong_is_reported_in_one_line(tmp_path: Path, suite: str, content: str, message: str) -> None:
    path = tmp_path / ("file.json" if suite != "nq" else "file.jsonl")
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SuiteError, match=message) as caught:
        SUITES[suite].load(None, [path], count=1, seed=0)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for path, message in ((tmp_path / "none", "cannot be read"), (binary, "is not UTF-8 text")):
        with pytest.raises(SuiteError, match=message):
            SUITES["svamp"].load(None, [path], count=1, seed=0)
    with pytest.raises(SuiteError, match="holds no article"):
        read_wikitext([lines(tmp_path / "a.jsonl", [{}])])
    empty: list[dict[str, Any]] = [{"text": " "}]
    with pytest.raises(SuiteError, match="holds no text"):
        read_ccnet([lines(tmp_path / "b.jsonl", empty)])


def test_an_example_without_answer_is_refused() -> None:
    with pytest.raises(SuiteError, match="example x: answers"):
        Example("x", "text", (" ",))


def test_the_bare_form_has_no_instruction() -> None:
    example = Example("x", "How many are left?", ("6",), context="Two of 8 are gone.")
    assert prompt_of(example, "word problem", "bare") == "Two of 8 are gone. How many are left?"
    other = Example("x", "How many?", ("6",), context="Two.", bare="Two of 8 are gone, so there are")
    assert prompt_of(other, "word problem", "bare") == "Two of 8 are gone, so there are"
