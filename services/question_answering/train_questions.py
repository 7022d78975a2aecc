"""Real questions in a reader's training: found sentences with one that answers, or without it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from services.question_answering.formats import says
from services.question_answering.nearest import nearest_sentences
from services.question_answering.page_search import PageSearch
from services.question_answering.passages import Found, PagePassage

_TOGETHER: Final = 64
"""Questions that are searched for at once."""
_KEPT: Final = 16
"""Sentences of a question that are kept, more than are read: those that say the answer are left out at times."""
_WEIGHTS: Final = {"squad": 3.0, "tydi": 4.0, "trivia": 2.0, "facts": 4.0, "qamr": 0.7, "cloze": 0.4}
"""How often a source's questions are drawn, against one another and those of other sources: most, what is asked as
visitors ask; least, what has a machine's wording."""
_UNSAID: Final = 0.4
"""Of the lessons that do not say the answer, the share whose question was never answered by what was found."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question, the sentences to answer it from, and the answer: empty where they do not say it."""

    question: str
    passages: tuple[PagePassage, ...]
    answer: str


def find_sentences(questions: Path, out: Path, address: str, k: int) -> Iterator[int]:
    """Write the questions, one a line, with the nearest sentences of the ``k`` passages found for each and of the one
    that it was asked about; of that alone, if it is of no page. At least one says the answer; of a question whose
    passage is not known, none may. Yields how many questions are done. What is in ``out`` already stays.

    Raises:
        NotReady: the search service at ``address`` cannot be asked.
        OSError: the questions cannot be read.
    """
    lines = questions.read_text(encoding="utf-8").rstrip("\n").split("\n")
    done = _whole_lines(out)
    with out.open("a", encoding="utf-8") as file, asyncio.Runner() as runner:
        search = PageSearch(address)
        for first in range(done, len(lines), _TOGETHER):
            asked = [json.loads(line) for line in lines[first : first + _TOGETHER]]
            searched = [one["question"] for one in asked if one.get("page") != ""]
            found = iter(runner.run(_find_all(search, searched, k)))
            for one in asked:
                row = next(found) if one.get("page") != "" else []
                record = _with_sentences(one, [hit.passage for hit in row])
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()
            yield first + len(asked)
        runner.run(search.aclose())


async def _find_all(search: PageSearch, questions: Sequence[str], k: int) -> list[list[Found]]:
    return await asyncio.gather(*(search.find(question, k) for question in questions))


def _whole_lines(path: Path) -> int:
    """How many lines the file has; one that a kill has torn is removed."""
    if not path.exists():
        return 0
    with path.open("r+b") as file:
        count = end = 0
        for line in file:
            if line.endswith(b"\n"):
                count, end = count + 1, end + len(line)
        file.truncate(end)
    return count


def _with_sentences(asked: dict[str, Any], found: Sequence[PagePassage]) -> dict[str, Any]:
    question, answers = asked["question"], asked["answers"]
    own = []
    if "text" in asked:
        own = [PagePassage(asked["page"], asked["title"], asked["text"])]
        found = [*(one for one in found if one.id.rpartition("-")[0] != asked["page"]), *own]
    else:
        answers = [one for one in answers if not says(question.casefold(), one.casefold())]
    sentences = nearest_sentences(question, found, _KEPT)
    if not any(_says_any(one, answers) for one in sentences):
        sentences += [one for one in nearest_sentences(question, own, _KEPT) if _says_any(one, answers)][:1] or own
    return {
        "source": asked["source"],
        "question": question,
        "answers": answers,
        "saying": sum(_says_any(one, answers) for one in sentences),
        "sentences": [one.record() for one in sentences],
    }


def _says_any(passage: PagePassage, answers: Sequence[str]) -> bool:
    return any(says(passage.text, answer) for answer in answers)


class RealQuestions:
    """Lessons from what `find_sentences` wrote: of questions that some sentences answer and others do not, and of
    trivia that none answers. A fact that none says in these words may be said in others.

    Args:
        path: the file; it stays on disk.
        most: sentences of a lesson, at most.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no question, or an earlier version wrote it.
    """

    def __init__(self, path: Path, *, most: int) -> None:
        self._path, self._most = path, most
        self._starts, weights = list[int](), list[float]()
        self._unsaid = list[int]()
        with path.open("rb") as lines:
            start = 0
            for line in lines:
                record = json.loads(line)
                if "saying" not in record:
                    raise ValueError(f"{path} was written by an earlier version: remove it, to be written anew")
                if 0 < record["saying"] < len(record["sentences"]):
                    self._starts.append(start)
                    weights.append(_WEIGHTS.get(record["source"], 1.0))
                elif record["sentences"] and not record["saying"] and record["source"] == "trivia":
                    self._unsaid.append(start)
                start += len(line)
        if not weights:
            raise ValueError(f"{path} holds no question")
        self._weights = list(accumulate(weights))

    def __len__(self) -> int:
        return len(self._starts)

    def drawn(self, rng: random.Random, *, most: int, without: float = 0.0) -> Lesson:
        """The lesson of a question drawn by its source, with ``most`` sentences; a share ``without`` of the lessons
        do not say the answer."""
        if rng.random() < without:
            if self._unsaid and rng.random() < _UNSAID:
                record = self._record(rng.choice(self._unsaid))
                return Lesson(record["question"], tuple(_sentences(record)[:most]), "")
            return self.lesson(self._number(rng), answered=False, most=most)
        return self.lesson(self._number(rng), answered=True, most=most)

    def _number(self, rng: random.Random) -> int:
        [number] = rng.choices(range(len(self)), cum_weights=self._weights)
        return number

    def lesson(self, number: int, *, answered: bool, most: int | None = None) -> Lesson:
        """The lesson of a question: its sentences say the answer, or they do not."""
        record = self._record(self._starts[number])
        most, answers = most or self._most, record["answers"]
        sentences = _sentences(record)
        saying = [one for one in sentences if _says_any(one, answers)]
        shown = (sentences if answered else [one for one in sentences if one not in saying])[:most]
        if answered and not any(one in shown for one in saying):
            shown[-1] = saying[0]
        if not all(one.heading for one in saying):  # or a sentence without a heading would be known by that
            shown = [replace(one, heading="") for one in shown]
        said = next((one for one in answers if any(says(text.text, one) for text in shown)), "") if answered else ""
        return Lesson(record["question"], tuple(shown), said)

    def _record(self, start: int) -> dict[str, Any]:
        with self._path.open("rb") as lines:
            lines.seek(start)
            record: dict[str, Any] = json.loads(lines.readline())
        return record


def _sentences(record: dict[str, Any]) -> list[PagePassage]:
    return [PagePassage.of_record(one) for one in record["sentences"]]
