"""Keeping the exams out of what a model reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo_world.splits import is_held_out

WORDS: Final = 8
"""Length of the word sequences that are compared."""
HELD_OUT_PERCENT: Final = 4.0
"""Of each source, what no base model reads: on it a model teaches itself and is measured."""
_BENCHMARKS: Final = frozenset(
    {"lama", "asdiv", "svamp", "mawps", "nq_open", "webquestions", "triviaqa", "mlqa", "templama", "wikitext"}
)
_WORD: Final = re.compile(r"\w+")
_QUESTION: Final = re.compile(r'"(?:[Qq]uestion|qText|prompt)": ("(?:[^"\\]|\\.)*")')
VISITORS: Final = Path(__file__).parents[2] / "evaluate" / "visitors.jsonl"
"""The project's own exam."""


class Exams:
    """The texts that a model will be asked about; sentences that repeat them are not for training."""

    def __init__(self, texts: Iterable[str] = (), ids: Iterable[str] = (), questions: Iterable[str] = ()) -> None:
        self._seen = {one for text in texts for one in _sequences(text)}
        self._questions = {_plain(question) for question in questions}
        self.ids = frozenset(ids)
        """Questions of SQuAD that LAMA was made from."""

    @classmethod
    def read(cls, folder: Path) -> Exams:
        """The benchmarks in ``folder``, laid out as the evaluation reads them: the sentences of LAMA, MLQA's and open
        questions, word problems, WikiText.

        Raises:
            FileNotFoundError: if there is none.
        """
        texts: list[str] = []
        ids: set[str] = set()
        for path in sorted(one for name in _BENCHMARKS for one in folder.glob(f"{name}/**/*")):
            if path.suffix in (".jsonl", ".json", ".xml", ".raw"):
                texts += path.read_text(encoding="utf-8").splitlines()
                if path.parent.name == "Squad":
                    ids |= {row.partition("_")[0] for row in re.findall(r'"id": "([^"]+)"', path.read_text())}
        if not texts:
            raise FileNotFoundError(f"{folder}: holds none of {', '.join(sorted(_BENCHMARKS))}; name the exams' folder")
        texts += VISITORS.read_text(encoding="utf-8").splitlines()
        return cls(texts, ids, [json.loads(found) for text in texts for found in _QUESTION.findall(text)])

    def asks(self, question: str) -> bool:
        """Whether an exam has this very question, however short. Without regard to case and punctuation."""
        return _plain(question) in self._questions

    def overlaps(self, text: str, at_least: int = 5) -> bool:
        """Whether ``text`` shares ``at_least`` sequences of eight words with the exams; one that has fewer than that
        shares all it has, and one without any is one of their questions. Case and punctuation do not count."""
        found = _sequences(text)
        if not found:
            return self.asks(text)
        return sum(one in self._seen for one in found) >= min(at_least, len(found))


@dataclass(frozen=True, slots=True)
class Part:
    """What of the sources is read: never what the ``exams`` ask, and what is ``held_out`` or all else."""

    exams: Exams
    held_out: bool = False

    def has(self, source: str, unit: str) -> bool:
        """Whether this article, problem or passage of a source is of this part."""
        return is_held_out(f"real text: {source}", unit, percent=HELD_OUT_PERCENT) is self.held_out


def _plain(question: str) -> str:
    return " ".join(_WORD.findall(question.lower()))


def _sequences(text: str) -> Sequence[int]:
    words = _WORD.findall(text.lower())
    return [hash(tuple(words[at : at + WORDS])) for at in range(len(words) - WORDS + 1)]
