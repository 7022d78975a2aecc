"""The stage ``annotate``: the calls that a model proposes for each document.

    python -m training_jobs.annotate --run RUN --model MODEL

Reads ``RUN/corpus/<Tool>.jsonl``, writes ``RUN/annotate/<Tool>.jsonl``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from toolformer.tools import ToolRegistry
from training_jobs.annotate.annotator import AnnotateSettings
from training_jobs.annotate.job import CHUNK, annotate_tools
from training_jobs.model_choice import add_model, model_choice
from training_jobs.options import add_running, run_command, run_folder, running, stage_parser
from training_jobs.settings import add_settings, read_settings

_EXAMPLES = """
toolformer jobs annotate --run RUN --model models/base
toolformer jobs annotate --run RUN --model models/base --tools Calculator MT --workers 4
JOB_COMPLETION_INDEX=0 WORLD_SIZE=8 toolformer jobs annotate --run RUN --model M --device cuda
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this stage."""
    parser = stage_parser(
        "training_jobs.annotate",
        "Ask a model, with each tool's few-shot prompt, where calls may be in the texts of RUN/corpus and which.",
        _EXAMPLES,
    )
    add_settings(parser, AnnotateSettings)
    add_model(parser)
    add_running(parser, chunk=CHUNK)
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    folder, registry = run_folder(options), ToolRegistry.load()
    annotate_tools(
        folder,
        folder.tools("corpus", registry, options.tools),
        running(options),
        model_choice(options),
        read_settings(AnnotateSettings, options),
        earlier_calls=registry if folder.is_later_round else None,
        chunk_documents=options.chunk,
    )


if __name__ == "__main__":
    main()
