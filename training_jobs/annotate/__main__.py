"""The stage ``annotate``: the calls that a model proposes for each document.

    python -m training_jobs.annotate --run RUN --model MODEL

Reads ``RUN/corpus/<Tool>.jsonl``, writes ``RUN/annotate/<Tool>.jsonl``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from toolformer.tools import ToolRegistry
from training_jobs.stages.annotating import CHUNK, add_proposing, annotate_tools
from training_jobs.stages.command import add_running, run_command, run_folder, running, stage_parser
from training_jobs.stages.models import add_model, model_choice
from training_jobs.stages.rounds import is_later_round

_EXAMPLES = """
toolformer jobs annotate --run RUN --model models/base
toolformer jobs annotate --run RUN --model models/base --tools Calculator MT --workers 4
JOB_COMPLETION_INDEX=0 WORLD_SIZE=8 toolformer jobs annotate --run RUN --model M --device cuda
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this stage."""
    parser = stage_parser(
        "training_jobs.annotate",
        "Ask a model, with each tool's few-shot prompt, where calls may stand in the texts of RUN/corpus and which.",
        _EXAMPLES,
    )
    parser.add_argument("--seed", type=int, default=0, help="of the samples; the same seed gives the same bytes")
    add_proposing(parser)
    add_model(parser)
    add_running(parser, chunk=CHUNK)
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    folder, registry = run_folder(options), ToolRegistry.load()
    annotate_tools(
        folder,
        folder.tools("corpus", registry, options.tools),
        running(options),
        model=model_choice(options),
        seed=options.seed,
        temperature=options.temperature,
        batch_tokens=options.batch_tokens,
        begin_of_text=options.begin_of_text,
        before_words=options.before_words,
        earlier_calls=registry if is_later_round(folder) else None,
        chunk_documents=options.chunk,
    )


if __name__ == "__main__":
    main()
