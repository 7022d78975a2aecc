"""What no source has enough of: small calculations, days, and foreign sentences with their meaning.

`typed`, `word_problems`, `asked_days` and `asked_foreign` are for the teaching alone: what people type, in forms that
no base model reads.
"""

from __future__ import annotations

import datetime as dt
import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from training_jobs.corpora.real_text.known_texts import DAYS, FIRST_DAY
from training_jobs.corpora.real_text.overlap import Exams
from training_jobs.corpora.real_text.problems import PHRASES, bare, made, plain_number, solved, taught

_OPERATIONS: Final[Mapping[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_ANSWERS: Final = ("The answer is {}.", "It is {}.", "{}.")
_WHOLE_SHARE: Final = 0.8
"""Of the divisions, those without a rest."""


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


def typed(rng: random.Random, exams: Exams) -> Iterator[str]:
    """Calculations as people type them, in more forms and steps than `sums`, but for those of the exams; one a row,
    without end."""
    while True:
        pattern = rng.choice(PHRASES["typed"])
        numbers = {name: Decimal(rng.randint(2, rng.choice((20, 100, 1_000)))) for name in "abc"}
        numbers["s"] = Decimal(rng.choice((5, 10, 15, 20, 25, 30, 40, 50, 75, rng.randint(2, 60))))
        numbers["a"] = (
            max(numbers["a"], numbers["b"]) if "-" in pattern["sum"] or "b a /" in pattern["sum"] else numbers["a"]
        )
        if pattern["sum"] == "a b /" and rng.random() < _WHOLE_SHARE:
            numbers["a"] *= numbers["b"]
        text = rng.choice(pattern["text"]).format_map(numbers)
        if not exams.asks(text):
            answer = plain_number(_worked_out(pattern["sum"], numbers))
            yield f"{text}{'' if text.endswith('$') else ' '}{answer}."


def word_problems(rng: random.Random, names: Sequence[str], things: Sequence[str], exams: Exams) -> Iterator[str]:
    """Word problems in more forms than `problems`, with the answer alone behind them, but for those of the exams; one a
    row, without end."""
    while True:
        problem = taught(rng, names, things)
        if not (exams.asks(problem.text) or exams.overlaps(problem.text)):
            yield f"{problem.text} {rng.choice(_ANSWERS).format(problem.answer)}"


def _worked_out(steps: str, numbers: Mapping[str, Decimal]) -> Decimal:
    stack: list[Decimal] = []
    for step in steps.split():
        if step in _OPERATIONS:
            second, first = stack.pop(), stack.pop()
            stack.append(_OPERATIONS[step](first, second))
        else:
            stack.append(numbers[step] if step in numbers else Decimal(step))
    return stack[0]


def days(rng: random.Random) -> Iterator[tuple[str, dt.date]]:
    """What day it is, and the days beside it, several statements of one day a row, and that day; without end."""
    while True:
        day = FIRST_DAY + dt.timedelta(days=rng.randrange(DAYS))
        forms = rng.sample(PHRASES["days"]["text"], rng.choice((2, 3, 4)))
        yield " ".join(_of_day(form, day, rng) for form in forms), day


def asked_days(rng: random.Random) -> Iterator[tuple[str, dt.date]]:
    """What day it is in further forms, most of them alone in a row, and the day; without end."""
    while True:
        day = FIRST_DAY + dt.timedelta(days=rng.randrange(DAYS))
        forms = rng.sample(PHRASES["days"]["text"] + PHRASES["days"]["taught"], rng.choice((1, 1, 2)))
        yield " ".join(_of_day(form, day, rng) for form in forms), day


def _of_day(form: str, day: dt.date, rng: random.Random) -> str:
    one = dt.timedelta(days=1)
    beside = {"d": day, "n": day + one, "p": day - one, "t": day + 2 * one, "y": day.year + 1, "y0": day.year - 1}
    if "{k}" in form or "{m}" in form:
        k, m = rng.randint(2, 10), rng.randint(2, 40)
        beside |= {"k": k, "l": day + k * one, "e": day - k * one, "m": m, "after": day.year + m, "ago": day.year - m}
    return form.format_map(beside)


def foreign(rng: random.Random, pairs: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Foreign sentences and words with their meaning, from (language, foreign text, English); most rows have several.
    Without end, unless there are no pairs."""
    while pairs:
        lines = [_with_meaning(rng, pairs, PHRASES["foreign"]["text"]) for _ in range(rng.choice((1, 2, 4)))]
        yield "\n".join(lines)


def asked_foreign(rng: random.Random, pairs: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The same in further forms, one a row."""
    while pairs:
        yield _with_meaning(rng, pairs, PHRASES["foreign"]["text"] + PHRASES["foreign"]["taught"])


def _with_meaning(rng: random.Random, pairs: Sequence[tuple[str, str, str]], forms: Sequence[str]) -> str:
    language, text, english = rng.choice(pairs)
    return rng.choice(forms).format(l=language, f=text, e=english)
