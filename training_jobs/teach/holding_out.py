"""Set apart the texts that the finetuned model is asked about, and never trained on.

    python -m training_jobs.teach.holding_out --run RUN --tool Convert

Reads ``RUN/filter/<Tool>.jsonl``. About one in seven texts is held out, by the inputs of its calls: no call of a
held-out input is trained on. Writes ``RUN/taught/filter/<Tool>.jsonl`` for ``merge``, and in ``RUN/held-out``
the ``texts.jsonl`` (documents), and ``<Tool>.jsonl``, the questions for ``toolformer evaluate --file``: each the text
before a call, right if the model goes on with what the tool answered.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from demo_world.splits import stable_hash
from toolformer.model_files.whole import write_whole
from toolformer.tools import ToolRegistry
from training_jobs.errors import NothingKept
from training_jobs.merge.kept import records
from training_jobs.options import job_parser, run_command, run_folder
from training_jobs.records import KEPT, Annotated, Candidate
from training_jobs.run_folder import RunFolder
from training_jobs.settings import positive

TAUGHT: Final = "taught"
HELD_OUT: Final = "held-out"
"""Folders in that of the run."""
TEXTS_FILE: Final = "texts.jsonl"
_ONE_IN: Final = 7

_EXAMPLES = """
python -m training_jobs.teach.holding_out --run RUN --tool Convert --questions 100
"""


def is_held_out(record: Annotated) -> bool:
    """Whether the text is set apart: whether the input of a call is that was kept, or that answers what follows."""
    return any(stable_hash("held out", call.input) % _ONE_IN == 0 for call in (*_kept(record), *_right(record)))


def question(record: Annotated) -> dict[str, Any] | None:
    """The text before the first call whose result is what the text goes on with, as a line of a file of prompts, kept
    by the filter or not; ``None`` if there is none."""
    for call in _right(record):
        if prompt := record.document.text[: call.offset].rstrip():
            accept = [re.escape(call.output or "")]
            return {
                "id": record.document.id,
                "kind": "held out",
                "prompt": prompt,
                "tool": record.tool,
                "accept": accept,
            }
    return None


def hold_out(folder: RunFolder, tool: str, count: int) -> tuple[int, int]:
    """Divide what the filter kept of ``tool``, with at most ``count`` questions; how many texts are left to train on,
    and how many questions there are.

    Raises:
        NothingKept: if there is no question, or nothing left.
        StageError: if the filter's file cannot be read.
    """
    filtered = [record for _, record in records(folder.file("filter", tool))]
    apart = [record for record in filtered if is_held_out(record)]
    taught = [record for record in filtered if _kept(record) and not is_held_out(record)]
    questions = [asked for record in apart if (asked := question(record))][:count]
    if not questions or not taught:
        raise NothingKept(
            f"{tool}: {len(taught):,} texts are left to train on; {len(apart):,} were held out, {len(questions):,} of "
            "which go on with what the tool answered\n  try: more texts, or ones that have the tool's own answers"
        )
    held_out = folder.path / HELD_OUT
    held_out.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(asked, ensure_ascii=False) + "\n" for asked in questions)
    write_whole(held_out / f"{tool}.jsonl", "".join(lines))
    write_whole(held_out / TEXTS_FILE, "".join(record.document.to_line() for record in apart))
    target = RunFolder(folder.path / TAUGHT).target("filter", tool)
    write_whole(target, "".join(record.to_line() for record in taught))
    return len(taught), len(questions)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = job_parser("training_jobs.teach.holding_out", (__doc__ or "").splitlines()[0], _EXAMPLES)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run")
    parser.add_argument("--tool", required=True, metavar="NAME", help="whose calls were filtered")
    parser.add_argument("--questions", type=positive, default=100, help="at most (100)")
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    tool = ToolRegistry.load().named(options.tool).name
    taught, questions = hold_out(run_folder(options), tool, options.questions)
    print(f"{taught:,} texts to train on; {questions:,} questions of others")


def _kept(record: Annotated) -> list[Candidate]:
    return [call for call in record.candidates if call.verdict == KEPT]


def _right(record: Annotated) -> list[Candidate]:
    """The calls whose output is what the text goes on with."""
    return [
        call
        for call in record.candidates
        if call.output and re.match(rf"\s*{re.escape(call.output)}(?!\w|[.,]\d)", record.document.text[call.offset :])
    ]


if __name__ == "__main__":
    main()
