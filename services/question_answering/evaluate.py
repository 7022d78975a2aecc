"""Exact match on held-out questions, with and without retrieval, the recall of the retriever, and what is declined.

python -m services.question_answering.evaluate --model MODEL --index INDEX --unanswerable QUESTIONS
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from demo_world.questions import SPLITS, Question, suite
from services.question_answering.agreement import agreement
from services.question_answering.checkpoint import Model, ModelError, load_model
from services.question_answering.engine import retrieve
from services.question_answering.formats import normalised
from services.question_answering.imagining import says
from services.question_answering.index_folder import OpenIndex, UnusablePassagesError, open_index
from services.question_answering.passages import Found, PagePassage

_BATCH: Final = 32
_RECALL_AT: Final = (1, 5, 20)


@dataclass(frozen=True, slots=True)
class Report:
    """Shares of the questions, 0 to 1. ``recall`` at k: a passage of the right page that says the answer is among the
    best k. ``declined``: less agreement than the model's settings ask for; ``declined_of_right``: of the questions that
    would have been answered rightly. ``by_relation``: exact match and the number of questions."""

    questions: int
    exact_match: float
    exact_match_without_retrieval: float
    recall: dict[int, float]
    declined: float
    declined_of_right: float
    by_relation: dict[str, tuple[float, int]]
    wrong: tuple[tuple[str, str, str], ...]
    """The first questions answered wrongly: question, expected, given."""


def evaluate(model: Model, index: OpenIndex, questions: Sequence[Question]) -> Report:
    """How well the model answers ``questions`` from the index."""
    given, alone, ranks, declined = [], [], [], []
    for first in range(0, len(questions), _BATCH):
        batch = questions[first : first + _BATCH]
        asked = [question.question for question in batch]
        found = retrieve(model, index, asked, max(*_RECALL_AT, model.settings.passages))
        ranks += [_rank(question, row) for question, row in zip(batch, found, strict=True)]
        read = [[one.passage for one in row[: model.settings.passages]] for row in found]
        declined += _declined(model, asked, read)
        given += [answer.text for answer in model.reader.answer(asked, read)]
        alone += [answer.text for answer in model.reader.answer(asked, [[] for _ in asked])]
    right = [_matches(question, text) for question, text in zip(questions, given, strict=True)]
    by_relation: dict[str, list[bool]] = defaultdict(list)
    for question, is_right in zip(questions, right, strict=True):
        by_relation[question.relation].append(is_right)
    return Report(
        questions=len(questions),
        exact_match=_share(right),
        exact_match_without_retrieval=_share(
            [_matches(question, text) for question, text in zip(questions, alone, strict=True)]
        ),
        recall={k: _share([rank < k for rank in ranks]) for k in _RECALL_AT},
        declined=_share(declined),
        declined_of_right=_share([none for none, is_right in zip(declined, right, strict=True) if is_right]),
        by_relation={name: (_share(each), len(each)) for name, each in sorted(by_relation.items())},
        wrong=tuple(
            (question.question, question.answer, text)
            for question, text, is_right in zip(questions, given, right, strict=True)
            if not is_right
        )[:20],
    )


def share_declined(model: Model, index: OpenIndex, questions: Sequence[str]) -> float:
    """The share of ``questions`` whose passages agree with them less than the model's settings ask for."""
    declined = []
    for first in range(0, len(questions), _BATCH):
        batch = questions[first : first + _BATCH]
        found = retrieve(model, index, batch, model.settings.passages)
        declined += _declined(model, batch, [[one.passage for one in row] for row in found])
    return _share(declined)


def _declined(model: Model, questions: Sequence[str], read: Sequence[Sequence[PagePassage]]) -> list[bool]:
    return [
        agreement(question, passages) < model.settings.min_agreement
        for question, passages in zip(questions, read, strict=True)
    ]


def _rank(question: Question, found: Sequence[Found]) -> int:
    """The place of the first passage of the right page that says the answer, from 0; past all places if none does."""
    for place, one in enumerate(found):
        title = one.passage.heading.partition(": ")[0]
        if title == question.title and says(one.passage.text, question.answer):
            return place
    return max(_RECALL_AT)


def _matches(question: Question, given: str) -> bool:
    return normalised(given) == normalised(question.answer)


def _share(holds: Sequence[bool]) -> float:
    return round(sum(holds) / len(holds), 4) if holds else 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Exact match on held-out questions, with and without retrieval, and the retriever's recall."""
    parser = argparse.ArgumentParser(prog="python -m services.question_answering.evaluate", description=main.__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--index", type=Path, required=True, help="folder of the model's index")
    parser.add_argument("--questions", type=int, default=500, help="of each suite (default: 500)")
    parser.add_argument("--unanswerable", type=Path, help="questions that the index cannot answer, one a line")
    options = parser.parse_args(arguments)
    if options.questions < 1:
        parser.error("--questions must be at least 1")
    try:
        model = load_model(options.model)
        index = open_index(options.index, model.settings.retriever_digest, model.retriever.width)
        unanswerable = options.unanswerable.read_text("utf-8").splitlines() if options.unanswerable else []
    except (ModelError, UnusablePassagesError, OSError) as error:
        parser.exit(1, f"question_answering: {error}\n")
    if unanswerable:
        share = share_declined(model, index, unanswerable)
        sys.stdout.write(json.dumps({"unanswerable": len(unanswerable), "declined": share}, indent=1) + "\n")
    for split in SPLITS:
        report = evaluate(model, index, suite(split, count=options.questions))
        sys.stdout.write(json.dumps({"split": split} | asdict(report), ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
