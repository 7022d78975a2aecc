"""How well a model copies what it has just read, which decides whether the filter can keep anything.

    python -m training_jobs.corpora.base.copying models/base
    toolformer jobs copying RUN/model --texts 200 --documents CORPUS/held-out.jsonl

Each text is read twice, in the form of a tool's prompt (`Input:` and `Output:`, without calls). The second time all of
it could be copied. A model that foresees the second no better than the first can neither repeat the numbers of a text
in a call nor take an answer from a call's result, so no result lowers its loss: train it longer, or take a larger one.
Copying comes suddenly in training, and late in small models.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional as F  # noqa: N812, the field's name for it

from demo_world.articles import article
from language_model import checkpoint
from language_model.config import CheckpointError
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.tools import ToolConfigError, ToolRegistry
from training_jobs.options import job_parser
from training_jobs.records import Document, RecordError, records_in

SEED: Final = 4
"""Of texts that no step of ``toolformer reproduce --seed 0`` writes."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Tokens of texts: how many there are, how many of them were the likeliest to the model, and their loss in nats."""

    tokens: int = 0
    likeliest: int = 0
    nats: float = 0.0

    def __add__(self, other: Foreseen) -> Foreseen:
        return Foreseen(self.tokens + other.tokens, self.likeliest + other.likeliest, self.nats + other.nats)

    @property
    def share(self) -> float:
        """The share, 0 to 1, that were the likeliest."""
        return self.likeliest / self.tokens if self.tokens else 0.0

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, slots=True)
class Copying:
    """The same ``texts`` texts, read for the first time and repeated."""

    texts: int
    first: Foreseen
    repeated: Foreseen


def measure_copying(model: GPTJ, tokenizer: ByteLevelTokenizer, texts: Iterable[str], heads: Sequence[str]) -> Copying:
    """Read each of ``texts`` twice under one of ``heads`` in turn; a text that does not fit in twice is left out."""
    count, first, repeated = 0, Foreseen(), Foreseen()
    for number, text in enumerate(texts):
        head = tokenizer.encode(f"{heads[number % len(heads)]}\n\nInput: ")
        ids, between = tokenizer.encode(text), tokenizer.encode("\nOutput:")
        again = len(head) + len(ids) + len(between)
        if not ids or again + len(ids) > model.max_positions:
            continue
        # Token t is foreseen at position t - 1.
        scored = _foreseen(model, [*head, *ids, *between, *ids], (len(head), again), len(ids))
        count, first, repeated = count + 1, first + scored[0], repeated + scored[1]
    return Copying(count, first, repeated)


@torch.inference_mode()
def _foreseen(model: GPTJ, ids: Sequence[int], starts: Sequence[int], length: int) -> list[Foreseen]:
    """How the ``length`` tokens from each of ``starts`` on, which are above 0, are foreseen."""
    row = torch.tensor(ids, device=model.device)
    logits = model(row[None])[0].float()
    found = []
    for start in starts:
        before, wanted = logits[start - 1 : start - 1 + length], row[start : start + length]
        nats = F.cross_entropy(before, wanted, reduction="sum")
        found.append(Foreseen(length, int((before.argmax(-1) == wanted).sum()), float(nats)))
    return found


def _texts(documents: Path | None, count: int, seed: int) -> list[str]:
    """``count`` texts, generated or of ``documents``; fewer if there are fewer."""
    if documents is None:
        return [article(number, seed=seed).text for number in range(count)]
    texts = [document.text for document in records_in(documents, Document)]
    return random.Random(seed).sample(texts, min(count, len(texts)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    lines = (__doc__ or "").splitlines()
    parser = job_parser("training_jobs.corpora.base.copying", lines[0], "\n".join(lines[2:4]))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="a GPT-J checkpoint directory")
    parser.add_argument("--texts", type=int, default=100, help="texts to read, at least 1 (%(default)s)")
    parser.add_argument("--documents", type=Path, metavar="FILE", help="draw them from these documents, not generated")
    parser.add_argument("--seed", type=int, default=SEED, help="of the texts (%(default)s)")
    options = parser.parse_args(arguments)
    if options.texts < 1:
        parser.error(f"--texts must be at least 1, not {options.texts}")
    table = Table("model", "parameters", "texts", "first", "again", box=None, title="tokens foreseen (nats a token)")
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    try:
        texts = _texts(options.documents, options.texts, options.seed)
        heads = [tool.task for tool in ToolRegistry.load()]
        for path in options.models:
            model, tokenizer = checkpoint.load(path), ByteLevelTokenizer.from_pretrained(path)
            found = measure_copying(model, tokenizer, texts, heads)
            if not found.texts:
                raise CheckpointError(f"{path}: none of the texts fits twice into its {model.max_positions} positions")
            scores = [f"{100 * one.share:.1f} % ({one.loss:.2f})" for one in (found.first, found.repeated)]
            parameters = sum(one.numel() for one in model.parameters())
            table.add_row(str(path), f"{parameters:,}", f"{found.texts:,}", *scores)
    except (CheckpointError, OSError, RecordError, ToolConfigError) as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")
    Console().print(table)


if __name__ == "__main__":
    main()
