"""The decoding machine alone: what it shows, calls, drops and counts, for every way a text can be split into tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_gateway.actions import Action, CallRefused, Done, Emit, Keep, Pause
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CompletionRequest, TokenLogprob
from inference_gateway.decoding import DecodingMachine, Phase, StepRule
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import BOTH, gpt2_tokenizer, small_tokenizer
from toolformer.api_call import splice_result

END = 0


@dataclass(frozen=True)
class Form:
    quoted: bool = False
    max_input_tokens: int = 64


TOOLS = {"Calculator": Form(), "QA": Form(quoted=True), "Calendar": Form()}


class ChunkTokenizer:
    """A vocabulary of the 256 bytes (ids 1 to 256) and any chunks a test likes: every BPE there could be."""

    def __init__(self, chunks: Sequence[bytes] = ()) -> None:
        self._bytes = [b"", *(bytes([byte]) for byte in range(256)), *chunks]
        self.script = list(range(257, 257 + len(chunks)))

    @property
    def vocab_size(self) -> int:
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        return [1 + byte for byte in text.encode()]

    def token_bytes(self, token_id: int) -> bytes:
        return self._bytes[token_id]


@dataclass
class Transcript:
    """What came out of a machine that was fed a script."""

    text: str = ""
    tokens: list[TokenLogprob] = field(default_factory=list)
    calls: list[tuple[str, str, str | None, int]] = field(default_factory=list)
    """(tool, input, output or None, offset)"""
    refusals: list[str] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)


def run(
    tokenizer: ChunkTokenizer | ByteLevelTokenizer,
    script: Sequence[int],
    answers: Sequence[str | None] = (),
    *,
    forced: Sequence[int] = (),
    **request: Any,
) -> tuple[Transcript, DecodingMachine]:
    """Feed ``script`` (``forced``: indices of tokens taken as API starts); each call gets the next of ``answers``."""
    wanted = replace(
        CompletionRequest(prompt_ids=(1, 2), tools=tuple(TOOLS), max_tokens=10_000, max_calls=10),
        **request,
    )
    vocabulary = CallVocabulary.of(tokenizer, [END])
    machine = DecodingMachine(wanted, vocabulary, {name: TOOLS[name] for name in wanted.tools})
    seen, left = Transcript(), list(answers)

    def follow(actions: list[Action]) -> None:
        for action in actions:
            assert not seen.done, "nothing may follow the end"
            match action:
                case Emit(text, tokens):
                    assert text or tokens, "no empty deltas"
                    seen.text += text
                    seen.tokens += tokens
                case Pause(call, offset):
                    output = left.pop(0)
                    spliced = splice_result(output, tokenizer, max_tokens=40) if output is not None else None
                    seen.calls.append((call.tool, call.input, spliced.text if spliced else None, offset))
                    follow(machine.splice(spliced) if spliced else machine.give_up())
                case CallRefused(_, _, code, _):
                    seen.refusals.append(code)
                case Done():
                    seen.done.append(action)
                case Keep(tokens, append):
                    assert len(machine.ids) == tokens + len(append)

    for index, token in enumerate(script):
        if machine.done:
            break
        score = -float(token)
        follow(machine.accept(token, forced=index in forced, logprob=score, top=((token, score),)))
    if not machine.done:
        follow(machine.accept(END))
        if not machine.done:  # the first end only closed a call
            follow(machine.accept(END))
    assert len(seen.done) == 1
    return seen, machine


def whole(text: str) -> tuple[ChunkTokenizer, list[int]]:
    tokenizer = ChunkTokenizer()
    return tokenizer, tokenizer.encode(text)


BEFORE, AFTER = "So they hold", " 408 books."
CALL = " [Calculator(24 * 17) ->"


@pytest.mark.parametrize("show", [True, False])
def test_a_call_is_made_and_its_answer_spliced(show: bool) -> None:
    tokenizer, script = whole(BEFORE + CALL)
    after = tokenizer.encode(AFTER)
    seen, machine = run(tokenizer, script + after, ["408"], show_calls=show)
    assert seen.calls == [("Calculator", "24 * 17", "408", len(BEFORE))]
    assert seen.text == BEFORE + (CALL + " 408]" if show else "") + AFTER
    assert bytes(i - 1 for i in machine.ids).decode() == BEFORE + CALL + " 408]" + AFTER
    assert machine.usage.spliced_tokens == len(" 408]")
    assert machine.usage.completion_tokens == len(script) + len(after) + 1


def test_a_failed_call_leaves_no_trace_and_its_place_may_not_start_again() -> None:
    tokenizer, script = whole(BEFORE + CALL)
    seen, machine = run(tokenizer, script, [None])
    assert seen.calls == [("Calculator", "24 * 17", None, len(BEFORE))]
    assert seen.text == BEFORE + " ", "only whole tokens can go, and here the space was one of its own"
    assert bytes(i - 1 for i in machine.ids).decode() == seen.text
    assert machine.usage.rolled_back_tokens == len(CALL) - 1


def test_after_a_rollback_the_opening_is_banned_for_one_token() -> None:
    tokenizer, script = whole(BEFORE + CALL)
    request = CompletionRequest(prompt_ids=(1,), tools=tuple(TOOLS), max_tokens=1000, max_calls=3)
    machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS)
    assert machine.rule().start_top_k == 10
    for token in script:
        machine.accept(token)
    assert machine.phase is Phase.PAUSED
    machine.give_up()
    assert machine.rule().ban_calls
    machine.accept(tokenizer.encode("x")[0])
    assert machine.rule().start_top_k == 10


@st.composite
def split_texts(draw: st.DrawFn) -> list[bytes]:
    """The bytes of a completion with two calls, cut anywhere, also inside characters and marks."""
    prefix = draw(st.text(alphabet="ab \n🙂é(", max_size=6))
    data = (prefix + " x" + CALL + "|" + " y" + ' [QA("Who wrote "Émile"?") ->' + "|" + " z.").encode()
    pieces = []
    for part in data.split(b"|"):
        cuts = sorted(draw(st.lists(st.integers(1, max(1, len(part) - 1)), max_size=12, unique=True)))
        bounds = [0, *cuts, len(part)]
        pieces += [part[a:b] for a, b in itertools.pairwise(bounds) if a < b]
    return pieces


@given(
    split_texts(),
    st.booleans(),
    st.lists(st.sampled_from(["4", None, "Jean-Jacques Rousseau"]), min_size=2, max_size=2),
)
def test_every_split_into_tokens_reads_the_same(pieces: list[bytes], show: bool, answers: list[str | None]) -> None:
    tokenizer = ChunkTokenizer(pieces)
    seen, _ = run(tokenizer, tokenizer.script, answers, show_calls=show)
    plain = ChunkTokenizer()
    text = b"".join(pieces).decode()
    expected, _ = run(plain, plain.encode(text), answers, show_calls=show)
    # Dropping a call drops whole tokens: text that shares the bracket's token goes with it, so compare calls, and
    # text where nothing failed.
    assert [call[:3] for call in seen.calls] == [call[:3] for call in expected.calls]
    if None not in answers:
        assert seen.text == expected.text
        assert seen.calls == expected.calls


def test_text_after_the_arrow_in_one_token_gives_way_to_the_result() -> None:
    tokenizer = ChunkTokenizer([b"x [Calculator(1", b"+1) ->  and", b" so on"])
    seen, machine = run(tokenizer, tokenizer.script, ["2"])
    assert seen.text == "x [Calculator(1+1) -> 2] so on"
    assert b"".join(map(tokenizer.token_bytes, machine.ids)).decode() == seen.text


def test_nothing_of_a_call_is_shown_before_its_result_is_in() -> None:
    tokenizer, script = whole("a" + CALL)
    machine = DecodingMachine(
        CompletionRequest(prompt_ids=(1,), tools=tuple(TOOLS), max_tokens=1000),
        CallVocabulary.of(tokenizer, [END]),
        TOOLS,
    )
    shown = [action.text for token in script for action in machine.accept(token) if isinstance(action, Emit)]
    assert shown == ["a"]


def test_a_result_cannot_open_a_call_or_leave_its_bounds() -> None:
    tokenizer, script = whole("a" + CALL)
    seen, _ = run(tokenizer, [*script, *tokenizer.encode(" b")], ["1] [Calculator(2) -> 3"])
    assert len(seen.calls) == 1
    assert seen.text == "a [Calculator(24 * 17) -> 1) (Calculator(2) => 3] b"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a [Calculator(1+1)] b", "no_result_asked"),
        ("a [Calculator(" + "1+" * 60, "input_too_long"),
        ("a [Calculator(1+1", "unfinished_call"),
    ],
)
def test_a_call_that_asks_for_nothing_is_refused_and_dropped(text: str, code: str) -> None:
    tokenizer, script = whole(text)
    seen, _ = run(tokenizer, script)
    assert seen.refusals == [code]
    assert "[" not in seen.text


def test_the_same_call_never_runs_twice() -> None:
    tokenizer, script = whole("a" + CALL)
    again = tokenizer.encode(" b" + CALL)
    seen, _ = run(tokenizer, script + again, ["408"])
    assert len(seen.calls) == 1
    assert seen.refusals == ["repeated_call"]
    assert seen.text == "a" + CALL + " 408] b "


def test_max_calls_bounds_calls_and_then_bans_them() -> None:
    tokenizer, script = whole("a" + CALL)
    machine = DecodingMachine(
        CompletionRequest(prompt_ids=(1,), tools=tuple(TOOLS), max_tokens=1000, max_calls=1),
        CallVocabulary.of(tokenizer, [END]),
        TOOLS,
    )
    for token in script:
        machine.accept(token)
    spliced = splice_result("408", tokenizer, max_tokens=9)
    assert spliced is not None
    machine.splice(spliced)
    assert machine.rule().ban_calls


@pytest.mark.parametrize("request_fields", [{"tools": ()}, {"api_top_k": 0}, {"max_calls": 0}])
def test_calls_can_be_switched_off(request_fields: dict[str, Any]) -> None:
    """What the model then writes is plain text, brackets and all."""
    text = "see [1] and" + CALL
    tokenizer, script = whole(text)
    seen, machine = run(tokenizer, script, **request_fields)
    assert seen.text == text
    assert not seen.calls
    assert machine.rule().ban_calls or machine.done


@pytest.mark.parametrize("show", [True, False])
def test_a_plain_completion_bans_and_calls_nothing(show: bool) -> None:
    tokenizer, script = whole(BEFORE + CALL + " x] y")
    seen, _ = run(tokenizer, script, plain=True, show_calls=show)
    assert seen.text == BEFORE + CALL + " x] y"
    assert not seen.calls
    request = CompletionRequest((1,), tools=tuple(TOOLS), plain=True)
    assert DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS).rule() == StepRule()


def test_a_plain_completion_tells_every_token_the_last_ones_too() -> None:
    tokenizer, script = whole("a é")
    vocabulary = CallVocabulary.of(tokenizer, [END])
    for tokens, max_tokens in ((script[:-1], 3), ([*script[:-1], END], 10), ([*script, END], 10)):
        machine = DecodingMachine(CompletionRequest((1,), max_tokens=max_tokens, plain=True), vocabulary, {})
        actions = [action for token in tokens for action in machine.accept(token, logprob=-1.0)]
        assert [told.id for action in actions if isinstance(action, Emit) for told in action.tokens] == tokens
        assert isinstance(actions[-1], Done)


@pytest.mark.parametrize("text", ["see [1] and [2", "a [b] c", "[Foo(x) -> y]", "x [[", "[citation needed]", "[ ["])
def test_the_models_own_brackets_that_are_no_calls_stay_text(text: str) -> None:
    tokenizer, script = whole(text)
    assert run(tokenizer, script)[0].text == text


def test_a_forced_bracket_that_becomes_no_call_is_dropped() -> None:
    tokenizer = ChunkTokenizer([b"a", b" [", b"1] b", b" c"])
    seen, machine = run(tokenizer, tokenizer.script, forced=[1])
    assert seen.text == "a c"
    assert machine.usage.rolled_back_tokens == 2


def test_a_call_right_behind_a_bracket_that_is_text() -> None:
    tokenizer, script = whole("see [" + CALL)
    seen, _ = run(tokenizer, script, ["408"])
    assert seen.text == "see [" + CALL + " 408]"


class TestStop:
    @given(st.data())
    def test_stop_strings_cut_the_text_for_every_split(self, data: st.DataObject) -> None:
        text = "one two\n\nthree"
        cuts = sorted(data.draw(st.lists(st.integers(1, len(text) - 1), unique=True)))
        bounds = [0, *cuts, len(text)]
        tokenizer = ChunkTokenizer([text[a:b].encode() for a, b in itertools.pairwise(bounds)])
        seen, _ = run(tokenizer, tokenizer.script, stop=("\n\n", "nothing"))
        assert seen.text == "one two"
        assert seen.done[0].reason == "stop"
        seen, _ = run(tokenizer, tokenizer.script, stop=("\n\n", "nothing"), include_stop=True)
        assert seen.text == "one two\n\n"
        assert seen.done[0].reason == "stop"

    def test_a_stop_string_is_not_looked_for_inside_a_call(self) -> None:
        tokenizer, script = whole("a" + CALL)
        seen, _ = run(tokenizer, script + tokenizer.encode(" b. c"), ["408"], stop=("17", "."))
        assert seen.text == "a" + CALL + " 408] b"

    def test_a_hidden_call_does_not_split_a_stop_string(self) -> None:
        tokenizer, script = whole("a E" + CALL)
        seen, _ = run(tokenizer, script + tokenizer.encode("ND b"), ["408"], stop=("END",), show_calls=False)
        assert seen.text == "a "
        seen, _ = run(
            tokenizer,
            script + tokenizer.encode("ND b"),
            ["408"],
            stop=("END",),
            show_calls=False,
            include_stop=True,
        )
        assert seen.text == "a END"

    def test_text_held_for_a_stop_string_comes_at_the_end(self) -> None:
        tokenizer, script = whole("one\n")
        seen, _ = run(tokenizer, script, stop=("\n\n",))
        assert seen.text == "one\n"


class TestLimits:
    @pytest.mark.parametrize("limit", [1, 5, 12, 13, 20, 36, 37, 40])
    def test_max_tokens_counts_what_the_model_makes(self, limit: int) -> None:
        tokenizer, script = whole(BEFORE + CALL)
        seen, machine = run(tokenizer, script + tokenizer.encode(AFTER), ["408"], max_tokens=limit)
        assert machine.usage.completion_tokens == limit
        assert seen.done[0].reason == "length"
        assert (BEFORE + CALL + " 408]" + AFTER).startswith(seen.text)
        assert ("->" in seen.text) == (limit >= len(BEFORE + CALL))

    def test_no_token_is_taken_where_none_is_wanted(self) -> None:
        tokenizer, script = whole(BEFORE)
        seen, machine = run(tokenizer, script, max_tokens=0)
        assert (seen.text, seen.done[0].reason, machine.usage.completion_tokens) == ("", "length", 0)

    def test_a_limit_reached_inside_a_call_drops_the_call(self) -> None:
        tokenizer, script = whole(BEFORE + CALL)
        seen, _ = run(tokenizer, script, max_tokens=len(BEFORE) + 10)
        assert seen.text == BEFORE + " "

    def test_finishing_during_a_call_drops_it(self) -> None:
        tokenizer, script = whole(BEFORE + CALL)
        machine = DecodingMachine(
            CompletionRequest(prompt_ids=(1,), tools=tuple(TOOLS), max_tokens=1000),
            CallVocabulary.of(tokenizer, [END]),
            TOOLS,
        )
        for token in script:
            machine.accept(token)
        actions = machine.finish("timeout", "too slow")
        assert [a.text for a in actions if isinstance(a, Emit)] == [" "]
        assert actions[-1] == Done("timeout", machine.usage, "too slow")
        assert machine.finish("error") == []

    def test_a_machine_that_waits_takes_no_tokens_and_one_that_does_not_takes_no_result(self) -> None:
        tokenizer, script = whole("a" + CALL)
        machine = DecodingMachine(
            CompletionRequest(prompt_ids=(1,), tools=tuple(TOOLS), max_tokens=1000),
            CallVocabulary.of(tokenizer, [END]),
            TOOLS,
        )
        with pytest.raises(RuntimeError, match="was text"):
            machine.give_up()
        for token in script:
            machine.accept(token)
        with pytest.raises(RuntimeError, match="was paused"):
            machine.accept(5)


@pytest.mark.parametrize("make", BOTH)
def test_real_vocabularies_start_calls_with_their_own_tokens(make: object) -> None:
    tokenizer = make()  # type: ignore[operator]
    vocabulary = CallVocabulary.of(tokenizer, [END])
    assert [tokenizer.token_bytes(i) for i in vocabulary.start_ids] == [b" [", b"["]
    assert set(vocabulary.start_ids) <= set(vocabulary.opening_ids)
    assert all(b"[" in tokenizer.token_bytes(i) for i in vocabulary.opening_ids)


@pytest.mark.shared_data
def test_gpt_j_start_ids() -> None:
    assert CallVocabulary.of(gpt2_tokenizer(), [50256]).start_ids == (685, 58)


@given(st.text(max_size=30))
def test_any_text_without_brackets_comes_through_the_small_vocabulary(text: str) -> None:
    tokenizer = small_tokenizer()
    text = text.replace("[", "")
    assert run(tokenizer, tokenizer.encode(text))[0].text == text
