"""The same completions over both forms of a call's marks: the paper's text, and special tokens that read as it."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_gateway.backends.model_server import ServerError, check_vocabulary
from inference_gateway.backends.openai_wire import ChunkReader
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CompletionRequest
from inference_gateway.decoding import DecodingMachine
from tests.inference_gateway.scripted_machine import END, TOOLS, ChunkTokenizer, Transcript, run
from tests.support.vocabularies import marked_tokenizer
from toolformer.api_call import ARROW, CLOSE, OPEN

MARKS = (OPEN, ARROW, CLOSE)
WORDS = ["Calculator(1 + 2)", "Calculator(3)", 'QA("Who?")', "Calculator(", "So", " it is", " 3", ".", "\n", " é", " x"]
TEXTS = [word.encode() for word in WORDS]


def complete(pieces: Sequence[str], answers: Sequence[str | None], *, special: bool, **request: Any) -> Transcript:
    """What comes of a completion of ``pieces``, of which `MARKS` are written as the form has them."""
    tokenizer = ChunkTokenizer([*TEXTS, *(mark.encode() for mark in MARKS)], special=special)
    marks = tokenizer.marks
    written = dict(zip(WORDS, tokenizer.script, strict=False)) | dict(zip(MARKS, tokenizer.script[-3:], strict=True))
    if special:
        written |= {OPEN: marks.opening[0], ARROW: marks.arrow[0], CLOSE: marks.closing[0]}
    seen, _ = run(tokenizer, [written[piece] for piece in pieces], answers, **request)
    return seen


CALLS = [[OPEN, word, mark] for word in WORDS[:3] for mark in (ARROW, CLOSE)]
PLAIN = [[word] for word in WORDS[4:]]


@given(
    parts=st.lists(st.sampled_from([*CALLS, *PLAIN]), max_size=8),
    answers=st.lists(st.sampled_from(["3", "Zoë 🙂", "[x] -> y", None]), min_size=8, max_size=8),
    show=st.booleans(),
    hidden=st.sampled_from([0, 1]),
    stop=st.sampled_from([(), (" 3",), ("it", ".")]),
)
def test_both_forms_give_the_same_text_calls_and_offsets(
    parts: list[list[str]], answers: list[str | None], show: bool, hidden: int, stop: tuple[str, ...]
) -> None:
    pieces = [piece for part in parts for piece in part]
    how: dict[str, Any] = {"show_calls": show, "hidden": hidden, "stop": stop, "max_calls": 8}
    text, special = (complete(pieces, answers, special=form, **how) for form in (False, True))
    assert (special.text, special.calls, special.refusals) == (text.text, text.calls, text.refusals)
    made = [[token.offset for token in seen.tokens if token.logprob is not None] for seen in (text, special)]
    assert made[0] == made[1]


def test_a_call_is_shown_as_the_paper_writes_it_with_a_token_for_each_mark() -> None:
    seen = complete(["So", OPEN, WORDS[0], ARROW, " 3", "."], ["3"], special=True)
    assert seen.text == "So [Calculator(1 + 2) -> 3] 3."
    offsets = [token.offset for token in seen.tokens]
    assert offsets == [0, 2, 4, 21, 25, 26, 27, 29]
    assert seen.calls == [("Calculator", "1 + 2", "3", 2)]


def test_brackets_of_text_are_text() -> None:
    """Even a whole call: only the special tokens mark one."""
    tokenizer = ChunkTokenizer([b"So [Calculator(1) -> 1]", b" [", b"Calculator(2) ->", b" ]"], special=True)
    seen, machine = run(tokenizer, tokenizer.script)
    assert (seen.text, seen.calls) == ("So [Calculator(1) -> 1] [Calculator(2) -> ]", [])
    assert machine.rule().banned == frozenset()


@pytest.mark.parametrize(
    ("request_", "banned"),
    [
        ({}, False),
        ({"api_top_k": 0}, True),
        ({"max_calls": 0}, True),
        ({"tools": ()}, True),
        ({"max_tokens": 1}, True),
        ({"plain": True}, False),
    ],
)
def test_the_opening_is_chosen_only_where_a_call_can_be_made(request_: dict[str, Any], banned: bool) -> None:
    tokenizer = ChunkTokenizer([b" ["], special=True)
    vocabulary = CallVocabulary.of(tokenizer, [END])
    asked = CompletionRequest(prompt_ids=(1,), **{"tools": tuple(TOOLS)} | request_)
    rule = DecodingMachine(asked, vocabulary, TOOLS).rule()
    assert vocabulary.start_ids == tokenizer.marks.opening
    assert rule.forbids(tokenizer.marks.opening[0]) == banned
    assert rule.forbids(tokenizer.marks.closing[0]) != bool(asked.plain), "nothing is open that it could close"
    assert not any(rule.forbids(token) for token in (ord("[") + 1, ord("]") + 1, *tokenizer.script)), "text"


def test_no_opening_comes_behind_the_last_call() -> None:
    tokenizer = ChunkTokenizer([b"Calculator(1)", b" so"], special=True)
    (opening,), (arrow,) = tokenizer.marks.opening, tokenizer.marks.arrow
    machine = DecodingMachine(
        CompletionRequest(prompt_ids=(1,), tools=tuple(TOOLS), max_calls=1, max_tokens=99),
        CallVocabulary.of(tokenizer, [END]),
        TOOLS,
    )
    machine.accept(opening)
    assert machine.rule().allowed, "sampled, not forced: a call all the same"
    machine.accept(tokenizer.script[0])
    machine.accept(arrow)
    machine.give_up()
    assert opening in machine.rule().banned
    machine.accept(tokenizer.script[1])
    assert opening in machine.rule().banned


def test_a_servers_name_of_a_mark_is_its_token_and_its_text_is_not() -> None:
    tokenizer = marked_tokenizer()
    logprobs = {"tokens": ["<TOOLFORMER_API_START>", " [", "]"], "token_logprobs": [-1.0, -1.0, -1.0]}
    chunk = ChunkReader(tokenizer).read(json.dumps({"choices": [{"text": " []", "logprobs": logprobs}]}))
    ids = [step.id for step in chunk.steps]
    assert ids == [*tokenizer.marks.opening, *tokenizer.encode(" ["), *tokenizer.encode("]")]


@pytest.mark.parametrize("shown", [" [A", "A"])
def test_a_server_may_show_a_marks_text_or_leave_it_out(shown: str) -> None:
    tokenizer = marked_tokenizer()
    ids = [*tokenizer.marks.opening, *tokenizer.encode("A")]
    check_vocabulary("http://server", tokenizer, ids, shown)
    with pytest.raises(ServerError, match="another vocabulary"):
        check_vocabulary("http://server", tokenizer, ids, "B")
