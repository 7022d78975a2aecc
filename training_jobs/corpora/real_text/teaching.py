"""The texts that a model teaches itself on: of each source what no base model reads, divided for two rounds.

OUT/round-1/corpus/<Tool>.jsonl     documents for each tool, by their kind, for `toolformer jobs run --corpus`
OUT/round-2/corpus/<Tool>.jsonl     as many others
OUT/plain.jsonl                     prose, its beginnings and everyday sentences in which no tool is called, to finetune
                                    on beside C*
OUT/held-out.jsonl                  prose to measure perplexity and copying on
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from training_jobs.corpora.real_text.sources import SENTENCE
from training_jobs.records import Document, Plain
from training_jobs.run_folder import RunFolder
from training_jobs.runner.parts import write_records

HELD_OUT: Final = "held-out.jsonl"
PLAIN: Final = "plain.jsonl"
ROUNDS: Final = 2
TAUGHT: Final[Mapping[str, Mapping[str, float]]] = {
    "Calculator": {
        "typed": 0.9, "word problems": 0.9, "problems": 0.02, "sums": 0.1, "grade school": 0.03, "one step": 0.03,
        "exercises": 0.02,
    },
    "Calendar": {"days": 1.0},
    "WikiSearch": {"stated": 0.5, "facts": 0.3, "questions": 0.25, "encyclopedia": 0.03},
    "QA": {"facts": 0.5, "questions": 0.25},
    "MT": {"meanings": 0.8, "foreign": 0.3},
}  # fmt: skip
"""By tool, how many of each source for one of ``texts``; a small source gives what it has."""
_PROSE: Final = ("encyclopedia", "news", "stories")
_EVERYDAY: Final = "everyday"
_EVERYDAY_SHARE: Final = 2
"""Everyday sentences for one of ``texts``."""
_PLAIN_CHARACTERS: Final = 100
"""Of such a beginning at least; its sentence is whole."""


def write_teaching(documents: Callable[[str], Iterator[Document]], texts: int, out: Path) -> None:
    """Write the files in ``out``.

    Args:
        documents: gives those of a source.
        texts: in each round as many for a tool, times the numbers of `TAUGHT`; half as many plain ones of each kind
            of prose, their beginning and the whole, twice as many everyday ones, and as many held-out ones.
        out: the folder.

    Raises:
        OSError: if a source is not there.
    """
    sources = {
        source: documents(source)
        for source in {*_PROSE, _EVERYDAY, *(one for shares in TAUGHT.values() for one in shares)}
    }
    for tool, shares in TAUGHT.items():
        drawn = [list(islice(sources[source], ROUNDS * round(share * texts))) for source, share in shares.items()]
        for round_ in range(ROUNDS):
            folder = RunFolder(out / f"round-{round_ + 1}")
            write_records(
                folder.target("corpus", tool), (one for of_source in drawn for one in of_source[round_::ROUNDS])
            )
    # A source may have few texts that no base model reads: half of them are for each.
    prose = [list(islice(sources[source], 2 * texts)) for source in _PROSE]
    read = [one for of_source in prose for one in of_source[::2][: texts // 2]]
    plain = {one.id: _beginning(one.text) for one in [*read, *islice(sources[_EVERYDAY], _EVERYDAY_SHARE * texts)]}
    # Of beginnings alone a model forgets how prose goes on.
    plain |= {f"whole/{one.id}": one.text for one in read}
    trained = set(plain.values())  # some texts have one sentence, and stand there twice
    write_records(out / PLAIN, (Plain(name, (text,)) for name, text in plain.items()))
    write_records(
        out / HELD_OUT, (one for of_source in prose for one in of_source[1::2][:texts] if one.text not in trained)
    )


def _beginning(text: str) -> str:
    sentences = iter(SENTENCE.split(text.partition("\n")[0]))
    found = next(sentences)
    while len(found) < _PLAIN_CHARACTERS and (more := next(sentences, "")):
        found += f" {more}"
    return found
