"""Keep every call that has a result, without judging it: for calls that are known to be right.

    python -m training_jobs.teach.trusting --run RUN --tools Calculator QA

Takes the part of ``filter``, without a model: reads ``RUN/execute/<Tool>.jsonl``, writes ``RUN/filter/<Tool>.jsonl``.
Where several calls have one place, ``merge`` takes those that gain most; here the gains are drawn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from demo_world.splits import stable_hash
from toolformer.model_files.whole import write_whole
from toolformer.tools import ToolRegistry
from training_jobs.merge.kept import records
from training_jobs.options import run_command, run_folder, stage_parser
from training_jobs.records import KEPT, Annotated, Candidate
from training_jobs.run_folder import RunFolder

_STEPS: Final = 1_000_000
_EXAMPLES = """
python -m training_jobs.teach.trusting --run RUN --tools Calculator QA
"""


def trust(folder: RunFolder, tool: str) -> int:
    """Keep what ``tool`` answered; how many calls that are.

    Raises:
        StageError: if the file of ``execute`` cannot be read.
    """
    trusted = [
        replace(record, candidates=tuple(_kept(record, call) for call in record.candidates if call.output is not None))
        for _, record in records(folder.file("execute", tool))
    ]
    write_whole(folder.target("filter", tool), "".join(record.to_line() for record in trusted))
    return sum(len(record.candidates) for record in trusted)


def _kept(record: Annotated, call: Candidate) -> Candidate:
    drawn = stable_hash(record.tool, record.document.id, str(call.offset)) % _STEPS / _STEPS
    return replace(call, gain=drawn, verdict=KEPT)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = stage_parser("training_jobs.teach.trusting", (__doc__ or "").splitlines()[0], _EXAMPLES)
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    folder = run_folder(options)
    for tool in folder.tools("execute", ToolRegistry.load(), options.tools):
        print(f"trust {tool.name}: {trust(folder, tool.name):,} calls")


if __name__ == "__main__":
    main()
