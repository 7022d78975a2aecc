"""The texts: every pattern renders, calls stand before their answers, and nothing held out gets into training."""

import datetime
import hashlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from demo_world import geography, titles
from demo_world import questions as world_questions
from demo_world.relations import RELATIONS
from demo_world.splits import is_held_out
from demo_world.suites import SPLITS, TOOLS, questions
from demo_world.texts import (
    CallSlot,
    Text,
    asking,
    calculator,
    calculator_text,
    calendar,
    calendar_text,
    documents,
    fact_text,
    foreign,
    narration_text,
    question_text,
    searching,
    translation_text,
)
from demo_world.texts.calculator import DIRECT, SCENES
from demo_world.texts.numbers import NUMBER, number_is_held_out, rounded, value_of
from demo_world.texts.patterns import VOCABULARY, Known, Phrasing, Slots, capitalise_pattern, compose, render

WRITERS = {
    "Calculator": calculator_text,
    "Calendar": calendar_text,
    "WikiSearch": fact_text,
    "QA": question_text,
    "MT": translation_text,
}
SEARCHED = ("population", "country", "time zone", "capital", "area", "currency", "continent")
DAY = datetime.date(2026, 11, 20)
DATE_IN_TEXT = re.compile(
    r"(January|February|March|April|May|June|July|August|September|October|November|December) \d+, \d{4}"
)


@cache
def training_texts() -> list[Text]:
    return [text for document in documents(4000, seed=7) for text in document.texts]


def test_documents_are_the_same_in_every_process() -> None:
    here = hashlib.sha256("".join(map(repr, documents(200, seed=0))).encode()).hexdigest()
    program = (
        "import hashlib; from demo_world.texts import documents;"
        "print(hashlib.sha256(''.join(map(repr, documents(200, seed=0))).encode()).hexdigest())"
    )
    for hash_seed in ("1", "2"):  # Python's own hash differs between processes; nothing may depend on it
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert there.stdout.strip() == here
    assert next(documents(1, seed=0)) != next(documents(1, seed=1))


def test_a_document_depends_on_its_number_alone() -> None:
    assert list(documents(5, seed=3)) == list(documents(9, seed=3))[:5]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_call_stands_right_before_its_answer(tool: str) -> None:
    rng = random.Random(1)
    for _ in range(500):
        text = WRITERS[tool](rng)
        before, call, after = text.segments
        assert isinstance(before, str)
        assert isinstance(after, str)
        assert isinstance(call, CallSlot)
        assert call.tool == tool
        assert after.startswith(" " + text.answer)
        assert not before.endswith(" ")
        assert text.prompt == before
        assert text.plain == before + after
        assert text.without_call().call is None


@pytest.mark.parametrize("tool", TOOLS)
def test_no_slot_is_left_unfilled(tool: str) -> None:
    rng = random.Random(2)
    for held_out in (False, True):
        for _ in range(300):
            text = WRITERS[tool](rng, held_out_values=held_out, held_out_phrasing=held_out)
            assert not re.search(r"[{}|]|  ", text.plain), text.plain
            assert text.plain[0].isupper() or text.plain[0] in '"($0123456789', text.plain


def every_pattern() -> dict[str, set[str]]:
    """All whole patterns of each tool, from both sides of the phrasing split."""
    found: dict[str, set[str]] = {tool: set() for tool in TOOLS}
    searched = [name for name in RELATIONS if RELATIONS[name].search]
    for held_out in (False, True):
        families: dict[str, Sequence[Sequence[Phrasing[Any]]]] = {
            "Calculator": [
                calculator.scene_phrasings(held_out=held_out),
                calculator.direct_phrasings(held_out=held_out),
            ],
            "Calendar": [family for _, family in calendar.phrasings(held_out=held_out)],
            "WikiSearch": [searching.relation_phrasings(name, held_out=held_out) for name in searched],
            "QA": [
                phrasings(name, held_out=held_out)
                for name in RELATIONS
                for phrasings in (asking.asked_phrasings, asking.stated_phrasings)
            ],
        }
        for tool, own in families.items():
            found[tool] |= {pattern for family in own for phrasing in family for pattern in phrasing.patterns}
        quotes, englishes = foreign.quotes(held_out=held_out), foreign.englishes(held_out=held_out)
        found["MT"] |= {f"{quote}{english}" for quote in quotes for english in englishes}
    return found


@pytest.mark.parametrize("tool", TOOLS)
def test_every_pattern_renders(tool: str) -> None:
    given = dict.fromkeys("abcdpqxy", "7") | {
        "entity": "Utopia", "neighbour": "Erewhon", "other": "May 1, 2020", "other_year": "2020", "foreign": "Ja.",
    }  # fmt: skip
    patterns = every_pattern()[tool]
    assert len(patterns) >= 60
    for pattern in patterns:
        text = render(pattern, Slots(random.Random(0), given), Known(CallSlot(tool, "x"), "ANSWER"), "key")
        assert "ANSWER" in text.plain
        assert text.call == CallSlot(tool, "x")


def test_both_sides_of_the_phrasing_split_are_used() -> None:
    total = len(SCENES) + len(DIRECT)
    held_out = len(calculator.scene_phrasings(held_out=True)) + len(calculator.direct_phrasings(held_out=True))
    assert 0.02 * total < held_out < 0.25 * total
    assert calendar.phrasings(held_out=True)
    assert searching.relation_phrasings("city population", held_out=True)
    assert asking.asked_phrasings("city population", held_out=True)
    assert asking.stated_phrasings("city rank", held_out=True)
    assert foreign.quotes(held_out=True)
    assert foreign.englishes(held_out=True)


def test_training_texts_hold_no_held_out_number() -> None:
    texts = [text for text in training_texts() if text.call and text.call.tool == "Calculator"]
    assert len(texts) > 1000
    for text in texts:
        assert not [number for number in NUMBER.findall(text.plain) if number_is_held_out(number)], text.plain


def test_training_texts_hold_no_held_out_date() -> None:
    texts = [text for text in training_texts() if text.call and text.call.tool == "Calendar"]
    assert len(texts) > 400
    for text in texts:
        assert text.date is not None
        assert not is_held_out("date", text.date.isoformat())
    # A foreign sentence is held out as a whole; a date in it is no date that a text is written on.
    for text in (text for text in training_texts() if text.call is None or text.call.tool != "MT"):
        for found in DATE_IN_TEXT.finditer(text.plain):
            day = datetime.datetime.strptime(found.group(), "%B %d, %Y").date()
            assert not is_held_out("date", day.isoformat()), text.plain


def held_out_entities() -> set[str]:
    cities = {city.name for city in titles.unique_cities() if is_held_out("city", city.name)}
    return cities | {country.name for country in geography.countries() if is_held_out("country", country.name)}


def test_training_texts_ask_about_no_held_out_city_or_country() -> None:
    held_out = held_out_entities()
    inputs = [text.call.input for text in training_texts() if text.call and text.call.tool == "WikiSearch"]
    assert len(inputs) > 1000
    for search in inputs:
        [entity] = [search.removesuffix(f" {relation}") for relation in SEARCHED if search.endswith(f" {relation}")]
        assert entity not in held_out


def test_training_texts_use_no_held_out_phrasing() -> None:
    keys = {text.phrasing for text in training_texts() if text.call and not text.phrasing.startswith("question, ")}
    assert len(keys) > 300
    assert not [key for key in keys if is_held_out("phrasing", key)]


def test_training_texts_ask_no_held_out_question() -> None:
    """A question's entity and phrasing are held out as they are of question answering itself."""
    asked = [text for text in training_texts() if text.call and text.call.tool == "QA"]
    assert len(asked) > 1000
    rng = random.Random(8)
    facts_held_out = [world_questions.draw_fact(rng, held_out=True) for _ in range(1000)]
    held_out_questions = {
        world_questions.ask(phrasing, fact)
        for fact in facts_held_out
        for phrasing in world_questions.phrasings(fact.relation, held_out=False)
    }
    assert not {text.call.input for text in asked if text.call} & held_out_questions
    phrasings = {text.phrasing.removeprefix("question, ") for text in asked if text.phrasing.startswith("question, ")}
    assert len(phrasings) > 80
    held_out = {phrasing for relation in RELATIONS for phrasing in world_questions.phrasings(relation, held_out=True)}
    assert not phrasings & held_out


def test_training_texts_translate_no_held_out_sentence() -> None:
    """Which sentences are held out is the composition's to say; a text's sentence is one of the trainable ones."""
    rng = random.Random(4)
    held_out = {foreign.draw_phrase(rng, held_out=True).text for _ in range(3000)}
    translated = [text for text in training_texts() if text.call and text.call.tool == "MT"]
    assert len(translated) > 700
    assert not {text.call.input for text in translated if text.call} & held_out
    plain = "".join(text.plain for text in translated)
    assert not [english for english in foreign.englishes(held_out=True) if f"{english.partition('|')[0]} " in plain]


def test_a_translations_sentence_stands_in_the_text_and_every_language_is_among_them() -> None:
    rng = random.Random(5)
    texts = [translation_text(rng) for _ in range(300)]
    for text in texts:
        assert text.call is not None
        assert f'"{text.call.input}"' in text.prompt
    prompts = "".join(text.prompt for text in texts)
    for script in ("[А-я]", "[一-鿿]", "[぀-ヿ]", "[؀-ۿ]", "ı"):
        assert re.search(script, prompts)


def test_a_question_in_a_text_is_what_the_tool_is_asked() -> None:
    rng = random.Random(6)
    asked = [text for text in (question_text(rng) for _ in range(200)) if text.phrasing.startswith("question, ")]
    assert len(asked) > 80
    for text in asked:
        assert text.call is not None
        assert text.call.input in text.prompt


def test_no_fact_has_two_tools() -> None:
    """A statement either is searched for or asked about, whatever the entity."""
    assert {relation.search for relation in RELATIONS.values()} == {*SEARCHED, ""}
    for name, relation in RELATIONS.items():
        stated = [*asking.stated_phrasings(name, held_out=False), *asking.stated_phrasings(name, held_out=True)]
        assert bool(stated) == (not relation.search), name


def test_some_texts_have_no_call() -> None:
    texts = training_texts()
    without = sum(text.call is None for text in texts)
    assert 0.2 < without / len(texts) < 0.4


def test_one_document_has_one_date() -> None:
    for document in documents(2000, seed=5):
        assert len({text.date for text in document.texts}) == 1


def test_narration_never_calls() -> None:
    rng = random.Random(3)
    for _ in range(300):
        text = narration_text(rng)
        assert text.call is None
        assert not re.search(r"[{}|]|  ", text.plain), text.plain


@pytest.mark.parametrize(
    ("expression", "value"),
    [("24 * 17", "408"), ("400 / 1400", "0.29"), ("27 + 4 * 2", "35"), ("(3 + 4) / 2", "3.5"), ("1 / 8", "0.13"),
     ("0.1 + 0.2", "0.3"), ("10 - 2 - 3", "5"), ("5 - 5.00", "0"), ("1 - 4", "-3")],
)  # fmt: skip
def test_answers_are_exact(expression: str, value: str) -> None:
    assert rounded(value_of(expression)) == value


@pytest.mark.parametrize("expression", ["2 ** 3", "abs(3)", "'a' + 'b'", "a + 1"])
def test_only_arithmetic_has_a_value(expression: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message of ast's own errors differs
        value_of(expression)


def test_a_part_that_begins_with_the_call_leaves_no_double_space() -> None:
    assert compose("{a} came. {Conclusion}.", {"conclusion": "| {answer} are left"}) == "{a} came.| {answer} are left."


def test_a_slot_that_opens_a_sentence_gets_its_capital() -> None:
    assert capitalise_pattern("{place} is shut") == "{Place} is shut"
    assert capitalise_pattern("the end") == "The end"
    assert Slots(random.Random(0), {"place": "the market"})["Place"] == "The market"


def test_words_of_one_kind_differ_and_nouns_keep_their_number() -> None:
    slots = Slots(random.Random(0))
    people = {slots["person"], slots["person2"], slots["person3"]}
    assert len(people) == 3
    assert (slots["container"], slots["containers"]) in VOCABULARY.nouns["container"]
    assert (slots["container2"], slots["containers2"]) in VOCABULARY.nouns["container"]
    assert slots["container"] != slots["container2"]


def test_unknown_slots_and_missing_bars_are_errors() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        "{nonsense}".format_map(Slots(random.Random(0)))
    with pytest.raises(ValueError, match="exactly one"):
        render("no call here", Slots(random.Random(0)), Known(CallSlot("Calculator", "1"), "1"), "key")


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("tool", TOOLS)
def test_suites_hold_only_held_out_values(tool: str, split: str) -> None:
    asked = questions(tool, "held-out values" if split == SPLITS[0] else "held-out phrasings")
    assert len(asked) == 100
    assert len({(question.prompt, question.date) for question in asked}) == 100
    for question in asked:
        assert question.tool == tool
        assert question.answer
        if tool == "Calendar":
            assert question.date is not None
            assert is_held_out("date", question.date.isoformat())
        elif tool == "Calculator":
            # Constants of a formula (a percentage's 100, an average's 2 or 3) are no operands.
            operands = [
                n for n in NUMBER.findall(question.input) if n in question.prompt and n not in ("2", "3", "100")
            ]
            assert operands
            assert all(map(number_is_held_out, operands)), question


def test_suites_are_repeatable_and_only_for_known_tools() -> None:
    assert questions("Calculator", "held-out values", count=5) == questions("Calculator", "held-out values", count=5)
    with pytest.raises(ValueError, match="Calculator, Calendar, WikiSearch, QA, MT"):
        questions("Abacus", "held-out values")
