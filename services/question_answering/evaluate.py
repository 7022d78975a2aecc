"""A reader over a running Wikipedia search: what it answers where its pages say the answer, and declines where not.

    python -m services.question_answering.evaluate --search http://127.0.0.1:8103 --questions NQ-open.dev.jsonl

A line of the questions is ``{"question": ..., "answer": [...]}`` (or ``answers``). The table has a row for each
``MIN_SCORE``, with which a less sure answer is none.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.base import NotReady
from services.question_answering.checkpoint import ModelError, load_reader
from services.question_answering.engine import BUNDLED_MODEL
from services.question_answering.formats import normalised, says
from services.question_answering.names import unknown_name
from services.question_answering.page_search import PageSearch
from services.question_answering.passages import Found
from services.question_answering.reader import Reader

_BATCH: Final = 32
_SCORES: Final = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6)


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, its right answers, and what became of it: whether a passage that was read says one (``said``),
    whether the reader's answer is one, how sure the reader was (0 of no answer), and whether a passage has one of the
    question's names (``named``; also of a question without)."""

    question: str
    said: bool
    right: bool
    score: float
    named: bool


@dataclass(frozen=True, slots=True)
class Shares:
    """With one ``MIN_SCORE``: of the questions whose pages say the answer, answered and answered rightly; of the
    others, declined; of all, answered rightly."""

    answered: float
    right: float
    declined: float
    right_of_all: float


async def ask(
    reader: Reader, address: str, questions: Sequence[tuple[str, Sequence[str]]], passages: int
) -> list[Judged]:
    """Ask each of ``questions``, given with its right answers, of the search service at ``address``.

    Raises:
        NotReady: the search service cannot be asked.
    """
    asked: list[Judged] = []
    async with contextlib.aclosing(PageSearch(address)) as search:
        for first in range(0, len(questions), _BATCH):
            batch = questions[first : first + _BATCH]
            rows = await asyncio.gather(*(search.find(question, passages) for question, _ in batch))
            read = [[one.passage for one in row] for row in rows]
            given = reader.answer([question for question, _ in batch], read)
            for (question, answers), row, pages, answer in zip(batch, rows, read, given, strict=True):
                right = normalised(answer.text) in map(normalised, answers)
                score = answer.score if answer.text else 0.0
                asked.append(Judged(question, _say(row, answers), right, score, not unknown_name(question, pages)))
    return asked


def shares(asked: Sequence[Judged], min_score: float) -> Shares:
    """What ``min_score`` makes of the answers; 0 takes all, also those to names that no page has."""
    given = [one for one in asked if one.score > 0 and one.score >= min_score and (one.named or not min_score)]
    said = sum(one.said for one in asked)
    return Shares(
        answered=sum(one.said for one in given) / max(1, said),
        right=sum(one.said and one.right for one in given) / max(1, said),
        declined=1 - sum(not one.said for one in given) / max(1, len(asked) - said),
        right_of_all=sum(one.right for one in given) / max(1, len(asked)),
    )


def _say(found: Sequence[Found], answers: Sequence[str]) -> bool:
    return any(says(one.passage.text, answer) for one in found for answer in answers)


def _read(path: Path, limit: int | None) -> list[tuple[str, Sequence[str]]]:
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:limit]]
    return [(one["question"], one["answers"] if "answers" in one else one["answer"]) for one in records]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; exits with 1 and one line where it cannot ask."""
    parser = argparse.ArgumentParser(
        prog="python -m services.question_answering.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, default=BUNDLED_MODEL, help="the bundled model")
    parser.add_argument("--search", default="http://127.0.0.1:8103", help="the search service (%(default)s)")
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines")
    parser.add_argument("--passages", type=int, help="read for a question (as many as in training)")
    parser.add_argument("--limit", type=int, help="ask the first so many")
    options = parser.parse_args(arguments)
    try:
        about, reader = load_reader(options.model)
        questions = _read(options.questions, options.limit)
        asked = asyncio.run(ask(reader, options.search, questions, options.passages or about.passages))
    except (ModelError, NotReady, OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"evaluate: {error}")
    said = sum(one.said for one in asked)
    sys.stdout.write(f"{len(asked):,} questions; the pages read say the answer to {said:,}\n\n")
    sys.stdout.write(
        "| MIN_SCORE | of these answered | right | of the others declined | right of all |\n|---|---|---|---|---|\n"
    )
    for score in _SCORES:
        one = shares(asked, score)
        row = (one.answered, one.right, one.declined, one.right_of_all)
        sys.stdout.write(f"| {score:g} | {' | '.join(f'{share:.1%}' for share in row)} |\n")


if __name__ == "__main__":
    main()
