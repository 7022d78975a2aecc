"""Pages about things that a general reader asks for, and more sections for pages that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from string import Formatter
from typing import Final

from demo_world.page import Page, listed, phrase
from demo_world.tables import read

Patterns = Mapping[str, tuple[str, ...]]
"""How a column is worded: ``{name}`` is the row's name in a sentence, ``{column}`` a value of the row."""


@dataclass(frozen=True, slots=True)
class FactWording:
    """How the rows of one table are worded.

    Args:
        kind: in brackets after a title that another page has; empty where rows add sections to that page.
        category: of their pages.
        lead: sentences above the first heading.
        sections: sentences by heading.
        turned: by column, what the page of a value there says of the rows that have it: ``{name}`` is the value,
            ``{rows}`` their names.
    """

    kind: str = ""
    category: str = ""
    lead: Patterns = field(default_factory=dict)
    sections: Mapping[str, Patterns] = field(default_factory=dict)
    turned: Patterns = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FactRow:
    """A thing, and what is known of it by column; ``name`` as it stands in a sentence, ``the Nile``."""

    title: str
    name: str
    values: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class _Draft:
    """What is said on one page, before it is one."""

    kind: str
    category: str
    lead: list[str] = field(default_factory=list)
    sections: dict[str, list[str]] = field(default_factory=dict)

    def page_sections(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The sections as a page has them."""
        return tuple((heading, (" ".join(sentences),)) for heading, sentences in self.sections.items())


WORDING: Final = read("facts", dict[str, FactWording])
"""By table."""
_SEVERAL: Final = ";"
_DAY: Final = re.compile(r"[A-Z][a-z]+ \d{1,2}(,|$)")
_CENTURY: Final = re.compile(r"\d(st|nd|rd|th) century")
_ARTICLE: Final = re.compile(r"(the|an?) ")
_WORKS: Final = "Works"


@cache
def fact_rows(table: str) -> tuple[FactRow, ...]:
    """The rows of a table, in its order.

    Raises:
        ValueError: a row has another number of columns than the first line.
    """
    text = (resources.files(__package__) / f"{table}.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    (_, *columns), *rows = lines
    found = []
    for first, *cells in rows:
        known = {name: _several(cell) for name, cell in zip(columns, cells, strict=True) if cell}
        found.append(FactRow(_title(first), first.partition(" (")[0], known))
    return tuple(found)


@cache
def fields(pattern: str) -> frozenset[str]:
    """The names of what a pattern has places for."""
    return frozenset(name for _, name, _, _ in Formatter().parse(pattern) if name)


def with_facts(pages: Iterable[Page]) -> Iterator[Page]:
    """`pages`, with more sections where a table adds to one, and then a page for each other title of the tables."""
    added, drafts = _drafts()
    for page in pages:
        if page.title in drafts:
            namesake = drafts.pop(page.title)
            drafts[f"{page.title} ({namesake.kind})"] = namesake
        more = added.get(page.title)
        yield replace(page, sections=(*page.sections, *more.page_sections())) if more else page
    for title, draft in drafts.items():
        sections, categories = draft.page_sections(), (draft.category,) if draft.category else ()
        if draft.lead:
            yield Page(title, (" ".join(draft.lead),), sections, categories)
        else:
            (_, lead), *rest = sections
            yield Page(title, lead, tuple(rest), categories)


def _drafts() -> tuple[dict[str, _Draft], dict[str, _Draft]]:
    """By title, in the order of the tables: what is added to pages, and pages; what is turned around comes last."""
    added, drafts = dict[str, _Draft](), dict[str, _Draft]()
    for table, wording in WORDING.items():
        of_table = drafts if wording.kind else added
        for row in fact_rows(table):
            draft = of_table.setdefault(row.title, _Draft(wording.kind, wording.category))
            draft.lead.extend(_sentences(row, wording.lead))
            for heading, patterns in wording.sections.items():
                if sentences := list(_sentences(row, patterns)):
                    draft.sections.setdefault(heading, []).extend(sentences)
    for table, wording in WORDING.items():
        for column, turned in wording.turned.items():
            for value, rows in _turned(table, column).items():
                draft = drafts.setdefault(_title(value), _Draft(_WORKS.lower(), ""))
                said = phrase(value, f"{table} {column}", turned, name=value, rows=listed(rows))
                draft.sections.setdefault(_WORKS, []).append(_sentence_start(said))
    return added, drafts


def _sentences(row: FactRow, patterns: Patterns) -> Iterator[str]:
    values = {column: Value(listed(several)) for column, several in row.values.items()}
    known, covered = values.keys() | {"name"}, set[str]()
    for column, every in patterns.items():
        fitting = [one for one in every if fields(one) <= known]
        if column not in values or column in covered or not fitting:
            continue
        most = max(len(fields(one)) for one in fitting)
        fullest = [one for one in fitting if len(fields(one)) == most]
        covered |= fields(fullest[0])
        yield _sentence_start(phrase(row.title, column, fullest, name=row.name, **values))


class Value(str):
    """A value in a sentence; ``{date:when}`` has its preposition: on May 5, 1818; in 1818; in the 19th century."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        if spec != "when":
            return str(self)
        if _CENTURY.search(self):
            return f"in the {self}"
        return f"on {self}" if _DAY.match(self) else f"in {self}"


def _turned(table: str, column: str) -> dict[str, list[str]]:
    """The names of the rows by each proper name in a column."""
    rows: dict[str, list[str]] = {}
    for row in fact_rows(table):
        for value in row.values.get(column, ()):
            if value.removeprefix("the ")[0].isupper():
                rows.setdefault(value, []).append(row.name)
    return rows


def _several(cell: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in cell.split(_SEVERAL))


def _title(name: str) -> str:
    return _sentence_start(_ARTICLE.sub("", name, count=1) if _ARTICLE.match(name) else name)


def _sentence_start(text: str) -> str:
    return text[:1].upper() + text[1:]
