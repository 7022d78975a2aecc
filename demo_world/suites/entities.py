"""Short facts to complete, as LAMA has them, and open questions, as WebQuestions has them."""

from __future__ import annotations

import random
import re
from typing import Final

from demo_world import questions
from demo_world.articles.wording import WORDING
from demo_world.relations import Fact, statements
from demo_world.suites.drawing import Item
from demo_world.texts import asking, searching
from demo_world.texts.numbers import draw_number
from demo_world.texts.patterns import CALL_MARK, capitalise_pattern, compose

_FRAMED_SHARE: Final = 0.5


def fact(rng: random.Random, *, held_out_phrasing: bool) -> Item:
    """A sentence of an article about a held-out entity, up to the fact that it states."""
    while True:
        known = _draw_fact(rng)
        stated = statements(known.relation, held_out=held_out_phrasing)
        asked = asking.asked_phrasings(known.relation, held_out=False)
        if stated and asked:
            break
    frame = rng.choice(WORDING.fact_frames) if rng.random() < _FRAMED_SHARE else "{statement}."
    pattern = capitalise_pattern(compose(frame, {"statement": rng.choice(stated)}))
    slots = searching.fact_slots(rng, known)
    slots["d"], slots["answer"] = draw_number(rng, "d", held_out=False), known.answer
    before, after = pattern.format_map(slots).split(CALL_MARK)
    question = questions.ask(asked[0].subject, known)
    return Item(
        before, _answers(known), before, calls=((asking.TOOL, question),), after=after.removeprefix(f" {known.answer}"),
        kind=known.relation,
    )  # fmt: skip


def question(rng: random.Random, *, held_out_phrasing: bool) -> Item:
    """A question about a held-out entity."""
    while True:
        known = _draw_fact(rng)
        if asked := asking.asked_phrasings(known.relation, held_out=held_out_phrasing):
            break
    text = questions.ask(rng.choice(asked).subject, known)
    calls = ((searching.TOOL, known.search),)
    return Item(text, _answers(known), f"{text} The answer is", calls=calls, kind=known.relation)


def _draw_fact(rng: random.Random) -> Fact:
    """A fact about a held-out entity whose name does not give the answer away, as that of `Chaves, Portugal` does."""
    while True:
        known = questions.draw_fact(rng, held_out=True)
        if not any(re.search(rf"\b{re.escape(answer)}\b", known.entity) for answer in _answers(known)):
            return known


def _answers(known: Fact) -> tuple[str, ...]:
    """The answer as the page has it; of a city's place the country alone is right too."""
    if known.relation != "city place" or ", " not in known.answer:
        return (known.answer,)
    return known.answer, known.answer.rpartition(", ")[2]
