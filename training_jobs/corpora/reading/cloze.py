"""Questions made of sentences of Wikipedia by rule: one name or number of a sentence is asked for in its own words."""

from __future__ import annotations

import calendar
import random
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from training_jobs.corpora.real_text.overlap import Part
from training_jobs.corpora.real_text.sources import SENTENCE, articles

_MONTH: Final = rf"(?:{'|'.join(calendar.month_name[1:])})"
_ANSWER: Final = re.compile(
    rf"(?<=[\w,;] )(?:{_MONTH} \d{{1,2}}(?:, \d{{4}})?"
    r"|[A-Z][\w'’-]+(?: (?:(?:of|the|de|von) )?[A-Z][\w'’-]+)*|\d[\d.,]*\d|\d)(?!\w)"
)
"""A day, a name or a number that does not begin its sentence."""
_DATE: Final = re.compile(rf"{_MONTH}\b|\d{{4}}$")
_OF_PLACE: Final = frozenset({"in", "at", "to", "from", "near"})
_NOT_LAST: Final = frozenset({"in", "on", "at", "by", "the", "since"})
"""Words that are mostly left out before the answer's place."""
_NOT_ASKED: Final = re.compile(r"[\"“”();:]")
_PARAGRAPH: Final = 25
"""Words of the shortest paragraph that is read."""
_SENTENCES: Final = range(5, 15)
"""Of a stretch of an article: with fewer it is not asked about, more are not read together."""
_WORDS: Final = range(6, 45)
"""Of a sentence."""
_EACH: Final = 4
"""Questions on one stretch, at most."""


def cloze_questions(sources: Path, part: Part, rng: random.Random, *, whole: bool = False) -> Iterator[dict[str, Any]]:
    """Questions on articles of English Wikipedia that share nothing with the exams, each with the ``title`` and the
    ``text`` to read: a stretch of the article, its beginning unless the ``whole`` is asked about, without the other
    sentences that say the answer, since to find it there is not what is asked. The text is of no ``page``."""
    for title, article in articles(sources, rng):
        if not part.has("article", title):
            continue
        paragraphs = [one for one in article.split("\n") if len(one.split()) > _PARAGRAPH and "<" not in one]
        fine = (one for one in SENTENCE.split(" ".join(paragraphs)) if len(one.split()) in _WORDS)
        while len(sentences := list(islice(fine, _SENTENCES[-1]))) in _SENTENCES:
            if not part.exams.overlaps(" ".join(sentences), 3):
                yield from _on(title, sentences, part, rng)
            if not whole:
                break


def _on(title: str, sentences: Sequence[str], part: Part, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Questions on one stretch."""
    for sentence in rng.sample(sentences, _EACH):
        if (asked := cloze(sentence, rng)) is None:
            continue
        question, answer = asked
        said = whole_words(answer)
        if not said.search(question) and not part.exams.asks(question):
            text = " ".join(one for one in sentences if one == sentence or not said.search(one))
            place = {"title": title, "text": text, "page": ""}
            yield {"source": "cloze", "question": question, "answers": [answer], **place}


def cloze(sentence: str, rng: random.Random) -> tuple[str, str] | None:
    """A question for a name or a number of the sentence and the answer: a few of the words about it, mostly with gaps,
    and a word that asks; none if there is nothing to ask for, or too little is left."""
    spans = [found.span() for found in _ANSWER.finditer(sentence)]
    if not spans:
        return None
    begin, end = rng.choice(spans)
    answer, before, after = sentence[begin:end], sentence[:begin].split(), sentence[end:].split()
    count = rng.randint(5, 11)
    first = rng.randint(0, count)
    before, after = before[max(0, len(before) - first) :], after[: count - first]
    asking = _asking(answer, before, rng)
    if before and before[-1].lower() in _NOT_LAST and rng.random() < 0.8:
        before.pop()
    if rng.random() < 0.6:
        before, after = ([one for one in words if rng.random() > 0.2] for words in (before, after))
    words = [asking, *before, *after] if rng.random() < 0.7 else [*before, asking, *after]
    question = _NOT_ASKED.sub("", " ".join(words)).strip(" ,.-")
    return (f"{question[:1].upper()}{question[1:]}?", answer) if len(question.split()) >= 5 else None


def whole_words(text: str) -> re.Pattern[str]:
    """What finds ``text`` where it is not a part of other words."""
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")


def _asking(answer: str, before: Sequence[str], rng: random.Random) -> str:
    if _DATE.match(answer):
        return "when"
    if answer[0].isdigit():
        return "how many"
    if before and before[-1].lower() in _OF_PLACE:
        return "where"
    return rng.choice(("who", "who", "what", "what", "which"))
