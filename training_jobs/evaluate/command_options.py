"""The options of the command that evaluates."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from training_jobs.evaluate.asking_suites import MAX_TOKENS
from training_jobs.evaluate.example import SuiteError
from training_jobs.evaluate.suites import SETS, SUITES, TEXTS
from training_jobs.options import job_parser
from training_jobs.settings import positive

GATEWAY: Final = "http://127.0.0.1:8080"
COUNT: Final = 100
_EXAMPLES: Final = """
toolformer evaluate                                        # every tool, on held-out prompts
toolformer evaluate --suites own --prompts bare --out RUN
toolformer evaluate --suites paper --data DATA --checkpoint MODEL --k 0 1 3 10 --out RUN
toolformer evaluate --file prompts.jsonl --max-tokens 48 --out RUN                     # your own prompts
toolformer evaluate --suites squad svamp --data DATA --limit 100 --out RUN
toolformer evaluate --gateway http://127.0.0.1:8000 --k 0 --suites math --data DATA    # any OpenAI server
"""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = job_parser(
        "training_jobs.evaluate",
        "Ask a served model the questions of benchmarks, with calls and without, and print the paper's tables.",
        _EXAMPLES,
    )
    asked = made.add_argument_group("what is asked")
    asked.add_argument(
        "--suites",
        nargs="+",
        metavar="NAME",
        help=f"sets ({', '.join(SETS)}) or single suites; tools by default, none where a file of prompts is given",
    )
    asked.add_argument("--data", type=Path, metavar="DIR", help="folder of the published files, a folder a benchmark")
    asked.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="PATH",
        help="your own prompts as JSON lines (id, kind, prompt, tool, accept); SUITE=PATH: a suite's file, elsewhere",
    )
    asked.add_argument(
        "--count", type=positive, default=COUNT, help=f"questions in each part of a generated suite ({COUNT})"
    )
    asked.add_argument("--limit", type=positive, help="examples of a suite, at most: a sample drawn by --seed")
    asked.add_argument("--seed", type=int, default=0, help="of generated suites and of samples (0)")
    asked.add_argument(
        "--prompts",
        choices=("paper", "bare"),
        default="paper",
        help="the paper's zero-shot prompts, or the text alone, for models that follow none",
    )
    model = made.add_argument_group("who is asked")
    model.add_argument(
        "--gateway",
        default=GATEWAY,
        metavar="URL",
        help=f"a gateway, or any server of OpenAI's completions ({GATEWAY})",
    )
    model.add_argument("--model", metavar="NAME", help="the served model's name; the server's first by default")
    model.add_argument("--label", help="what its rows are called; the model's name by default")
    model.add_argument(
        "--k",
        nargs="+",
        type=_not_negative,
        default=[0, 10],
        metavar="K",
        help="a call may start among the k likeliest tokens; 0: calls disabled (0 10)",
    )
    model.add_argument(
        "--max-calls", nargs="+", type=positive, default=[1], metavar="N", help="calls of a completion, at most (1)"
    )
    model.add_argument("--tools", nargs="+", metavar="NAME", help="tools that may be called; all by default")
    model.add_argument(
        "--max-tokens",
        type=positive,
        default=MAX_TOKENS,
        help=f"tokens the model may make for an example, call text included ({MAX_TOKENS})",
    )
    model.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="its weights: perplexity and number of parameters"
    )
    model.add_argument("--device", default="cpu", help="where the checkpoint computes (cpu)")
    model.add_argument("--precision", choices=("float32", "bfloat16", "float16"), default="float32")
    how = made.add_argument_group("how it runs")
    how.add_argument(
        "--out", type=Path, metavar="DIR", help="keep answers, results.json and report.html; run again to go on"
    )
    how.add_argument("--restart", action="store_true", help="forget what an earlier run left in --out")
    how.add_argument("--concurrency", type=positive, default=8, help="requests under way at once (8)")
    how.add_argument("--deadline", type=_seconds, default=180.0, help="seconds for a request with its retries (180)")
    how.add_argument("--attempts", type=positive, default=4, help="times a request is made, at most (4)")
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
