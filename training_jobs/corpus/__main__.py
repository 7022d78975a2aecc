"""Make the corpus C, and for each tool the texts that its prompt is tried on.

    python -m training_jobs.corpus generate --out WEB --documents 5000
    python -m training_jobs.corpus select WEB/*.json.gz --out C --language-id lid.176.ftz
    python -m training_jobs.corpus precision --truth WEB/truth.jsonl FILTERED.jsonl

``generate`` writes articles of the demo world as CCNet's shards, and to ``truth.jsonl`` the calls that help in them,
for measuring. ``select`` reads such shards, or other texts, and writes ``C/<Tool>.jsonl``, ``C/counts.json`` and the
texts that it sets apart, ``C/held_out.jsonl``.
``precision`` reads what the filter made of generated texts, and says how many calls were right before and after it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from toolformer.tools import ToolConfigError, ToolRegistry, UnknownTool
from training_jobs.corpus.generated import SHARD_DOCUMENTS, generate
from training_jobs.corpus.language_id import FastTextLanguages
from training_jobs.corpus.precision import WORDS_BEFORE, load_truth, measure, read_annotated
from training_jobs.corpus.readers import CorpusError, Read, read
from training_jobs.corpus.selecting import HELD_OUT_FILE, Counts, Selector, Settings, select_files
from training_jobs.corpus.tokens import model_spans, word_spans


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(prog="python -m training_jobs.corpus", description="Make the corpus C.")
    commands = parser.add_subparsers(required=True, metavar="generate|select|precision")
    generating = commands.add_parser("generate", help="write articles of the demo world in CCNet's form")
    generating.add_argument("--out", type=Path, required=True, help="directory for the shards and truth.jsonl")
    generating.add_argument("--documents", type=_positive, default=5_000, help="articles to write, at least 1")
    generating.add_argument("--shard-documents", type=_positive, default=SHARD_DOCUMENTS, help="articles in a shard")
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
        type=_positive,
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
    measuring = commands.add_parser("precision", help="how many calls on generated texts are right, by the truth")
    measuring.add_argument("files", type=Path, nargs="+", help="executed or filtered texts, JSON lines")
    measuring.add_argument("--truth", type=Path, required=True, help="the truth.jsonl that generate wrote")
    measuring.add_argument(
        "--words-before", type=int, default=WORDS_BEFORE, help="how many words before its answer a call may stand"
    )
    measuring.add_argument("--json", type=Path, help="file for the figures as JSON")
    measuring.set_defaults(run=_measure)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (CorpusError, ToolConfigError, UnknownTool, ValueError) as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")


def add_hold_out(parser: argparse.ArgumentParser) -> None:
    """Add the option of that name."""
    parser.add_argument(
        "--hold-out",
        type=_positive,
        default=0,
        metavar="N",
        help=f"set N texts apart in {HELD_OUT_FILE}, for finetune's --held-out; the paper has 1,000 (0)",
    )


def _generate(options: argparse.Namespace) -> None:
    count, size = options.documents, options.shard_documents
    shards = generate(options.out, count=count, seed=options.seed, shard_documents=size, chained=options.chained)
    print(f"{options.documents:,} documents in {len(shards)} shards in {options.out}")


def _select(options: argparse.Namespace) -> None:
    tools = [tool.name for tool in ToolRegistry.load().select(options.tools)]
    settings = Settings(
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
    for file in track(files, "read"):
        yield from read(file)


def _measure(options: argparse.Namespace) -> None:
    found = measure(read_annotated(options.files), load_truth(options.truth), words_before=options.words_before)
    table = Table("tool", "candidates", "right", "kept", "right", "places", "found", "kept", title="right calls")
    for tool, precision in found.items():
        table.add_row(
            tool, f"{precision.candidates:,}", _share(precision.before), f"{precision.kept:,}",
            _share(precision.after), f"{precision.places:,}", f"{precision.found:,}", f"{precision.found_kept:,}",
        )  # fmt: skip
    Console().print(table)
    if options.json:
        figures = {tool: precision.as_json() for tool, precision in found.items()}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


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


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


if __name__ == "__main__":
    main()
