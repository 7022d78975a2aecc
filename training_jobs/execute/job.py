"""The stage ``execute``: what the tool says to each candidate, as a job for the runner."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolformer.cache_settings import CacheSettings
from toolformer.result_cache import CacheConfigError
from toolformer.tool_client import ToolClient
from toolformer.tools import Tool, ToolRegistry
from training_jobs.errors import StageError
from training_jobs.execute.asking import Asking, ExecuteSettings, Outcome, Question
from training_jobs.nothing_kept import Fate, Keeping, in_text
from training_jobs.records import Annotated, Candidate
from training_jobs.run_folder import RunFolder
from training_jobs.runner.running import Running, run_stages
from training_jobs.runner.work import Lines, Say, Worked, Worker

CHUNK: Final = 256
"""Documents at a time: enough calls for full batches, few enough that a kill loses seconds."""

KEEPING: Final = Keeping(
    "calls",
    lambda one: (Fate(call.error, in_text(one, call)) for call in one.candidates),
    {"": "one of these calls yourself (`toolformer call TOOL INPUT`); correct the service, or the demonstrations"},
)


@dataclass(frozen=True, slots=True)
class ExecuteJob:
    """Asks ``tool``'s service. ``cache`` answers what was asked before; with Redis, by whichever worker or machine."""

    tool: Tool
    cache: CacheSettings
    how: ExecuteSettings

    def settings(self) -> dict[str, Any]:
        """The tool and its version; where its service is has no part in it."""
        return {"tool": self.tool.name, "version": self.tool.version, "takes_date": self.tool.takes_date}

    @contextlib.contextmanager
    def open(self, say: Say) -> Iterator[Worker]:
        """See :class:`~training_jobs.runner.work.Job`."""
        try:
            cache = self.cache.open()
        except CacheConfigError as error:
            raise StageError(str(error)) from error
        client = ToolClient(ToolRegistry([self.tool]), cache=cache)
        with asyncio.Runner() as loop:
            loop.run(client.__aenter__())
            asking = Asking(client, self.tool, say, self.how)
            try:
                yield lambda lines: self._work(lines, loop, asking)
            finally:
                loop.run(client.__aexit__(None, None, None))

    def _work(self, lines: Lines, loop: asyncio.Runner, asking: Asking) -> Worked:
        annotated = [Annotated.from_line(line, where) for where, line in lines]
        for (where, _), one in zip(lines, annotated, strict=True):
            if one.tool != self.tool.name:
                raise StageError(f"{where}: tool: is {one.tool!r}; this is the stage of {self.tool.name}")
        questions = [Question.on(one.document.date, call.input) for one in annotated for call in one.candidates]
        before, waited, began = asking.asked, asking.waited_s, time.monotonic()
        outcomes = loop.run(asking.ask(questions))
        # What a call costs does not depend on outages.
        seconds = time.monotonic() - began - (asking.waited_s - waited)
        answers = iter(outcomes)
        records = [
            dataclasses.replace(one, candidates=tuple(_with(next(answers), each) for each in one.candidates))
            for one in annotated
        ]
        answered = sum(isinstance(outcome, str) for outcome in outcomes)
        return Worked(
            records,
            {"calls": len(outcomes), "without answer": len(outcomes) - answered},
            {"asked": asking.asked - before, "seconds": seconds},
        )


def _with(outcome: Outcome, candidate: Candidate) -> Candidate:
    if isinstance(outcome, str):
        return dataclasses.replace(candidate, output=outcome, error=None)
    return dataclasses.replace(candidate, output=None, error=outcome.code)


def execute_tools(
    folder: RunFolder,
    tools: Sequence[Tool],
    running: Running,
    how: ExecuteSettings,
    cache: CacheSettings,
    *,
    chunk_documents: int = CHUNK,
) -> bool:
    """Execute the annotated documents of each tool; whether all outputs are whole.

    Raises:
        NothingKept: if no call has an output.
        StageError: if a service stays away, or a file is not what it should be.
    """
    jobs = {tool.name: ExecuteJob(tool, cache, how) for tool in tools}
    return run_stages(folder.stages("annotate", "execute", jobs, chunk_documents), running, KEEPING)
