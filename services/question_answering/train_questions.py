"""Real questions in a reader's training: found passages beside the one that answers, or without it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from services.question_answering.imagining import says
from services.question_answering.page_search import PageSearch
from services.question_answering.passages import Found, PagePassage

_TOGETHER: Final = 64
"""Questions that are searched for at once."""
_WEIGHTS: Final = {"squad": 3.0, "tydi": 4.0, "trivia": 2.0, "facts": 3.0, "qamr": 0.7, "fairytales": 1.0, "selqa": 1.0}
"""How often a source's questions are drawn, against one another: most, what is asked as visitors ask; least, what has
a machine's wording."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question, the passages to answer it from, and the answer: empty where they do not say it."""

    question: str
    passages: tuple[PagePassage, ...]
    answer: str


def find_passages(questions: Path, out: Path, address: str, k: int) -> Iterator[int]:
    """Write the questions, one a line, with passages that say their answer (``gold``, none for a trivia question whose
    answer was not found) and the ``others`` of the ``k`` found for them. Yields how many questions are done. What is
    in ``out`` already stays.

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
            found = runner.run(_find_all(search, [one["question"] for one in asked], k))
            for one, row in zip(asked, found, strict=True):
                record = _with_passages(one, [hit.passage for hit in row])
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


def _with_passages(asked: dict[str, Any], found: Sequence[PagePassage]) -> dict[str, Any]:
    answers = asked["answers"]
    if "text" in asked:
        own = asked["page"]
        gold = [PagePassage(own, asked["title"], asked["text"])]
        others = [one for one in found if one.id.rpartition("-")[0] != own]
    else:
        answers = [one for one in answers if not says(asked["question"].casefold(), one.casefold())]
        gold = [one for one in found if _says_any(one, answers)]
        others = [one for one in found if one not in gold]
        answers = [one for one in answers if gold and says(gold[0].text, one)]
    return {
        "source": asked["source"],
        "question": asked["question"],
        "answers": answers,
        "gold": [one.record() for one in gold],
        "others": [one.record() for one in others],
    }


def _says_any(passage: PagePassage, answers: Sequence[str]) -> bool:
    return any(says(passage.text, answer) for answer in answers)


class RealQuestions:
    """Lessons from what `find_passages` wrote.

    Args:
        path: the file; it stays on disk.
        most: passages of a lesson, at most.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no question.
    """

    def __init__(self, path: Path, *, most: int) -> None:
        self._path, self._most = path, most
        self._starts, weights = list[int](), list[float]()
        with path.open("rb") as lines:
            start = 0
            for line in lines:
                record = json.loads(line)
                if record["gold"]:
                    self._starts.append(start)
                    weights.append(_WEIGHTS[record["source"]])
                start += len(line)
        if not weights:
            raise ValueError(f"{path} holds no question")
        self._weights = list(accumulate(weights))

    def __len__(self) -> int:
        return len(self._starts)

    def drawn(self, rng: random.Random, *, most: int, without: float = 0.0) -> Lesson:
        """The lesson of a question drawn by its source, with ``most`` passages; ``without`` is the share of those whose
        answer no passage says."""
        [number] = rng.choices(range(len(self)), cum_weights=self._weights)
        return self.lesson(number, answered=rng.random() >= without, most=most)

    def lesson(self, number: int, *, answered: bool, most: int | None = None) -> Lesson:
        """The lesson of a question: its passages say the answer, or they do not."""
        with self._path.open("rb") as lines:
            lines.seek(self._starts[number])
            record = json.loads(lines.readline())
        gold, others = ([PagePassage.of_record(one) for one in record[name]] for name in ("gold", "others"))
        most, answers = most or self._most, record["answers"]
        shown = gold[:1] + others if answered else [one for one in others if not _says_any(one, answers)]
        if not gold[0].heading:  # or a passage without a heading would be known by that
            shown = [replace(one, heading="") for one in shown]
        return Lesson(record["question"], tuple(shown[:most]), answers[0] if answered else "")
