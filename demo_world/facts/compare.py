"""Compares the tables with an encyclopedia: does a fact's value occur in the article on its thing?

    python -m demo_world.facts.compare FOLDER       # that WikiExtractor wrote

Prints how many facts of each table were found, and each that was not; those are looked at by hand. An article is taken
by its title, without brackets; a date by its year, a list by each item.
"""

from __future__ import annotations

import html
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from demo_world.facts.fact_pages import WORDING, FactRow, fact_rows
from demo_world.titles import fold

_ARTICLE: Final = re.compile(r'<doc id="[^"]*"[^>]* title="([^"]*)"[^>]*>\n(.*?)\n</doc>', re.DOTALL)
_WORDS: Final = re.compile(r"[^\W_]+")
_COMMON: Final = frozenset(
    ("a", "an", "and", "by", "for", "from", "in", "is", "of", "on", "or", "that", "the", "to", "with")
)
_ENOUGH: Final = 0.6
"""The share of a value's words that an article must have: names are spelt in several ways."""


def articles(folder: Path, titles: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Title and text, without case and accents, of the articles that are named."""
    for path in sorted(folder.rglob("wiki_*")):
        for title, text in _ARTICLE.findall(path.read_text(encoding="utf-8")):
            if (folded := fold(html.unescape(title))) in titles:
                yield folded, fold(html.unescape(text))


def occurs(value: str, text: str) -> bool:
    """Whether most words of `value` stand in `text`; of a number its digits, with commas or without."""
    words = [word for word in _WORDS.findall(fold(value).replace(",", "")) if word not in _COMMON]
    known = set(_WORDS.findall(text.replace(",", "")))
    return sum(word in known for word in words) >= _ENOUGH * len(words)


def main() -> None:
    """Prints the comparison."""
    rows = [(table, row) for table in WORDING for row in fact_rows(table)]
    texts = dict(articles(Path(sys.argv[1]), frozenset(_article(row) for _, row in rows)))
    facts, compared, found = Counter[str](), Counter[str](), Counter[str]()
    for table, row in rows:
        text = texts.get(_article(row))
        for column, values in row.values.items():
            facts[table] += len(values)
            if text is not None:
                compared[table] += len(values)
                missing = [value for value in values if not occurs(value, text)]
                found[table] += len(values) - len(missing)
                for value in missing:
                    sys.stdout.write(f"{table}\t{row.title}\t{column}\t{value}\n")
    for table in facts:
        sys.stdout.write(f"# {table}: {facts[table]} facts, {compared[table]} compared, {found[table]} found\n")
    sys.stdout.write(f"# all: {facts.total()} facts, {compared.total()} compared, {found.total()} found\n")


def _article(row: FactRow) -> str:
    return fold(row.title.partition(" (")[0])


if __name__ == "__main__":
    main()
