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
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from rich.progress import Progress, track
from tokenizers import Tokenizer as HFTokenizer

from demo_world.suites import TOOLS
from demo_world.texts import Document, documents
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall, call_ids, splice_result
from toolformer.cache_settings import CacheSettings
from toolformer.model_files.digests import file_digest
from toolformer.result_cache import CacheConfigError, ResultCache
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolConfigError, ToolRegistry
from training_jobs.corpora.demonstrations.executing import (
    ExecutedCall,
    ExecutedDocument,
    ExecutedSegment,
    execute,
)
from training_jobs.errors import StageError
from training_jobs.execute.asking import ExecuteSettings, check_services
from training_jobs.pretrain.rows import Tokens
from training_jobs.pretrain.tokenizer import END_OF_TEXT, save_tokenizer, train_tokenizer

DOCUMENTS_FILE: Final = "documents.jsonl"
MANIFEST_FILE: Final = "manifest.json"

_CHUNK: Final = 2_000
# Merges settle after a few million characters; more would only take time.
_VOCABULARY_DOCUMENTS: Final = 20_000


class Encoder:
    """Ids of executed documents, made segment by segment exactly as the gateway makes them at inference."""

    def __init__(self, tokenizer: HFTokenizer, registry: ToolRegistry) -> None:
        self._end_of_text: int = tokenizer.get_vocab(with_added_tokens=True)[END_OF_TEXT]
        self._tokenizer = ByteLevelTokenizer(tokenizer)
        self._registry = registry

    def encode(self, segments: Iterable[ExecutedSegment]) -> tuple[list[int], list[bool]]:
        """Ids of the document, closed by the end-of-text mark, and whether each is learned: a spliced result is not.

        Raises:
            MalformedCall: if a call's output is empty.
        """
        ids: list[int] = []
        learned: list[bool] = []
        for segment in segments:
            new, spliced = self._segment(segment)
            ids += new
            learned += [True] * (len(new) - spliced) + [False] * spliced
        return [*ids, self._end_of_text], [*learned, True]

    def _segment(self, segment: ExecutedSegment) -> tuple[list[int], int]:
        """Ids of one segment, and how many at its end are spliced in."""
        if isinstance(segment, str):
            return self._tokenizer.encode(segment), 0
        tool = self._registry.get(segment.tool)
        ids = call_ids(
            ApiCall(segment.tool, segment.input),
            self._tokenizer,
            quoted=tool.quoted,
            result=segment.output,
            max_result_tokens=tool.max_result_tokens,
        )
        spliced = splice_result(segment.output, self._tokenizer, max_tokens=tool.max_result_tokens)
        return ids, len(spliced.ids) if spliced else 0


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
    encoder = Encoder(tokenizer, registry)
    tokens = Tokens.of([encoder.encode(document.segments) for document in track(executed, "encode")])
    tokens.save(out)
    manifest = {
        "seed": seed,
        "generated_documents": count,
        "documents": tokens.documents,
        "tokens": len(tokens.ids),
        "learned_tokens": int(tokens.learned.sum()),
        "longest_document_tokens": int(tokens.starts.diff().max()) if tokens.documents else 0,
        "texts": dict(sorted(counts.items())),
        "sha256": {name: file_digest(out / name) for name in (DOCUMENTS_FILE, "tokenizer.json", "tokens.safetensors")},
    }
    (out / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


async def _execute_all(
    count: int, seed: int, registry: ToolRegistry, cache: ResultCache | None
) -> tuple[list[ExecutedDocument], Counter[str]]:
    executed: list[ExecutedDocument] = []
    counts: Counter[str] = Counter()
    async with ToolClient(registry, cache=cache) as client:
        await check_services(client, TOOLS)
        with Progress() as progress:
            bar = progress.add_task("generate and execute", total=count)
            for chunk in _chunks(documents(count, seed=seed), _CHUNK):
                kept, outcomes = await execute(chunk, client, registry, ExecuteSettings())
                executed += kept
                counts += outcomes
                progress.advance(bar, len(chunk))
    return executed, counts


def _chunks(items: Iterator[Document], size: int) -> Iterator[list[Document]]:
    while chunk := list(islice(items, size)):
        yield chunk


def _plain_texts(executed: Sequence[ExecutedDocument], registry: ToolRegistry) -> Iterator[str]:
    """What the vocabulary is learned from: every segment as it stands in the text, results and all."""
    for document in executed:
        for segment in document.segments:
            if isinstance(segment, str):
                yield segment
            else:
                quoted = registry.get(segment.tool).quoted
                yield ApiCall(segment.tool, segment.input).text(quoted=quoted, result=segment.output)


def _as_json(document: ExecutedDocument) -> dict[str, Any]:
    segments = [
        {"tool": segment.tool, "input": segment.input, "output": segment.output}
        if isinstance(segment, ExecutedCall)
        else segment
        for segment in document.segments
    ]
    return {"number": document.number, "segments": segments}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(
        prog="python -m training_jobs.corpora.demonstrations",
        description="Generate texts, execute their calls, encode them.",
    )
    parser.add_argument("--out", type=Path, required=True, help="directory to write the corpus to")
    parser.add_argument("--documents", type=int, required=True, help="documents to generate, at least 1")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same corpus")
    options = parser.parse_args(arguments)
    if options.documents < 1:
        parser.error(f"--documents must be at least 1, not {options.documents}")
    try:
        registry, cache = ToolRegistry.load(), CacheSettings.read(os.environ).open()
        manifest = make_corpus(options.out, count=options.documents, seed=options.seed, registry=registry, cache=cache)
    except (StageError, ToolConfigError, CacheConfigError) as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")
    print(json.dumps(manifest, indent=2))


if __name__ == "__main__":
    main()
