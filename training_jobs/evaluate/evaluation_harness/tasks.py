"""What the harness' task files call: a suite's examples, and whether a completion is right.

The harness imports this file by itself, from the folder of the task files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from training_jobs.evaluate.prompts import prompt_of
from training_jobs.evaluate.suites import SUITES

DATA: Final = "TOOLFORMER_EVALUATION_DATA"
"""The environment variable with the folder of the published files."""
PROMPTS: Final = "TOOLFORMER_EVALUATION_PROMPTS"
"""The environment variable with the form of prompts, ``paper`` (the default) or ``bare``."""


def examples(suite: str, count: int = 100, seed: int = 0, **_: Any) -> dict[str, list[dict[str, Any]]]:
    """The split ``test`` of a suite: each example's prompt and right answers.

    Raises:
        SuiteError: if its files are not in the folder that ``TOOLFORMER_EVALUATION_DATA`` names.
        ValueError: for an unknown form of prompts, or a suite whose examples have dates, which the harness cannot send.
    """
    asked = SUITES[suite]
    prompts = os.environ.get(PROMPTS, "paper")
    if prompts not in ("paper", "bare"):
        raise ValueError(f"{PROMPTS} must be paper or bare, not {prompts!r}")
    folder = os.environ.get(DATA)
    loaded = asked.load(Path(folder) if folder else None, count=count, seed=seed)
    if any(example.date for example in loaded.examples):
        raise ValueError(f"{suite}: its examples have dates, which the harness cannot send: use toolformer evaluate")
    docs = [
        {
            "suite": suite,
            "id": example.id,
            "prompt": prompt_of(example, asked.form, "paper" if prompts == "paper" else "bare"),
            "answers": list(example.answers),
        }
        for example in loaded.examples
    ]
    return {"test": docs}


def dataset(suite: str, count: int = 100, seed: int = 0, **given: Any) -> dict[str, Any]:
    """:func:`examples` as the harness wants them: a ``datasets.Dataset`` by split."""
    from datasets import Dataset  # comes with the harness

    return {split: Dataset.from_list(docs) for split, docs in examples(suite, count, seed, **given).items()}


def judge(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """``right``: 1 if the completion is right by the suite's rule, else 0."""
    return {"right": float(SUITES[doc["suite"]].rule.right(results[0], doc["answers"]))}
