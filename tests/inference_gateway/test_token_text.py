"""The tokens sent with the text are those that the text is made of, whatever was held, taken back, hidden or cut."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inference_gateway.core import TokenLogprob
from tests.inference_gateway.scripted_machine import END, ChunkTokenizer, run
from tests.inference_gateway.test_decoding import AFTER, BEFORE, CALL, split_texts, whole

_CALL = re.compile(rb" \[(?:Calculator|QA)\(.*?\) -> [^\]]*\]")


def tokens_of_shown(tokenizer: ChunkTokenizer, ids: list[int], shown: str, show_calls: bool) -> list[tuple[int, int]]:
    """The oracle: each token of ``ids`` that has a byte in ``shown``, and the character at which it starts, found by
    laying the visible bytes of the whole beside the shown ones."""
    pieces = [tokenizer.token_bytes(token) for token in ids]
    whole_bytes = b"".join(pieces)
    hidden = set[int]()
    if not show_calls:
        hidden = {at for match in _CALL.finditer(whole_bytes) for at in range(*match.span())}
    visible = [at for at in range(len(whole_bytes)) if at not in hidden]
    place = {at: order for order, at in enumerate(visible[: len(shown.encode())])}
    found, start = [], 0
    for token, piece in zip(ids, pieces, strict=True):
        of_token = [place[at] for at in range(start, start + len(piece)) if at in place]
        if of_token:
            starts_in = shown.encode()[: of_token[0] + 1].decode(errors="ignore")
            inside = starts_in.encode() != shown.encode()[: of_token[0] + 1]
            found.append((token, len(starts_in) if inside else len(starts_in) - 1))
        start += len(piece)
    return found


@given(
    pieces=split_texts(),
    show=st.booleans(),
    answers=st.lists(st.sampled_from(["4", None, "Zoë 🙂"]), min_size=2, max_size=2),
    stop=st.sampled_from([(), (" y",), ("x ", " z"), (" x", "🙂é"), ("b\n", "\n\n")]),
    limit=st.integers(1, 80),
)
def test_every_token_of_the_text_comes_once_and_no_other(
    pieces: list[bytes], show: bool, answers: list[str | None], stop: tuple[str, ...], limit: int
) -> None:
    tokenizer = ChunkTokenizer(pieces)
    seen, machine = run(tokenizer, tokenizer.script, answers, show_calls=show, stop=stop, max_tokens=limit)
    assume("\ufffd" not in seen.text)  # a call that was taken back took half a character with it
    reported = [(token.id, token.offset) for token in seen.tokens]
    assert reported == tokens_of_shown(tokenizer, machine.ids, seen.text, show)


def test_spliced_tokens_have_no_log_probability_and_made_ones_keep_theirs() -> None:
    tokenizer, script = whole(BEFORE + CALL)
    seen, machine = run(tokenizer, script + tokenizer.encode(AFTER), ["408"], logprobs=1)
    assert [token.id for token in seen.tokens] == [*machine.ids, END]
    spliced = range(len(script), len(script) + len(" 408]"))
    for index, token in enumerate(seen.tokens[:-1]):
        assert token.logprob == (None if index in spliced else -float(token.id))
        assert token.top == (() if index in spliced else ((token.id, -float(token.id)),))


def test_a_token_with_text_before_a_hidden_call_is_reported_where_its_text_ends() -> None:
    tokenizer = ChunkTokenizer([b"so x [Calc", b"ulator(1+1) ->", b" y"])
    seen, _ = run(tokenizer, tokenizer.script, ["2"], show_calls=False)
    assert seen.text == "so x y"
    assert seen.tokens == [
        TokenLogprob(tokenizer.script[0], -float(tokenizer.script[0]), ((257, -257.0),), 0),
        TokenLogprob(tokenizer.script[2], -float(tokenizer.script[2]), ((259, -259.0),), 4),
    ]


@pytest.mark.parametrize("data", [b"\xe2\x82", b"\xf0\x9f\x99"])
def test_bytes_that_form_no_character(data: bytes) -> None:
    """Half a character is shown as U+FFFD as soon as it is known to stay half, and not at all at the end."""
    tokenizer = ChunkTokenizer([b"a" + data, b"b", b"c", data])
    seen, _ = run(tokenizer, tokenizer.script)
    assert seen.text == "a\ufffdbc"
    assert [(token.id, token.offset) for token in seen.tokens] == [(257, 0), (258, 2), (259, 3)]


def test_half_a_character_behind_the_arrow_gives_way_to_the_result() -> None:
    tokenizer = ChunkTokenizer([b" [Calculator(1+1)", b" ->\xe2\x82", b" y"])
    seen, machine = run(tokenizer, tokenizer.script, ["2"])
    assert seen.text == " [Calculator(1+1) -> 2] y" == b"".join(map(tokenizer.token_bytes, machine.ids)).decode()
