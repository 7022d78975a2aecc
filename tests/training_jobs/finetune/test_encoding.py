"""Ids of texts with calls: those of the plain text, and between them the very ids that the gateway has after a call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CallStarted, CompletionRequest
from inference_gateway.decoding import DecodingMachine
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import VOCABULARIES, small_tokenizer
from toolformer.api_call import ApiCall, neutralise, splice_result
from toolformer.tools import ToolRegistry
from training_jobs.merge.putting import rendered
from training_jobs.records import CallSegment
from training_jobs.text_encoder import Encoded, TextEncoder

END = 0
REGISTRY = ToolRegistry.load()

# What texts, inputs and answers are made of: words, call marks, quotes, line ends, characters of several bytes.
PIECES = st.sampled_from(
    [
        "boxes",
        " 24",
        "so ",
        " ",
        "[",
        "]",
        " ->",
        "->",
        '"',
        ")",
        '")',
        "\\",
        "\n",
        "Lima",
        "“",
        "é",
        "天",
        "<|endoftext|>",
    ]
)
TEXT = st.lists(PIECES, max_size=8).map("".join)
CALLS = st.builds(CallSegment, st.sampled_from(["Calculator", "QA", "MT", "WikiSearch"]), TEXT, TEXT)
SEGMENTS = st.lists(st.one_of(TEXT.filter(bool), CALLS), max_size=7)


def encoder(tokenizer: ByteLevelTokenizer, *, mask_results: bool = False) -> TextEncoder:
    return TextEncoder(tokenizer, REGISTRY, end_id=END, mask_results=mask_results)


def with_results(segments: list[str | CallSegment], tokenizer: ByteLevelTokenizer) -> list[str | CallSegment]:
    """The segments without calls that have no result."""

    def said(call: CallSegment) -> bool:
        limit = REGISTRY.get(call.tool).max_result_tokens
        return splice_result(call.output, tokenizer, max_tokens=limit) is not None

    return [one for one in segments if isinstance(one, str) or said(one)]


def after_the_same_call(call: CallSegment, before: tuple[int, ...], tokenizer: ByteLevelTokenizer) -> list[int]:
    """What the gateway's decoding has in its sequence once the model has written the call and its answer is in."""
    tool = REGISTRY.get(call.tool)
    request = CompletionRequest(prompt_ids=before, tools=(tool.name,), max_tokens=10_000, max_calls=10)

    class Form:
        quoted, max_input_tokens, cost = tool.quoted, 10_000, 1.0

    machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), {tool.name: Form()})
    head = ApiCall(call.tool, call.input).head(quoted=tool.quoted)
    written = [*tokenizer.marks.opening, *tokenizer.encode(head), *tokenizer.marks.arrow]
    paused: list[CallStarted] = []
    for token in written:
        assert not paused, "nothing is written once the call is made"
        paused += [action for action in machine.accept(token) if isinstance(action, CallStarted)]
    assert [action.call for action in paused] == [ApiCall(call.tool, call.input)]
    spliced = splice_result(call.output, tokenizer, max_tokens=tool.max_result_tokens)
    assert spliced is not None
    machine.splice(spliced)
    return [*before, *machine.ids]


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@settings(max_examples=60, deadline=None)
@given(segments=SEGMENTS, begin=st.booleans())
def test_training_ids_are_those_of_inference(
    vocabulary: Callable[[], ByteLevelTokenizer], segments: list[str | CallSegment], begin: bool
) -> None:
    tokenizer = vocabulary()
    segments = with_results(segments, tokenizer)
    encoded = encoder(tokenizer).encode(segments, begin=begin)
    calls = [segment for segment in segments if isinstance(segment, CallSegment)]
    assert len(encoded.calls) == len(calls)
    for call, (start, end) in zip(calls, encoded.calls, strict=True):
        assert after_the_same_call(call, encoded.ids[:start], tokenizer) == list(encoded.ids[:end])
    body = encoded.ids[begin:-1]
    assert encoded.ids[-1] == END
    limits = {tool.name: tool.max_result_tokens for tool in REGISTRY}
    if all(len(tokenizer.encode(f" {neutralise(call.output)}")) <= limits[call.tool] for call in calls):
        assert b"".join(map(tokenizer.token_bytes, body)).decode() == rendered(segments, REGISTRY)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@settings(max_examples=60, deadline=None)
@given(text=TEXT, data=st.data())
def test_plain_text_keeps_its_ids_around_a_call(
    vocabulary: Callable[[], ByteLevelTokenizer], text: str, data: st.DataObject
) -> None:
    tokenizer = vocabulary()
    ids = tokenizer.encode(text)
    assert encoder(tokenizer).encode([text]).ids == (*ids, END)
    place = data.draw(st.integers(0, len(ids)))
    before = b"".join(map(tokenizer.token_bytes, ids[:place]))
    try:
        offset = len(before.decode())
    except UnicodeDecodeError:
        assume(False)
    call = CallSegment("Calculator", "1 + 1", "2")
    encoded = encoder(tokenizer).encode([text[:offset], call, text[offset:]])
    [(start, end)] = encoded.calls
    assert [*encoded.ids[:start], *encoded.ids[end:]] == [*ids, END]
    assert start == place


def test_a_text_is_divided_where_a_call_stands_inside_a_token() -> None:
    tokenizer = small_tokenizer()
    assert len(tokenizer.encode(" hold")) == 1
    call = CallSegment("Calculator", "1 + 1", "2")
    encoded = encoder(tokenizer).encode([" ho", call, "ld 2"])
    [(start, end)] = encoded.calls
    assert list(encoded.ids[:start]) == tokenizer.encode(" ho")
    assert list(encoded.ids[end:-1]) == tokenizer.encode("ld 2")


@pytest.mark.parametrize("masked", [False, True])
def test_the_loss_counts_results_unless_they_are_masked(masked: bool) -> None:
    tokenizer = small_tokenizer()
    segments = ("So ", CallSegment("Calculator", "24 * 17", "408"), " 408")
    encoded = encoder(tokenizer, mask_results=masked).encode(segments, begin=True)
    left_out = [token for token, learned in zip(encoded.ids, encoded.learned, strict=True) if not learned]
    assert left_out == [END, *(tokenizer.encode(" 408") + tokenizer.encode("]") if masked else [])]


def test_a_text_that_is_too_long_ends_before_the_call_that_does_not_fit() -> None:
    encoded = Encoded(tuple(range(10)), (True,) * 10, ((2, 4), (6, 9)))
    assert encoded.cut(10) is encoded
    assert encoded.cut(9) == Encoded(tuple(range(9)), (True,) * 9, ((2, 4), (6, 9)))
    assert encoded.cut(8) == Encoded(tuple(range(6)), (True,) * 6, ((2, 4),))
    assert encoded.cut(5) == Encoded(tuple(range(5)), (True,) * 5, ((2, 4),))
    assert encoded.cut(3) == Encoded((0, 1), (True,) * 2)
