"""Facts of the bundled encyclopedia as people ask for them or state them, each with a question that asks for it.

A base model reads those of half of the things, under a call's result and in tools' prompts; the teaching has the other
half.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from demo_world.encyclopedia import pages
from demo_world.facts.fact_pages import Value, fact_rows
from demo_world.page import listed
from demo_world.questions import ask, draw_fact, phrasings
from demo_world.relations import statements
from demo_world.splits import is_held_out
from training_jobs.corpora.real_text.overlap import Exams
from training_jobs.corpora.real_text.sources import SENTENCE

_FORMS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    Path(__file__).with_name("facts.toml").read_text(encoding="utf-8")
)
_GEOGRAPHY_SHARE: Final = 0.3
_ASKED_SHARE: Final = 0.5
_GEOGRAPHY: Final = ("country ", "city population", "city place")
_ARTICLES: Final = ("the ", "an ", "a ")


Side = Literal["read", "taught"]
_TAUGHT_PERCENT: Final = 50.0


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact on ``thing``, asked and answered or stated, the ``answer`` in this ``text``, and a ``question`` for it,
    the text's own if that asks."""

    thing: str
    text: str
    answer: str
    question: str


def facts(rng: random.Random, exams: Exams, side: Side | None = None) -> Iterator[StatedFact]:
    """Facts but for those that an exam asks in these words, of the things on one ``side`` or of all, without end."""
    while True:
        fact = _of_geography(rng) if rng.random() < _GEOGRAPHY_SHARE else _of_table(rng)
        taught = is_held_out("told fact", fact.thing, percent=_TAUGHT_PERCENT)
        if side in (None, "taught" if taught else "read") and not exams.asks(fact.text.partition(fact.answer)[0]):
            yield fact


def found(fact: StatedFact) -> str:
    """What a search for the thing shows: its page's first sentence that says the answer, under the title; the answer
    alone, if no sentence says it so."""
    name = without_article(fact.thing)
    title, answer = f"{name[:1].upper()}{name[1:]}", re.compile(rf"(?<!\w){re.escape(fact.answer)}(?!\w)")
    saying = (one for one in SENTENCE.split(_pages().get(title, "")) if answer.search(one))
    return next((f"{title} > {one}" for one in saying), fact.answer)


def without_article(name: str) -> str:
    """What is searched for: ``Eiffel Tower``."""
    return next((name.removeprefix(one) for one in _ARTICLES if name.startswith(one)), name)


def _of_table(rng: random.Random) -> StatedFact:
    table, number, column = rng.choice(_known())
    row = fact_rows(table)[number]
    value, forms = Value(listed(row.values[column])), _FORMS[table][column]
    name = {"name": row.name, "Name": row.name[:1].upper() + row.name[1:], "bare": without_article(row.name)}
    form = rng.choice(forms)
    asking = form if form.endswith("?") else rng.choice([one for one in forms if one.endswith("?")])
    text = (form if "{value" in form else f"{form} {{value}}") + "."
    return StatedFact(row.name, text.format(**name, value=value), value, asking.format(**name))


def _of_geography(rng: random.Random) -> StatedFact:
    while True:
        fact = draw_fact(rng, held_out=False)
        if not fact.relation.startswith(_GEOGRAPHY):
            continue
        question = ask(rng.choice(phrasings(fact.relation, held_out=False)), fact)
        if rng.random() < _ASKED_SHARE:
            return StatedFact(fact.entity, f"{question} {fact.answer}.", fact.answer, question)
        plain = [one for one in statements(fact.relation, held_out=False) if "{person" not in one.lower()]
        if plain:
            stated = rng.choice(plain).replace("|", "").format(entity=fact.entity, answer=fact.answer)
            return StatedFact(fact.entity, f"{stated[:1].upper()}{stated[1:]}.", fact.answer, question)


@cache
def _pages() -> Mapping[str, str]:
    """Text by title."""
    return {one.title: " ".join((*one.lead, *(line for _, lines in one.sections for line in lines))) for one in pages()}


@cache
def _known() -> Sequence[tuple[str, int, str]]:
    """Table, row and column of each fact that there is a form for."""
    return [
        (table, number, column)
        for table, columns in _FORMS.items()
        for number, row in enumerate(fact_rows(table))
        for column in columns
        if column in row.values
    ]
