"""Completions with calls on vLLM in several ways: paused inside it, and as requests in front of a server.

    .venv/vllm/bin/python -m benchmarks.vllm_pauses [speed|same|table|soak] [--prompts 250] [--at-once 8] [--eager]

`speed`: the ways take turns over the same prompts: two in five word problems, two in five dates, one in five facts,
whose tool fails; the faster round of each counts. Then vLLM writes as many tokens without calls.
`same`: whether the backend that is vLLM says what the local engine says, to 200 prompts with calls that work, 50 whose
tools fail and 50 without calls; and, by vLLM's own counts, what a call costs that works.
`table`: a model of GPT-J's shape with 88 million random weights, by way, clients, tool and length of the prompt. Each
cell is written as it is done, and a later run goes on behind it.
`soak`: 1,000 completions with slow, failing and hanging tools and clients that leave, over a cache of eight blocks.

`make test-vllm` makes the environment. The ways are explained in `pausing/ways.py`."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.pausing.load import Ask, Done, SlowTools, complete, completer_of, demo_asks, measure
from benchmarks.pausing.random_model import calling_asks, random_caller
from benchmarks.pausing.soak import COMPLETIONS, soak
from benchmarks.pausing.ways import WAYS, Way, started_ways
from benchmarks.reports import RESULTS, machine, write_report
from inference_gateway.core import SamplingParams
from language_model.tokenizer import ByteLevelTokenizer

PACKAGES: Final = ("torch", "transformers", "vllm")
PROMPTS: Final = 250
SPREAD: Final = 1.0
"""Seconds within which the clients of `table` come: else all would pause in one step, and resume in one."""
_LIKELY: Final = 5
"""Likely tokens that are asked for where two ways differ."""


async def speed(options: argparse.Namespace) -> dict[str, Any]:
    """The ways on the bundled model."""
    tokenizer, fifth = ByteLevelTokenizer.from_pretrained(options.model), (options.prompts or PROMPTS) // 5
    shares = {"word problems": 2 * fifth, "dates": 2 * fifth, "facts": fifth}
    asks = [ask for suite, count in shares.items() for ask in demo_asks(suite, count, tokenizer)]
    best: dict[str, dict[str, Any]] = {}
    done: dict[str, list[Done]] = {}
    async with started_ways(options, options.model) as ways:
        for _, (name, way) in itertools.product(range(options.rounds), ways.items()):
            row, done[name] = await measure(way, asks, options.at_once, options.tool_ms / 1_000)
            print(f"{name}: {row}", flush=True)
            if name not in best or row["seconds"] < best[name]["seconds"]:
                best[name] = row
        if "inside" in ways:
            plain = [without_calls(ask, made) for ask, made in zip(asks, done["inside"], strict=True)]
            best["inside, as many tokens without calls"], _ = await measure(ways["inside"], plain, options.at_once, 0.0)
    for name, row in best.items():
        if name in done and "local" in done:
            pairs = zip(done[name], done["local"], strict=True)
            row["same_as_local"] = sum(one.outcome == other.outcome for one, other in pairs)
    return {"prompts": len(asks), "at_once": options.at_once, "tool_ms": options.tool_ms, "ways": best}


def without_calls(ask: Ask, made: Done) -> Ask:
    """``ask`` for as many tokens as the model wrote in ``made``, and for no tool."""
    tokens = made.end.usage.completion_tokens + made.end.usage.rolled_back_tokens
    alone = {"max_tokens": tokens, "tools": (), "plain": True, "sampling": SamplingParams(ignore_eos=True)}
    return Ask(ask.ids, ask.fields | alone)


Asked = list[tuple[Ask, Done]]


async def same(options: argparse.Namespace) -> dict[str, Any]:
    """The backend that is vLLM beside the local engine, and its counts."""
    tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    options.ways = ["inside", "local"]
    async with started_ways(options, options.model) as ways:
        inside, local = ways["inside"], ways["local"]

        async def drawn(suite: str, count: int, wanted: Callable[[Done], bool], **fields: Any) -> Asked:
            """The first ``count`` of ``suite`` of which the local engine makes what is wanted, and what it makes."""
            asks = demo_asks(suite, 3 * count, tokenizer, **fields)
            _, done = await measure(local, asks, options.at_once, 0.0)
            return [(ask, made) for ask, made in zip(asks, done, strict=True) if wanted(made)][:count]

        working = [pair for suite in ("word problems", "dates") for pair in await drawn(suite, 100, Done.called_well)]
        failing = await drawn("questions", 50, lambda made: any(output is None for *_, output in made.calls))
        without = await drawn("facts", 50, lambda made: not made.calls, tools=())
        asked = [*working, *failing, *without]
        _, done = await measure(inside, [ask for ask, _ in asked], options.at_once, 0.0)
        different = [ask for (ask, made), one in zip(asked, done, strict=True) if made.outcome != one.outcome]
        worked = [ask for ask, made in working if not made.end.usage.rolled_back_tokens]
        report = {
            "prompts": {"calls work": len(working), "calls fail": len(failing), "no calls": len(without)},
            "same": len(asked) - len(different),
            "differences": [await first_difference(ask, inside, local) for ask in different],
            "calls_that_work_alone": await cost_of_calls(inside, worked, options),
        }
    print(report)
    return report


async def first_difference(ask: Ask, inside: Way, local: Way) -> dict[str, Any]:
    """Where two ways part, with the log probabilities that both give to both tokens. Of completions that are equal when
    asked for alone: the smallest difference between a token and the second likeliest one."""
    asked = Ask(ask.ids, ask.fields | {"logprobs": _LIKELY})
    one, other = [await complete(completer_of(way, SlowTools()), asked) for way in (inside, local)]
    for place, (mine, theirs) in enumerate(zip(one.top, other.top, strict=False)):
        if mine[0] != theirs[0]:
            of = {name: dict(top) for name, (_, top) in {"inside": mine, "local": theirs}.items()}
            tokens = (mine[0], theirs[0])
            return {"place": place, "tokens": tokens} | {
                name: [likely.get(token) for token in tokens] for name, likely in of.items()
            }
    return {"smallest_difference": min(top[0][1] - top[1][1] for _, top in other.top if len(top) > 1)}


async def cost_of_calls(inside: Way, asks: Sequence[Ask], options: argparse.Namespace) -> dict[str, Any]:
    """By vLLM's own counts: sequences that were begun for ``asks``, whose calls all work, and tokens computed again."""
    assert inside.counts is not None
    before = inside.counts.sequences, inside.counts.hits
    row, _ = await measure(inside, asks, options.at_once, 0.0)
    hits = inside.counts.hits - before[1]
    return {
        "completions": len(asks),
        "calls": row["calls"],
        "vllm_sequences": inside.counts.sequences - before[0],
        "prefilled_again": row["prefilled_again"] + hits,
        "resume_ms": row["resume_ms"],
        "resume_in_steps": row["resume_in_steps"],
    }


async def table(options: argparse.Namespace) -> dict[str, Any]:
    """Rows of `measure` by cell."""
    asked = {name: getattr(options, name) for name in ("tokens", "completions", "eager", "rounds")}
    file = options.results / "vllm_pauses_table.json"
    old = json.loads(file.read_text()) if file.exists() else {}
    rows: dict[str, Any] = old["rows"] if old.get("asked") == asked else {}
    report = {"asked": asked, "rows": rows}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        random_caller(folder, options.model)
        async with started_ways(options, folder) as ways:
            for name, way in ways.items():  # the first requests compile what is compiled
                await measure(way, calling_asks(folder, 8, 100, 8, name), 8, 0.0)
            for clients, tool_ms, context in itertools.product(options.clients, options.tools_ms, options.contexts):
                cell = f"{clients} clients, {tool_ms} ms, {context} tokens"
                best: dict[str, Any] = {}
                texts: dict[int, list[str]] = {}
                missing = {name: way for name, way in ways.items() if f"{cell}, {name}" not in rows}
                for turn, (name, way) in itertools.product(range(options.rounds), missing.items()):
                    asks = calling_asks(
                        folder, max(3 * clients, options.completions), context, options.tokens, f"{cell} {turn}"
                    )
                    row, done = await measure(way, asks, clients, tool_ms / 1_000, SPREAD)
                    first = texts.setdefault(turn, [made.text for made in done])
                    row["same_as_first_way"] = sum(made.text == text for made, text in zip(done, first, strict=True))
                    row["load"] = machine()["load average over a minute"]
                    print(f"{cell}, {name}: {row}", flush=True)
                    if name not in best or row["seconds"] < best[name]["seconds"]:
                        best[name] = row
                rows |= {f"{cell}, {name}": row for name, row in best.items()}
                write_report("vllm_pauses_table", report, PACKAGES, options.results)
    return report


JOBS: Final[dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, dict[str, Any]]]]] = {
    "speed": speed, "same": same, "table": table, "soak": soak
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the figures and writes them to benchmarks/results/; ends with status 1 if the soak found a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="?", choices=JOBS, default="speed")
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--length", type=int, default=1_024, help="tokens of a sequence at most")
    parser.add_argument("--prompts", type=int, help=f"of `speed` (by default {PROMPTS}) and `soak` ({COMPLETIONS})")
    parser.add_argument("--at-once", type=int, default=8, help="of `speed` and `same`")
    parser.add_argument("--tool-ms", type=float, default=0.0, help="of `speed`")
    parser.add_argument("--rounds", type=int, default=2, help="of `speed` and `table`")
    parser.add_argument("--eager", action="store_true", help="vLLM without compiling the model, which takes minutes")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["inside", "in front", "local"])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32], help="of `table`, like all that follow")
    parser.add_argument("--tools-ms", type=int, nargs="+", default=[0, 200])
    parser.add_argument("--contexts", type=int, nargs="+", default=[100, 700], help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=32, help="that a completion makes")
    parser.add_argument("--completions", type=int, default=8, help="of a cell at least; three a client at least")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2" if options.job == "table" else "1")
    report = asyncio.run(JOBS[options.job](options))
    print(f"written to {write_report(f'vllm_pauses_{options.job}', report, PACKAGES, options.results)}")
    sys.exit(1 if report.get("faults") else 0)


if __name__ == "__main__":
    main()
