"""Calls that are in a text already: found, and encoded as the vocabulary writes them."""

import pytest

from tests.support.vocabularies import marked_tokenizer, small_tokenizer
from toolformer.api_call import ApiCall, call_ids, empty_call_ids
from toolformer.calls_in_text import call_spans, encode_with_calls
from toolformer.tools import ToolRegistry

REGISTRY = ToolRegistry.load(environ={})
SHOWN = 'It is [Calculator(1 + 2) -> 3] 3 [1], as [QA("Why?")] said [Calculator(4) -> ] and [Other(1) -> 2].'


def test_whole_calls_of_known_tools_are_found() -> None:
    found = [SHOWN[span.start : span.stop] for span in call_spans(SHOWN, REGISTRY)]
    assert found == [" [Calculator(1 + 2) -> 3]", ' [QA("Why?")]', " [Calculator(4) -> ]"]


def test_special_marks_take_the_place_of_the_calls_brackets_alone() -> None:
    tokenizer = marked_tokenizer()
    ids = encode_with_calls(SHOWN, tokenizer, REGISTRY)
    assert ids == [
        *tokenizer.encode("It is"),
        *call_ids(ApiCall("Calculator", "1 + 2"), tokenizer, quoted=False, result="3"),
        *tokenizer.encode(" 3 [1], as"),
        *call_ids(ApiCall("QA", "Why?"), tokenizer, quoted=True),
        *tokenizer.encode(" said"),
        *empty_call_ids(ApiCall("Calculator", "4"), tokenizer, quoted=False),
        *tokenizer.encode(" and [Other(1) -> 2]."),
    ]
    assert tokenizer.decode(ids) == SHOWN


@pytest.mark.parametrize("text", [SHOWN, "", "no call"])
def test_marks_of_text_are_encoded_with_the_text_around_them(text: str) -> None:
    tokenizer = small_tokenizer()
    assert encode_with_calls(text, tokenizer, REGISTRY) == tokenizer.encode(text)
