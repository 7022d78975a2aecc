"""Sentences of articles that state a fact of the encyclopedia, or ask for it: there both a question and a search
help."""

from __future__ import annotations

import random
from typing import Final

from demo_world import questions
from demo_world.articles.article import Piece
from demo_world.articles.wording import WORDING
from demo_world.relations import OPENINGS, TAILS, Fact, statements
from demo_world.texts import asking, searching
from demo_world.texts.numbers import draw_number
from demo_world.texts.patterns import Known, capitalise_pattern, compose, render, surround
from demo_world.texts.text import CallSlot

_ASKED_SHARE: Final = 0.3
_AGAIN_SHARE: Final = 0.35
_OPENING_SHARE: Final = 0.3
_COUNTRY_SHARE: Final = 0.35
"""Of the facts about countries only so many are stated: a small model would know them all by heart."""


def draw_fact(rng: random.Random) -> Fact:
    """A trainable fact, most of them about cities: there are far more than a small model can hold."""
    while True:
        fact = questions.draw_fact(rng, held_out=False)
        if not fact.relation.startswith("country") or rng.random() < _COUNTRY_SHARE:
            return fact


def fact_piece(rng: random.Random) -> Piece:
    """A fact in a sentence, stated or asked for, often said again in other words."""
    while True:
        fact = draw_fact(rng)
        stated, asked = statements(fact.relation, held_out=False), asking.asked_phrasings(fact.relation, held_out=False)
        if not asked:
            continue
        phrasing = rng.choice(asked)
        if not stated or rng.random() < _ASKED_SHARE:
            pattern = surround(rng, rng.choice(phrasing.patterns), OPENINGS, TAILS)
            question = questions.ask(phrasing.subject, fact)
        else:
            pattern = _framed(rng, rng.choice(stated))
            question = questions.ask(asked[0].subject, fact)
        slots = searching.fact_slots(rng, fact)
        slots["d"] = draw_number(rng, "d", held_out=False)
        text = render(pattern, slots, Known(CallSlot(searching.TOOL, fact.search), fact.answer), phrasing.key)
        after = rng.choice(WORDING.fact_again).format_map(slots) if rng.random() < _AGAIN_SHARE else ""
        inputs = ((asking.TOOL, question), (searching.TOOL, fact.search))
        piece = Piece(text, inputs)
        return piece.followed_by(after) if after else piece


def _framed(rng: random.Random, statement: str) -> str:
    pattern = capitalise_pattern(compose(rng.choice(WORDING.fact_frames), {"statement": statement}))
    if rng.random() < _OPENING_SHARE:
        pattern = f"{capitalise_pattern(rng.choice(WORDING.fact_openings))} {pattern}"
    return pattern
