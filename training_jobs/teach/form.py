"""Whether a model follows the form of a tool's prompt at all, and copies: a minute before hours of annotation.

    python -m training_jobs.teach.form --run RUN --model MODEL --tool Convert

The model annotates the first texts of ``RUN/corpus/<Tool>.jsonl`` for a minute at most; what counts is the share of its
samples that are calls of the tool. Then it is measured how it copies these texts (`toolformer jobs copying`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import islice
from typing import Final

from rich.console import Console

from language_model import checkpoint
from language_model.config import CheckpointError
from toolformer.tools import Tool, ToolRegistry
from training_jobs.annotate.annotator import NOT_READ, AnnotateSettings, Annotator
from training_jobs.annotate.job import KEEPING
from training_jobs.annotate.sampled import MALFORMED, UNFINISHED
from training_jobs.corpora.base.copying import Copying, measure_copying
from training_jobs.errors import NothingKept, StageError
from training_jobs.model_choice import ModelChoice, add_model, model_choice
from training_jobs.nothing_kept import check_kept
from training_jobs.options import run_command, run_folder, stage_parser
from training_jobs.records import Annotated, Document
from training_jobs.run_folder import RunFolder
from training_jobs.settings import add_settings, read_settings

SECONDS: Final = 60.0
LEAST_SHARE: Final = 0.01
"""Of the samples that must be calls. The bundled base model: 93 % with tools it has seen, none with others."""
LEAST_COPYING: Final = 0.1
"""How much larger the share of foreseen tokens must be in a text that was just read."""
_AT_ONCE: Final = 4
_MOST_TEXTS: Final = 64
_OTHERWISE: Final = "  or calls without a model: --proposals FILE or --rule MODULE:FUNCTION (docs/own-tool.md)"

_EXAMPLES = """
toolformer jobs form --run RUN --model models/base --tools Calculator
"""


def annotate_some(annotator: Annotator, documents: Sequence[Document], seconds: float = SECONDS) -> list[Annotated]:
    """The first of ``documents`` with the calls that the model proposes, as many as it does in so many seconds."""
    annotated: list[Annotated] = []
    until = time.monotonic() + seconds
    while len(annotated) < len(documents) and time.monotonic() < until:
        annotated += annotator.annotate(documents[len(annotated) : len(annotated) + _AT_ONCE])
    return annotated


def shares(annotated: Sequence[Annotated]) -> tuple[int, int]:
    """How many of the samples are calls of the tool, and how many samples there are."""
    calls = samples = 0
    for one in annotated:
        dropped = {reason: number for reason, number in one.dropped.items() if reason != NOT_READ}
        drawn = len(one.candidates) + sum(dropped.values())
        samples += drawn
        calls += drawn - dropped.get(MALFORMED, 0) - dropped.get(UNFINISHED, 0)
    return calls, samples


def check_form(folder: RunFolder, tool: Tool, choice: ModelChoice, how: AnnotateSettings, console: Console) -> None:
    """Let the model annotate the first texts of ``tool``, and measure how it copies them.

    Raises:
        NothingKept: if it does not follow the prompt's form, or does not copy.
        StageError: if the model cannot be used, or the corpus is not there.
    """
    source = folder.file("corpus", tool.name)
    with source.open("rb") as file:
        documents = [Document.from_line(line, str(source)) for line in islice(file, _MOST_TEXTS)]
    try:
        with choice.opened() as (model, tokenizer):
            annotated = annotate_some(Annotator(model, tokenizer, tool, how), documents)
    except ValueError as error:
        raise StageError(f"{choice.path}: {error}") from error
    calls, samples = shares(annotated)
    console.print(f"form: {calls:,} of {samples:,} samples in {len(annotated)} texts are calls of {tool.name}")
    if calls < max(1.0, LEAST_SHARE * samples):
        dropped = folder.path / "form" / f"{tool.name}.jsonl"
        dropped.parent.mkdir(exist_ok=True)
        dropped.write_text("".join(one.to_line() for one in annotated if not one.candidates), encoding="utf-8")
        try:
            check_kept({f"form {tool.name}": dropped}, KEEPING, console)
        except NothingKept as nothing:
            raise NothingKept(f"{choice.path} does not follow the prompt's form\n{nothing}\n{_OTHERWISE}") from None
    _check_copying(choice, tool, [document.text for document in documents], console)


def _check_copying(choice: ModelChoice, tool: Tool, texts: Sequence[str], console: Console) -> None:
    try:
        model, tokenizer = checkpoint.load(choice.path), choice.load()[1]
    except CheckpointError as error:
        console.print(f"copying: not measured ({error})", markup=False, highlight=False, soft_wrap=True)
        return
    found: Copying = measure_copying(model, tokenizer, texts, [tool.task])
    first, again = found.first.share, found.repeated.share
    console.print(f"copying: {first:.1%} of a text's tokens are foreseen, {again:.1%} when it is repeated")
    if found.texts and again < first + LEAST_COPYING:
        raise NothingKept(
            f"{choice.path} foresees {again:.1%} of a text's tokens after it has just read it, {first:.1%} before: it "
            "does not copy, so no result can help it\n  try: a base model that was trained longer, or a larger one"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = stage_parser("training_jobs.teach.form", (__doc__ or "").splitlines()[0], _EXAMPLES)
    add_settings(parser, AnnotateSettings)
    add_model(parser)
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    folder, console = run_folder(options), Console(stderr=True)
    for tool in folder.tools("corpus", ToolRegistry.load(), options.tools):
        check_form(folder, tool, model_choice(options), read_settings(AnnotateSettings, options), console)


if __name__ == "__main__":
    main()
