"""The options of the command that evaluates."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from training_jobs.evaluate.asking_suites import MAX_TOKENS
from training_jobs.evaluate.example import Prompts, SuiteError
from training_jobs.evaluate.suites import SETS, SUITES, TEXTS
from training_jobs.model_choice import Precision
from training_jobs.options import job_parser
from training_jobs.settings import add_settings, positive, setting

_EXAMPLES: Final = """
toolformer evaluate                                        # every tool, on held-out prompts
toolformer evaluate --suites own --prompts bare --out RUN
toolformer evaluate --suites paper --data DATA --checkpoint MODEL --k 0 1 3 10 --out RUN
toolformer evaluate --file prompts.jsonl --max-tokens 48 --out RUN                     # your own prompts
toolformer evaluate --suites squad svamp --data DATA --limit 100 --out RUN
toolformer evaluate --gateway http://127.0.0.1:8000 --k 0 --suites math --data DATA    # any OpenAI server
"""


def _not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {number}")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text}")
    return seconds


@dataclass(frozen=True, slots=True)
class WhatIsAsked:
    """What is asked."""

    suites: tuple[str, ...] = setting(
        (), f"sets ({', '.join(SETS)}) or single suites; tools by default, none where a file of prompts is given",
        metavar="NAME",
    )  # fmt: skip
    data: Path | None = setting(None, "folder of the published files, a folder a benchmark", metavar="DIR")
    count: int = setting(100, "questions in each part of a generated suite", kind=positive)
    limit: int | None = setting(None, "examples of a suite, at most: a sample drawn by --seed", kind=positive)
    seed: int = setting(0, "of generated suites and of samples")
    prompts: Prompts = setting("paper", "the paper's zero-shot prompts, or the text alone, for models that follow none")


@dataclass(frozen=True, slots=True)
class WhoIsAsked:
    """Who is asked."""

    gateway: str = setting("http://127.0.0.1:8080", "a gateway, or any server of OpenAI's completions", metavar="URL")
    model: str | None = setting(None, "the served model's name; the server's first by default", metavar="NAME")
    label: str | None = setting(None, "what its rows are called; the model's name by default")
    k: tuple[int, ...] = setting(
        (0, 10), "a call may start among the k likeliest tokens; 0: calls disabled", kind=_not_negative, metavar="K"
    )
    max_calls: tuple[int, ...] = setting((1,), "calls of a completion, at most", kind=positive, metavar="N")
    tools: tuple[str, ...] | None = setting(None, "tools that may be called; all by default", metavar="NAME")
    max_tokens: int = setting(MAX_TOKENS, "tokens the model may make for an example, call text included", kind=positive)
    checkpoint: Path | None = setting(None, "its weights: perplexity and number of parameters", metavar="DIR")
    device: str = setting("cpu", "where the checkpoint computes")
    precision: Precision = setting("float32", "of its products")


@dataclass(frozen=True, slots=True)
class HowItRuns:
    """How it runs."""

    out: Path | None = setting(None, "keep answers, results.json and report.html; run again to go on", metavar="DIR")
    restart: bool = setting(False, "forget what an earlier run left in --out")
    concurrency: int = setting(8, "requests under way at once", kind=positive)
    deadline: float = setting(180.0, "seconds for a request with its retries", kind=_seconds)
    attempts: int = setting(4, "times a request is made, at most", kind=positive)


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = job_parser(
        "training_jobs.evaluate",
        "Ask a served model the questions of benchmarks, with calls and without, and print the paper's tables.",
        _EXAMPLES,
    )
    asked = made.add_argument_group("what is asked")
    add_settings(asked, WhatIsAsked)
    asked.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="PATH",
        help="your own prompts as JSON lines (id, kind, prompt, tool, accept); SUITE=PATH: a suite's file, elsewhere",
    )
    add_settings(made.add_argument_group("who is asked"), WhoIsAsked)
    add_settings(made.add_argument_group("how it runs"), HowItRuns)
    return made


def given_files(given: Sequence[str]) -> tuple[dict[str, list[Path]], list[Path]]:
    """What ``--file`` names: files of suites, by suite, and files of one's own prompts.

    Raises:
        SuiteError: if one is neither `SUITE=PATH` nor a file, or two files of prompts have one name.
    """
    found: dict[str, list[Path]] = {}
    own: list[Path] = []
    for one in given:
        suite, equals, path = one.partition("=")
        if equals and path and suite in (*SUITES, *TEXTS):
            found.setdefault(suite, []).append(Path(path))
        elif not Path(one).is_file():
            raise SuiteError(
                f"--file {one}: there is no such file of prompts; a suite's own file is given as SUITE=PATH, such as "
                "svamp=SVAMP.json"
            )
        elif Path(one).stem in {*SUITES, *TEXTS, *(other.stem for other in own)}:
            raise SuiteError(f"--file {one}: another suite is called {Path(one).stem!r}; give the file another name")
        else:
            own.append(Path(one))
    return found, own
