"""Measuring the perplexity of a folder's texts, a JSON line a text, so that a killed run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from demo_world.splits import stable_hash
from demo_world.suites import held_out_texts
from language_model.bulk.interface import BulkModel
from language_model.tokenizer import ByteLevelTokenizer
from training_jobs.evaluate.answers import read_records
from training_jobs.evaluate.perplexity import TextLoss, text_losses
from training_jobs.evaluate.readers.plain_texts import PlainText, read_ccnet, read_wikitext
from training_jobs.evaluate.suites import TEXTS, find_files
from training_jobs.records import Record
from training_jobs.runner.parts import write_records
from training_jobs.runner.progress import StageProgress

CCNET_TEXTS: Final = 10_000
"""Documents of CCNet in the paper's table 8."""

OWN_ARTICLES: Final = 10
"""Articles of the demo world for each question in a part of a suite: a text says little about perplexity."""

_TOGETHER: Final = 16
"""Texts that are scored and kept in one go."""


@dataclass(frozen=True, slots=True)
class Measured(Record):
    """The loss of one text in nats over so many tokens and bytes."""

    id: str
    nats: float
    tokens: int
    size: int


def texts_of(
    name: str, data: Path | None, files: Sequence[Path], *, count: int, limit: int | None, seed: int
) -> tuple[PlainText, ...]:
    """The texts called ``name`` of :data:`~training_jobs.evaluate.suites.TEXTS`; of CCNet's 10,000 at most, as in the
    paper; ``limit`` of them, drawn by ``seed``.

    Raises:
        SuiteError: if they cannot be read.
    """
    if name == "own-articles":
        found = tuple(PlainText(str(number), text) for number, text in enumerate(held_out_texts(OWN_ARTICLES * count)))
    else:
        paths = files or find_files(name, TEXTS[name][1], data)
        found = read_wikitext(paths) if name == "wikitext" else read_ccnet(paths)
    most = CCNET_TEXTS if limit is None and name == "ccnet" else limit
    if most is None or most >= len(found):
        return found
    order = sorted(range(len(found)), key=lambda at: stable_hash("sample", name, str(seed), found[at].id, str(at)))
    return tuple(found[at] for at in sorted(order[:most]))


def measure(
    name: str,
    texts: Sequence[PlainText],
    model: BulkModel[Any],
    tokenizer: ByteLevelTokenizer,
    folder: Path,
    console: Console,
) -> TextLoss:
    """The loss of ``texts``; each one's is kept in ``folder``, and none that is there already is computed.

    Raises:
        SuiteError: if what is in ``folder`` cannot be read.
    """
    path = folder / "perplexity" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {one.id: one for one in read_records(path, Measured)}
    write_records(path, known.values())  # without a line that a kill tore
    waiting = [text for text in dict.fromkeys(texts) if _key(text) not in known]
    title = f"perplexity {TEXTS[name][0]}"
    with path.open("ab") as file, StageProgress(title, len(texts), len(texts) - len(waiting), console) as progress:
        for start in range(0, len(waiting), _TOGETHER):
            some = waiting[start : start + _TOGETHER]
            for text, loss in zip(some, text_losses(model, tokenizer, [text.text for text in some]), strict=True):
                measured = Measured(_key(text), loss.nats, loss.tokens, loss.size)
                known[measured.id] = measured
                file.write(measured.to_line().encode())
            file.flush()
            progress.advance(len(some), {})
    found = [known[_key(text)] for text in texts]
    return reduce(add, (TextLoss(one.nats, one.tokens, 1, one.size) for one in found), TextLoss(0.0, 0, 0, 0))


def _key(text: PlainText) -> str:
    """Two texts may share an id, and a file may have changed since."""
    return f"{text.id}:{stable_hash('text', text.text):016x}"
