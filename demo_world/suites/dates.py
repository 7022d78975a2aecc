"""Questions that only today's date answers, as Dateset has them, in the bundled calendar's manner: what they ask for
stands in the calendar's sentence."""

from __future__ import annotations

import random
from functools import cache

from demo_world.splits import is_held_out
from demo_world.suites.item import Item
from demo_world.texts import calendar
from demo_world.texts.patterns import CALL_MARK, Slots, capitalise

_Asked = tuple[str, str, calendar.DatePart]
"""Statement, question, and the part of the day that answers it."""


def date_question(rng: random.Random, *, held_out_phrasing: bool) -> Item:
    """A question for a part of a held-out day's date."""
    statement, question, part = rng.choice(_asked(held_out_phrasing))
    day = calendar.draw_date(rng, held_out=True)
    answer = part(day)
    slots = Slots(rng, {"answer": answer})
    before, after = capitalise(statement).format_map(slots).split(CALL_MARK)
    after = f"{after.removeprefix(f' {answer}')}."
    return Item(question.format_map(slots), (answer,), before, date=day, calls=((calendar.TOOL, ""),), after=after)


@cache
def _asked(held_out: bool) -> tuple[_Asked, ...]:
    return tuple(
        (statement, question, part)
        for _, phrasings, part in calendar.KINDS
        for statement, question in phrasings
        if question and "{other" not in statement and is_held_out("phrasing", f"calendar, {statement}") is held_out
    )
