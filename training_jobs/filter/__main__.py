"""The stage ``filter``: which calls help the model to predict what follows.

    python -m training_jobs.filter --run RUN --model MODEL
    python -m training_jobs.filter --run RUN --tau 0.5

With a model it reads ``RUN/execute/<Tool>.jsonl`` and writes the losses to ``RUN/score/<Tool>.jsonl``. Then, and
without a model only that, it judges these: ``RUN/filter/<Tool>.jsonl``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import get_args

from toolformer.tools import ToolRegistry
from training_jobs.records import WithoutResult
from training_jobs.stages.command import add_running, finite, run_command, run_folder, running, stage_parser
from training_jobs.stages.errors import StageError
from training_jobs.stages.models import add_model, model_choice
from training_jobs.stages.scoring import SCORE_CHUNK, Strictness, judge_tools, measured_costs, score_tools

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
    add_strictness(parser)
    add_model(parser, required=False)
    add_running(parser, chunk=SCORE_CHUNK)
    run_command(parser, _run, arguments)


def add_strictness(parser: argparse.ArgumentParser) -> None:
    """Options that say what a call must gain."""
    group = parser.add_argument_group("what a call must gain")
    group.add_argument(
        "--tau", nargs="+", type=_tau, default=[], metavar="NATS|TOOL=NATS", help="tau_f, in place of the registry's"
    )
    group.add_argument(
        "--cost-weight", type=finite, default=0.0, help="lambda: nats for each unit of a call's cost (0)"
    )
    group.add_argument(
        "--cost",
        choices=("registry", "measured"),
        default="registry",
        help="costs from the registry, or from how long the calls of RUN/execute took, the calculator's being 1",
    )
    group.add_argument(
        "--given-inputs",
        action="store_true",
        help="keep a call only if the numbers of its input (of MT's the whole input) stand in the text before it",
    )
    group.add_argument(
        "--no-begin-of-text", action="store_true", help="texts do not stand behind the model's begin-of-text token"
    )
    group.add_argument(
        "--without-result",
        choices=get_args(WithoutResult),
        default="empty",
        help="what a result is compared with besides no call at all: empty, the paper's [name(input) -> ], or closed, "
        "[name(input)] (%(default)s)",
    )


def strictness(options: argparse.Namespace, registry: ToolRegistry, costs: dict[str, float]) -> Strictness:
    """What `add_strictness`'s options say.

    Raises:
        UnknownTool: if ``--tau`` names a tool that is not there.
    """
    tau = {name and registry.named(name).name: least for name, least in options.tau}
    return Strictness(tau, options.cost_weight, costs, options.given_inputs)


def _run(options: argparse.Namespace) -> None:
    folder, registry = run_folder(options), ToolRegistry.load()
    if options.model is not None:
        executed = folder.tools("execute", registry, options.tools)
        if not score_tools(
            folder,
            executed,
            running(options),
            model=model_choice(options),
            begin_of_text=not options.no_begin_of_text,
            without_result=options.without_result,
            chunk_documents=options.chunk,
        ):
            return  # other ranks are at work; the last one judges
    elif options.restart:
        raise StageError("--restart makes the losses anew and needs --model; verdicts are always made anew")
    tools = folder.tools("score", registry, options.tools)
    costs = measured_costs(folder, tools) if options.cost == "measured" else {}
    judge_tools(folder, tools, running(options), strictness(options, registry, costs))


def _tau(text: str) -> tuple[str, float]:
    tool, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number of nats, or TOOL=number, not {text!r}")
    return tool, value


if __name__ == "__main__":
    main()
