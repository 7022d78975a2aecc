"""Facts of the bundled encyclopedia as people ask for them or state them, one a row: texts for the teaching alone."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from demo_world.facts.fact_pages import Value, fact_rows
from demo_world.page import listed
from demo_world.questions import ask, draw_fact, phrasings
from demo_world.relations import statements
from training_jobs.corpora.real_text.overlap import Exams

_FORMS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    Path(__file__).with_name("facts.toml").read_text(encoding="utf-8")
)
_GEOGRAPHY_SHARE: Final = 0.15
_ASKED_SHARE: Final = 0.5
_GEOGRAPHY: Final = ("country ", "city population", "city place")
_ARTICLES: Final = ("the ", "an ", "a ")


@dataclass(frozen=True, slots=True)
class ToldFact:
    """A fact on ``thing``, asked and answered or stated, and the ``answer`` in this ``text``."""

    thing: str
    text: str
    answer: str


def facts(rng: random.Random, exams: Exams) -> Iterator[ToldFact]:
    """Facts but for those that an exam asks in these words, without end."""
    while True:
        fact = _of_geography(rng) if rng.random() < _GEOGRAPHY_SHARE else _of_table(rng)
        if not exams.asks(fact.text.partition(fact.answer)[0]):
            yield fact


def _of_table(rng: random.Random) -> ToldFact:
    table, number, column = rng.choice(_known())
    row = fact_rows(table)[number]
    bare = next((row.name.removeprefix(one) for one in _ARTICLES if row.name.startswith(one)), row.name)
    value, form = Value(listed(row.values[column])), rng.choice(_FORMS[table][column])
    form += "." if "{value" in form else " {value}."
    text = form.format(name=row.name, Name=row.name[:1].upper() + row.name[1:], bare=bare, value=value)
    return ToldFact(row.name, text, value)


def _of_geography(rng: random.Random) -> ToldFact:
    while True:
        fact = draw_fact(rng, held_out=False)
        if not fact.relation.startswith(_GEOGRAPHY):
            continue
        if rng.random() < _ASKED_SHARE:
            question = ask(rng.choice(phrasings(fact.relation, held_out=False)), fact)
            return ToldFact(fact.entity, f"{question} {fact.answer}.", fact.answer)
        plain = [one for one in statements(fact.relation, held_out=False) if "{person" not in one.lower()]
        if plain:
            stated = rng.choice(plain).replace("|", "").format(entity=fact.entity, answer=fact.answer)
            return ToldFact(fact.entity, f"{stated[:1].upper()}{stated[1:]}.", fact.answer)


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
