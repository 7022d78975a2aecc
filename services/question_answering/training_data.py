"""What the bundled models learn from: questions over the bundled encyclopedia, each with the passage that answers it
and passages that look as if they did."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from demo_world import encyclopedia, questions
from services.question_answering.imagining import (
    Example,
    answered,
    called,
    name_in,
    other_digits,
    renamed,
    says,
    spliced,
)
from services.question_answering.passages import PagePassage, split_page

_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_KNOWN_QUESTIONS: Final = 20_000
"""Questions that are practised, and whose answers are put in others' places."""
_PRACTICE: Final = 0.5
"""The share of the examples that is drawn by relation, each as often as it needs: three questions of five are about
cities, and how many live there is learned first."""
_RETRIEVER_PRACTICE: Final = {"city time zone": 6.0, "city currency": 4.0, "city coordinates": 2.0}
"""Passages in which the city's name is in the heading alone."""
_READER_PRACTICE: Final = {
    "holiday date": 6.0, "country population": 2.0, "country two-letter code": 2.0, "currency code": 2.0,
    "language code": 2.0, "subdivision code": 2.0,
}  # fmt: skip
"""Answers that stand among others of their kind, or have many tokens."""
_RETRIEVER_DRILL: Final = {"city time zone": 14.0, "city currency": 6.0, "city distance": 3.0, "city place": 3.0}
_READER_DRILL: Final = {
    "holiday date": 20.0, "country population": 4.0, "subdivision code": 4.0, "currency code": 3.0,
    "country two-letter code": 3.0, "language code": 3.0, "county code": 2.0,
}  # fmt: skip
"""What was still answered wrongly after the first steps of a run."""
_RENAMED: Final = 0.7
_ANSWERED_OTHERWISE: Final = 0.75
"""Shares of the examples that happen in another world."""
_NEAR_NAMES: Final = 0.5
"""The share of the retriever's examples with a distractor that differs from the passage by half of a name alone."""
POOL: Final = 64
"""Steps whose questions are drawn together, so that those alike can meet in one batch."""
_MIXED: Final = 0.25
"""The share of a pool's questions that meet others at random."""


def bundled_passages(max_words: int) -> Iterator[PagePassage]:
    """The bundled encyclopedia's passages, in order."""
    for record in encyclopedia.kilt_records():
        yield from split_page(record, max_words)


class TrainingSet:
    """Examples by number, over ``passages``; each depends on its number and ``seed`` alone.

    Distractors are what retrieval confuses: half come from the page itself, half share the rarest word of its title
    (a namesake, or a page that mentions it).
    """

    def __init__(self, passages: Sequence[PagePassage], *, seed: int, distractors: int) -> None:
        self._passages = passages
        self._seed = seed
        self._distractors = distractors
        self._of_page: dict[str, list[int]] = defaultdict(list)
        self._of_title: dict[str, str] = {}
        self._with_word: dict[str, list[int]] = defaultdict(list)
        for number, passage in enumerate(passages):
            page = passage.id.rpartition("-")[0]
            self._of_page[page].append(number)
            self._of_title.setdefault(passage.heading, page)
            for word in set(_WORD.findall(f"{passage.heading} {passage.text}")):
                if word[0].isupper():
                    self._with_word[word].append(number)
        self._titles = list(self._of_title)
        names = {name_in(title) for title in self._titles}
        self._names = sorted(names)
        self._mentions = [word for word, found in self._with_word.items() if word in names for _ in found]
        self._of_relation: dict[str, list[questions.Question]] = defaultdict(list)
        for number in range(_KNOWN_QUESTIONS):
            asked = questions.question(number, seed=seed)
            self._of_relation[asked.relation].append(asked)

    def example(self, number: int) -> Example:
        """Example ``number`` of the true world.

        Raises:
            LookupError: its page does not say its answer, so questions and passages do not belong together.
        """
        asked = questions.question(number, seed=self._seed)
        return self.of_question(asked, random.Random(f"{self._seed}-{number}"))

    def batches(self, pool: int, size: int, *, drill: bool = False) -> list[list[Example]]:
        """The retriever's batches of ``size`` examples for the steps from ``pool * POOL`` on.

        A batch is what a passage is distinguished from. Drawn at random, few of its passages say the same of another
        thing, and none of a thing with a similar name: hence most hold questions of one relation whose names begin (in
        every other pool, end) alike. Raises LookupError as `example` does.
        """
        numbers = range(pool * POOL * size, (pool + 1) * POOL * size)
        examples = [self.for_retriever(number, drill=drill) for number in numbers]
        mixed = round(_MIXED * POOL) * size
        direction = 1 if pool % 2 == 0 else -1
        alike = sorted(examples[mixed:], key=lambda example: (example.relation, example.name[::direction]))
        ordered = examples[:mixed] + alike
        batches = [ordered[first : first + size] for first in range(0, len(ordered), size)]
        random.Random(f"batches-{self._seed}-{pool}").shuffle(batches)
        return batches

    def for_retriever(self, number: int, *, drill: bool = False) -> Example:
        """Example ``number`` with another name for its thing in seven of ten; one in two has a distractor that is the
        very passage, about a thing whose name is half the same. Raises LookupError as `example` does."""
        rng = random.Random(f"retriever-{self._seed}-{number}")
        example = self._renamed(self._drawn(number, rng, _RETRIEVER_DRILL if drill else _RETRIEVER_PRACTICE), rng)
        if not example.distractors or rng.random() >= _NEAR_NAMES:
            return example
        name, other = example.name, rng.choice(self._names)
        near = called(example.gold, name, rng.choice([spliced(name, other), spliced(other, name)]))
        if near.heading == example.gold.heading:
            return example
        return replace(example, distractors=(*example.distractors[:-1], near))

    def for_reader(self, number: int, *, drill: bool = False) -> Example:
        """Example ``number`` with another name for its thing in seven of ten, and another answer in three of four:
        other digits in a number; for words the answer to a question of the same kind, or the title of any page. Raises
        LookupError as `example` does."""
        rng = random.Random(f"reader-{self._seed}-{number}")
        example = self._renamed(self._drawn(number, rng, _READER_DRILL if drill else _READER_PRACTICE), rng)
        if rng.random() >= _ANSWERED_OTHERWISE or example.answer in example.gold.heading:
            return example
        if any(character.isalpha() for character in example.answer):
            of_kind = rng.choice(self._of_relation[example.relation]).answer
            answer = rng.choice([of_kind, rng.choice(self._titles)])
        else:
            answer = other_digits(example.answer, rng)
        return answered(example, answer)

    def of_question(self, asked: questions.Question, rng: random.Random) -> Example:
        """``asked`` with its passages. Raises LookupError as `example` does."""
        own = self._of_page[self._of_title[asked.title]]
        saying = [number for number in own if says(self._passages[number].text, asked.answer)]
        if not saying:
            raise LookupError(f"the page {asked.title!r} does not say {asked.answer!r}")
        siblings = [number for number in own if number not in saying]
        words = [self._with_word[word] for word in _WORD.findall(asked.title) if word in self._with_word]
        rarest = min(words, key=len, default=[])
        chosen = []
        for place in range(self._distractors):
            pool = siblings if place % 2 == 0 else rarest
            drawn = rng.choice(pool or rarest or range(len(self._passages)))
            if drawn in own and drawn not in siblings:
                drawn = rng.randrange(len(self._passages))
            chosen.append(self._passages[drawn])
        words_asked = set(_WORD.findall(asked.question))
        gold = max((self._passages[number] for number in saying), key=lambda one: _shared(words_asked, one.text))
        return Example(asked.question, asked.answer, asked.relation, name_in(asked.title), gold, tuple(chosen))

    def _drawn(self, number: int, rng: random.Random, practice: Mapping[str, float]) -> Example:
        """Example ``number``, or in place of it one of a relation that is practised."""
        if rng.random() >= _PRACTICE:
            return self.example(number)
        relations = list(self._of_relation)
        relation = rng.choices(relations, [practice.get(name, 1.0) for name in relations])[0]
        return self.of_question(rng.choice(self._of_relation[relation]), rng)

    def _renamed(self, example: Example, rng: random.Random) -> Example:
        """``example``, in seven of ten about a thing of another name: a page's, one made of two, or one that
        passages mention, as often as they do (or ``Nepal``, where many cities lie, would name nothing itself)."""
        if rng.random() >= _RENAMED:
            return example
        one, other = rng.choice(self._names), rng.choice(self._names)
        return renamed(example, rng.choice([one, spliced(one, other), rng.choice(self._mentions)]))


def _shared(words: set[str], text: str) -> int:
    return len(words.intersection(_WORD.findall(text)))
