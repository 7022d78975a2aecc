"""The relations that facts are about, and how people ask for them and texts state them (``tables/relations.toml``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from demo_world.splits import on_side
from demo_world.tables import read


@dataclass(frozen=True, slots=True)
class Relation:
    """Phrasings of the relations that are worded alike.

    Args:
        names: those relations: ``city population``, ``country capital``, ...
        questions: how people ask; ``{entity}`` is the name as it stands in a sentence.
        statements: clauses that come to the answer after the entity.
        search: what a search calls them, where texts look such facts up; empty where they ask for them.
    """

    names: tuple[str, ...]
    questions: tuple[str, ...]
    statements: tuple[str, ...]
    search: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """What questions and sentences are made of: the page's title, the entity's name in a sentence, the relation (``city
    population``) and the answer (empty: none)."""

    title: str
    entity: str
    relation: str
    answer: str

    @property
    def search(self) -> str:
        """The search that finds it: the page's title and the relation's name, the same for every phrasing."""
        return f"{self.title} {RELATIONS[self.relation].search or self.relation.split(' ', 1)[1]}"


@dataclass(frozen=True, slots=True)
class _RelationTable:
    openings: tuple[str, ...]
    tails: tuple[str, ...]
    relations: tuple[Relation, ...]


_TABLE: Final = read("relations", _RelationTable)
OPENINGS: Final = _TABLE.openings
TAILS: Final = _TABLE.tails
"""What texts say before and after a fact."""
RELATIONS: Final[Mapping[str, Relation]] = {name: one for one in _TABLE.relations for name in one.names}
"""Every relation by its name."""


@cache
def statements(name: str, *, held_out: bool) -> tuple[str, ...]:
    """The clauses on one side of the split that state a relation; none for some.

    Raises:
        KeyError: there is no such relation.
    """
    return on_side("phrasing", RELATIONS[name].statements, held_out=held_out, key=partial(statement_key, name))


def statement_key(name: str, statement: str) -> str:
    """What the split calls a statement of a relation."""
    return f"{RELATIONS[name].search or name}, {statement}"
