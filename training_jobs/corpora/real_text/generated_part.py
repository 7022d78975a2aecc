"""What no source has enough of: small calculations, days, and foreign sentences with their meaning.

`typed`, `word_problems`, `asked_days` and `asked_foreign` are for the teaching alone: what people type, in forms that
no base model reads.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from typing import Final

from training_jobs.corpora.real_text.days import any_day, beside, filled, of_day
from training_jobs.corpora.real_text.known_texts import as_typed
from training_jobs.corpora.real_text.overlap import Exams
from training_jobs.corpora.real_text.problems import PHRASES, bare, made, solved, stepped, taught

_SENTENCE_WORDS: Final = 3
_BESIDE_SHARE: Final = 0.5
"""Of the days asked for, those beside today."""
_WITHIN_SHARE: Final = 0.5
_ANSWERS: Final = ("The answer is {}.", "It is {}.", "{}.")


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
    """Calculations as people type them, in other forms than `sums`, but for those of the exams; one a row, without
    end."""
    while True:
        one = stepped(rng, PHRASES["typed"])
        if not exams.asks(one.text):
            yield f"{one.text}{'' if one.text.endswith('$') else ' '}{one.answer}{one.goes_on or '.'}"


def word_problems(rng: random.Random, names: Sequence[str], things: Sequence[str], exams: Exams) -> Iterator[str]:
    """Word problems in more forms than `problems`, with the answer alone behind them, but for those of the exams; one a
    row, without end."""
    while True:
        problem = taught(rng, names, things)
        if not (exams.asks(problem.text) or exams.overlaps(problem.text)):
            yield f"{problem.text} {rng.choice(_ANSWERS).format(problem.answer)}"


def days(rng: random.Random) -> Iterator[tuple[str, dt.date]]:
    """What day it is, whole, then more of it and of days beside it, a row, and that day; without end.

    In half of the rows the day stands in each sentence, before what follows from it, where a call will stand.
    """
    whole, *more = PHRASES["days"]["today"]
    while True:
        day = any_day(rng)
        forms = [*rng.sample(more, rng.choice((0, 1))), *(beside(rng) for _ in range(rng.choice((2, 4, 8))))]
        today, _ = filled(whole, of_day(day, rng))
        sentences = [filled(form, of_day(day, rng)) for form in forms]
        if rng.random() < _WITHIN_SHARE:
            within = (f"{before} ({today.rstrip('.')}){text[len(before) :]}" for text, before in sentences)
            yield " ".join(within).strip(), day
        else:
            yield " ".join((today, *(text for text, _ in sentences))), day


def asked_days(rng: random.Random) -> Iterator[tuple[str, dt.date]]:
    """What day it is or a day beside it, in further forms too, one a row, and the day; without end."""
    today = PHRASES["days"]["today"] + PHRASES["days"]["taught"]
    while True:
        day = any_day(rng)
        form = beside(rng) if rng.random() < _BESIDE_SHARE else rng.choice(today)
        yield filled(form, of_day(day, rng))[0], day


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


def everyday(rng: random.Random, pairs: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The English of such pairs alone, one to three sentences a row, for the teaching: what needs no tool."""
    sentences = [english for _, _, english in pairs if len(english.split()) >= _SENTENCE_WORDS]
    while sentences:
        yield " ".join(rng.choices(sentences, k=rng.choice((1, 2, 3))))


def _with_meaning(rng: random.Random, pairs: Sequence[tuple[str, str, str]], forms: Sequence[str]) -> str:
    language, *pair = rng.choice(pairs)
    text, english = as_typed(rng, *pair)
    return rng.choice(forms).format(l=language, f=text, e=english)
