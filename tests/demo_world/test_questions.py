"""Questions over the encyclopedia: answered by their pages, split fairly, the same in every run."""

import pytest

from demo_world import encyclopedia, geography, questions
from demo_world.questions import SPLITS, suite
from demo_world.relations import RELATIONS
from demo_world.splits import is_held_out
from demo_world.titles import city_titles

TRAINED_ON = 5_000


@pytest.fixture(scope="module")
def drawn() -> list[questions.Question]:
    return [questions.question(number) for number in range(TRAINED_ON)]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {page.title: "\n".join(page.kilt_text()) for page in encyclopedia.pages()}


def test_every_answer_stands_on_its_page(drawn: list[questions.Question], pages: dict[str, str]) -> None:
    for asked in (*drawn, *suite("held-out entities"), *suite("held-out phrasings")):
        assert asked.answer in pages[asked.title], asked
        assert asked.question[0] == asked.question[0].upper()
        assert "{" not in asked.question


def test_what_is_held_out_is_never_asked_in_training(drawn: list[questions.Question]) -> None:
    trained = {asked.title for asked in drawn}
    for split in SPLITS:
        held_out = suite(split)
        assert len({asked.question for asked in held_out}) == len(held_out) == 500
        # A country's holidays are split by holiday, so their page may be on both sides.
        assert not {asked.title for asked in held_out if asked.relation != "holiday date"} & trained


def test_cities_and_countries_are_held_out_as_they_are_for_everyone(drawn: list[questions.Question]) -> None:
    names = {title: city.name for city in geography.cities() if (title := city_titles().get(city.key))}
    asked_cities = [names[asked.title] for asked in drawn if asked.relation.startswith("city ")]
    assert not any(is_held_out("city", name) for name in asked_cities)
    asked_countries = [asked.title for asked in drawn if asked.relation.startswith("country ")]
    assert asked_countries
    assert not any(is_held_out("country", name) for name in asked_countries)


def test_held_out_phrasings_are_new(drawn: list[questions.Question]) -> None:
    for relation in RELATIONS:
        known, held_out = (set(questions.phrasings(relation, held_out=side)) for side in (False, True))
        assert known
        assert not known & held_out
        assert known | held_out == set(RELATIONS[relation].questions)
    # What is held out of one relation is held out of all, so no other relation teaches it.
    trained = {phrasing for relation in RELATIONS for phrasing in questions.phrasings(relation, held_out=False)}
    for relation in RELATIONS:
        assert not trained & set(questions.phrasings(relation, held_out=True))


def test_all_relations_are_asked(drawn: list[questions.Question]) -> None:
    assert {asked.relation for asked in drawn} == set(RELATIONS)
    most = max(RELATIONS, key=lambda relation: sum(asked.relation == relation for asked in drawn))
    assert most == "city population"


def test_questions_are_reproducible() -> None:
    assert [questions.question(number, seed=3) for number in (5, 6)] == [
        questions.question(number, seed=3) for number in (5, 6)
    ]
    assert questions.question(5, seed=3) != questions.question(5, seed=4)
    assert suite("held-out entities", count=20) == suite("held-out entities")[:20]


def test_every_phrasing_names_its_entity() -> None:
    for name, relation in RELATIONS.items():
        assert len(set(relation.questions)) == len(relation.questions) >= 5, name
        assert all(phrasing.count("{entity}") == 1 for phrasing in relation.questions)
