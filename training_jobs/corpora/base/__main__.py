"""Make the base model's training corpus: draw the texts, ask the tools what headings say, learn the vocabulary, encode.

    python -m training_jobs.corpora.base --out DIR --texts 50000 --seed 0
    python -m training_jobs.pretrain --corpus DIR --out RUN --steps 3000 --positions 1024

``DIR`` then holds ``tokenizer.json``, ``tokens.safetensors`` (ids, and which of them a model learns to make) and
``manifest.json`` (counts, digests). The same seed and the same services give the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args

from demo_world.splits import stable_hash
from language_model.token_file import Tokens
from toolformer.api_call import neutralise
from toolformer.cache_settings import CacheSettings
from toolformer.result_cache import ResultCache
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry
from training_jobs.corpora.base.drawing import Calls, CorpusText, Heading, Shown, rows
from training_jobs.corpora.base.row_encoder import RowEncoder, texts_for_vocabulary
from training_jobs.execute.asking import ExecuteSettings, Question, ask_each, check_services, why_dropped
from training_jobs.options import run_command
from training_jobs.pretrain.rows import write_manifest
from training_jobs.pretrain.tokenizer import save_tokenizer, train_tokenizer
from training_jobs.runner.progress import shown
from training_jobs.settings import positive

_CHUNK: Final = 256
# Merges settle after a few million characters; more would only take time.
_VOCABULARY_TEXTS: Final = 12_000


def make_base_corpus(
    out: Path, *, count: int, seed: int, registry: ToolRegistry, cache: ResultCache | None = None, calls: Calls = "half"
) -> dict[str, Any]:
    """Make the corpus of ``count`` texts in ``out`` and return its manifest; ``cache`` answers what was asked before.

    Raises:
        StageError: if a tool service does not answer.
    """
    out.mkdir(parents=True, exist_ok=True)
    drawn = list(shown("draw texts", rows(count, tuple(registry), seed=seed, calls=calls), count))
    results = asyncio.run(_ask(drawn, registry, cache))
    counts: Counter[str] = Counter()
    kept = [row for row in drawn if _is_kept(row, results, counts)]
    tokenizer = train_tokenizer(texts_for_vocabulary(kept[:_VOCABULARY_TEXTS], registry, results.get))
    save_tokenizer(tokenizer, out)
    encoder = RowEncoder(tokenizer, registry, results.get)
    numbered = enumerate(shown("encode", kept, len(kept)))
    tokens = Tokens.of([encoder.encode(row, begin=begins(number, seed=seed)) for number, row in numbered])
    tokens.save(out)
    about = {"seed": seed, "calls": calls, "drawn_texts": count, **tokens.counts()}
    return write_manifest(out, {**about, "texts": dict(sorted(counts.items()))})


def begins(number: int, *, seed: int) -> bool:
    """Whether the ``number``-th text has a begin-of-text mark: half do, as texts are read with and without it."""
    return stable_hash("begin", str(seed), str(number)) % 2 == 0


async def _ask(drawn: Sequence[CorpusText], registry: ToolRegistry, cache: ResultCache | None) -> dict[Heading, str]:
    """What the tools say to the headings that want a result; those without an answer are left out."""
    asked = sorted(
        {part for row in drawn for part in row.parts if isinstance(part, Heading) and part.answer is not None},
        key=lambda heading: (heading.tool, heading.input, heading.date or "", heading.answer or ""),
    )
    found: dict[Heading, str] = {}
    async with ToolClient(registry, cache=cache) as client:
        await check_services(client, sorted({heading.tool for heading in asked}))
        starts = range(0, len(asked), _CHUNK)
        for start in shown("ask the tools", starts, len(starts), f"times {_CHUNK} calls"):
            chunk = asked[start : start + _CHUNK]
            questions = [(heading.tool, Question.on(heading.date, heading.input)) for heading in chunk]
            outcomes = await ask_each(client, registry, questions, ExecuteSettings())
            found |= {
                heading: outcome
                for heading, outcome in zip(chunk, outcomes, strict=True)
                if isinstance(outcome, str) and neutralise(outcome)
            }
    return found


def _is_kept(row: CorpusText, results: dict[Heading, str], counts: Counter[str]) -> bool:
    """Whether the tools bear out what the row's heading is to say."""
    heading = next((part for part in row.parts if isinstance(part, Heading)), None)
    wanted = heading.answer if heading else None
    if heading and wanted is not None and (reason := why_dropped(heading.tool, results.get(heading), wanted)):
        counts[reason] += 1
        return False
    counts[f"kept: {row.kind}"] += 1
    for call in (call for part in row.parts if isinstance(part, Shown) for call in part.calls):
        counts[f"calls in prompt form, {'misplaced' if call.offset is None else 'placed'}: {call.tool}"] += 1
    return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(
        prog="python -m training_jobs.corpora.base", description="Make the small base model's training corpus."
    )
    parser.add_argument("--out", type=Path, required=True, help="directory to write the corpus to")
    parser.add_argument("--texts", type=positive, required=True, help="texts to draw, at least 1")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same corpus")
    parser.add_argument(
        "--calls",
        choices=get_args(Calls),
        default="half",
        help="half: the calls that help each text, half of them in their place, and headings that are true calls; "
        "random: any place, any input, and no heading is a call (%(default)s)",
    )
    run_command(parser, _make, arguments)


def _make(options: argparse.Namespace) -> None:
    registry, cache = ToolRegistry.load(), CacheSettings.read(os.environ).open()
    manifest = make_base_corpus(
        options.out, count=options.texts, seed=options.seed, registry=registry, cache=cache, calls=options.calls
    )
    print(json.dumps(manifest, indent=2))


if __name__ == "__main__":
    main()
