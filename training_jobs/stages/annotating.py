"""The stage ``annotate``: the calls that the model proposes for each document, as a job for the runner."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolformer.tools import Tool, ToolRegistry
from training_jobs.annotate import AnnotateSettings, Annotator
from training_jobs.records import Document
from training_jobs.stages.command import finite, positive
from training_jobs.stages.errors import StageError
from training_jobs.stages.folder import RunFolder
from training_jobs.stages.models import ModelChoice, close_model, server_trouble
from training_jobs.stages.runner import Running, Stage, run_stages
from training_jobs.stages.work import Say, Worked

CHUNK: Final = 64
"""Documents at a time: enough to batch those of like length."""

BATCH_TOKENS: Final = AnnotateSettings().batch_tokens

_OF_TOOL: Final = {
    "name", "quoted", "takes_input", "task", "demonstrations", "sampling_threshold", "max_positions", "max_samples",
    "max_input_tokens",
}  # fmt: skip
"""The fields of a tool that decide which calls are proposed."""


@dataclass(frozen=True, slots=True)
class AnnotateJob:
    """Asks ``model`` for calls of ``tool``. ``earlier_calls``, ``before_words``: see `AnnotateSettings`."""

    model: ModelChoice
    tool: Tool
    seed: int = 0
    temperature: float = 1.0
    batch_tokens: int = BATCH_TOKENS
    begin_of_text: bool = False
    earlier_calls: ToolRegistry | None = None
    before_words: bool = False

    def settings(self) -> dict[str, Any]:
        """See :class:`~training_jobs.stages.work.Job`."""
        return {
            **self.model.settings(),
            "tool": self.tool.model_dump(mode="json", include=_OF_TOOL),
            "seed": self.seed,
            "temperature": self.temperature,
            "batch_tokens": self.batch_tokens,
            "begin_of_text": self.begin_of_text,
            "earlier_calls": sorted(self.earlier_calls.names()) if self.earlier_calls else None,
            "before_words": self.before_words,
        }

    def open(self, say: Say) -> _Annotating:
        """See :class:`~training_jobs.stages.work.Job`."""
        model, tokenizer = self.model.load()
        settings = AnnotateSettings(
            self.batch_tokens, self.temperature, self.begin_of_text, self.earlier_calls, self.before_words
        )
        try:
            with server_trouble():
                return _Annotating(Annotator(model, tokenizer, self.tool, settings), model, self.seed)
        except ValueError as error:
            raise StageError(f"{self.model.path}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Annotating:
    annotator: Annotator
    model: Any
    seed: int

    def work(self, lines: Sequence[tuple[str, bytes]]) -> Worked:
        documents = [Document.from_line(line, where) for where, line in lines]
        with server_trouble():
            annotated = self.annotator.annotate(documents, seed=self.seed)
        return Worked(annotated, {"candidates": sum(len(one.candidates) for one in annotated)})

    def close(self) -> None:
        close_model(self.model)


def add_proposing(parser: argparse.ArgumentParser) -> None:
    """Options that say how calls are proposed."""
    parser.add_argument("--temperature", type=finite, default=1.0, help="of the samples (1)")
    parser.add_argument(
        "--batch-tokens", type=positive, default=BATCH_TOKENS, help=f"tokens annotated together ({BATCH_TOKENS:,})"
    )
    parser.add_argument(
        "--begin-of-text", action="store_true", help="put the model's begin-of-text token before the prompt"
    )
    parser.add_argument(
        "--before-words",
        action="store_true",
        help="calls only where a word begins, for a vocabulary of very short tokens (the bundled models')",
    )


def annotate_tools(
    folder: RunFolder,
    tools: Sequence[Tool],
    running: Running,
    *,
    model: ModelChoice,
    seed: int = 0,
    temperature: float = 1.0,
    batch_tokens: int = BATCH_TOKENS,
    begin_of_text: bool = False,
    earlier_calls: ToolRegistry | None = None,
    before_words: bool = False,
    chunk_documents: int = CHUNK,
) -> bool:
    """Annotate each tool's documents; whether all outputs are whole.

    Raises:
        StageError: if the model cannot be used, or a file is not what it should be.
    """
    stages = []
    for tool in tools:
        job = AnnotateJob(model, tool, seed, temperature, batch_tokens, begin_of_text, earlier_calls, before_words)
        source, target = folder.file("corpus", tool.name), folder.target("annotate", tool.name)
        stages.append(Stage(f"annotate {tool.name}", source, target, job, chunk_documents))
    return run_stages(stages, running)
