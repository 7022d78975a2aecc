"""Whether a model follows the form of the tools' prompts at all, and copies: a minute before hours of annotation.

    python -m training_jobs.teach.form --run RUN --model MODEL --tools Convert

The model annotates the first texts of each ``RUN/corpus/<Tool>.jsonl``, for a minute in all; what counts is the share
of its samples that are calls of the tool. Then it is measured how it copies texts (`toolformer jobs copying`).
`toolformer jobs run` and `toolformer teach` do this first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

import torch
from rich.console import Console

from language_model import checkpoint
from language_model.config import CheckpointError
from language_model.tokenizer import ByteLevelTokenizer
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
"""For all tools together; each gets a few texts, however slow the model is."""
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


def check_form(
    folder: RunFolder, tools: Sequence[Tool], choice: ModelChoice, how: AnnotateSettings, console: Console
) -> None:
    """Let the model annotate the first texts of each of ``tools``, and measure how it copies them.

    Raises:
        NothingKept: if it follows the form of none of the prompts, or does not copy.
        StageError: if the model cannot be used, or a corpus is not there.
    """
    texts = {tool.name: _first_texts(folder, tool) for tool in tools}
    refused = _refused(folder, tools, texts, choice, how, console)
    if len(refused) == len(tools):
        try:
            check_kept(refused, KEEPING, console)
        except NothingKept as nothing:
            raise NothingKept(f"{choice.path} does not follow the prompt's form\n{nothing}\n{_OTHERWISE}") from None
    all_texts = [document.text for of_tool in texts.values() for document in of_tool[: -(-_MOST_TEXTS // len(tools))]]
    _check_copying(choice, tools, all_texts, console)
    torch.cuda.empty_cache()  # the models are let go of: the stages that follow need a GPU's memory


def _refused(
    folder: RunFolder,
    tools: Sequence[Tool],
    texts: Mapping[str, Sequence[Document]],
    choice: ModelChoice,
    how: AnnotateSettings,
    console: Console,
) -> dict[str, Path]:
    """Where `check_kept` finds why, by a name for it, of each tool whose prompt's form the model does not follow."""
    refused: dict[str, Path] = {}
    try:
        with choice.opened() as (model, tokenizer):
            for tool in tools:
                annotator = Annotator(model, tokenizer, tool, how)
                annotated = annotate_some(annotator, texts[tool.name], SECONDS / len(tools))
                calls, samples = shares(annotated)
                found = f"form: {calls:,} of {samples:,} samples in {len(annotated)} texts are calls of {tool.name}"
                console.print(found, highlight=False)
                if calls < max(1.0, LEAST_SHARE * samples):
                    refused[f"form {tool.name}"] = _write_dropped(folder, tool, annotated)
    except ValueError as error:
        raise StageError(f"{choice.path}: {error}") from error
    return refused


def _first_texts(folder: RunFolder, tool: Tool) -> list[Document]:
    source = folder.file("corpus", tool.name)
    with source.open("rb") as file:
        return [Document.from_line(line, str(source)) for line in islice(file, _MOST_TEXTS)]


def _write_dropped(folder: RunFolder, tool: Tool, annotated: Sequence[Annotated]) -> Path:
    """The texts without a call, where `check_kept` finds why."""
    dropped = folder.path / "form" / f"{tool.name}.jsonl"
    dropped.parent.mkdir(exist_ok=True)
    dropped.write_text("".join(one.to_line() for one in annotated if not one.candidates), encoding="utf-8")
    return dropped


def _check_copying(choice: ModelChoice, tools: Sequence[Tool], texts: Sequence[str], console: Console) -> None:
    try:
        if choice.server is not None:
            raise CheckpointError("the model is on a server")
        model = checkpoint.load(choice.path, dtype=getattr(torch, choice.precision), device=choice.device)
        tokenizer = ByteLevelTokenizer.from_pretrained(choice.path)
    except CheckpointError as error:
        console.print(f"copying: not measured ({error})", markup=False, highlight=False, soft_wrap=True)
        return
    until = time.monotonic() + SECONDS
    some = takewhile(lambda _: time.monotonic() < until, texts)
    found: Copying = measure_copying(model, tokenizer, some, [tool.task for tool in tools])
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
    folder = run_folder(options)
    tools = folder.tools("corpus", ToolRegistry.load(), options.tools)
    check_form(folder, tools, model_choice(options), read_settings(AnnotateSettings, options), Console(stderr=True))


if __name__ == "__main__":
    main()
