"""The stage ``filter``: which calls help the model to predict what follows.

    python -m training_jobs.filter --run RUN --model MODEL
    python -m training_jobs.filter --run RUN --tau 0.5

With a model it reads ``RUN/execute/<Tool>.jsonl`` and writes the losses to ``RUN/score/<Tool>.jsonl``. Then, and
without a model only that, it judges these: ``RUN/filter/<Tool>.jsonl``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from toolformer.tools import ToolRegistry
from training_jobs.errors import StageError
from training_jobs.filter.job import (
    SCORE_CHUNK,
    add_filter_settings,
    judge_tools,
    measured_costs,
    read_filter_settings,
    score_tools,
)
from training_jobs.filter.scorer import ScoreSettings
from training_jobs.model_choice import add_model, model_choice
from training_jobs.options import add_running, run_command, run_folder, running, stage_parser
from training_jobs.settings import read_settings

_EXAMPLES = """
toolformer jobs filter --run RUN --model models/base --workers 2
toolformer jobs filter --run RUN --tau 0.5
toolformer jobs filter --run RUN --tau 1.0 Calculator=0.5 MT=0.5
toolformer jobs filter --run RUN --cost-weight 0.1 --cost measured
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this stage."""
    parser = stage_parser(
        "training_jobs.filter",
        "Keep the calls whose result lowers the loss of what follows by tau_f + cost-weight * cost nats or more. "
        "Without --model the losses of an earlier run are judged by other thresholds.",
        _EXAMPLES,
    )
    add_filter_settings(parser)
    add_model(parser, required=False)
    add_running(parser, chunk=SCORE_CHUNK)
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    folder, registry = run_folder(options), ToolRegistry.load()
    if options.model is not None:
        executed = folder.tools("execute", registry, options.tools)
        if not score_tools(
            folder,
            executed,
            running(options),
            model_choice(options),
            read_settings(ScoreSettings, options),
            chunk_documents=options.chunk,
        ):
            return  # other ranks are at work; the last one judges
    elif options.restart:
        raise StageError("--restart makes the losses again and needs --model; verdicts are always made again")
    tools = folder.tools("score", registry, options.tools)
    filtering = read_filter_settings(options, registry)
    if options.cost == "measured":
        filtering = replace(filtering, cost=measured_costs(folder, tools))
    judge_tools(folder, tools, running(options), filtering)


if __name__ == "__main__":
    main()
