"""What a run comes to, as ``results.json``: who was asked, how, and every score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from training_jobs.evaluate.conditions import Condition
from training_jobs.evaluate.example import SuiteError
from training_jobs.evaluate.perplexity import TextLoss
from training_jobs.evaluate.scores import Score
from training_jobs.runner.parts import write_json

RESULTS: Final = "results.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one model.

    Args:
        label: what its rows are called.
        parameters: how many it has, 0 where that is unknown.
        settings: what the results depend on.
        scores: every suite under every condition.
        perplexity: the losses of texts, by their name.
        left_out: of each suite, how many examples its files have that cannot be asked, by reason.
        folder: where the answers are; ``None`` if they were not kept.
    """

    label: str
    parameters: int
    settings: Mapping[str, Any]
    scores: tuple[Score, ...]
    perplexity: Mapping[str, TextLoss] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those that there are scores of, in order."""
        return tuple(dict.fromkeys(score.condition for score in self.scores))

    def row(self, condition: Condition) -> str:
        """What the row of one condition is called."""
        if condition.disabled:
            return f"{self.label} (disabled)"
        plain = len([one for one in self.conditions if not one.disabled]) == 1 and condition.max_calls == 1
        return self.label if plain else f"{self.label}, {condition.name}"

    def score(self, suite: str, condition: Condition) -> Score | None:
        """The score of one suite under one condition, if there is one."""
        return next((one for one in self.scores if (one.suite, one.condition) == (suite, condition)), None)

    def write(self, folder: Path) -> None:
        """Write ``results.json``."""
        results = {
            "label": self.label,
            "parameters": self.parameters,
            "settings": dict(self.settings),
            "scores": [score.as_json() for score in self.scores],
            "perplexity": {name: loss.as_json() for name, loss in self.perplexity.items()},
            "left_out": {name: dict(reasons) for name, reasons in self.left_out.items()},
        }
        write_json(folder / RESULTS, results)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read ``results.json`` in ``folder``.

        Raises:
            SuiteError: if there is none, or it is none of ours.
        """
        path = folder / RESULTS
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            losses = {
                name: TextLoss(loss["nats"], loss["tokens"], loss["texts"], loss["bytes"])
                for name, loss in read["perplexity"].items()
            }
            scores = tuple(Score.from_json(score) for score in read["scores"])
            return cls(read["label"], read["parameters"], read["settings"], scores, losses, read["left_out"], folder)
        except OSError as error:
            raise SuiteError(f"{path}: cannot be read ({error.strerror or error}); name the --out of a run") from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise SuiteError(f"{path}: is not the results of a run ({error!r}); run it again") from error
