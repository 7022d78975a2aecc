"""The stage ``annotate`` as a job for the runner: the calls that the model proposes for each document."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from toolformer.tools import Tool, ToolRegistry
from training_jobs.annotate.annotator import NOT_GIVEN, NOT_READ, AnnotateSettings, Annotator
from training_jobs.annotate.sampled import MALFORMED, TOO_LONG, UNFINISHED
from training_jobs.errors import StageError
from training_jobs.model_choice import ModelChoice
from training_jobs.nothing_kept import Fate, Keeping
from training_jobs.records import Annotated, Document
from training_jobs.run_folder import RunFolder
from training_jobs.runner.running import Running, run_stages
from training_jobs.runner.work import Lines, Say, Worked, Worker

CHUNK: Final = 64
"""Documents at a time: enough to batch those of like length."""

_OF_TOOL: Final = {
    "name", "quoted", "takes_input", "task", "demonstrations", "sampling_threshold", "max_positions", "max_samples",
    "max_input_tokens", "input_from_before",
}  # fmt: skip
"""The fields of a tool that decide which calls are proposed."""

_UNLIKELY: Final = "no place where a call is likelier than the tool's sampling_threshold"


def _fates(one: Annotated) -> Iterator[Fate]:
    reasons = {reason: number for reason, number in one.dropped.items() if reason != NOT_READ}
    if one.candidates:
        yield Fate(None)
    elif reasons:
        reason = max(reasons, key=reasons.__getitem__)
        yield Fate(reason, f"[{one.wrote.get(reason, '')} in: {one.document.text}")
    else:
        yield Fate(_UNLIKELY, one.document.text)


KEEPING: Final = Keeping(
    "texts",
    _fates,
    {
        MALFORMED: "another base model, for this one does not write calls in the prompt's form (`toolformer jobs "
        "copying` tests whether it repeats what it reads); or proposals by a rule (docs/own-tool.md)",
        UNFINISHED: "a larger max_input_tokens in the tool's table, or demonstrations with shorter inputs",
        TOO_LONG: "a larger max_input_tokens in the tool's table, or demonstrations with shorter inputs",
        NOT_GIVEN: "without --given-inputs",
        _UNLIKELY: "a smaller sampling_threshold in the tool's table (0 asks everywhere), or texts where it helps",
        "": "other demonstrations in the tool's table, or another base model",
    },
    no_input="more texts; counts.json beside the corpus says why texts were left out",
)


@dataclass(frozen=True, slots=True)
class AnnotateJob:
    """Asks ``model`` for calls of ``tool``; ``earlier_calls``: see `Annotator`."""

    model: ModelChoice
    tool: Tool
    how: AnnotateSettings
    earlier_calls: ToolRegistry | None = None

    def settings(self) -> dict[str, Any]:
        """See :class:`~training_jobs.runner.work.Job`."""
        return {
            **self.model.settings(),
            "tool": self.tool.model_dump(mode="json", include=_OF_TOOL),
            **asdict(self.how),
            "earlier_calls": sorted(self.earlier_calls.names()) if self.earlier_calls else None,
        }

    @contextlib.contextmanager
    def open(self, say: Say) -> Iterator[Worker]:
        """See :class:`~training_jobs.runner.work.Job`."""
        with self.model.opened() as (model, tokenizer):
            try:
                annotator = Annotator(model, tokenizer, self.tool, self.how, self.earlier_calls)
            except ValueError as error:
                raise StageError(f"{self.model.path}: {error}") from error

            def work(lines: Lines) -> Worked:
                annotated = annotator.annotate([Document.from_line(line, where) for where, line in lines])
                return Worked(annotated, {"candidates": sum(len(one.candidates) for one in annotated)})

            yield work


def annotate_tools(
    folder: RunFolder,
    tools: Sequence[Tool],
    running: Running,
    model: ModelChoice,
    how: AnnotateSettings,
    *,
    earlier_calls: ToolRegistry | None = None,
    chunk_documents: int = CHUNK,
) -> bool:
    """Annotate each tool's documents; whether all outputs are whole.

    Raises:
        NothingKept: if no text has a call.
        StageError: if the model cannot be used, or a file is not what it should be.
    """
    jobs = {tool.name: AnnotateJob(model, tool, how, earlier_calls) for tool in tools}
    stages = folder.stages("corpus", "annotate", jobs, chunk_documents, needs=model.needs)
    return run_stages(stages, running, KEEPING)
