"""What models said, a JSON line an example, kept the moment it is there, so that a killed run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from training_jobs.evaluate.example import Example, SuiteError
from training_jobs.records import R, Record, RecordError
from training_jobs.runner.parts import write_records


@dataclass(frozen=True, slots=True)
class Call(Record):
    """A tool call of a completion; exactly one of ``output`` and ``error`` is set."""

    tool: str
    input: str
    output: str | None
    error: str | None

    @property
    def executed(self) -> bool:
        """Whether the tool had an answer."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class Answer(Record):
    """What came of one example.

    Args:
        id: the example's.
        split: the part of the suite that it belongs to.
        prompt: what was asked.
        date: the day that tools took for today, ``YYYY-MM-DD``.
        answers: what would have been right.
        text: the completion without call text.
        calls: the calls made.
        right: whether the completion is right by the suite's rule.
        as_expected: whether it called what it should; ``None`` where that is not known.
        cut_off: whether the text ended for want of tokens.
        refused: why the model could never take the prompt, such as its length; counts as a wrong answer.
        error: why there is no answer; the request is made again by the next run.
        seconds: how long it took, retries included.
    """

    id: str
    split: str
    prompt: str
    date: str | None
    answers: tuple[str, ...]
    text: str = ""
    calls: tuple[Call, ...] = ()
    right: bool = False
    as_expected: bool | None = None
    cut_off: bool = False
    refused: str | None = None
    error: str | None = None
    seconds: float = 0.0

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that answered, each once."""
        return tuple(dict.fromkeys(call.tool for call in self.calls if call.executed))


class AnswersFile:
    """The answers of one suite under one condition; a context manager, held while answers are added.

    Args:
        path: its file.
        asked: the prompts of the examples that are wanted, by id.
    """

    def __init__(self, path: Path, asked: dict[str, str]) -> None:
        self._path, self._asked = path, asked
        self._file: IO[bytes] | None = None
        self.found: dict[str, Answer] = {}

    def __enter__(self) -> Self:
        """Read what there is, drop what a kill tore and what failed, and open the file to add to it.

        Raises:
            SuiteError: if the answers are to other prompts.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        kept = [answer for answer in read_records(self._path, Answer) if answer.error is None]
        for answer in kept:
            if self._asked.get(answer.id, answer.prompt) != answer.prompt:
                raise SuiteError(
                    f"{self._path}: example {answer.id} was asked with another prompt: give --restart, or another --out"
                )
        self.found = {answer.id: answer for answer in kept}
        write_records(self._path, self.found.values())
        self._file = self._path.open("ab")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def missing(self, examples: Sequence[Example]) -> list[Example]:
        """Those of ``examples`` that have no answer yet."""
        return [example for example in examples if example.id not in self.found]

    def add(self, answer: Answer) -> None:
        """Keep ``answer``."""
        assert self._file is not None
        self._file.write(answer.to_line().encode("utf-8"))
        self._file.flush()  # survives a kill of this process
        self.found[answer.id] = answer


def read_records(path: Path, kind: type[R]) -> list[R]:
    """The records in a file, none if there is no file; a last line without its end, which a kill tore, is left out.

    Raises:
        SuiteError: if a line is no such record.
    """
    try:
        whole, _, _ = path.read_bytes().rpartition(b"\n")
    except FileNotFoundError:
        return []
    try:
        lines = whole.split(b"\n") if whole else []
        return [kind.from_line(line, f"{path}:{number}") for number, line in enumerate(lines, start=1)]
    except RecordError as error:
        raise SuiteError(f"{error}; give --restart, or remove the file") from error
