"""Where a run has its files: one folder for each stage, one file in it for each tool.

::

    RUN/corpus/<Tool>.jsonl      documents that are worth the tool's prompt (Document)
    RUN/annotate/<Tool>.jsonl    with the calls that the model proposes (Annotated)
    RUN/execute/<Tool>.jsonl     with what the tool said to each
    RUN/score/<Tool>.jsonl       with the losses of each
    RUN/filter/<Tool>.jsonl      with the verdict on each
    RUN/merge/                   C*, C and what is to be said about them; see `training_jobs.merge`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from toolformer.tools import Tool, ToolRegistry
from training_jobs.errors import StageError
from training_jobs.runner.running import Stage
from training_jobs.runner.work import Job, Needs

WITH_CALLS: Final = "with_calls.jsonl"
"""C* in its folder."""

StageName = Literal["corpus", "annotate", "execute", "score", "filter"]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    def file(self, stage: StageName, tool: str) -> Path:
        """The file of ``tool`` in ``stage``."""
        return self.path / stage / f"{tool}.jsonl"

    def target(self, stage: StageName, tool: str) -> Path:
        """The same, to be written: its folder is there."""
        path = self.file(stage, tool)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def stages(
        self,
        before: StageName,
        name: StageName,
        jobs: Mapping[str, Job],
        chunk_documents: int,
        *,
        replaceable: bool = False,
        needs: Needs | None = None,
    ) -> list[Stage]:
        """The stage ``name`` of each tool, whose job reads what the stage ``before`` wrote. See `Stage`."""
        return [
            Stage(
                f"{name} {tool}",
                self.file(before, tool),
                self.target(name, tool),
                job,
                chunk_documents,
                replaceable,
                needs or Needs(),
            )
            for tool, job in jobs.items()
        ]

    @property
    def merged(self) -> Path:
        """The folder of C*."""
        return self.path / "merge"

    @property
    def earlier(self) -> Path:
        """The C* of the round before, in a later round."""
        return self.path / "earlier"

    @property
    def is_later_round(self) -> bool:
        """Whether the texts of this run have calls of an earlier round."""
        return (self.earlier / WITH_CALLS).is_file()

    def tools(self, stage: StageName, registry: ToolRegistry, chosen: Sequence[str] | None) -> list[Tool]:
        """The tools whose file is in ``stage``, in the registry's order; of these the ``chosen`` ones.

        Raises:
            UnknownTool: if a chosen name is no tool's.
            StageError: if there is no file, or none of a chosen tool.
        """
        wanted = registry.select(chosen)
        there = [tool for tool in wanted if self.file(stage, tool.name).is_file()]
        if not there or (chosen and len(there) < len(wanted)):
            missing = next(tool for tool in wanted if tool not in there)
            raise StageError(f"{self.file(stage, missing.name)} is not there: run the stage that writes {stage} first")
        return there
