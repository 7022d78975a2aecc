"""Real texts of which it is known what a tool would say to them: a problem's sum, a passage's question, a fact's, a
foreign sentence's meaning, a day.

The loop shows a model such texts under a call's result and in the form of a tool's prompt
(`training_jobs/corpora/base/drawing.py`); here no tool need be running, since the sources have the answers.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from demo_world.articles import Truth
from demo_world.articles.article import join
from training_jobs.corpora.base.drawing import Heading
from training_jobs.corpora.real_text.days import any_day, beside, filled, of_day
from training_jobs.corpora.real_text.facts_part import StatedFact, found
from training_jobs.corpora.real_text.problems import PHRASES, Problem, bare, made

_FAMILIES: Final[Mapping[str, int]] = {"problem": 5, "passage": 3, "fact": 3, "foreign": 2, "day": 4}
_FAMILIES_OF: Final[Mapping[str | None, Sequence[str]]] = {
    "Calculator": ("problem",), "Calendar": ("day",), "WikiSearch": ("passage", "fact"), "QA": ("passage", "fact"),
    "MT": ("foreign",),
}  # fmt: skip
_EMPHASIS: Final = 8
_PIECES: Final = ((1, 2), (70, 30))
_CUT_SHARE: Final = 0.4
"""Of the problems, those from GSM8K's; most others are made from patterns."""
_BARE_SHARE: Final = 0.5
_ASKED_SHARE: Final = 0.5
"""Of the passages, those of which the question itself and its answer are the text: what is asked is then in the text,
to be copied into the call."""
_ASKED: Final = ("{q} {a}.", "{q} {a}.", "{q} The answer is {a}.", "{q} It is {a}.", "Question: {q} Answer: {a}.")
_UNSTOPPED_SHARE: Final = 0.5
"""Of the foreign sentences, those without the stop at their end: people seldom type it."""
_STOPS: Final = ".。।"
_MARKS: Final = " .,:;?!"
_NOT_SEARCHED: Final = frozenset(PHRASES["words"]["not searched"])
"""Words that no page is about."""
_BESIDE_SHARE: Final = 0.65
"""Of the days, those asked for beside today: tomorrow, in so many days, years ago."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """A text with the calls that help in it."""

    plain: str
    known: tuple[Truth, ...]

    def truths(self, start: int = 0) -> tuple[Truth, ...]:
        """The calls that help, where it begins at character ``start``."""
        return tuple(replace(one, offset=one.offset + start) for one in self.known)


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """Draws texts, as `drawing.Prose` says.

    ``problems`` are cut from solutions; ``passages`` are questions with the answer, the sentence that has it and its
    page's title; ``pairs`` a language, a foreign text and its English; ``facts`` gives facts of the encyclopedia.
    """

    problems: Sequence[Problem]
    passages: Sequence[tuple[str, str, str, str]]
    pairs: Sequence[tuple[str, str, str]]
    names: Sequence[str]
    things: Sequence[str]
    facts: Callable[[random.Random], Iterator[StatedFact]]

    def __call__(self, rng: random.Random, tool: str | None) -> tuple[str, tuple[Truth, ...], dt.date | None]:
        """A text, the calls that help in it, and the day it names."""
        families = dict(_FAMILIES)
        for family in _FAMILIES_OF.get(tool, ()):
            families[family] *= _EMPHASIS
        sizes, weights = _PIECES
        drawn, day = [], None
        for family in rng.choices(tuple(families), tuple(families.values()), k=rng.choices(sizes, weights)[0]):
            if family == "day":
                if day is not None:
                    continue
                one, day = _day(rng)
            else:
                one = self._piece(rng, family)
            drawn.append(one)
        text, truths = join(drawn, ["\n"] * (len(drawn) - 1))
        return text, truths, day

    def _piece(self, rng: random.Random, family: str) -> KnownText:
        if family == "problem":
            if rng.random() < _CUT_SHARE:
                return _problem(rng.choice(self.problems))
            return _problem(bare(rng) if rng.random() < _BARE_SHARE else made(rng, self.names, self.things))
        if family == "fact":
            return _fact(next(self.facts(rng)))
        if family == "passage":
            return _passage(rng, *rng.choice(self.passages))
        return _foreign(rng, *rng.choice(self.pairs))


def said(heading: Heading) -> str | None:
    """What the tool says to a heading, as the source knows it."""
    if heading.answer is None or heading.date is None:
        return heading.answer
    day = dt.date.fromisoformat(heading.date)
    return f"Today is {day:%A}, {day:%B} {day.day}, {day.year}."


def _problem(problem: Problem) -> KnownText:
    before = problem.text.removesuffix("$").rstrip()
    sign = " $" if problem.text.endswith("$") else " "
    if not problem.goes_on and before[-1] in ".?":
        before += " The answer is"
    text = f"{before}{sign}{problem.answer}{problem.goes_on or '.'}"
    return KnownText(text, (Truth("Calculator", len(before), problem.sum, problem.answer),))


# A search is the text before its answer, or the question in it: a name finds the page, the other words the sentence on
# it, and a small model makes words up when it has to leave some out (record 034).
def _passage(rng: random.Random, question: str, answer: str, sentence: str, title: str) -> KnownText:
    shown = f"{title} > {sentence}" if title else sentence
    if rng.random() < _ASKED_SHARE:
        text = rng.choice(_ASKED).format(q=question, a=answer)
        at, words = text.rindex(f" {answer}"), question.strip(_MARKS)
    else:
        text, at = sentence, sentence.index(f" {answer}")
        words = text[:at].strip(_MARKS)
    searched = (Truth("WikiSearch", at, words, answer, shown),) if _can_be_searched(words) else ()
    return KnownText(text, (Truth("QA", at, question, answer), *searched))


def _fact(fact: StatedFact) -> KnownText:
    at = fact.text.rindex(f" {fact.answer}")
    words = fact.text[:at].strip(_MARKS)
    searched = Truth("WikiSearch", at, words if _can_be_searched(words) else fact.thing, fact.answer, found(fact))
    return KnownText(fact.text, (Truth("QA", at, fact.question, fact.answer), searched))


def _can_be_searched(search: str) -> bool:
    """Whether it has a word that a page may be about."""
    return any(word.lower() not in _NOT_SEARCHED for word in search.split())


def _foreign(rng: random.Random, language: str, foreign: str, english: str) -> KnownText:
    foreign, english = as_typed(rng, foreign, english)
    before, _, _ = rng.choice(_ENGLISH_LAST).format(l=language, f=foreign, e="\0").partition(" \0")
    return KnownText(f"{before} {english}", (Truth("MT", len(before), foreign, english),))


def as_typed(rng: random.Random, foreign: str, english: str) -> tuple[str, str]:
    """A foreign text and its meaning; without the stop at their ends as often as with it."""
    if rng.random() < _UNSTOPPED_SHARE and foreign[-1:] in _STOPS:
        return foreign.rstrip(_STOPS), english.rstrip(_STOPS)
    return foreign, english


def _day(rng: random.Random) -> tuple[KnownText, dt.date]:
    form = beside(rng) if rng.random() < _BESIDE_SHARE else rng.choice(PHRASES["days"]["today"])
    day = any_day(rng)
    text, before = filled(form, of_day(day, rng))
    return KnownText(text, (Truth("Calendar", len(before), "", text[len(before) + 1 :].rstrip(".")),)), day


_ENGLISH_LAST: Final = [form for form in PHRASES["foreign"]["text"] if form.endswith(" {e}")]
