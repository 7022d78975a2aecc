"""What no source has enough of: small calculations, days, and foreign sentences with their meaning."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence

from training_jobs.corpora.real_text.known_texts import DAYS, FIRST_DAY
from training_jobs.corpora.real_text.overlap import Exams
from training_jobs.corpora.real_text.problems import PHRASES, bare, made, solved


def problems(rng: random.Random, names: Sequence[str], things: Sequence[str]) -> Iterator[str]:
    """Word problems that one calculation solves, one a row or a few, without end."""
    while True:
        yield "\n".join(solved(made(rng, names, things), rng) for _ in range(rng.choice((1, 1, 2, 4))))


def sums(rng: random.Random, exams: Exams) -> Iterator[str]:
    """Calculations as they are typed, but for those of the exams, without end."""
    while True:
        drawn = [bare(rng) for _ in range(rng.choice((1, 1, 3, 8)))]
        if not any(exams.asks(one.text) for one in drawn):
            yield "\n".join(solved(one, rng) for one in drawn)


def days(rng: random.Random) -> Iterator[tuple[str, dt.date]]:
    """What day it is, and the days beside it, several statements of one day a row, and that day; without end."""
    one = dt.timedelta(days=1)
    while True:
        day = FIRST_DAY + dt.timedelta(days=rng.randrange(DAYS))
        forms = rng.sample(PHRASES["days"]["text"], rng.choice((2, 3, 4)))
        told = (form.format(d=day, n=day + one, p=day - one, t=day + 2 * one, y=day.year + 1) for form in forms)
        yield " ".join(told), day


def foreign(rng: random.Random, pairs: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Foreign sentences and words with their meaning, from (language, foreign text, English); most rows have several.
    Without end, unless there are no pairs."""
    forms = PHRASES["foreign"]["text"]
    while pairs:
        lines = []
        for _ in range(rng.choice((1, 2, 4))):
            language, text, english = rng.choice(pairs)
            lines.append(rng.choice(forms).format(l=language, f=text, e=english))
        yield "\n".join(lines)
