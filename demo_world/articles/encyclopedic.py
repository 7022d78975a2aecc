"""Sentences of articles that state a fact of the encyclopedia, or ask for it: there both a question and a search
help."""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from demo_world import questions
from demo_world.articles.article import Piece
from demo_world.articles.phrasings import FACT_AGAIN, FACT_FRAMES, FACT_OPENINGS
from demo_world.splits import is_held_out
from demo_world.texts import asking, encyclopedic, fact_phrasings
from demo_world.texts.asking_phrasings import STATEMENTS
from demo_world.texts.encyclopedic import city_pool
from demo_world.texts.numbers import draw_number
from demo_world.texts.patterns import Known, Slots, capitalise_pattern, compose, render, surround
from demo_world.texts.text import CallSlot
from demo_world.texts.words import FACT_TAILS

_ASKED_SHARE: Final = 0.3
_AGAIN_SHARE: Final = 0.35
_OPENING_SHARE: Final = 0.3
_COUNTRY_SHARE: Final = 0.35
"""Of the facts about countries only so many are told: a small model would know them all by heart."""

_SEARCHED: Final = {"place": "country"}
"""What a search calls a relation, where a question calls it otherwise."""
_STATED: Final = {
    "city population": fact_phrasings.POPULATION, "country population": fact_phrasings.POPULATION,
    "city place": fact_phrasings.COUNTRY, "city time zone": fact_phrasings.TIME_ZONE,
    "country capital": fact_phrasings.CAPITAL, "country area": fact_phrasings.AREA,
    "city currency": fact_phrasings.CURRENCY, "country currency": fact_phrasings.CURRENCY,
    "country continent": fact_phrasings.CONTINENT,
}  # fmt: skip


@cache
def statements(relation: str, *, held_out: bool = False) -> tuple[str, ...]:
    """The clauses on one side of the split that state a relation of :mod:`demo_world.questions`; none for some."""
    if relation in _STATED:
        name = relation.split(" ", 1)[1]
        key = _SEARCHED.get(name, name)
        return tuple(s for s in _STATED[relation] if is_held_out("phrasing", f"{key}, {s}") is held_out)
    return tuple(s for s in STATEMENTS.get(relation, ()) if is_held_out("phrasing", f"{relation}, {s}") is held_out)


def draw_fact(rng: random.Random) -> questions.Fact:
    """A trainable fact, most of them about cities: there are far more than a small model can hold."""
    while True:
        fact = questions.draw_fact(rng, held_out=False)
        if not fact.relation.startswith("country") or rng.random() < _COUNTRY_SHARE:
            return fact


def search_words(fact: questions.Fact) -> str:
    """What a search for the fact is: the page's title and the relation's name."""
    name = fact.relation.split(" ", 1)[1]
    return f"{fact.title} {_SEARCHED.get(name, name)}"


def fact_piece(rng: random.Random) -> Piece:
    """A fact in a sentence, stated or asked for, often said again in other words."""
    while True:
        fact = draw_fact(rng)
        stated, asked = statements(fact.relation), asking.asked_phrasings(fact.relation, held_out=False)
        if not asked:
            continue
        phrasing = rng.choice(asked)
        if not stated or rng.random() < _ASKED_SHARE:
            pattern = surround(rng, rng.choice(phrasing.patterns), fact_phrasings.OPENINGS, FACT_TAILS)
            question = questions.ask(phrasing.subject, fact)
        else:
            pattern = _framed(rng, rng.choice(stated))
            question = questions.ask(asked[0].subject, fact)
        given = {"entity": fact.entity, "neighbour": rng.choice(city_pool(held_out=False)).name}
        slots = Slots(rng, given | {"d": draw_number(rng, "d", held_out=False)})
        search = search_words(fact)
        text = render(pattern, slots, Known(CallSlot(encyclopedic.TOOL, search), fact.answer), phrasing.key)
        after = rng.choice(FACT_AGAIN).format_map(slots) if rng.random() < _AGAIN_SHARE else ""
        inputs = ((asking.TOOL, question), (encyclopedic.TOOL, search))
        told = Piece(text, inputs)
        return told.followed_by(after) if after else told


def _framed(rng: random.Random, statement: str) -> str:
    pattern = capitalise_pattern(compose(rng.choice(FACT_FRAMES), {"statement": statement}))
    if rng.random() < _OPENING_SHARE:
        pattern = f"{capitalise_pattern(rng.choice(FACT_OPENINGS))} {pattern}"
    return pattern
