"""Make the corpus C, and for each tool the texts that its prompt is tried on.

    python -m training_jobs.corpora.web generate --out WEB --documents 5000
    python -m training_jobs.corpora.web select WEB/*.json.gz --out C --language-id lid.176.ftz

``generate`` writes articles of the demo world as CCNet's shards, and to ``truth.jsonl`` the calls that help in them,
for measuring. ``select`` reads such shards, or other texts, and writes ``C/<Tool>.jsonl``, ``C/counts.json`` and the
texts that it sets apart, ``C/held_out.jsonl``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from toolformer.tools import ToolConfigError, ToolRegistry, UnknownTool
from training_jobs.corpora.web.generating import SHARD_DOCUMENTS, generate
from training_jobs.corpora.web.job import add_hold_out
from training_jobs.corpora.web.language_id import FastTextLanguages
from training_jobs.corpora.web.readers import CorpusError, Read, read
from training_jobs.corpora.web.selecting import HELD_OUT_FILE, Counts, Selector, SelectSettings, select_files
from training_jobs.corpora.web.tokens import model_spans, word_spans
from training_jobs.runner.progress import shown
from training_jobs.settings import positive


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(prog="python -m training_jobs.corpora.web", description="Make the corpus C.")
    commands = parser.add_subparsers(required=True, metavar="generate|select")
    generating = commands.add_parser("generate", help="write articles of the demo world in CCNet's form")
    generating.add_argument("--out", type=Path, required=True, help="directory for the shards and truth.jsonl")
    generating.add_argument("--documents", type=positive, default=5_000, help="articles to write, at least 1")
    generating.add_argument("--shard-documents", type=positive, default=SHARD_DOCUMENTS, help="articles in a shard")
    generating.add_argument(
        "--seed",
        type=int,
        default=1,
        help="the same seed gives the same bytes; the base model has read those of its own",
    )
    generating.add_argument(
        "--chained", action="store_true", help="articles in which one value follows from another: two calls in each"
    )
    generating.set_defaults(run=_generate)
    selecting = commands.add_parser("select", help="read texts and keep for each tool those that are worth its prompt")
    selecting.add_argument("files", type=Path, nargs="+", help="CCNet .json.gz, .jsonl (also .gz) or .parquet files")
    selecting.add_argument("--out", type=Path, required=True, help="directory for <Tool>.jsonl and counts.json")
    selecting.add_argument("--tools", nargs="+", help="tools to select for, by name; all of the registry by default")
    selecting.add_argument("--language-id", type=Path, help="fastText classifier, such as lid.176.ftz; MT needs it")
    selecting.add_argument("--tokenizer", type=Path, help="the model's tokenizer.json, to count its tokens; else words")
    selecting.add_argument(
        "--max-tokens",
        type=positive,
        help="cut longer texts, at lines and sentences, into documents of at most so many",
    )
    selecting.add_argument(
        "--language", default="en", help="leave out texts that their file says are in another; 'any' for none"
    )
    selecting.add_argument(
        "--seed", type=int, default=0, help="draws the one in a hundred with three numbers only, and what is held out"
    )
    add_hold_out(selecting)
    selecting.set_defaults(run=_select)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (CorpusError, ToolConfigError, UnknownTool, ValueError) as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")


def _generate(options: argparse.Namespace) -> None:
    count, size = options.documents, options.shard_documents
    shards = generate(options.out, count=count, seed=options.seed, shard_documents=size, chained=options.chained)
    print(f"{options.documents:,} documents in {len(shards)} shards in {options.out}")


def _select(options: argparse.Namespace) -> None:
    tools = [tool.name for tool in ToolRegistry.load().select(options.tools)]
    settings = SelectSettings(
        language=None if options.language == "any" else options.language,
        seed=options.seed,
        spans=model_spans(options.tokenizer) if options.tokenizer else word_spans,
        max_tokens=options.max_tokens,
        hold_out=options.hold_out,
    )
    languages = FastTextLanguages(options.language_id) if options.language_id else None
    counts = select_files(_read_all(options.files), options.out, Selector(tools, settings, languages))
    _show(counts)


def _read_all(files: Sequence[Path]) -> Iterator[Read]:
    for file in shown("read", files, len(files), "files"):
        yield from read(file)


def _show(counts: Counts) -> None:
    table = Table(title=f"{counts.read:,} texts read, {counts.judged:,} judged")
    table.add_column("tool")
    table.add_column("texts", justify="right")
    table.add_column("share", justify="right")
    table.add_column("reason")
    for reason, number in counts.left_out.most_common():
        table.add_row("(left out)", f"{number:,}", "", reason)
    if counts.held_out:
        table.add_row("(held out)", f"{counts.held_out:,}", "", f"for finetuning: {HELD_OUT_FILE}")
    for tool in counts.kept:
        for verdict, found in (("kept", counts.kept[tool]), ("dropped", counts.dropped[tool])):
            for reason, number in found.most_common():
                table.add_row(tool, f"{number:,}", f"{number / max(1, counts.judged):.1%}", f"{verdict}: {reason}")
    Console().print(table)


if __name__ == "__main__":
    main()
