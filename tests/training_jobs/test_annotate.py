"""Annotating equals the plain way, on random documents and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from language_model.bulk.interface import BulkModel
from language_model.bulk.loading import as_bulk
from language_model.bulk.rows import BulkRows
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import BOTH
from tests.training_jobs import plain_way
from tests.training_jobs.calling_models import CALLS, QUOTED, WITHOUT_INPUT, calling_model, logits_of
from toolformer.tools import Tool
from training_jobs.annotate import AnnotateSettings, Annotator
from training_jobs.records import Annotated, Document


def rows(model: GPTJ, tokenizer: ByteLevelTokenizer) -> BulkModel[Any]:
    return BulkRows(model, tokenizer.token_bytes, 0)


def inputs_by_position(annotated: Annotated) -> dict[tuple[int, int], list[str]]:
    found: dict[tuple[int, int], list[str]] = {}
    for candidate in annotated.candidates:
        found.setdefault((candidate.position, candidate.offset), []).append(candidate.input)
    return found


def check(
    model: GPTJ, tokenizer: ByteLevelTokenizer, tool: Tool, bulk: object, texts: list[str], seed: int
) -> Counter[str]:
    """Compare all that is annotated with the plain way; returns what happened, so that a test can ask for all of it."""
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    annotator = Annotator(bulk, tokenizer, tool, AnnotateSettings(batch_tokens=64))  # type: ignore[arg-type]
    happened: Counter[str] = Counter()
    for document, got in zip(documents, annotator.annotate(documents, seed=seed), strict=True):
        want, dropped = plain_way.annotate(
            logits_of(model), tokenizer, tool, document.id, document.text, seed=seed, ends=[0]
        )
        assert got.document == document
        assert inputs_by_position(got) == {(w.position, w.offset): list(w.inputs) for w in want if w.inputs}
        assert got.dropped == dict(dropped)
        probabilities = {w.position: w.probability for w in want}
        for candidate in got.candidates:
            assert candidate.start_probability == pytest.approx(probabilities[candidate.position], abs=1e-4)
        happened += dropped + Counter(calls=len(got.candidates), documents=1)
    return happened


@pytest.mark.parametrize("vocabulary", BOTH)
@pytest.mark.parametrize("bulk", [as_bulk, rows], ids=["shared", "rows"])
def test_positions_and_calls_equal_the_plain_way(
    vocabulary: Callable[[], ByteLevelTokenizer], bulk: Callable[..., BulkModel[Any]]
) -> None:
    tokenizer = vocabulary()
    model = calling_model(tokenizer, 0)
    texts = ["One A(1) é🙂本 is 1.", "T", " \n a1"]
    happened: Counter[str] = Counter()
    for tool in (CALLS, QUOTED, WITHOUT_INPUT):
        happened += check(model, tokenizer, tool, bulk(model, tokenizer), texts, seed=3)
    assert {"malformed", "repeated", "calls"} <= happened.keys(), happened
