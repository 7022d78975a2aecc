"""Annotating equals the plain way, on random documents and models."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language_model.bulk.interface import BulkModel
from language_model.bulk.loading import as_bulk
from language_model.bulk.rows import BulkRows
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import VOCABULARIES, small_tokenizer
from tests.training_jobs import plain_way
from tests.training_jobs.calling_models import CALLS, QUOTED, WITHOUT_INPUT, calling_model, logits_of
from toolformer.tools import Tool
from training_jobs.annotate import AnnotateSettings, Annotator
from training_jobs.annotate.annotator import NOT_READ
from training_jobs.annotate.given_numbers import is_given
from training_jobs.annotate.prompted import prompted
from training_jobs.annotate.sampled import SampledCalls
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


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("bulk", [as_bulk, rows], ids=["shared", "rows"])
def test_positions_and_calls_equal_the_plain_way(
    vocabulary: Callable[[], ByteLevelTokenizer], bulk: Callable[..., BulkModel[Any]]
) -> None:
    tokenizer = vocabulary()
    model = calling_model(tokenizer, 1)
    texts = ["One A(1) é🙂本 is 1.", "T", " \n a1"]
    happened: Counter[str] = Counter()
    for tool in (CALLS, QUOTED, WITHOUT_INPUT):
        happened += check(model, tokenizer, tool, bulk(model, tokenizer), texts, seed=3)
    assert {"malformed", "repeated", "calls"} <= happened.keys(), happened


@given(st.text(st.sampled_from("aé1 .\n🙂 本[]>-A(T"), min_size=1, max_size=25), st.sampled_from([15, 40, 10_000]))
def test_a_position_is_the_same_place_in_tokens_and_in_characters(text: str, room: int) -> None:
    tokenizer = small_tokenizer()
    asked = prompted(text, tokenizer, room=room)
    assert asked is not None
    assert len(asked.text.ids) <= room
    own = tokenizer.encode(text)
    for at in asked.positions:
        assert plain_way.decode(own[: at.position], tokenizer) == text[: at.offset]
        copied = asked.text.ids[asked.text.first : asked.text.first + at.place]
        assert plain_way.decode(copied, tokenizer) in {f" {text[: at.offset]}", text[: at.offset]}
    assert asked.positions[0].offset == 0
    assert len({at.position for at in asked.positions}) == len(asked.positions)


@pytest.mark.parametrize(
    ("before", "asked", "whole", "given"),
    [
        ("Of 1,200 tickets 35.5 were", "1200 - 35.5", False, True),
        ("Of 1,200 tickets", "1200 - 35.5", False, False),
        ("Of 12 tickets", "2 + 12", False, False),
        ("Half of 386 is", "386 / 2", False, True),
        ("A dozen boxes of seventeen are", "12 * 17", False, True),
        ("What is 15% of 80?", "80 * 15 / 100", False, True),
        ("Fourteen weeks have", "14 * 7", False, True),
        ("Out of 1,400 guests, 400 (or", "400 / 1400 * 100", False, True),
        ("Out of 1,400 guests, 400, or", "400 / 1400 * 100", False, False),
        ("In March it cost", "12 * 17", False, False),
        ("In Rome", "What is Rome?", False, True),
        ("In 1900", "What came after 1901?", False, False),
        ("In Rome", "Where is Ostia?", False, False),
        ("The river of rome is", "river Rome's", False, True),
        ("He said mot juste, or", " mot juste ", True, True),
        ("Nothing", "mot jouste", True, False),
    ],
)
def test_what_a_call_asks_with_may_be_given(before: str, asked: str, whole: bool, given: bool) -> None:
    assert is_given(before, asked, whole=whole) == given


def test_calls_whose_inputs_are_not_given_are_dropped() -> None:
    tokenizer = small_tokenizer()
    model, documents = calling_model(tokenizer, 1), [Document("d", "A 1 1 1")]
    free, strict = (
        Annotator(model, tokenizer, CALLS, AnnotateSettings(given_inputs=given)).annotate(documents)[0]
        for given in (False, True)
    )
    before = documents[0].text
    kept = [one for one in free.candidates if is_given(before[: one.offset], one.input, whole=False)]
    assert list(strict.candidates) == kept
    assert 0 < strict.dropped["input not given"] >= len(free.candidates) - len(kept) > 0


def test_nothing_fits() -> None:
    assert prompted("", small_tokenizer(), room=100) is None
    assert prompted("a text", small_tokenizer(), room=4) is None


@pytest.mark.parametrize(
    ("written", "tool", "read"),
    [
        (b"A(1)]", CALLS, "1"), (b"A( 1+1 ) ->", CALLS, "1+1"), (b"A(1)] and", CALLS, "1"),
        (b"A([1]])]", CALLS, "[1]]"), (b'A("x")]', QUOTED, "x"), (b"A(x)]", QUOTED, "x"),
        (b"A()]", WITHOUT_INPUT, ""), (b"A(1)]", WITHOUT_INPUT, "malformed"), (b"A( )]", CALLS, "empty input"),
        (b'A("")]', QUOTED, "empty input"),
        (b"A(1, 2, 3, 4, 5, 6)]", CALLS, "input too long"),
        (b"A(1", CALLS, "unfinished"), (b"A(1)", CALLS, "unfinished"), (b"", CALLS, "unfinished"),
        (b"A(\xc3", CALLS, "unfinished"), (b"A(\xc3)]", CALLS, "malformed"), (b"A(\xff", CALLS, "malformed"),
        (b"B(1)]", CALLS, "malformed"), (b"Ab(1)]", CALLS, "malformed"), (b"1]", CALLS, "malformed"),
        (b"A(1\n)]", CALLS, "malformed"),
    ],
)  # fmt: skip
def test_what_was_sampled_is_a_call_or_has_a_reason(written: bytes, tool: Tool, read: str) -> None:
    calls = SampledCalls(tool, small_tokenizer())
    input_, reason = calls.read(written)
    assert (read == input_) if not reason else (input_ is None and reason == read)
    assert calls.ended(written) or reason == "unfinished" or b"\xff" in written


class TestDocuments:
    TOKENIZER = small_tokenizer()

    def annotator(self, tool: Tool = CALLS, **settings: Any) -> Annotator:
        return Annotator(calling_model(self.TOKENIZER, 0), self.TOKENIZER, tool, AnnotateSettings(**settings))

    def test_a_chunk_and_its_seed_decide_the_result(self) -> None:
        documents = [Document(str(n), f"One A({n}) is {n}." * (1 + n % 3)) for n in range(6)]
        annotator = self.annotator()
        first = annotator.annotate(documents, seed=1)
        assert [one.document for one in first] == documents
        assert self.annotator().annotate(documents, seed=1) == first
        assert annotator.annotate(documents, seed=2) != first
        # Which documents are read together changes nothing but rounding, here and with these seeds.
        alone = [one for document in documents for one in annotator.annotate([document], seed=1)]
        assert [inputs_by_position(one) for one in alone] == [inputs_by_position(one) for one in first]

    def test_no_documents_and_empty_ones(self) -> None:
        empty = Document("e", "")
        assert self.annotator().annotate([], seed=0) == []
        assert self.annotator().annotate([empty], seed=0) == [Annotated(empty, "A")]

    def test_of_a_long_text_the_beginning_is_annotated(self) -> None:
        [long] = self.annotator().annotate([Document("l", "One is 1. " * 200)], seed=0)
        assert long.dropped[NOT_READ] > 500
        assert all(candidate.position < 200 for candidate in long.candidates)

    def test_calls_where_words_begin(self) -> None:
        text = "A(1) is 1234.5 and\n567,  or  8"
        low = CALLS.model_copy(update={"sampling_threshold": 0.0, "max_positions": 100})
        [anywhere] = self.annotator(low).annotate([Document("1", text)], seed=0)
        [words] = self.annotator(low, before_words=True).annotate([Document("1", text)], seed=0)
        # A word's space belongs to it, and there is no second place behind that.
        begins = {match.start() for match in re.finditer(r"(?<!\s)\s|(?<=\n)|^", text)}
        assert {candidate.offset for candidate in words.candidates} <= begins
        assert {candidate.offset for candidate in anywhere.candidates} > begins - {0}
        by_place = inputs_by_position(anywhere)
        assert all(by_place[place] == inputs for place, inputs in inputs_by_position(words).items())

    def test_fewer_samples_are_the_likeliest_positions_first_samples(self) -> None:
        text = "One is 1. Two is 2. Three is 3. Four is 4."
        low = CALLS.model_copy(update={"sampling_threshold": 0.0, "max_positions": 6, "max_samples": 6})
        [all_] = self.annotator(low).annotate([Document("1", text)], seed=0)
        [fewer] = self.annotator(low, most_positions=2, most_samples=1).annotate([Document("1", text)], seed=0)
        by_place = inputs_by_position(all_)
        assert len(fewer.candidates) <= 2
        assert all(by_place[place][0] == inputs[0] for place, inputs in inputs_by_position(fewer).items())
        [more] = self.annotator(low, most_positions=50, most_samples=50).annotate([Document("1", text)], seed=0)
        assert more == all_

    def test_no_position_above_the_threshold(self) -> None:
        [one] = self.annotator(CALLS.model_copy(update={"sampling_threshold": 0.999})).annotate(
            [Document("1", "One is 1.")], seed=0
        )
        assert (one.candidates, one.dropped) == ((), {})

    def test_a_prompt_that_leaves_no_room_is_refused(self) -> None:
        [demonstration] = CALLS.demonstrations
        long = demonstration.model_copy(update={"input": "One " * 400})
        with pytest.raises(ValueError, match=r"the prompt of A takes \d+ of the model's 384 positions and"):
            self.annotator(CALLS.model_copy(update={"demonstrations": (long,)}))

    def test_settings_that_cannot_be(self) -> None:
        with pytest.raises(ValueError, match="--temperature must be more than 0"):
            AnnotateSettings(temperature=0)
