"""What no source has enough of: small calculations, days, and foreign sentences with their meaning."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from demo_world.articles import articles
from training_jobs.corpora.real_text.problems import PHRASES, bare, made, solved

_FIRST_DAY: Final = dt.date(1950, 1, 1)
_DAYS: Final = 30_000


def problems(rng: random.Random, names: Sequence[str], things: Sequence[str]) -> Iterator[str]:
    """Word problems that one calculation solves, one a row or a few, without end."""
    while True:
        yield "\n".join(solved(made(rng, names, things), rng) for _ in range(rng.choice((1, 1, 2, 4))))


def sums(rng: random.Random) -> Iterator[str]:
    """Calculations as they are typed, without end."""
    while True:
        yield "\n".join(solved(bare(rng), rng) for _ in range(rng.choice((1, 1, 3, 8))))


def days(rng: random.Random) -> Iterator[str]:
    """What day it is, and the days beside it, several statements of one day a row, without end."""
    one = dt.timedelta(days=1)
    while True:
        day = _FIRST_DAY + dt.timedelta(days=rng.randrange(_DAYS))
        forms = rng.sample(PHRASES["days"]["text"], rng.choice((2, 3, 4)))
        yield " ".join(form.format(d=day, n=day + one, p=day - one, t=day + 2 * one, y=day.year + 1) for form in forms)


def foreign(rng: random.Random, pairs: Path) -> Iterator[str]:
    """Foreign sentences and words with their meaning, from a table of kind, language, foreign and English text; most
    rows have several. Without end."""
    names, forms = PHRASES["languages"], PHRASES["foreign"]["text"]
    rows = [line.split("\t") for line in pairs.read_text(encoding="utf-8").split("\n")]
    rows = [row for row in rows if len(row) == 4 and row[1] in names and len(row[2]) < 200]
    while True:
        lines = []
        for _ in range(rng.choice((1, 2, 4))):
            _, language, text, english = rng.choice(rows)
            lines.append(rng.choice(forms).format(l=names[language], f=text, e=english))
        yield "\n".join(lines)


def world(seed: int) -> Iterator[str]:
    """The articles of the generated world."""
    return (one.text for one in articles(1_000_000, seed=seed))
