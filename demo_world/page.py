"""A page in KILT's shape, and the few tools that page writers share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from demo_world.splits import stable_hash
from demo_world.tables import read

PATTERNS: Final = read("pages", dict[str, dict[str, tuple[str, ...]]])
"""What pages say, by their kind and the sentence's."""


@dataclass(frozen=True, slots=True)
class Page:
    """An encyclopedia page before it is numbered.

    `lead` holds the paragraphs above the first section, `sections` the rest by heading; a paragraph that
    starts with `BULLET` is an item of a list. `categories` are KILT's, from the package's own classes of
    things.
    """

    title: str
    lead: tuple[str, ...]
    sections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    categories: tuple[str, ...] = field(default=())

    def kilt_text(self) -> list[str]:
        """The page as KILT's `text`: the title's line, then paragraphs, headings and items, one line each."""
        lines = [self.title, *self.lead]
        for heading, paragraphs in self.sections:
            lines.append(f"Section::::{heading}.")
            lines.extend(paragraphs)
        return [line + "\n" for line in lines]

    def kilt_record(self, number: int) -> dict[str, Any]:
        """The page as one record of a KILT knowledge source, with `number` as its id."""
        return {
            "_id": str(number),
            "wikipedia_id": str(number),
            "wikipedia_title": self.title,
            "text": self.kilt_text(),
            "categories": ",".join(self.categories),
        }


BULLET = "BULLET::::- "
"""What starts a list item's line in KILT."""


def sentence(title: str, kind: str, slot: str, wording: str = "", /, **values: object) -> str:
    """What the page with this title says for `slot`, in the wordings of its kind (``tables/pages.toml``), filled with
    `values`; `wording` names the patterns where they have another name than the slot."""
    return phrase(title, slot, PATTERNS[kind][wording or slot], **values)


def phrase(title: str, slot: str, patterns: Sequence[str], **values: object) -> str:
    """One of `patterns`, filled with `values`; which one depends on the page's title and the slot alone."""
    pattern = patterns[stable_hash("phrase", slot, title) % len(patterns)]
    return pattern.format(**values)


def listed(items: Sequence[str]) -> str:
    """`items` as English lists them: `a`, `a and b`, `a, b and c`. Raises ValueError when there are none."""
    if not items:
        raise ValueError("items is empty: a list in a sentence needs at least one")
    *firsts, last = items
    return f"{', '.join(firsts)} and {last}" if firsts else last


def bullets(items: Iterable[str]) -> tuple[str, ...]:
    """`items` as lines of a KILT list."""
    return tuple(BULLET + item for item in items)
