"""Texts that need two calls, the second of them with what the first has found (:mod:`demo_world.articles.chains`)."""

from __future__ import annotations

import random

from demo_world.articles.chains import chain
from demo_world.suites.item import Item


def two_calls(rng: random.Random, *, held_out: bool, held_out_phrasing: bool = False, told: bool = True) -> Item:
    """A text to complete from the first value on.

    If it is ``told`` the completion says that value and goes on to the answer; if not, the answer comes at once.
    """
    drawn = chain(rng, held_out=held_out, held_out_phrasing=held_out_phrasing, told=told)
    before, *said = drawn.parts
    text = "".join(said).lstrip()
    start, end = text.rindex(drawn.answer), text.rindex(drawn.answer) + len(drawn.answer)
    return Item(
        drawn.question, (drawn.answer,), before, context=drawn.situation, date=drawn.date,
        calls=(drawn.first[0], drawn.second[0]), between=text[:start], after=text[end:], kind=drawn.kind,
    )  # fmt: skip
