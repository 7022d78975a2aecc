"""What a reader learns before it is asked anything: texts whose gaps it fills, sentences that it completes from the
rest of their text.

Names and numbers that a text says more than once are left out first: to fill the gap is to find the other place and to
copy from there, which is most of answering from a passage (Ram et al., 2021).
"""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from language_model.token_file import Tokens
from services.question_answering.formats import ANSWER_MARK, gap_mark

MOST_GAPS: Final = 24
_GAP_SHARE: Final = 0.15
"""Of a text's words, as T5 was trained."""
_GAP_WORDS: Final = (1, 2, 3, 4, 5)
_NAMED_SHARE: Final = 0.5
"""Of the words left out, how many names and numbers that are said twice there are at most."""
_SHORTEST_WORDS: Final = 40
_LONGEST_WORDS: Final = 120

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_NAME: Final = re.compile(
    r"(?<=[\w,;] )(?:[A-Z][\w'’-]+(?: (?:(?:of|the|de|von) )?[A-Z][\w'’-]+)*|\d[\d.,]*\d|\d)(?!\w)"
)
"""A name or a number that does not begin a sentence."""
_WORD: Final = re.compile(r"\S+")


class CorpusTexts:
    """The texts of a base model's corpus, in ``folder`` with its ``tokenizer.json``.

    Raises:
        FileNotFoundError: there is no corpus.
    """

    def __init__(self, folder: Path) -> None:
        self._tokens = Tokens.load(folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def __len__(self) -> int:
        return self._tokens.documents

    def __getitem__(self, number: int) -> str:
        """Text ``number`` in one line; empty where some of it is no text to learn (a tool's result)."""
        begin, end = self._tokens.starts[number : number + 2].tolist()
        if not self._tokens.learned[begin:end].all():
            return ""
        return " ".join(self._tokenizer.decode(self._tokens.ids[begin:end].tolist()).split())

    def passage(self, rng: random.Random) -> list[str]:
        """The sentences of a stretch of about a hundred words of a text drawn at random."""
        while True:
            sentences = _SENTENCE.split(self[rng.randrange(len(self))])
            first = rng.randrange(len(sentences))
            found = list(_up_to(sentences[first:], _LONGEST_WORDS))
            if sum(len(one.split()) for one in found) >= _SHORTEST_WORDS:
                return found


def with_gaps(text: str, rng: random.Random) -> tuple[str, str]:
    """``text`` with gaps, each marked, and what fills them: each behind its mark."""
    words = [found.span() for found in _WORD.finditer(text)]
    wanted = max(1, round(_GAP_SHARE * len(words)))
    named = _names(text, rng)[: math.ceil(_NAMED_SHARE * wanted)]
    spans: list[tuple[int, int]] = []
    covered = 0
    for begin, end in chain(named, (_run(words, rng) for _ in words)):
        if covered >= wanted or len(spans) == MOST_GAPS:
            break
        if all(end < other[0] or other[1] < begin for other in spans):
            spans.append((begin, end))
            covered += len(text[begin:end].split())
    left, filled, done = [], [], 0
    for number, (begin, end) in enumerate(sorted(spans), start=1):
        left += [text[done:begin], gap_mark(number)]
        filled.append(f"{gap_mark(number)} {text[begin:end]}")
        done = end
    return "".join([*left, text[done:]]), " ".join(filled)


def completion(sentences: Sequence[str], rng: random.Random) -> tuple[str, str, str] | None:
    """A sentence with a gap where a name or a number is that the other sentences say too, those sentences, and the
    name; none if there is no such sentence."""
    for number in rng.sample(range(len(sentences)), len(sentences)):
        rest = " ".join([*sentences[:number], *sentences[number + 1 :]])
        sentence = sentences[number]
        said = [found.span() for found in _NAME.finditer(sentence) if _count(found[0], rest)]
        if said:
            begin, end = rng.choice(said)
            return f"{sentence[:begin]}{ANSWER_MARK}{sentence[end:]}", rest, sentence[begin:end]
    return None


def _names(text: str, rng: random.Random) -> list[tuple[int, int]]:
    """One place of each name and number that the text says more than once, in a drawn order."""
    places = defaultdict[str, list[tuple[int, int]]](list)
    for found in _NAME.finditer(text):
        places[found[0]].append(found.span())
    names = [name for name in places if _count(name, text) > 1]
    return [rng.choice(places[name]) for name in rng.sample(names, len(names))]


def _run(words: Sequence[tuple[int, int]], rng: random.Random) -> tuple[int, int]:
    """From where to where a few words go."""
    first = rng.randrange(len(words))
    last = min(len(words) - 1, first + rng.choice(_GAP_WORDS) - 1)
    return words[first][0], words[last][1]


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def _up_to(sentences: Sequence[str], words: int) -> Iterator[str]:
    for sentence in sentences:
        words -= len(sentence.split())
        if words < 0:
            return
        yield sentence
