"""Where a sentence ends, and that a completion stops there if its request asks for that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_gateway.sentence import SentenceEnd
from tests.inference_gateway.http_harness import gateway
from tests.inference_gateway.scripted_machine import ChunkTokenizer, run
from tests.inference_gateway.test_decoding import CALL, whole


@pytest.mark.parametrize(
    ("before", "sentence", "rest"),
    [
        ("2 + 2 =", " 4.", " The rest"),
        ("It weighs", " 3.5 kg, or 7.7 pounds.", " Next"),
        ("He met", " Dr. Ito and J. S. Bach on Dec. 5.", " Then"),
        ("by Dr", ". Ito.", " Then"), ("He said", ' "Yes."', " Then"), ("Is it", " so?", " No"),
        ("Wait", "... what is e.g. this!", " No"), ("A list\n", "1. First", "\n2. Second"),
        ("It is", " 1.", " First"), ("Hi", "\n\nThe cat.", "\nThe dog"), ("Hi", " line", "\nline"),
        ("今日は", "金曜日です。", "明日"),
        ("The U.S. has", " 50 states (see Fig. 3).", " They"),
    ],
)  # fmt: skip
def test_a_sentence_ends_where_its_reader_would_say(before: str, sentence: str, rest: str) -> None:
    whole, single = SentenceEnd(before), SentenceEnd(before)
    assert whole.feed(sentence + rest) == sentence
    assert whole.ended
    assert "".join("" if single.ended else single.feed(character) for character in sentence + rest) == sentence
    without = SentenceEnd(before)
    assert without.feed(sentence.rstrip()) + without.flush() == sentence


@given(st.text(alphabet='ab .!\nA1"', max_size=20), st.text(alphabet="a. A\n", max_size=5))
def test_nothing_is_lost_or_changed(text: str, before: str) -> None:
    one = SentenceEnd(before)
    passed = one.feed(text)
    if not one.ended:
        passed += one.flush()
        assert passed == text
    assert text.startswith(passed)


def test_a_completion_stops_behind_its_first_sentence_and_no_call_begins_there() -> None:
    tokenizer, script = whole("a 3.5" + CALL)
    seen, machine = run(tokenizer, script + tokenizer.encode(" b." + CALL), ["408. And"], stop_at="sentence")
    assert seen.text == "a 3.5" + CALL + " 408. And] b."
    assert len(seen.calls) == 1
    assert seen.done[0].reason == "stop"
    assert machine.usage.rolled_back_tokens == 0


def test_tokens_behind_the_sentence_are_not_those_of_the_text() -> None:
    tokenizer = ChunkTokenizer([b"a b", b".", b" ", b"Next"])
    seen, _ = run(tokenizer, tokenizer.script, stop_at="sentence", logprobs=0)
    assert seen.text == "a b."
    assert [token.id for token in seen.tokens] == tokenizer.script[:2]


async def test_a_request_asks_for_it() -> None:
    async with gateway() as served:
        [choice] = (await served.complete("Plain:", stop_at="sentence"))["choices"]
        assert (choice["text"], choice["finish_reason"]) == (" a plain text.", "stop")
        response = await served.http.post("/v1/completions", json={"prompt": "Plain:", "stop_at": "line"})
        assert response.status_code == 422
        assert "stop_at" in response.text
