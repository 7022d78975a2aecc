"""What the bundled models learn from: questions over the bundled encyclopedia, each with the passage that answers it
and passages that look as if they did."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from demo_world import encyclopedia, questions
from services.question_answering.passages import Passage, split_page

_NAME: Final = re.compile(r"[^\W\d_]{3,}")
_DIGIT: Final = re.compile(r"\d")
_RARE: Final = 200
"""A word in more passages than this tells none of them from the others."""
_KNOWN_ANSWERS: Final = 20_000
"""Questions whose answers are put in others' places."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the passage that holds its answer, and others that do not."""

    question: str
    answer: str
    gold: Passage
    distractors: tuple[Passage, ...]


def bundled_passages(max_words: int) -> Iterator[Passage]:
    """The bundled encyclopedia's passages, in order."""
    for record in encyclopedia.kilt_records():
        yield from split_page(record, max_words)


class TrainingSet:
    """Examples by number, over ``passages``; each depends on its number and ``seed`` alone.

    Distractors are what retrieval confuses: half come from the page itself, half share the rarest word of its title
    (a namesake, or a page that mentions it).
    """

    # The encyclopedia has 220 countries and a training run asks about each a thousand times. A reader that sees only
    # what is true learns their areas and capitals by heart instead of reading them; hence `imagined`.

    def __init__(self, passages: Sequence[Passage], *, seed: int, distractors: int) -> None:
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
            for word in set(_NAME.findall(f"{passage.heading} {passage.text}")):
                if word[0].isupper():
                    self._with_word[word].append(number)
        self._with_word = {word: found for word, found in self._with_word.items() if 1 < len(found) <= _RARE}
        self._titles = list(self._of_title)
        self._answers: dict[str, list[str]] = defaultdict(list)
        for number in range(_KNOWN_ANSWERS):
            asked = questions.question(number, seed=seed)
            self._answers[asked.relation].append(asked.answer)

    def example(self, number: int) -> Example:
        """Training example ``number``.

        Raises:
            LookupError: its page does not say its answer, so questions and passages do not belong together.
        """
        asked = questions.question(number, seed=self._seed)
        return self.of_question(asked, random.Random(f"{self._seed}-{number}"))

    def imagined(self, number: int) -> Example:
        """Training example ``number`` in a world where the answer is another and its passage says so: other digits in
        a number; for words the answer to a question of the same kind, or the title of any page. One in four stays
        true, as does one whose title holds the answer."""
        example = self.example(number)
        rng = random.Random(f"imagined-{self._seed}-{number}")
        if rng.random() < 0.25 or example.answer in example.gold.heading:
            return example
        if any(character.isalpha() for character in example.answer):
            of_kind = self._answers[questions.question(number, seed=self._seed).relation]
            answer = rng.choice(rng.choice([of_kind, self._titles]))
        else:
            answer = _DIGIT.sub(lambda found: str(rng.randint(found.start() == 0, 9)), example.answer)
        gold = replace(example.gold, text=example.gold.text.replace(example.answer, answer))
        return replace(example, answer=answer, gold=gold)

    def of_question(self, asked: questions.Question, rng: random.Random) -> Example:
        """``asked`` with its passages. Raises LookupError as `example` does."""
        own = self._of_page[self._of_title[asked.title]]
        gold = next((number for number in own if asked.answer in self._passages[number].text), None)
        if gold is None:
            raise LookupError(f"the page {asked.title!r} does not say {asked.answer!r}")
        siblings = [number for number in own if asked.answer not in self._passages[number].text]
        words = [self._with_word[word] for word in _NAME.findall(asked.title) if word in self._with_word]
        lookalikes = [number for number in min(words, key=len, default=[]) if number not in own]
        chosen = []
        for place in range(self._distractors):
            pool = (siblings, lookalikes)[place % 2] or lookalikes or siblings or range(len(self._passages))
            chosen.append(self._passages[rng.choice(pool)])
        return Example(asked.question, asked.answer, self._passages[gold], tuple(chosen))
