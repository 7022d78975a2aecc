"""The three heuristics against their plain statement in appendix A of the paper."""

import random
from decimal import ROUND_HALF_UP, Decimal
from itertools import permutations
from pathlib import Path

import pytest

from demo_world.articles import articles
from training_jobs.corpora.web.foreign_parts import (
    KEPT,
    NO_WORDS,
    NOT_BETWEEN,
    ONLY_ENGLISH,
    UNSURE,
    foreign_paragraphs,
    judge_paragraph,
)
from training_jobs.corpora.web.language_id import FastTextLanguages
from training_jobs.corpora.web.numbers_in_text import DRAWN, NOT_DRAWN, OPERATION, STATED, TOO_FEW, judge_calculator
from training_jobs.corpora.web.tokens import word_spans
from training_jobs.records import Document

ROOT = Path(__file__).parents[4]


def calculator(text: str, seed: int = 0) -> str:
    kept, reason = judge_calculator(text, spans=word_spans, draw=random.Random(seed))
    assert kept is (reason in (OPERATION, STATED, DRAWN))
    return reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Of 1,400 people 400 (in all 29%) took part, and 1,000 did not.", OPERATION),
        ("24 boxes of 17 books are 408 books", OPERATION),
        ("408 books in 24 boxes are 17 each", OPERATION),
        ("287 of 350 survived, a share of 0.82", OPERATION),
        ("A share of 0.82: 287 of 350", OPERATION),
        ("0.1 and 0.2 are 0.3", OPERATION),
        ("4 and 4 and 8", OPERATION),
        ("4, 9 and 8 and 12.5", NOT_DRAWN),
        ("In A4 and B5, 3rd of 7", TOO_FEW),
        ("a total of 12 people", STATED),
        ("which equals $5", STATED),
        ("x = 3", STATED),
        ("an average of about 3", TOO_FEW),
        ("sequels 4", TOO_FEW),
        ("no numbers", TOO_FEW),
        ("5 and 6", TOO_FEW),
        ("8 " + "word " * 98 + "3 5", NOT_DRAWN),  # 8 and 5 are 101 tokens apart
        ("8 " + "word " * 97 + "3 5", OPERATION),
    ],
)
def test_the_calculators_criteria(text: str, reason: str) -> None:
    assert calculator(text) == reason


def test_an_operation_is_found_just_where_a_plain_search_finds_one() -> None:
    rng = random.Random(1)
    found = 0
    for _ in range(400):
        numbers = [
            rng.choice((str(rng.randrange(200)), f"{rng.randrange(30)}.{rng.randrange(100):02d}"))
            for _ in range(rng.randrange(3, 5))
        ]
        if rng.random() < 0.3:
            numbers[2] = str(
                (Decimal(numbers[0]) / (Decimal(numbers[1]) or 1)).quantize(Decimal("0.01"), ROUND_HALF_UP)
            )
        expected = any(follows(*map(Decimal, three)) for three in permutations(numbers, 3))
        assert (calculator(" and ".join(numbers)) == OPERATION) is expected, numbers
        found += expected
    assert 100 < found < 350


def follows(a: Decimal, b: Decimal, c: Decimal) -> bool:
    if c in (a + b, a - b, a * b):
        return True
    return bool(b) and (c * b == a or c == (a / b).quantize(Decimal("0.01"), ROUND_HALF_UP))


def test_one_in_a_hundred_of_the_rest_is_drawn() -> None:
    drawn = sum(calculator("4, 9 and 8 and 12.5", seed) == DRAWN for seed in range(4000))
    assert 20 < drawn < 65
    assert calculator("4, 9 and 8 and 12.5", 7) == calculator("4, 9 and 8 and 12.5", 7)


ENGLISH = "the people of the town walked to the old market today"  # ten words and one
FOREIGN = "el vuelo sale hoy por la tarde desde la ciudad"  # ten words
NUMBERS = "1 2 3 4 5 6 7 8 9 10"


def by_words(text: str) -> tuple[bool, float]:
    """A classifier that knows two languages by their articles, sure where there are several."""
    spanish, english = (
        sum(f" {word} " in f" {text} " for word in words) for words in (("el", "la", "por"), ("the", "to"))
    )
    return english >= spanish, 0.95 if abs(english - spanish) > 1 else 0.6


@pytest.mark.parametrize(
    ("paragraph", "reason"),
    [
        (f"{ENGLISH[:-6]} {FOREIGN} {ENGLISH}", KEPT),
        (f"{FOREIGN} {ENGLISH}", NOT_BETWEEN),
        (f"{ENGLISH[:-6]} {FOREIGN}", NOT_BETWEEN),
        (FOREIGN, NOT_BETWEEN),
        (f"{ENGLISH[:-6]} {ENGLISH}", ONLY_ENGLISH),
        (f"{ENGLISH[:-6]} la a b c d e f g h i {ENGLISH}", UNSURE),
        (NUMBERS, NO_WORDS),
        (f"{ENGLISH[:-6]} {NUMBERS} {ENGLISH}", ONLY_ENGLISH),
        (f"{NUMBERS} {FOREIGN} {NUMBERS} {ENGLISH}", NOT_BETWEEN),
    ],
)
def test_translations_criteria(paragraph: str, reason: str) -> None:
    assert judge_paragraph(paragraph, spans=word_spans, languages=by_words) == reason


def test_only_the_paragraphs_with_another_language_stay() -> None:
    good = f"{ENGLISH[:-6]} {FOREIGN} {ENGLISH}"
    document = Document("d", f"{ENGLISH}\n\n{good}\n{NUMBERS}\n{good}", "u", "2019-01-02", "s")
    kept, reason, counts = foreign_paragraphs(document, spans=word_spans, languages=by_words)
    assert reason == KEPT
    assert kept == [Document(f"d#{n}", good, "u", "2019-01-02", "s") for n in (2, 4)]
    assert counts == {ONLY_ENGLISH: 1, KEPT: 2, NO_WORDS: 1}
    alone = Document("d", good)
    assert foreign_paragraphs(alone, spans=word_spans, languages=by_words)[0] == [alone]


def test_a_real_classifier_finds_the_foreign_phrases_of_articles() -> None:
    languages = FastTextLanguages(ROOT / "models/translation-small/lid.ftz")
    assert languages("The museum was opened on the first day of the year.")[0]
    assert not languages("Le musée a été ouvert le premier jour de l'année.")[0]
    verdicts = {True: [0, 0], False: [0, 0]}
    for article in articles(150, seed=3):
        kept, _, _ = foreign_paragraphs(Document("x", article.text), spans=halves, languages=languages)
        verdicts[any(call.tool == "MT" for call in article.truths)][bool(kept)] += 1
    dropped, kept_ = verdicts[True]
    assert kept_ > 0.5 * (dropped + kept_)
    assert verdicts[False][0] > 3 * verdicts[False][1]


def halves(text: str) -> list[tuple[int, int]]:
    """Tokens of at most three characters, as a small vocabulary makes them."""
    return [(at, min(at + 3, end)) for start, end in word_spans(text) for at in range(start, end, 3)]


@pytest.mark.parametrize("content", [None, b"not a model"])
def test_a_classifier_that_is_none_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "lid.ftz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"--language-id: .*lid\.176\.ftz"):
        FastTextLanguages(path)
