"""Asks a model all questions of several suites, concurrently, and going on where a killed run was."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from training_jobs.evaluate.answers import Answer, AnswersFile
from training_jobs.evaluate.conditions import Condition
from training_jobs.evaluate.example import Example, Prompts
from training_jobs.evaluate.model import Completion, ModelTrouble, PromptRefused, RequestFailed, ServedModel
from training_jobs.evaluate.prompts import prompt_of
from training_jobs.evaluate.suites import Suite
from training_jobs.runner.progress import StageProgress

MAX_TOKENS: Final = 128
"""Tokens the model may make for one question: a call that quotes a whole sentence, and the answer."""

_FAILURES_IN_A_ROW: Final = 12
"""After so many, and as many as are under way at once, the server is taken to be gone."""


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How suites are asked.

    Args:
        conditions: under each of them every example is asked.
        tools: what may be called; a suite's barred tools are left out.
        prompts: the form of the prompts.
        max_tokens: tokens that the model may make for one example.
        concurrency: requests under way at once.
    """

    conditions: tuple[Condition, ...]
    tools: tuple[str, ...] = ()
    prompts: Prompts = "paper"
    max_tokens: int = MAX_TOKENS
    concurrency: int = 8


Answers = dict[tuple[Condition, str], list[Answer]]
"""The answers of each condition and suite, in the order of the suite."""


@dataclass(slots=True)
class _Question:
    suite: Suite
    condition: Condition
    example: Example
    prompt: str
    file: AnswersFile


async def ask_all(
    model: ServedModel, suites: Mapping[Suite, Sequence[Example]], asking: AskSettings, folder: Path, console: Console
) -> Answers:
    """Ask every example of ``suites`` that has no answer in ``folder`` yet, and keep each answer there at once.

    Raises:
        ModelTrouble: if the model cannot be asked any more; what was answered is kept.
        SuiteError: if ``folder`` holds answers to other prompts.
    """
    with contextlib.ExitStack() as stack:
        questions: list[_Question] = []
        files: dict[tuple[Condition, Suite], AnswersFile] = {}
        for condition in asking.conditions:
            for suite, examples in suites.items():
                prompts = {example.id: prompt_of(example, suite.form, asking.prompts) for example in examples}
                path = answers_path(folder, condition, suite.name)
                file = stack.enter_context(AnswersFile(path, prompts))
                files[condition, suite] = file
                questions += [_Question(suite, condition, one, prompts[one.id], file) for one in file.missing(examples)]
        total = sum(map(len, suites.values())) * len(asking.conditions)
        done = total - len(questions)
        progress = stack.enter_context(StageProgress("evaluate", total, done, console, unit="examples"))
        await _Asker(model, asking, progress).ask(questions)
        return {
            (condition, suite.name): [file.found[example.id] for example in suites[suite]]
            for (condition, suite), file in files.items()
        }


def answers_path(folder: Path, condition: Condition, suite: str) -> Path:
    """Where the answers of one suite under one condition are kept."""
    return folder / "answers" / condition.folder / f"{suite}.jsonl"


class _Asker:
    def __init__(self, model: ServedModel, asking: AskSettings, progress: StageProgress) -> None:
        self._model, self._asking, self._progress = model, asking, progress
        self._failed_in_a_row = 0

    async def ask(self, questions: Sequence[_Question]) -> None:
        waiting = iter(questions)  # shared: each worker takes the next
        trouble: Exception | None = None
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._asking.concurrency, len(questions))):
                    workers.create_task(self._work(waiting))
        except* ModelTrouble as troubles:
            [trouble, *_] = troubles.exceptions
        if trouble is not None:  # raised behind it: in `except*` Python 3.11.2 would wrap it again
            raise trouble

    async def _work(self, waiting: Iterator[_Question]) -> None:
        for question in waiting:
            began = time.monotonic()
            answer = Answer(
                question.example.id, question.example.split, question.prompt,
                question.example.date.isoformat() if question.example.date else None, question.example.answers,
            )  # fmt: skip
            answer = await self._answered(question, answer, began)
            question.file.add(answer)
            outcome = "failed" if answer.error else "refused" if answer.refused else "answered"
            self._progress.advance(1, {outcome: 1})
            self._failed_in_a_row = self._failed_in_a_row + 1 if answer.error else 0
            if self._failed_in_a_row >= _FAILURES_IN_A_ROW + self._asking.concurrency:
                raise ModelTrouble(
                    f"the last {self._failed_in_a_row} requests failed, the last with: {answer.error}; mend the server "
                    "and run again: what was answered is kept"
                )

    async def _answered(self, question: _Question, answer: Answer, began: float) -> Answer:
        made = Completion("")
        refused = error = None
        try:
            made = await self._model.complete(
                question.prompt,
                question.condition,
                tools=[name for name in self._asking.tools if name not in question.suite.barred],
                date=question.example.date,
                max_tokens=self._asking.max_tokens,
            )
        except PromptRefused as trouble:
            refused = str(trouble)
        except RequestFailed as trouble:
            error = str(trouble)
        return dataclasses.replace(
            answer,
            text=made.text,
            calls=made.calls,
            right=question.suite.rule.right(made.text, question.example.answers)
            and not (question.example.tools == () and made.calls),
            as_expected=_as_expected(question.example, made),
            cut_off=made.cut_off,
            refused=refused,
            error=error,
            seconds=round(time.monotonic() - began, 3),
        )


def _as_expected(example: Example, made: Completion) -> bool | None:
    if example.tools is None:
        return None
    return any(call.tool in example.tools for call in made.calls if call.executed) if example.tools else not made.calls
