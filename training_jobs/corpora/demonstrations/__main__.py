"""Make a training corpus: generate texts, execute their calls, learn the vocabulary, encode.

    python -m training_jobs.corpora.demonstrations --out DIR --seed 0 --documents 100000

``DIR`` then holds ``documents.jsonl`` (segments, each call with its real output), ``tokenizer.json``,
``tokens.safetensors`` (ids, and which of them a model learns to make) and ``manifest.json`` (counts, reasons,
digest). The same seed and the same services give the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final

from demo_world.suites import TOOLS
from demo_world.texts import documents
from language_model.token_file import Tokens
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall
from toolformer.cache_settings import CacheSettings
from toolformer.result_cache import ResultCache
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry
from training_jobs.corpora.demonstrations.executing import ExecutedDocument, execute
from training_jobs.execute.asking import ExecuteSettings, check_services
from training_jobs.options import run_command
from training_jobs.pretrain.rows import write_manifest
from training_jobs.pretrain.tokenizer import END_OF_TEXT, save_tokenizer, train_tokenizer
from training_jobs.runner.progress import shown
from training_jobs.settings import positive
from training_jobs.text_encoder import TextEncoder

DOCUMENTS_FILE: Final = "documents.jsonl"

_CHUNK: Final = 2_000
# Merges settle after a few million characters; more would only take time.
_VOCABULARY_DOCUMENTS: Final = 20_000


def make_corpus(
    out: Path, *, count: int, seed: int, registry: ToolRegistry, cache: ResultCache | None = None
) -> dict[str, Any]:
    """Make the corpus of ``count`` generated documents in ``out`` and return its manifest; ``cache`` answers what an
    earlier run or another job asked the tools.

    Raises:
        StageError: if a tool service does not answer.
    """
    out.mkdir(parents=True, exist_ok=True)
    executed, counts = asyncio.run(_execute_all(count, seed, registry, cache))
    with (out / DOCUMENTS_FILE).open("w") as lines:
        lines.writelines(json.dumps(_as_json(document), ensure_ascii=False) + "\n" for document in executed)
    tokenizer = train_tokenizer(_plain_texts(executed[:_VOCABULARY_DOCUMENTS], registry))
    save_tokenizer(tokenizer, out)
    end: int = tokenizer.get_vocab(with_added_tokens=True)[END_OF_TEXT]
    encoder = TextEncoder(ByteLevelTokenizer(tokenizer), registry, end_id=end, mask_results=True, apart=True)
    encoded = (encoder.encode(document.segments) for document in shown("encode", executed, len(executed), "documents"))
    tokens = Tokens.of([(one.ids, one.learned) for one in encoded])
    tokens.save(out)
    about = {"seed": seed, "generated_documents": count, **tokens.counts(), "texts": dict(sorted(counts.items()))}
    return write_manifest(out, about, DOCUMENTS_FILE)


async def _execute_all(
    count: int, seed: int, registry: ToolRegistry, cache: ResultCache | None
) -> tuple[list[ExecutedDocument], Counter[str]]:
    executed: list[ExecutedDocument] = []
    counts: Counter[str] = Counter()
    async with ToolClient(registry, cache=cache) as client:
        await check_services(client, TOOLS)
        drawn = iter(documents(count, seed=seed))
        chunks = iter(lambda: list(islice(drawn, _CHUNK)), [])
        for chunk in shown("generate and execute", chunks, -(-count // _CHUNK), f"times {_CHUNK:,} documents"):
            kept, outcomes = await execute(chunk, client, registry, ExecuteSettings())
            executed += kept
            counts += outcomes
    return executed, counts


def _plain_texts(executed: Sequence[ExecutedDocument], registry: ToolRegistry) -> Iterator[str]:
    """What the vocabulary is learned from: every segment as it is in the text, results and all."""
    for document in executed:
        for segment in document.segments:
            if isinstance(segment, str):
                yield segment
            else:
                quoted = registry.get(segment.tool).quoted
                yield ApiCall(segment.tool, segment.input).text(quoted=quoted, result=segment.output)


def _as_json(document: ExecutedDocument) -> dict[str, Any]:
    segments = [segment if isinstance(segment, str) else asdict(segment) for segment in document.segments]
    return {"number": document.number, "segments": segments}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(
        prog="python -m training_jobs.corpora.demonstrations",
        description="Generate texts, execute their calls, encode them.",
    )
    parser.add_argument("--out", type=Path, required=True, help="directory to write the corpus to")
    parser.add_argument("--documents", type=positive, required=True, help="documents to generate, at least 1")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same corpus")
    run_command(parser, _make, arguments)


def _make(options: argparse.Namespace) -> None:
    registry, cache = ToolRegistry.load(), CacheSettings.read(os.environ).open()
    manifest = make_corpus(options.out, count=options.documents, seed=options.seed, registry=registry, cache=cache)
    print(json.dumps(manifest, indent=2))


if __name__ == "__main__":
    main()
