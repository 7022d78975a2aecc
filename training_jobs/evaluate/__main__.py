"""Ask a served model the questions of benchmarks, with calls and without, and print the paper's tables.

python -m training_jobs.evaluate                                          # every tool, on held-out prompts
python -m training_jobs.evaluate --suites own --prompts bare --out RUN
python -m training_jobs.evaluate --suites paper --data DATA --checkpoint MODEL --k 0 1 3 10 --out RUN
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from training_jobs.errors import StageError
from training_jobs.evaluate.asking_suites import Answers, AskSettings, ask_all
from training_jobs.evaluate.command_options import HowItRuns, WhatIsAsked, WhoIsAsked, given_files, parser
from training_jobs.evaluate.conditions import conditions
from training_jobs.evaluate.example import Example, SuiteError
from training_jobs.evaluate.model import ModelTrouble, Reach, ServedModel
from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.page import write_page
from training_jobs.evaluate.perplexity import TextLoss, count_parameters
from training_jobs.evaluate.printing import print_tables
from training_jobs.evaluate.scores import score
from training_jobs.evaluate.suites import FILE_TABLE, SUITES, TEXTS, Suite, named, sample, suite_of_file
from training_jobs.evaluate.text_suites import measure, texts_of
from training_jobs.model_choice import ModelChoice
from training_jobs.runner.parts import write_json
from training_jobs.settings import read_settings

_SETTINGS: Final = "settings.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job; exits with 1 if the model cannot be asked or a request failed."""
    command = parser()
    options = command.parse_args(arguments)
    what, who, how = (
        read_settings(WhatIsAsked, options),
        read_settings(WhoIsAsked, options),
        read_settings(HowItRuns, options),
    )
    console = Console(stderr=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = how.out or Path(scratch)
            outcome, answers = evaluate(what, options.file, who, how, folder, console)
            print_tables([outcome], Console())
            if how.out:
                write_page(folder / "report.html", [outcome], answers)
                console.print(f"answers, results.json and report.html: {folder}", soft_wrap=True)
    except (SuiteError, ModelTrouble, StageError) as trouble:
        command.exit(1, f"{command.prog}: {trouble}\n")
    except KeyboardInterrupt:
        again = "run again to go on" if how.out else "nothing is kept without --out"
        print(f"{command.prog}: stopped; {again}", file=sys.stderr)
        raise SystemExit(130) from None
    failed = [answer.error for some in answers.values() for answer in some if answer.error]
    if failed:
        again = "run again to make them again" if how.out else "give --out and run again to make only those again"
        command.exit(1, f"{command.prog}: {len(failed)} requests failed, the first with: {failed[0]}; {again}\n")


def evaluate(
    what: WhatIsAsked, given: Sequence[str], who: WhoIsAsked, how: HowItRuns, folder: Path, console: Console
) -> tuple[Outcome, Answers]:
    """Ask (``given``: what ``--file`` names), keep it in ``folder``, and give the results and every answer.

    Raises:
        SuiteError: if a suite cannot be read, or ``folder`` is of another run.
        ModelTrouble: if the model cannot be asked.
        StageError: if the checkpoint cannot be used.
    """
    files, own = given_files(given)
    names = named(what.suites or ([] if own else ["tools"]))
    suites = {name: SUITES[name] for name in names if name in SUITES} | {path.stem: suite_of_file(path) for path in own}
    questions: dict[Suite, tuple[Example, ...]] = {}
    left_out: dict[str, dict[str, int]] = {}
    for name, suite in suites.items():
        paths = [Path(one) for one in suite.files] if suite.table == FILE_TABLE else files.get(name, ())
        loaded = suite.load(what.data, paths, count=what.count, seed=what.seed)
        questions[suite] = sample(name, loaded.examples, what.limit, what.seed)
        left_out |= {name: loaded.left_out} if any(loaded.left_out.values()) else {}
    texts = {
        name: texts_of(name, what.data, files.get(name, ()), count=what.count, limit=what.limit, seed=what.seed)
        for name in names
        if name in TEXTS and who.checkpoint is not None
    }
    if left := [name for name in names if name in TEXTS and name not in texts]:
        if left == list(names):
            raise SuiteError(f"{left[0]}: perplexity needs the model's weights: give --checkpoint DIR")
        console.print(f"left out for want of --checkpoint: {', '.join(left)}", soft_wrap=True)
    choice = ModelChoice(who.checkpoint, who.device, who.precision) if who.checkpoint else None
    settings: dict[str, Any] = {"prompts": what.prompts, "max_tokens": who.max_tokens, "seed": what.seed}
    settings["checkpoint"] = choice.settings() if choice else None
    if how.restart:
        forget(folder)
    name, answers = "", Answers()
    if questions:
        name, answers = asyncio.run(_ask(who, how, questions, folder, settings, console))
    else:
        keep_settings(folder, settings)
    losses: dict[str, TextLoss] = {}
    if choice is not None and texts:
        model, tokenizer = choice.load()
        losses = {name: measure(name, of, model, tokenizer, folder, console) for name, of in texts.items()}
    scores = tuple(score(suites[suite], condition, some) for (condition, suite), some in answers.items())
    parameters = count_parameters(who.checkpoint) if who.checkpoint else 0
    label = who.label or name or (who.checkpoint.name if who.checkpoint else "")
    recorded = settings | {
        "limit": what.limit, "count": what.count, "tools": who.tools, "toolformer": _version(),
    }  # fmt: skip
    outcome = Outcome(label, parameters, recorded, scores, losses, left_out, folder)
    outcome.write(folder)
    return outcome, answers


async def _ask(
    who: WhoIsAsked,
    how: HowItRuns,
    questions: dict[Suite, tuple[Example, ...]],
    folder: Path,
    settings: dict[str, Any],
    console: Console,
) -> tuple[str, Answers]:
    asked = conditions(who.k, who.max_calls)
    reach = Reach(how.deadline, how.attempts)
    async with ServedModel(who.gateway, who.model, reach, how.concurrency) as model:
        tools = model.named_tools(who.tools)
        if any(not condition.disabled for condition in asked):
            model.check_tools(tools)
        settings["model"] = model.name
        keep_settings(folder, settings)
        asking = AskSettings(asked, tools, settings["prompts"], who.max_tokens, how.concurrency)
        return model.name, await ask_all(model, questions, asking, folder, console)


def keep_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write what the answers in ``folder`` depend on.

    Raises:
        SuiteError: if it is no folder, or what is there was made with others.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SuiteError(f"--out {folder}: cannot be made a folder ({error.strerror}); name another") from error
    path = folder / _SETTINGS
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        # A run without the weights, or without questions, goes on with one that has them.
        differ = [
            name for name in {**before, **settings}
            if before.get(name) is not None and settings.get(name) is not None and before[name] != settings[name]
        ]  # fmt: skip
        if differ:
            raise SuiteError(
                f"{folder} holds a run with other settings ({', '.join(differ)}): give --restart to forget it, or "
                "another --out"
            )
        settings = before | {name: value for name, value in settings.items() if value is not None}
    write_json(path, settings)


def forget(folder: Path) -> None:
    """Remove what runs left in ``folder``, and nothing else."""
    for name in ("answers", "perplexity"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (_SETTINGS, "results.json", "report.html"):
        (folder / name).unlink(missing_ok=True)


def _version() -> str:
    try:
        return metadata.version("toolformer")
    except metadata.PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
