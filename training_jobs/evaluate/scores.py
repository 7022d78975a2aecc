"""What the answers come to: shares that are right, with intervals, and how often which tool was called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter

from training_jobs.evaluate.answers import Answer
from training_jobs.evaluate.conditions import Condition
from training_jobs.evaluate.scoring import wilson_interval
from training_jobs.evaluate.suites import Suite


@dataclass(frozen=True, slots=True)
class Share:
    """``right`` of ``n``."""

    right: int
    n: int

    @property
    def value(self) -> float:
        """From 0 to 1; 0 of none."""
        return self.right / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, from 0 to 1."""
        return wilson_interval(self.right, self.n)

    @property
    def shown(self) -> str:
        """In percent, with its interval."""
        low, high = self.interval
        return f"{100 * self.value:.1f} ({100 * low:.0f}-{100 * high:.0f})" if self.n else "-"

    def as_json(self) -> dict[str, Any]:
        """Counts, and shares from 0 to 1."""
        return {"right": self.right, "n": self.n, "share": self.value, "interval": list(self.interval)}


@dataclass(frozen=True, slots=True)
class Conduct:
    """How the examples of one part were gone about: those that called the ``expected`` tool (or none, where none is),
    and the counts of answers that were ``empty`` or ``cut_off`` for want of tokens."""

    expected: Share
    empty: int
    cut_off: int


@dataclass(frozen=True, slots=True)
class Score:
    """One suite under one condition.

    Args:
        all: right answers among all examples; a failed request is a wrong answer.
        with_calls: among those for which a tool answered.
        without_calls: among the others.
        called: examples for which each tool answered.
        splits: right answers of each part of the suite; empty where it has one part.
        failed: requests that came to nothing.
        refused: prompts that the model cannot take, most of them too long.
        conduct: of each part, where examples say which tool is expected.
    """

    suite: str
    title: str
    table: str
    condition: Condition
    all: Share
    with_calls: Share
    without_calls: Share
    called: dict[str, int] = field(default_factory=dict)
    splits: dict[str, Share] = field(default_factory=dict)
    failed: int = 0
    refused: int = 0
    conduct: dict[str, Conduct] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "suite": self.suite,
            "title": self.title,
            "table": self.table,
            "k": self.condition.k,
            "max_calls": self.condition.max_calls,
            "condition": self.condition.name,
            "all": self.all.as_json(),
            "with_calls": self.with_calls.as_json(),
            "without_calls": self.without_calls.as_json(),
            "called": self.called,
            "splits": {name: share.as_json() for name, share in self.splits.items()},
            "failed": self.failed,
            "refused": self.refused,
            "conduct": {
                part: {"expected": of.expected.as_json(), "empty": of.empty, "cut_off": of.cut_off}
                for part, of in self.conduct.items()
            },
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Score:
        """What :meth:`as_json` gave.

        Raises:
            KeyError, ValueError: it is something else.
        """
        return _SCORE.validate_python({**values, "condition": Condition(values["k"], values["max_calls"])})


_SCORE: Final = TypeAdapter(Score)


def score(suite: Suite, condition: Condition, answers: Sequence[Answer]) -> Score:
    """The score of one suite under one condition."""
    called = Counter(tool for answer in answers for tool in answer.tools)
    splits = dict.fromkeys(answer.split for answer in answers)
    known = [answer for answer in answers if answer.as_expected is not None]
    return Score(
        suite.name,
        suite.title,
        suite.table,
        condition,
        _share(answers),
        _share([answer for answer in answers if answer.tools]),
        _share([answer for answer in answers if not answer.tools]),
        dict(called.most_common()),
        {split: _share([a for a in answers if a.split == split]) for split in splits} if len(splits) > 1 else {},
        failed=sum(answer.error is not None for answer in answers),
        refused=sum(answer.refused is not None for answer in answers),
        conduct={split: _conduct([a for a in known if a.split == split]) for split in splits} if known else {},
    )


def _conduct(answers: Sequence[Answer]) -> Conduct:
    return Conduct(
        Share(sum(bool(answer.as_expected) for answer in answers), len(answers)),
        sum(not answer.text.strip() for answer in answers),
        sum(answer.cut_off for answer in answers),
    )


def _share(answers: Sequence[Answer]) -> Share:
    return Share(sum(answer.right for answer in answers), len(answers))
