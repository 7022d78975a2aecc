"""Texts that need a question answered: somebody asks it, or a sentence comes to a fact that a question would give.

What is asked are the facts of :mod:`demo_world.questions`, in its phrasings. A sentence states only facts of kinds
that :mod:`demo_world.texts.searching` does not search for, so that each text has one right tool.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from demo_world import questions
from demo_world.relations import OPENINGS, RELATIONS, TAILS, statement_key, statements
from demo_world.texts.patterns import (
    REGISTERS,
    Known,
    Phrasing,
    capitalise_pattern,
    looked_up,
    render,
    surround,
    worded,
)
from demo_world.texts.searching import fact_slots
from demo_world.texts.text import CallSlot, Text

TOOL: Final = "QA"

_ASKED_SHARE: Final = 0.6


@cache
def asked_phrasings(relation: str, *, held_out: bool) -> tuple[Phrasing[str], ...]:
    """The whole questions about a relation on one side of the split; ``subject`` is what the tool is asked."""
    return tuple(
        Phrasing(f"question, {phrasing}", phrasing, worded(REGISTERS.asking, question=capitalise_pattern(phrasing)))
        for phrasing in questions.phrasings(relation, held_out=held_out)
        if phrasing.endswith("?")
    )


@cache
def stated_phrasings(relation: str, *, held_out: bool) -> tuple[Phrasing[str], ...]:
    """The statements about a relation on one side of the split, of a kind that is not searched for; ``subject`` is the
    one question that gives the fact, whatever the statement."""
    if RELATIONS[relation].search:
        return ()
    asked = next(phrasing for phrasing in questions.phrasings(relation, held_out=False) if phrasing.endswith("?"))
    return tuple(
        Phrasing(statement_key(relation, statement), asked, looked_up(statement))
        for statement in statements(relation, held_out=held_out)
    )


def question_text(rng: random.Random, *, held_out_values: bool = False, held_out_phrasing: bool = False) -> Text:
    """A text with one question to the question answering service, its entity and its phrasing from the wanted sides
    of the split."""
    family = asked_phrasings if rng.random() < _ASKED_SHARE else stated_phrasings
    while True:
        fact = questions.draw_fact(rng, held_out=held_out_values)
        if known := family(fact.relation, held_out=held_out_phrasing):
            break
    phrasing = rng.choice(known)
    pattern = surround(rng, rng.choice(phrasing.patterns), OPENINGS, TAILS)
    call = CallSlot(TOOL, questions.ask(phrasing.subject, fact))
    return render(pattern, fact_slots(rng, fact), Known(call, fact.answer), phrasing.key)
