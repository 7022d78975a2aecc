"""Calls a second through the tool services' HTTP: small tools as fast as they go, models batched against one by one.

    python -m benchmarks.services [--only calculator calendar translation question_answering] [--rounds 5]

The load comes from `http_load.py`. Models compute with one thread. "One by one" is one client that waits for each
answer, with a service that does not wait for company; "a batch" is one client that sends `POST /calls`; "at once" are
as many clients as that with one `POST /call` each, which the service merges. What is compared takes turns, and the best
round of each counts: other work on the machine can only slow a round down.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.http_load import measure, post
from benchmarks.processes import running
from benchmarks.reports import RESULTS, resident_mb, write_report
from benchmarks.search_peers import summary
from demo_world.phrases import LANGUAGES, phrases
from demo_world.questions import suite

BATCHES = (4, 16, 32)
SEED = 20_261_121
SMALL_CALLS = {"calculator": {"input": "(27 + 4) * 2 / 7"}, "calendar": {"input": ""}}
SMALL_BATCH = 64
PACKAGES = ("fastapi", "uvicorn", "ctranslate2", "torch", "faiss-cpu")


async def small_tool(name: str, calls: int) -> dict[str, Any]:
    """Requests a second of a tool that needs no model: single calls of 1 and 16 clients, and batches of 64."""
    single, batch = post("/call", SMALL_CALLS[name]), post("/calls", {"calls": [SMALL_CALLS[name]] * SMALL_BATCH})
    async with running(name) as service:
        await measure(service, [single] * min(calls, 500), 1)
        figures: dict[str, Any] = {
            f"POST /call, {clients} clients": summary(await measure(service, [single] * calls, clients))
            for clients in (1, 16)
        }
        batched = await measure(service, [batch] * max(4, calls // SMALL_BATCH), 4)
        figures[f"POST /calls of {SMALL_BATCH}, 4 clients"] = summary(batched)
        figures["calls a second in batches"] = round(batched.per_second * SMALL_BATCH)
        figures["resident MiB"] = resident_mb(service.process)
    return figures


async def batched_tool(
    name: str, wait: str, settings: dict[str, str], inputs: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Calls a second of a service that batches on its model.

    Args:
        name: the service.
        wait: its setting for the milliseconds that a call waits for company.
        settings: its others.
        inputs: one a call; as many as the largest batch divides.
        rounds: how often everything is measured.
    """
    single = [post("/call", {"input": text}) for text in inputs]

    def grouped(size: int) -> list[bytes]:
        groups = [inputs[first : first + size] for first in range(0, len(inputs), size)]
        return [post("/calls", {"calls": [{"input": text} for text in group]}) for group in groups]

    async with running(name, {**settings, wait: "0"}) as alone, running(name, settings) as service:
        plans = {"one by one": partial(measure, alone, single, 1)}
        for size in BATCHES:
            plans[f"a batch of {size}"] = partial(measure, service, grouped(size), 1)
            plans[f"{size} at once"] = partial(measure, service, single, size)
        for of in (alone, service):
            await measure(of, single, max(BATCHES))
        best = dict.fromkeys(plans, float("inf"))
        for _ in range(rounds):
            for plan, run in plans.items():
                best[plan] = min(best[plan], (await run()).seconds)
        memory = {"resident MiB": resident_mb(service.process)}
    rates = {plan: round(len(inputs) / seconds, 1) for plan, seconds in best.items()}
    return {"calls a second": rates, "to one by one": ratios(rates), **memory}


def ratios(rates: dict[str, float]) -> dict[str, float]:
    """Each rate to that of one by one."""
    return {plan: round(rate / rates["one by one"], 2) for plan, rate in rates.items()}


def held_out_phrases(count: int) -> list[str]:
    """Phrases of all the bundled model's languages, mixed."""
    each = -(-count // len(LANGUAGES))
    texts = [phrase.text for language in LANGUAGES for phrase in phrases(language, each, SEED, held_out=True)]
    random.Random(SEED).shuffle(texts)
    return texts[:count]


async def translation(options: argparse.Namespace) -> dict[str, Any]:
    """The bundled translation model on held-out phrases."""
    settings = {"THREADS": "1"}
    return await batched_tool("translation", "BATCH_WAIT_MS", settings, held_out_phrases(options.items), options.rounds)


async def question_answering(options: argparse.Namespace) -> dict[str, Any]:
    """A question answering model on held-out questions, over the passages of the encyclopedia's first pages."""
    from demo_world.encyclopedia import kilt_records
    from services.question_answering.build_index import Source, ensure_index
    from services.question_answering.checkpoint import load_model

    questions = [question.question for question in suite("held-out entities", count=options.items)]
    with tempfile.TemporaryDirectory() as folder:
        pages, index = Path(folder) / "pages.jsonl", Path(folder) / "index"
        records = islice(kilt_records(), options.qa_pages)
        pages.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        ensure_index(index, load_model(options.qa_model, with_reader=False), Source(pages=str(pages)))
        settings = {"THREADS": "1", "MODEL": str(options.qa_model), "INDEX": str(index)}
        return await batched_tool("question_answering", "WAIT_MS", settings, questions, options.rounds)


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """The figures of the services that were asked for."""
    figures: dict[str, Any] = {}
    for name in options.only:
        if name in SMALL_CALLS:
            figures[name] = await small_tool(name, options.calls)
        else:
            figures[name] = await {"translation": translation, "question_answering": question_answering}[name](options)
        print(name, json.dumps(figures[name], indent=2), flush=True)
    return figures


def main() -> None:
    """Prints figures and writes benchmarks/results/services.json."""
    from services.question_answering.app import BUNDLED_MODEL

    names = [*SMALL_CALLS, "translation", "question_answering"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.services", description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--calls", type=int, default=5_000, help="of a tool without a model")
    parser.add_argument("--items", type=int, default=96, help="phrases and questions a round; 32 divides it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--qa-model", type=Path, default=BUNDLED_MODEL)
    parser.add_argument("--qa-pages", type=int, default=3_000, help="pages of the encyclopedia that are indexed")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    figures = asyncio.run(run(options))
    print(f"written to {write_report('services', figures, PACKAGES, options.results)}")


if __name__ == "__main__":
    main()
