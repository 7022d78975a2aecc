"""Ask the gateway held-out questions, with calls enabled and disabled, and say how many answers are right.

    python -m training_jobs.evaluate --gateway http://127.0.0.1:8080 --out report.json

Calculations are right where the first number of the completion is the answer, dates and facts where the answer is
within the first five words (:mod:`training_jobs.scoring`); call text is no part of the completion. A request that
fails counts as a wrong answer and is reported.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from demo_world.suites import QUESTIONS_PER_TOOL, SPLITS, TOOLS, Question, Split, questions
from toolformer.credentials import gateway_credentials
from training_jobs.scoring import right_number, right_words, wilson_interval

MAX_TOKENS: Final = 128
"""Tokens the model may make for one question: a call that quotes a whole sentence, and the answer."""

_TABLE_WIDTH: Final = 118
_RULES: Final = {"Calculator": right_number}


class GatewayTrouble(Exception):  # noqa: N818 - reads as what happened
    """The gateway cannot be asked; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question. ``called``: an executed call to the question's own tool; ``error``: why there is no
    text."""

    question: Question
    calls_enabled: bool
    text: str
    calls: tuple[str, ...]
    called: bool
    right: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """Right answers of one suite, with calls and without; shares are from 0 to 1, intervals Wilson's at 95 %."""

    tool: str
    split: Split
    questions: int
    right: int
    right_disabled: int
    called: int
    failed: int

    @property
    def right_interval(self) -> tuple[float, float]:
        """Interval of the share that is right with calls enabled."""
        return wilson_interval(self.right, self.questions)

    @property
    def disabled_interval(self) -> tuple[float, float]:
        """Interval of the share that is right with calls disabled."""
        return wilson_interval(self.right_disabled, self.questions)


def is_right(question: Question, completion: str) -> bool:
    """Whether ``completion`` (without call text) answers the question, by the rule for its tool."""
    return _RULES.get(question.tool, right_words)(completion, question.answer)


async def ask(client: httpx.AsyncClient, question: Question, *, api_top_k: int, calls_enabled: bool) -> Answer:
    """Ask one question; trouble is the answer's ``error``, never an exception."""
    body: dict[str, Any] = {
        "prompt": question.prompt, "max_tokens": MAX_TOKENS, "temperature": 0, "max_calls": 1, "show_calls": False,
        "api_top_k": api_top_k,
    }  # fmt: skip
    if not calls_enabled:
        body["tools"] = []
    if question.date is not None:
        body["tool_context"] = {"date": question.date.isoformat()}
    try:
        response = await client.post("/v1/completions", json=body)
        response.raise_for_status()
        choice = response.json()["choices"][0]
        text, made = str(choice["text"]), list(choice.get("tool_calls") or [])
        called = any(call["tool"] == question.tool and call["error"] is None for call in made)
        calls = tuple(f"{call['tool']}({call['input']}) -> {call['output'] or call['error']}" for call in made)
    except httpx.HTTPStatusError as error:
        return Answer(
            question,
            calls_enabled,
            "",
            (),
            False,
            False,
            f"HTTP {error.response.status_code}: {error.response.text[:200]}",
        )
    except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
        return Answer(question, calls_enabled, "", (), False, False, f"{type(error).__name__}: {error}")
    return Answer(question, calls_enabled, text, calls, called, is_right(question, text))


async def evaluate(
    gateway: str,
    *,
    api_top_k: int = 10,
    count: int = QUESTIONS_PER_TOOL,
    seed: int = 0,
    concurrency: int = 8,
    timeout_s: float = 120.0,
) -> tuple[list[Score], list[Answer]]:
    """Scores of every suite, and all the answers behind them.

    Args:
        gateway: base URL of the gateway.
        api_top_k: k of section 4.2: a call may start where it is among the k most likely tokens.
        count: questions a tool and split.
        seed: of the questions.
        concurrency: requests under way at once.
        timeout_s: deadline of one request in seconds.

    Raises:
        GatewayTrouble: if the gateway is not ready.
    """
    slots = asyncio.Semaphore(concurrency)
    suites = {(tool, split): questions(tool, split, count=count, seed=seed) for split in SPLITS for tool in TOOLS}
    headers = gateway_credentials()
    async with httpx.AsyncClient(base_url=gateway, timeout=timeout_s, trust_env=False, headers=headers) as client:
        await _check_ready(client)
        with Progress(transient=True) as progress:
            bar = progress.add_task("evaluate", total=2 * sum(map(len, suites.values())))

            async def asked(question: Question, calls_enabled: bool) -> Answer:
                async with slots:
                    answer = await ask(client, question, api_top_k=api_top_k, calls_enabled=calls_enabled)
                progress.advance(bar)
                return answer

            answers = {
                suite: await asyncio.gather(
                    *(asked(question, enabled) for question in asking for enabled in (True, False))
                )
                for suite, asking in suites.items()
            }
    scores = [_score(tool, split, answers[tool, split]) for tool, split in suites]
    return scores, [answer for some in answers.values() for answer in some]


async def _check_ready(client: httpx.AsyncClient) -> None:
    remedy = "start it first (toolformer up), or name another with --gateway"
    try:
        response = await client.get("/ready")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise GatewayTrouble(f"the gateway {client.base_url} cannot be reached ({error}): {remedy}") from None
    if response.status_code != httpx.codes.OK:
        raise GatewayTrouble(f"the gateway {client.base_url} is not ready (HTTP {response.status_code}): {remedy}")


def _score(tool: str, split: Split, answers: Sequence[Answer]) -> Score:
    enabled = [answer for answer in answers if answer.calls_enabled]
    disabled = [answer for answer in answers if not answer.calls_enabled]
    return Score(
        tool=tool,
        split=split,
        questions=len(enabled),
        right=sum(answer.right for answer in enabled),
        right_disabled=sum(answer.right for answer in disabled),
        called=sum(answer.called for answer in enabled),
        failed=sum(bool(answer.error) for answer in answers),
    )


def as_table(scores: Sequence[Score]) -> Table:
    """Scores as a table for people."""
    table = Table(title="right answers, 95 % intervals")
    for heading in ("suite", "tool", "right with calls", "right disabled", "called the tool", "failed requests", "n"):
        table.add_column(heading, justify="left" if heading in ("suite", "tool") else "right")
    for score in scores:
        table.add_row(
            score.split,
            score.tool,
            _percent(score.right, score.questions, score.right_interval),
            _percent(score.right_disabled, score.questions, score.disabled_interval),
            f"{score.called / max(1, score.questions):.0%}",
            str(score.failed),
            str(score.questions),
        )
    return table


def as_json(scores: Sequence[Score], answers: Sequence[Answer], **settings: Any) -> dict[str, Any]:
    """Everything in one JSON object: ``settings``, ``scores``, and each question with its completion."""
    return {
        "settings": settings,
        "scores": [
            asdict(score) | {"right_interval": score.right_interval, "disabled_interval": score.disabled_interval}
            for score in scores
        ],
        "answers": [asdict(answer) for answer in answers],
    }


def _percent(successes: int, trials: int, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{successes / max(1, trials):.0%} ({low:.0%}-{high:.0%})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job; exits with 1 if the gateway is not ready or a request failed."""
    parser = argparse.ArgumentParser(
        prog="python -m training_jobs.evaluate", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--gateway", default="http://127.0.0.1:8080", help="base URL of the gateway")
    parser.add_argument("--k", type=int, default=10, help="api_top_k: a call may start among the k most likely tokens")
    parser.add_argument("--count", type=int, default=QUESTIONS_PER_TOOL, help="questions a tool and suite")
    parser.add_argument("--seed", type=int, default=0, help="seed of the questions")
    parser.add_argument("--concurrency", type=int, default=8, help="requests under way at once")
    parser.add_argument("--out", type=Path, help="write scores and every answer to this JSON file")
    options = parser.parse_args(arguments)
    for name in ("count", "concurrency"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, not {getattr(options, name)}")
    try:
        scores, answers = asyncio.run(
            evaluate(
                options.gateway,
                api_top_k=options.k,
                count=options.count,
                seed=options.seed,
                concurrency=options.concurrency,
            )
        )
    except GatewayTrouble as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")
    console = Console()
    console.width = max(console.width, _TABLE_WIDTH)  # a pipe has no width, and 80 columns would cut the figures
    console.print(as_table(scores))
    if options.out:
        settings = {"gateway": options.gateway, "api_top_k": options.k, "seed": options.seed}
        options.out.write_text(json.dumps(as_json(scores, answers, **settings), indent=2, default=str) + "\n")
    if first := next((answer.error for answer in answers if answer.error), ""):
        parser.exit(1, f"{parser.prog}: requests failed, the first with: {first}\n")


if __name__ == "__main__":
    main()
