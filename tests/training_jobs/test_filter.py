"""The losses of the filter equal the plain way, on random documents and models; verdicts follow from losses alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from language_model.bulk.interface import BulkModel
from language_model.bulk.loading import as_bulk
from language_model.bulk.rows import BulkRows
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import VOCABULARIES, gpt2_tokenizer, small_tokenizer
from tests.training_jobs import plain_way
from tests.training_jobs.calling_models import CALLS, QUOTED, calling_model, logits_of
from toolformer.tools import Tool, ToolRegistry
from training_jobs.filter import Scorer, ScoreSettings, Thresholds, judge
from training_jobs.filter.scorer import WEIGHTS
from training_jobs.records import Annotated, CallsStand, Candidate, Document, WithoutResult

ALPHABET = 'abé1 .,\n🙂本[]>-"()'


def rows(model: GPTJ, tokenizer: ByteLevelTokenizer) -> BulkModel[Any]:
    return BulkRows(model, tokenizer.token_bytes, 0)


def some_text(rng: random.Random, longest: int) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randint(1, longest)))


def some_candidates(rng: random.Random, text: str, tokenizer: ByteLevelTokenizer) -> tuple[Candidate, ...]:
    """At any position, the first and the last among them; some equal calls; calls and results of any length."""
    last = len(tokenizer.encode(text)) - 1
    positions = [0, last, *(rng.randint(0, last) for _ in range(3))]
    calls = [(some_text(rng, 30), f"r{some_text(rng, 40)}") for _ in range(2)]
    chosen = [rng.choice(calls) for _ in positions]
    return tuple(Candidate(at, 0, 0.5, asked, output) for at, (asked, output) in zip(positions, chosen, strict=True))


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("bulk", [as_bulk, rows], ids=["batched", "rows"])
@pytest.mark.parametrize(
    ("begin_of_text", "without_result", "written", "calls_stand"),
    [(True, "empty", " [{} -> ]", "first"), (False, "closed", " [{}]", "first"), (True, "closed", " [{}]", "inside")],
)
def test_losses_equal_the_plain_way(
    vocabulary: Callable[[], ByteLevelTokenizer],
    bulk: Callable[..., BulkModel[Any]],
    begin_of_text: bool,
    without_result: WithoutResult,
    written: str,
    calls_stand: CallsStand,
) -> None:
    tokenizer = vocabulary()
    tools: dict[str, Tool] = {"A": CALLS, "B": QUOTED.model_copy(update={"name": "B"})}
    registry, settings = ToolRegistry(tools.values()), ScoreSettings(begin_of_text, without_result, calls_stand)
    for seed in range(1 if vocabulary is gpt2_tokenizer else 2):
        rng = random.Random(seed)
        model = calling_model(tokenizer, seed)
        texts = [some_text(rng, longest) for longest in (1, 8, 60)]
        annotated = [
            Annotated(Document(f"{n}", text), name, some_candidates(rng, text, tokenizer))
            for n, text in enumerate(texts)
            for name in tools
        ]
        scored = Scorer(bulk(model, tokenizer), tokenizer, registry, settings).score(annotated)
        for before, after in zip(annotated, scored, strict=True):
            for asked, got in zip(before.candidates, after.candidates, strict=True):
                assert asked.output is not None
                want = plain_way.losses(
                    logits_of(model),
                    tokenizer,
                    tools[before.tool],
                    before.document.text,
                    asked.position,
                    asked.input,
                    asked.output,
                    begin=[0] if begin_of_text else [],
                    empty=written,
                    inside=calls_stand == "inside",
                )
                assert (got.loss_empty, got.loss_call, got.loss_result) == pytest.approx(want, abs=1e-4)
                assert got.gain == pytest.approx(min(want[:2]) - want[2], abs=3e-4)


def test_the_papers_losses_are_the_default() -> None:
    assert ScoreSettings() == ScoreSettings(begin_of_text=True, without_result="empty", calls_stand="first")


def test_the_weights_are_the_papers() -> None:
    assert pytest.approx((1 / 3, 4 / 15, 1 / 5, 2 / 15, 1 / 15)) == WEIGHTS


class TestWhatCannotBeScored:
    def score(self, *candidates: Candidate, text: str = "one two three") -> tuple[Candidate, ...]:
        tokenizer = small_tokenizer()
        scorer = Scorer(calling_model(tokenizer, 0), tokenizer, ToolRegistry([CALLS]))
        [scored] = scorer.score([Annotated(Document("1", text), "A", candidates)])
        assert all(c.loss_empty is None and c.gain is None for c in scored.candidates)
        return judge(scored, Thresholds.of(CALLS)).candidates

    def test_a_call_without_a_result_stays_as_it_is(self) -> None:
        [failed, waiting] = self.score(Candidate(1, 1, 0.5, "x", error="timeout"), Candidate(1, 1, 0.5, "x"))
        assert (failed.verdict, waiting.verdict) == ("no result: timeout", "not executed")

    def test_an_empty_result(self) -> None:
        [empty] = self.score(Candidate(1, 1, 0.5, "x", output=" \n "))
        assert empty.verdict == "empty result"

    def test_a_text_that_is_too_long_for_the_model(self) -> None:
        [long] = self.score(Candidate(380, 380, 0.5, "x", output="y"), text="🙂" * 200)
        assert long.verdict == "text too long for the model"


class TestVerdicts:
    CANDIDATE = Candidate(2, 10, 0.5, "mot juste", "right word", None, 3.0, 2.5, 1.5)

    def verdict(self, thresholds: Thresholds, text: str = "a text and more", **changes: object) -> str | None:
        fields = {name: getattr(self.CANDIDATE, name) for name in Candidate.__dataclass_fields__} | changes
        [judged] = judge(Annotated(Document("1", text), "MT", (Candidate(**fields),)), thresholds).candidates
        assert judged.gain == (1.0 if not changes else judged.gain)
        return judged.verdict

    @pytest.mark.parametrize(
        ("threshold", "verdict"), [(0.5, "kept"), (1.0, "kept"), (1.000001, "gain below threshold")]
    )
    def test_the_gain_must_reach_the_threshold(self, threshold: float, verdict: str) -> None:
        assert self.verdict(Thresholds(threshold)) == verdict

    def test_the_better_of_no_call_and_no_result_counts(self) -> None:
        assert self.verdict(Thresholds(1.0), loss_empty=2.0) == "gain below threshold"
        assert self.verdict(Thresholds(1.0), loss_call=9.0, loss_empty=2.5) == "kept"

    def test_a_tools_thresholds_are_the_registrys_and_its_cost_counts(self) -> None:
        tools = ToolRegistry.load(files=[], environ={})
        assert Thresholds.of(tools.get("QA")) == Thresholds(1.0, False)
        assert Thresholds.of(tools.get("MT")) == Thresholds(0.5, True)
        assert Thresholds.of(tools.get("QA"), tau=0.5, cost_weight=0.1) == Thresholds(1.0, False)

    @pytest.mark.parametrize(
        ("text", "verdict"),
        [
            ("0123456789 mot juste", "looks ahead"),
            ("mot juste, mot juste", "kept"),
            ("01234567mot juste", "looks ahead"),
            ("0mot juste of it", "kept"),
            ("the input is nowhere", "kept"),
        ],
    )
    def test_a_translation_must_not_look_ahead(self, text: str, verdict: str) -> None:
        assert self.verdict(Thresholds(0.5, input_from_before=True), text=text) == verdict
        assert self.verdict(Thresholds(0.5), text=text) == "kept"

    def test_judging_again_with_another_threshold_needs_nothing_else(self) -> None:
        first = judge(Annotated(Document("1", "a"), "A", (self.CANDIDATE,)), Thresholds(2.0))
        again = judge(Annotated.from_line(first.to_line()), Thresholds(1.0))
        assert (first.candidates[0].verdict, again.candidates[0].verdict) == ("gain below threshold", "kept")
