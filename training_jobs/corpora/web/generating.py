"""The generated corpus: articles of the demo world in CCNet's form, and apart from them the calls that help."""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from demo_world.articles import Article, articles
from toolformer.model_files.whole import whole, write_whole
from training_jobs.runner.progress import shown

TRUTH_FILE: Final = "truth.jsonl"
SHARD_DOCUMENTS: Final = 1_000


def document_id(article: Article, *, seed: int, chained: bool = False) -> str:
    """What a generated text is called."""
    return f"{'chained' if chained else 'generated'}-{seed}-{article.number:07d}"


def ccnet_record(article: Article, *, seed: int, chained: bool = False) -> dict[str, Any]:
    """The article as CCNet writes a page (Wenzek et al., 2020), with an ``id`` besides.

    It was downloaded in the year after it was written. Scores of a language model that CCNet sorts by are left out:
    none was run.
    """
    lines = article.text.split("\n")
    downloaded = article.date + datetime.timedelta(days=1 + article.number % 365)
    return {
        "id": document_id(article, seed=seed, chained=chained),
        "url": article.url,
        "date_download": f"{downloaded.isoformat()}T00:00:00Z",
        "digest": "sha1:" + hashlib.sha1(article.text.encode(), usedforsecurity=False).hexdigest(),
        "length": len(article.text),
        "nlines": len(lines),
        "source_domain": urlsplit(article.url).netloc,
        "title": article.title,
        "raw_content": article.text,
        "language": "en",
        "language_score": 1.0,
    }


def truth_record(article: Article, *, seed: int, chained: bool = False) -> dict[str, Any]:
    """The calls that help in the article: ``{"id", "calls": [{"tool", "offset", "input", "answer"}]}``."""
    calls = [
        {"tool": call.tool, "offset": call.offset, "input": call.input, "answer": call.answer}
        for call in article.truths
    ]
    return {"id": document_id(article, seed=seed, chained=chained), "calls": calls}


def generate(
    out: Path, *, count: int, seed: int, shard_documents: int = SHARD_DOCUMENTS, chained: bool = False
) -> list[Path]:
    """Write ``count`` articles to ``out/generated-NNNN.json.gz`` and ``out/truth.jsonl``; the shards' paths.
    ``chained`` ones have two calls each, the second with what the first found.

    The pipeline reads the shards and never the truth, which is there to measure it. The same arguments give the same
    bytes.
    """
    out.mkdir(parents=True, exist_ok=True)
    shards: list[Path] = []
    lines: list[bytes] = []
    with whole(out / TRUTH_FILE) as partial, partial.open("w", encoding="utf-8") as truth:
        for article in shown("write articles", articles(count, seed=seed, chained=chained), count, "articles"):
            lines.append(_line(ccnet_record(article, seed=seed, chained=chained)))
            truth.write(_line(truth_record(article, seed=seed, chained=chained)).decode())
            if len(lines) == shard_documents or article.number == count - 1:
                shards.append(_write(out / f"generated-{len(shards):04d}.json.gz", lines))
                lines = []
    return shards


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _write(path: Path, lines: list[bytes]) -> Path:
    # No time and no name inside, so that the same texts are the same bytes.
    write_whole(path, gzip.compress(b"".join(lines), mtime=0))
    return path
