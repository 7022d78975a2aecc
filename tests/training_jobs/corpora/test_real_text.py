"""Real text for a base model: problems that come out right, exams that stay out, a corpus of the given size."""

import asyncio
import datetime as dt
import json
import random
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain, islice, pairwise, product
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from language_model.token_file import Tokens
from services.calculator.engine import calculate
from tests.training_jobs.servers import tool_services
from training_jobs.corpora.base.drawing import CorpusText, Heading
from training_jobs.corpora.real_text import __main__ as corpus
from training_jobs.corpora.real_text.again import with_parts_again
from training_jobs.corpora.real_text.days import any_day, beside, filled, of_day
from training_jobs.corpora.real_text.facts_part import facts
from training_jobs.corpora.real_text.further import add_further
from training_jobs.corpora.real_text.generated_part import (
    asked_days,
    asked_foreign,
    days,
    everyday,
    foreign,
    typed,
    word_problems,
)
from training_jobs.corpora.real_text.known_texts import KnownTexts, said
from training_jobs.corpora.real_text.overlap import VISITORS, Exams, Part
from training_jobs.corpora.real_text.problems import PHRASES, Problem, bare, cut, made, solved, stepped, taught
from training_jobs.corpora.real_text.sources import FOREIGN, SOURCES, answering_sentences, articles, squad, statements
from training_jobs.corpora.real_text.teaching import HELD_OUT, PLAIN, TAUGHT, write_teaching
from training_jobs.errors import StageError
from training_jobs.pretrain.rows import LATE
from training_jobs.records import Document, Plain, ProposedCalls, records_in

NAMES, THINGS = ("Ada", "Ben", "Cem"), ("pens", "plums", "kites")
PAIRS = "sentence\tfra_Latn\tIl neige.\tIt is snowing.\nword\teng_Latn\tsnow\tsnow\n"
ALL = Part(Exams())
FACTS = partial(facts, exams=Exams())


def test_a_solution_line_becomes_a_problem_of_its_own() -> None:
    question = "A hall has 12 rows. Each row has 9 seats. It was built in 1950. How many seats are free if 8 are taken?"
    solution = "There are 12*9=<<12*9=108>>108 seats.\nSo 108-8=<<108-8=100>>100 are free.\n#### 100"
    assert list(cut(question, solution)) == [
        Problem("A hall has 12 rows. Each row has 9 seats. There are", "12 * 9", "108", " seats.")
    ]


@pytest.mark.parametrize("maker", ["made", "taught", "bare"])
def test_the_answers_of_problems_are_right(maker: str) -> None:
    rng = random.Random(3)
    make = {"made": made, "taught": taught}.get(maker)
    found = [make(rng, NAMES, THINGS) if make else bare(rng) for _ in range(2_000)]
    for one in found:
        exact = Fraction(str(eval(one.sum.replace("/", "*1.0/"), {})))  # noqa: S307 - digits and signs of our own
        assert abs(Fraction(Decimal(one.answer)) - exact) <= Fraction(1, 190), one
    if make:
        assert {sign: sum(f" {sign} " in one.sum for one in found) > 400 for sign in "+-*/"} == dict.fromkeys(
            "+-*/", True
        )
        assert not any(one.answer.startswith("-") for one in found)


def test_a_taught_problem_is_written_as_people_write_it() -> None:
    rng = random.Random(0)
    texts = [taught(rng, NAMES, THINGS).text for _ in range(2_000)]
    assert not any("{" in text or "  " in text for text in texts)
    assert all(sentence[0].isupper() or sentence[0].isdigit() for text in texts for sentence in text.split(". "))
    assert all(text.endswith("?") for text in texts)
    assert len(set(texts)) > 1_900
    rows = list(islice(word_problems(random.Random(0), NAMES, THINGS, Exams()), 300))
    assert all(re.fullmatch(r".*\? ((The answer|It) is )?[\d.]+\.", row) for row in rows)
    asked = rows[0].partition("?")[0] + "?"
    left_out = islice(word_problems(random.Random(0), NAMES, THINGS, Exams(questions=[asked])), 300)
    assert not any(row.startswith(asked) for row in left_out)


def test_a_base_model_reads_other_texts_than_it_is_taught_on() -> None:
    rng = random.Random(0)
    found = [{make(rng, NAMES, THINGS).text.split(".")[0] for _ in range(4_000)} for make in (made, taught)]
    read, asked = ({re.sub(r"[$]?\b[\d,.]+\b", "1", one) for one in texts} for texts in found)
    assert len(read - asked) > 300
    assert len(asked - read) > 300
    several = [one for _ in range(500) if len((one := taught(rng, NAMES, THINGS)).sum.split()) > 3]
    assert 60 < len(several) < 140
    assert all(one.answer.isdigit() for one in several)


def test_days_that_are_kept_each_year() -> None:
    slots = of_day(dt.date(2026, 11, 27), random.Random(0))
    assert slots["thanksgiving"] == dt.date(2026, 11, 26)
    assert slots["memorial"] == dt.date(2026, 5, 25)
    assert slots["christmas"] == dt.date(2026, 12, 25)


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


def test_short_questions_of_the_exams_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "nq_open").mkdir()
    (tmp_path / "nq_open/dev.jsonl").write_text('{"question": "who painted \\"Guernica\\"", "answer": ["Picasso"]}\n')
    exams = Exams.read(tmp_path)
    assert exams.overlaps('Who painted "Guernica"?', 3)
    assert not exams.overlaps("Who painted it?", 3)
    own = json.loads(VISITORS.read_text(encoding="utf-8").splitlines()[0])["prompt"]
    assert exams.asks(own)


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
    assert [title for title, _ in articles(tmp_path, random.Random(0))] == ["Lighthouse"]
    assert list(SOURCES["encyclopedia"](tmp_path, ALL, random.Random(0))) == [good.rpartition(" It is")[0]]


def write_article(folder: Path, title: str, text: str) -> None:
    """One article as Wikipedia's extracted text has it."""
    pages = folder / "enwiki2015/text/AA"
    pages.mkdir(parents=True)
    (pages / "wiki_00").write_text(f'<doc id="1" url="u" title="{title}">\n{title}\n\n{text}\n</doc>\n')


def test_a_statement_begins_with_the_title_and_no_exam_has_it(tmp_path: Path) -> None:
    kept = ["Mercury (or quicksilver) is a metal that flows.", "The Mercury of thermometers is seldom seen today."]
    asked = "Mercury was known to the Romans, who washed gold with it in Spain."
    others = ["It shines like silver.", "Mercury flows.", "Mercury " + "flows and " * 30 + "stops."]
    write_article(tmp_path, "Mercury (element)", " ".join([*kept, asked, *others]))
    found = statements(tmp_path, Exams([asked]), random.Random(0))
    assert sorted(found) == ["Mercury is a metal that flows.", kept[1]]
    assert asked in statements(tmp_path, Exams(), random.Random(0))
    with pytest.raises(FileNotFoundError, match="enwiki2015"):
        statements(tmp_path / "nowhere", Exams(), random.Random(0))


def write_squad(folder: Path) -> None:
    """Two questions on one paragraph, in the layout of SQuAD's own pages."""
    pages = folder / "squad_v1.1_dev_html/explore/1.1/dev"
    pages.mkdir(parents=True)
    asked = '<div data-id="{}"><strong class="question">{}</strong><span class="answer">{}</span></div>'
    (pages / "A.html").write_text(
        "<pre>Ada owned a kite. It was red and had a tail.</pre>"
        f"{asked.format('1a', 'Who owned it?', 'Ada')}{asked.format('2b', 'What colour was it?', 'red')}"
    )


def test_questions_that_an_exam_was_made_of_are_left_out(tmp_path: Path) -> None:
    write_squad(tmp_path)
    context = "Ada owned a kite. It was red and had a tail."
    asked = [("Who owned it?", "Ada"), ("What colour was it?", "red")]
    assert list(squad(tmp_path)) == [("squad", "A", context, asked)]
    assert list(squad(tmp_path, {"1a"})) == [("squad", "A", context, asked[1:])]


def test_an_answer_is_found_in_its_sentence(tmp_path: Path) -> None:
    write_squad(tmp_path)
    # "Ada" begins its sentence, so no call could be put before it.
    found = list(answering_sentences(tmp_path, ALL))
    assert found == [("What colour was it?", "red", "It was red and had a tail.", "A")]


def test_what_is_held_out_of_a_source_is_not_in_the_other_part(tmp_path: Path) -> None:
    data = tmp_path / "opentriviaqa/categories"
    data.mkdir(parents=True)
    asked = [f"Which lake has number {number}?" for number in range(200)]
    (data / "lakes").write_text("".join(f"#Q {question}\n^ Lake {at}\n" for at, question in enumerate(asked)))
    (tmp_path / "webquestions_trainmodel/main").mkdir(parents=True)
    (tmp_path / "webquestions_trainmodel/main/trainmodel.json").write_text("[]")
    read, held_out = (
        " ".join(SOURCES["trivia"](tmp_path, Part(Exams(), held_out=part), random.Random(0))) for part in (False, True)
    )
    assert {question for question in asked if question in held_out} == {
        question for question in asked if question not in read
    }
    assert 0 < sum(question in held_out for question in asked) < 30


def test_days_and_foreign_sentences() -> None:
    for row, day in chain(islice(days(random.Random(0)), 50), islice(asked_days(random.Random(0)), 300)):
        for named in re.findall(r"Today is (\w+day)", row):
            assert named == f"{day:%A}"
    pairs = [("French", "Il neige.", "It is snowing.")]
    assert set(islice(everyday(random.Random(0), [*pairs, ("French", "Viens !", "Come!")]), 9)) == {
        "It is snowing.", "It is snowing. It is snowing.", "It is snowing. It is snowing. It is snowing."
    }  # fmt: skip
    for rows in (foreign, asked_foreign):
        assert all("Il neige" in row and "snowing" in row for row in islice(rows(random.Random(0), pairs), 20))


def test_the_shares_of_the_sources_are_all_of_the_tokens() -> None:
    for shares in (corpus.MIXTURE, corpus.LATE_MIXTURE):
        assert sum(shares.values()) == pytest.approx(1)


def test_another_day_is_as_far_from_today_as_the_sentence_says() -> None:
    rng, numbers = random.Random(4), dict(zip(("two", "three", "five", "ten"), (2, 3, 5, 10), strict=True))
    kinds = {r"^In (\w+) days it is (\w+day)\.": 1, r"^(\w+) days ago it was (\w+day)\.": -1}
    seen = Counter[str]()
    for _ in range(20_000):
        day, form = any_day(rng), beside(rng)
        text, before = filled(form, of_day(day, rng))
        assert text.startswith(f"{before} "), text
        assert not set("{}") & set(text), text
        for kind, sign in kinds.items():
            if (found := re.match(kind, text)) and (found[1].isdigit() or found[1].lower() in numbers):
                count = numbers.get(found[1].lower()) or int(found[1])
                assert found[2] == f"{day + dt.timedelta(days=sign * count):%A}", (day, text)
                seen[kind] += 1
        if found := re.match(r"Whoever was born in (\d{4}) turns (\d+)\.", text):
            assert int(found[1]) + int(found[2]) == day.year
            seen["turns"] += 1
    assert len(seen) == 3


def test_each_call_of_a_known_text_stands_before_its_answer() -> None:
    known = KnownTexts(
        [
            Problem("A hall has 12 rows of 9 seats. There are", "12 * 9", "108", " seats."),
            Problem("It costs $", "2 * 3", "6"),
        ],
        [("What colour was it?", "red", "It was red and had a tail.", "Kites")],
        [("French", "Il neige.", "It is snowing.")],
        NAMES,
        THINGS,
        FACTS,
    )
    rng = random.Random(2)
    tools, found = set(), 0
    for _ in range(500):
        text, truths, day = known(rng, rng.choice(("Calculator", "Calendar", "QA", "MT", None)))
        for truth in truths:
            tools.add(truth.tool)
            assert text[truth.offset :].removeprefix(" ").removeprefix("$").startswith(truth.answer), text
            assert truth.answer in (truth.result or truth.answer)
            found += truth.result.count(" > ")
        assert (day is None) == all(truth.tool != "Calendar" for truth in truths)
    assert tools == {"Calculator", "Calendar", "WikiSearch", "QA", "MT"}
    assert found > 50, "a search shows a sentence"


def test_a_search_is_the_text_before_its_answer() -> None:
    known = KnownTexts([], [("What colour was it?", "red", "The kite was red.", "")], [], NAMES, THINGS, FACTS)
    for seed in range(200):
        one = known._piece(random.Random(seed), "fact" if seed % 2 else "passage")
        for search in (truth for truth in one.known if truth.tool == "WikiSearch"):
            assert search.input in one.plain[: search.offset]
            assert one.plain.startswith((search.input, "Question: "))
            assert search.input[-1] not in " ?.,"


def test_a_day_stands_before_the_sentences_or_in_each() -> None:
    rows = [row for row, _ in islice(days(random.Random(5)), 100)]
    within = [row for row in rows if "(Today is " in row]
    assert 30 < len(within) < 70
    assert all("(Today is " in row or row.startswith("Today is ") for row in rows)
    assert all(row.count("(Today is ") == len(re.findall(r"\) \S", row)) > 1 for row in within)


def test_what_is_asked_is_often_the_text_itself() -> None:
    known = KnownTexts([], [("What colour was it?", "red", "It was red.", "")], [], NAMES, THINGS, FACTS)
    passages = [known._piece(random.Random(seed), "passage").plain for seed in range(200)]
    asked = sum(text.startswith("What colour was it?") or "Question: What" in text for text in passages)
    assert 60 < asked < 140


def test_calculations_of_several_steps() -> None:
    patterns = [*PHRASES["typed"], *PHRASES["steps"]]
    drawn = [stepped(random.Random(seed), patterns) for seed in range(600)]
    for one in drawn:
        assert calculate(one.sum) == one.answer
        number = re.compile(r"\d+(?:\.\d+)?")
        numbers = set(number.findall(re.sub(r"(?<=\d),(?=\d)", "", one.text)))
        assert numbers - {"2", "3", "100"} <= set(number.findall(one.sum)), one
    assert any(re.search(r"\d,\d{3}", one.text) for one in drawn), "no thousands have a comma"
    assert any(".5%" in one.text for one in drawn), "no share has digits behind a point"
    in_brackets = [one for one in drawn if one.goes_on == "%)."]
    assert in_brackets
    assert all("(" in one.text and one.sum.endswith(" * 100") for one in in_brackets)
    assert any(re.search(r"\$\d+\.\d0 ", one.text) for one in drawn), "no price ends in a zero"
    assert not any("-" in one.answer for one in drawn if one.sum.count("-") == 1 and "+" not in one.sum)


def test_what_the_tools_say_to_a_heading() -> None:
    assert said(Heading("Calculator", "12 * 9", "108")) == "108"
    assert said(Heading("Calendar", "", "Monday", "2026-11-23")) == "Today is Monday, November 23, 2026."
    assert said(Heading("QA", "Who owned it?", None)) is None


def test_a_corpus_is_the_same_for_the_same_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "gsm8k/grade_school_math/data"
    data.mkdir(parents=True)
    rows = [
        {
            "question": f"{name} has {n} {things}. {name} buys {n} more. How many {things} is that?",
            "answer": f"{n}+{n}=<<{n}+{n}={2 * n}>>{2 * n}.\n#### {2 * n}",
        }
        for n, (name, things) in enumerate(product(NAMES, THINGS * 14), start=3)
    ]
    (data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(PAIRS, encoding="utf-8")
    write_squad(tmp_path)
    shares = {
        "grade school": 0.2, "one step": 0.1, "problems": 0.1, "sums": 0.1, "days": 0.1, "foreign": 0.1,
        "headings": 0.1, "prompts": 0.1, "world": 0.1,
    }  # fmt: skip
    monkeypatch.setattr(corpus, "MIXTURE", shares)
    monkeypatch.setattr(corpus, "LATE_MIXTURE", {"sums": 0.5, "grade school": 0.5})
    monkeypatch.setattr(corpus, "_BATCH", 20)
    monkeypatch.setattr(corpus, "_VOCABULARY_CHARACTERS", 50_000)
    monkeypatch.setattr(corpus, "SOURCES", {name: SOURCES[name] for name in ("grade school", "one step")})

    manifests = [
        corpus.make(tmp_path, Exams(), pairs, tmp_path / out, tokens=20_000, vocabulary=900, seed=5)
        for out in ("a", "b")
    ]
    assert manifests[0] == manifests[1]
    known = Tokenizer.from_file(str(tmp_path / "a/tokenizer.json"))
    corpus.make(tmp_path, Exams(), pairs, tmp_path / "c", tokens=2_000, vocabulary=known, seed=6)
    assert (tmp_path / "c/tokenizer.json").read_bytes() == (tmp_path / "a/tokenizer.json").read_bytes()
    assert manifests[0]["tokens"] >= 20_000
    assert set(manifests[0]["sources"]) == set(shares)
    tokens = Tokens.load(tmp_path / "a")
    assert (tokens.documents, len(tokens.ids)) == (manifests[0]["documents"], manifests[0]["tokens"])
    late = Tokens.load(tmp_path / "a" / LATE)
    assert 23_000 <= len(late.ids) < 25_000
    assert json.loads((tmp_path / "a" / LATE / "manifest.json").read_bytes())["sources"].keys() == {
        "sums",
        "grade school",
    }
    # Of headings and of a prompt's own words nothing is learned, of all else everything.
    assert 0.5 < float(tokens.learned.float().mean()) < 1.0


@pytest.mark.parametrize(("source", "taught"), [("sums", "3 + 4 = 7."), ("stories", "3 + 4 = 7.\n9 - 2 = 7.")])
def test_of_several_lines_that_could_stand_alone_one_is_taught_on(
    source: str, taught: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts(self: corpus.Corpus, name: str) -> Iterator[CorpusText]:
        assert name == source
        yield CorpusText.of("3 + 4 = 7.\n9 - 2 = 7.")

    monkeypatch.setattr(corpus.Corpus, "texts", texts)
    [document] = object.__new__(corpus.Corpus).documents(source)
    assert (document.text, document.source) == (taught, source)


def test_texts_to_teach_on_are_divided(tmp_path: Path) -> None:
    def documents(source: str) -> Iterator[Document]:
        few = 5 if source == "grade school" else 1_000
        return (Document(f"{source}/{n}", f"One of {source}. It is {n}.", source=source) for n in range(few))

    write_teaching(documents, 100, tmp_path)
    seen: dict[str, set[str]] = {}
    for name in ("round-1/corpus/Calculator", "round-2/corpus/Calculator", "round-1/corpus/QA", "round-2/corpus/QA"):
        found = list(records_in(tmp_path / f"{name}.jsonl", Document))
        shares = TAUGHT[Path(name).stem]
        assert {one.source for one in found} == set(shares)
        seen[name] = {one.id for one in found}
    assert len(seen["round-1/corpus/QA"]) == 75
    seen["plain"] = {one.id for one in records_in(tmp_path / PLAIN, Plain)}
    seen["held-out"] = {one.id for one in records_in(tmp_path / HELD_OUT, Document)}
    assert sum(map(len, seen.values())) == len(set().union(*seen.values())), "no text is in two files"


def test_of_little_prose_half_is_held_out_unless_it_is_trained_on_elsewhere(tmp_path: Path) -> None:
    def documents(source: str) -> Iterator[Document]:
        about = ["One of many.", f"{source} 1.", f"{source} 2.", f"{source} 3.", "One of many.", "One of many."]
        return (Document(f"{source}/{number}", text) for number, text in enumerate(about))

    write_teaching(documents, 90, tmp_path)
    plain = Counter(one.id.partition("/")[0] for one in records_in(tmp_path / PLAIN, Plain))
    assert plain == {"news": 3, "stories": 3, "everyday": 6, "whole": 6}
    assert {one.id for one in records_in(tmp_path / HELD_OUT, Document)} == {
        f"{source}/{number}" for source in ("news", "stories") for number in (1, 3)
    }


def test_prose_without_calls_is_read_from_its_beginning_and_whole(tmp_path: Path) -> None:
    first = f"It began {'so ' * 40}."
    prose = f"{first} It went on.\nAnd ended in a second paragraph."

    write_teaching(lambda source: (Document(f"{source}/{n}", f"{n}: {prose}") for n in range(4)), 2, tmp_path)

    plain = {one.id: one.segments for one in records_in(tmp_path / PLAIN, Plain)}
    assert plain["news/0"] == (f"0: {first}",)
    assert plain["whole/news/0"] == (f"0: {prose}",)
    assert "whole/everyday/0" not in plain


def test_a_number_of_texts_below_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(word) for name in ("from", "exams", "pairs", "out") for word in (f"--{name}", tmp_path)]
    with pytest.raises(SystemExit):
        corpus.main([*folders, "--teach", "-1"])
    assert "--teach must be at least 0, not -1" in capsys.readouterr().err


def test_the_sources_may_be_archives(tmp_path: Path) -> None:
    (tmp_path / "made/gsm8k").mkdir(parents=True)
    (tmp_path / "made/gsm8k/train.jsonl").write_text("{}")
    (tmp_path / "published").mkdir()
    with tarfile.open(tmp_path / "published/gsm8k.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "made/gsm8k", "gsm8k")
    for _ in range(2):
        found = corpus.unpacked(tmp_path / "published", tmp_path / "sources")
        assert (found / "gsm8k/train.jsonl").read_text() == "{}"
    assert corpus.unpacked(tmp_path / "made", tmp_path / "other") == tmp_path / "made"


def test_facts_are_asked_in_words_of_their_own_and_none_as_an_exam_asks_it() -> None:
    texts = [one.text for one in islice(facts(random.Random(0), Exams()), 2_000)]
    asked = next(text for text in texts if "?" in text)
    question = asked.partition("?")[0] + "?"
    without = islice(facts(random.Random(0), Exams(questions=[question])), 1_900)
    assert not any(one.text.startswith(question) for one in without)
    # A table's fact is said as the table has it.
    assert any(re.fullmatch(r".*symbol .*\b(\w{1,2})\.", text) for text in texts)
    assert not any("{" in text for text in texts)


def test_a_typed_calculation_has_its_answer_behind_it() -> None:
    rows = list(islice(typed(random.Random(0), Exams()), 1_000))
    for pattern, worked_out in (
        (r"The average of the numbers (\d+), (\d+) and (\d+) is ", lambda a, b, c: (a + b + c) / 3),
        (r"With (\d+)% off, a coat of \$(\d+) costs \$", lambda s, a: a - a * s / 100),
        (r"Half of (\d+) is ", lambda a: a / 2),
    ):
        found = [match for row in rows if (match := re.fullmatch(rf"{pattern}([\d.]+)\.", row))]
        assert found
        for match in found:
            *numbers, answer = map(float, match.groups())
            assert abs(worked_out(*numbers) - answer) < 0.006
    left_out = Exams(questions=[rows[0].rpartition(" ")[0]])
    assert rows[0] not in islice(typed(random.Random(0), left_out), 900)


def test_parts_of_a_text_are_read_again_behind_it() -> None:
    ids = list(range(100))
    found = with_parts_again(random.Random(0), ids)
    # What stands where it is larger than all before it is the text; the rest are runs of it, read before.
    seen = -1
    text, again = [], []
    for token in found:
        if token > seen:
            text.append(token)
            seen = token
        else:
            again.append(token)
    assert text == ids
    runs = 1 + sum(after != before + 1 for before, after in pairwise(again))
    assert 0 < runs <= 3
    assert 3 * 4 <= len(again) <= 3 * 40
    assert with_parts_again(random.Random(0), []) == []


def write_xquad(folder: Path) -> None:
    """The same two questions in two languages each, in the layout of XQuAD's files."""
    (folder / "xquad").mkdir()
    asked = {"en": ("Who owned it?", "What colour was it?"), "es": ("¿De quién era?", "¿De qué color era?")}
    for language in ("en", *FOREIGN):
        pairs = zip(("1a", "2b"), asked.get(language, ("问？", "问？")), ("Ada", "red"), strict=True)
        qas = [{"id": id_, "question": question, "answers": [{"text": answer}]} for id_, question, answer in pairs]
        article = {"paragraphs": [{"context": "Ada owned a kite. It was red and had a tail.", "qas": qas}]}
        (folder / f"xquad/xquad.{language}.json").write_text(json.dumps({"data": [article]}))


def test_further_questions_are_over_paragraphs_and_what_a_search_answers(tmp_path: Path) -> None:
    write_squad(tmp_path)
    write_xquad(tmp_path)
    said = [f"Kites number {number} are flown in the autumn." for number in range(20)]
    write_article(tmp_path, "Kites", " ".join(said))
    for folder in ("webquestions_trainmodel/main", "opentriviaqa/categories"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "webquestions_trainmodel/main/trainmodel.json").write_text(
        json.dumps(
            [{"qText": "who owned it?", "answers": ["Miss Ada", "Ada"]}, {"qText": "where?", "answers": ["sea"]}]
        )
    )
    documents = {"everyday": [Document("everyday/0", "It is late.")]}
    write_teaching(lambda source: iter(documents.get(source, ())), 1, tmp_path)
    with tool_services(search=lambda query: "Sea > The kite was owned by Ada. It was red.") as registry:
        asyncio.run(add_further(tmp_path, Exams(ids=["1a"]), 9, 1, tmp_path, registry))
    late, read, *stated = (text for one in records_in(tmp_path / PLAIN, Plain) for text in one.segments)
    assert late == "It is late."
    assert "It was red" in read
    assert "What colour was it?" in read
    assert "red" in read.partition("?")[2]
    for_tools = [
        one.text
        for at, tool in product((1, 2), ("QA", "WikiSearch"))
        for one in records_in(tmp_path / f"round-{at}/corpus/{tool}.jsonl", Document)
        if one.source == f"statements {tool}"
    ]
    assert (len(stated), len(for_tools)) == (9, 6)
    assert len({*stated, *for_tools} & {*said}) == 15, "a statement is a plain text or one tool's"
    rounds = [
        [one for one in records_in(tmp_path / f"round-{at}/corpus/WikiSearch.jsonl", Document) if one.source == "found"]
        for at in (1, 2)
    ]
    assert [len(of_round) for of_round in rounds] == [1, 1], "the sea is in the title alone; what LAMA asks is left out"
    owned = next(one.text for of_round in rounds for one in of_round if "Who owned it?" in one.text)
    assert owned.endswith("The kite was owned by Ada."), "the sentence that says it, whole and alone"
    foreign = {one.id: one.text for one in records_in(tmp_path / "foreign/texts.jsonl", Document)}
    assert len(foreign) == len(FOREIGN), "what LAMA asks is left out in all languages"
    for calls in records_in(tmp_path / "foreign/calls.jsonl", ProposedCalls):
        [call] = calls.calls
        assert foreign[calls.id][: call.offset].endswith(call.input)
        assert foreign[calls.id][call.offset :] == " red."
        assert "It was red" in foreign[calls.id]
    assert any("¿De qué color era?" in text for text in foreign.values())
    with pytest.raises(StageError, match="WikiSearch"):
        asyncio.run(add_further(tmp_path, Exams(), 9, 1, tmp_path, registry))
