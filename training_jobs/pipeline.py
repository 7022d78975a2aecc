"""All stages in one command: from texts C to C*.

    python -m training_jobs.pipeline FILE ... --run RUN --model MODEL --language-id lid.176.ftz
    python -m training_jobs.pipeline --round 2 --earlier RUN --run RUN2 --model FINETUNED

Ended at any moment, the same command goes on. The tool services must be up by the time of ``execute``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from language_model.config import CheckpointError
from language_model.tokenizer import ByteLevelTokenizer, tokenizer_file
from toolformer.cache_settings import CacheSettings
from toolformer.tool_client import ToolClient
from toolformer.tools import Tool, ToolRegistry
from training_jobs.annotate.annotator import AnnotateSettings
from training_jobs.annotate.job import annotate_tools
from training_jobs.corpora.web.job import add_hold_out, select_texts, take_corpus
from training_jobs.errors import StageError
from training_jobs.execute.asking import ExecuteSettings
from training_jobs.execute.job import execute_tools
from training_jobs.filter.job import add_filter_settings, judge_tools, measured_costs, read_filter_settings, score_tools
from training_jobs.filter.scorer import ScoreSettings
from training_jobs.merge.choosing import MergeRule
from training_jobs.merge.job import merge_tools
from training_jobs.merge.rounds import begin_round
from training_jobs.model_choice import add_model, model_choice
from training_jobs.options import add_running, run_command, run_folder, running, stage_parser
from training_jobs.run_folder import RunFolder
from training_jobs.runner.running import Running
from training_jobs.settings import add_settings, positive, read_settings
from training_jobs.teach.form import check_form

CHUNK = 64

_EXAMPLES = """
toolformer jobs run --up WEB/*.json.gz --run RUN --model models/base --language-id lid.176.ftz --workers 2
toolformer jobs run texts.jsonl --run RUN --model models/base --tools Calculator Calendar
toolformer jobs run --corpus REAL/round-1/corpus --run RUN --model BASE   (texts that are chosen already)
toolformer jobs run --round 2 --earlier RUN --run RUN2 --model FINETUNED --cost-weight 0.05
toolformer jobs run annotate --on k8s --dry-run   (one stage, here, in a container or on a cluster; --help)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of the whole pipeline."""
    run_command(make_parser(), _run, arguments)


def make_parser() -> argparse.ArgumentParser:
    """The options of the whole pipeline."""
    parser = stage_parser(
        "training_jobs.pipeline",
        "From texts to C*: select, annotate, execute, score, filter, merge. Goes on where it was ended. First it is "
        "seen, for a minute, whether the model follows the prompts' form, and copies.",
        _EXAMPLES,
    )
    parser.add_argument("files", type=Path, nargs="*", help="CCNet .json.gz, .jsonl (also .gz) or .parquet files: C")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="in place of FILES the documents for each tool, DIR/<Tool>.jsonl"
    )
    parser.add_argument("--language-id", type=Path, help="fastText classifier, such as lid.176.ftz; MT needs it")
    add_hold_out(parser)
    parser.add_argument("--round", type=positive, default=1, help="2 and on: add calls to the C* of --earlier (1)")
    parser.add_argument("--earlier", type=Path, metavar="DIR", help="folder of the run of the round before")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn; the same seed gives the same bytes")
    add_settings(parser, AnnotateSettings, skip={"seed"})
    add_settings(parser, ExecuteSettings)
    add_filter_settings(parser)
    add_settings(parser, MergeRule, skip={"seed"})
    add_model(parser)
    parser.add_argument(
        "--up", action="store_true", help="start the tool services for as long as this runs (toolformer jobs run only)"
    )
    parser.add_argument(
        "--unchecked", action="store_true", help="annotate even with a model that follows no prompt or does not copy"
    )
    add_running(parser, chunk=CHUNK)
    return parser


def _run(options: argparse.Namespace) -> None:
    folder, registry, how = run_folder(options), ToolRegistry.load(), running(options)
    if how.shard.world_size > 1:
        raise StageError("the stages of a run wait for one another: give each rank one stage (jobs annotate, ...)")
    if options.up:
        raise StageError("--up: a job starts no services; give it to toolformer jobs run")
    asked = registry.select(options.tools)
    # All that the options may have wrong is said now, before hours of work.
    annotating, executing = read_settings(AnnotateSettings, options), read_settings(ExecuteSettings, options)
    scoring, filtering = read_settings(ScoreSettings, options), read_filter_settings(options, registry)
    merging, cache = read_settings(MergeRule, options), CacheSettings.read(os.environ)
    model, chunk = model_choice(options), options.chunk
    model.settings()
    asyncio.run(_say_who_is_missing(asked, registry, how.console))
    _begin(options, folder, asked, registry, how)
    tools = folder.tools("corpus", registry, options.tools)
    earlier_calls = registry if folder.is_later_round else None
    if not (options.unchecked or folder.is_later_round or (folder.path / "annotate").exists()):
        check_form(folder, tools, model, annotating, how.console)
    annotate_tools(folder, tools, how, model, annotating, earlier_calls=earlier_calls, chunk_documents=chunk)
    execute_tools(folder, tools, how, executing, cache)
    score_tools(folder, tools, how, model, scoring, chunk_documents=chunk)
    if options.cost == "measured":
        filtering = replace(filtering, cost=measured_costs(folder, tools))
    judge_tools(folder, tools, how, filtering)
    merge_tools(folder, tools, merging, registry, how.console)


def _begin(
    options: argparse.Namespace, folder: RunFolder, tools: Sequence[Tool], registry: ToolRegistry, how: Running
) -> None:
    """Make the corpus: of files, or of the C* of the round before."""
    tokenizer = tokenizer_file(options.model) or options.model / "tokenizer.json"
    if options.round == 1:
        if bool(options.files) == bool(options.corpus) or options.earlier:
            raise StageError("the first round takes FILES or --corpus; a later one --round 2 --earlier DIR")
        if options.corpus and options.hold_out:
            raise StageError("--hold-out draws from FILES, not from the --corpus that is chosen already")
        if options.corpus:
            take_corpus(folder, options.corpus, tools, how.restart, how.console)
            return
        select_texts(
            folder, options.files, tools, tokenizer=tokenizer, language_id=options.language_id,
            seed=options.seed, hold_out=options.hold_out, restart=how.restart, console=how.console,
        )  # fmt: skip
        return
    if options.files or options.corpus or options.hold_out or options.earlier is None:
        takes = "takes --earlier DIR, the run of the round before, and neither FILES nor --corpus nor --hold-out"
        raise StageError(f"--round {options.round} {takes}")
    try:
        texts = begin_round(
            folder, RunFolder(options.earlier).merged, ByteLevelTokenizer.from_pretrained(options.model), registry
        )
    except CheckpointError as error:
        raise StageError(f"--model: {error}") from error
    how.console.print(f"corpus: {texts:,} texts of C*, for round {options.round}", highlight=False)


async def _say_who_is_missing(tools: Sequence[Tool], registry: ToolRegistry, console: Console) -> None:
    """Annotating takes hours; it is good to know before that the services will be needed after it."""
    async with ToolClient(registry) as client:
        states = await asyncio.gather(*(client.ready(tool.name) for tool in tools))
    for tool, state in zip(tools, states, strict=True):
        if not state:
            said = f"{tool.name} is not up yet; execute will wait for it: {state.reason}"
            console.print(said, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
