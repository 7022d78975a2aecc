"""The decoding machine alone: what it shows, calls, drops and counts, for every way a text can be split into tokens."""

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_gateway.actions import Keep
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CallFinished, CompletionRequest, Finished, SamplingParams, TextDelta
from inference_gateway.decoding import DecodingMachine, Phase, StepRule
from language_model.tokenizer import ByteLevelTokenizer
from tests.inference_gateway.scripted_machine import END, TOOLS, ChunkTokenizer, run
from tests.support.vocabularies import VOCABULARIES, gpt2_tokenizer, sentencepiece_tokenizer, small_tokenizer
from toolformer.api_call import splice_result


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
    assert machine.rule().start_top_k == 0
    assert machine.rule().forbids(tokenizer.encode("[")[0])
    machine.accept(tokenizer.encode("x")[0])
    assert machine.rule().start_top_k == 10
    assert not machine.rule().forbids(tokenizer.encode("[")[0])


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
    shown = [action.text for token in script for action in machine.accept(token) if isinstance(action, TextDelta)]
    assert shown == ["a"]


@pytest.mark.parametrize(
    "closed", ["[Calculator(1+1)] so on", "x [Calculator(1+1)]] so on", 'x [QA("Who, 1+1?")] so on']
)
def test_a_call_that_is_closed_without_an_arrow_is_made_where_demonstrations_are_hidden(closed: str) -> None:
    for at in range(1, len(closed)):  # the bracket alone in its token, and together with what is around it
        pieces = [closed[:at].encode(), closed[at:].encode()]
        tokenizer = ChunkTokenizer(pieces)
        seen, machine = run(tokenizer, tokenizer.script, ["2"], hidden=1)
        assert seen.text.startswith(closed.partition("]")[0] + " -> 2]")
        assert b"".join(map(tokenizer.token_bytes, machine.ids)).decode() == seen.text
        assert [output for _, _, output, _ in seen.calls] == ["2"]


def test_a_result_cannot_open_a_call_or_leave_its_bounds() -> None:
    tokenizer, script = whole("a" + CALL)
    seen, _ = run(tokenizer, [*script, *tokenizer.encode(" b")], ["1] [Calculator(2) -> 3"])
    assert len(seen.calls) == 1
    assert seen.text == "a [Calculator(24 * 17) -> 1) (Calculator(2) => 3] b"


@pytest.mark.parametrize(
    ("text", "code", "written"),
    [
        ("a [Calculator(1+1)] b", "no_result_asked", "1+1"),
        ("a [Calculator(" + "1+" * 32 + "1", "input_too_long", "1+" * 32 + "1"),
        ("a [Calculator(1+1", "unfinished_call", "1+1"),
        ('a [QA("Who', "unfinished_call", "Who"),
        ("a [Calculator(1+\nb", "malformed_call", "1+\n"),
        ("a [QA(Who is [Calculator(", "malformed_call", "Who is [Calculator("),
    ],
)
def test_a_call_that_asks_for_nothing_is_refused_and_dropped(text: str, code: str, written: str) -> None:
    tokenizer, script = whole(text)
    seen, machine = run(tokenizer, script)
    assert seen.refusals == [(code, "QA" if "QA" in text else "Calculator", written)]
    assert "[" not in seen.text
    assert machine.usage.completion_tokens == len(machine.ids) + 1


def test_bytes_that_are_no_utf_8_never_reach_a_tool() -> None:
    tokenizer = ChunkTokenizer([b"a [QA(", b"b\xc3", b'c") ->', b" d"])
    seen, _ = run(tokenizer, tokenizer.script, ["an answer"])
    assert (seen.calls, seen.text) == ([], " d")
    assert [code for code, *_ in seen.refusals] == ["malformed_call"]


def test_the_same_call_never_runs_twice() -> None:
    tokenizer, script = whole("a" + CALL)
    again = tokenizer.encode(" b" + CALL)
    seen, _ = run(tokenizer, script + again, ["408"])
    assert len(seen.calls) == 1
    assert seen.refusals == [("repeated_call", "Calculator", "24 * 17")]
    assert seen.text == "a" + CALL + " 408] b "


def test_after_the_last_call_a_bracket_is_text_until_the_model_begins_another_call() -> None:
    tokenizer = ChunkTokenizer([b"a", b" [", b"Calculator(1) ->", b"1", b"]", b" b", b"QA", b" c"])
    a, opening, call, one, closing, b, name, c = tokenizer.script
    request = CompletionRequest(prompt_ids=(1,), tools=tuple(TOOLS), max_tokens=1000, max_calls=1)
    machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS)
    seen = ""

    def take(*tokens: int) -> None:
        nonlocal seen
        for token in tokens:
            assert not machine.rule().forbids(token)
            seen += "".join(action.text for action in machine.accept(token) if isinstance(action, TextDelta))

    take(a, opening, call)
    spliced = splice_result("2", tokenizer, max_tokens=9)
    assert spliced is not None
    machine.splice(spliced)
    assert machine.rule() == StepRule(banned=CallVocabulary.of(tokenizer, [END]).closers)
    take(b, opening, one, closing)  # a bracket that is no call
    take(b, opening, name)  # one that goes on to be a call
    assert machine.usage.rolled_back_tokens == 2
    assert machine.rule().forbids(opening)
    assert machine.rule().forbids(1 + ord("["))
    take(c)
    assert machine.rule().forbids(opening)
    take(1 + ord("["), c)
    machine.finish("length")
    assert seen == "a b [1] b c[ c"


@pytest.mark.parametrize("request_fields", [{"tools": ()}, {"api_top_k": 0}, {"max_calls": 0}])
def test_calls_can_be_switched_off(request_fields: dict[str, Any]) -> None:
    """The API start is banned; what the model then writes is plain text, brackets and all."""
    text = "see [1] and" + CALL
    tokenizer, script = whole(text)
    seen, _ = run(tokenizer, script, **request_fields)
    assert seen.text == text
    assert not seen.calls
    chunks = ChunkTokenizer([b" [", b"[", b"\n[", b"1", b"]", b"])", b"[]"])
    start, bare, at_line, one, closing, closing_two, empty = chunks.script
    request = replace(CompletionRequest((1,), tools=tuple(TOOLS), max_tokens=99), **request_fields)
    machine = DecodingMachine(request, CallVocabulary.of(chunks, [END]), TOOLS)
    forbidden = {token for token in chunks.script if machine.rule().forbids(token)}
    assert forbidden == {start, closing, closing_two}, "a ']' would be a banned call's"
    machine.accept(bare)
    assert {token for token in chunks.script if machine.rule().forbids(token)} == {start}
    machine.accept(one)
    machine.accept(closing_two)
    assert machine.rule().forbids(closing)
    assert not machine.rule().forbids(at_line)
    assert not machine.rule().forbids(empty)


def test_calls_end_where_the_next_would_cost_too_much() -> None:
    text = BEFORE + CALL + ' [QA("Who?") -> b'
    tokenizer, script = whole(text)
    seen, _ = run(tokenizer, script, ["408", "Emma"], max_cost=6)
    assert [tool for tool, *_ in seen.calls] == ["Calculator", "QA"]
    for max_cost in (1, 5.9):
        seen, machine = run(tokenizer, script, ["408"], max_cost=max_cost)
        assert [tool for tool, *_ in seen.calls] == ["Calculator"]
        assert machine.usage.rolled_back_tokens > 0
    seen, _ = run(tokenizer, script, max_cost=0.5)
    assert (seen.calls, seen.text) == ([], text)


def test_a_tool_that_costs_too_much_is_not_among_the_names() -> None:
    tokenizer = ChunkTokenizer()
    vocabulary = CallVocabulary.of(tokenizer, [END])
    for max_cost, first in ((5, "CQ"), (4.9, "C")):
        machine = DecodingMachine(CompletionRequest((1,), tools=tuple(TOOLS), max_cost=max_cost), vocabulary, TOOLS)
        machine.accept(tokenizer.encode("[")[0], forced=True)
        assert machine.rule().allowed == set(tokenizer.encode(first))


def test_a_bracket_that_the_prompt_opened_may_be_closed() -> None:
    tokenizer = ChunkTokenizer()
    vocabulary, [closing] = CallVocabulary.of(tokenizer, [END]), tokenizer.encode("]")
    for prompt, may_close in (("x = [1, 2", True), ("x = [1, 2]", False), ("x] = [", True), ("x", False)):
        machine = DecodingMachine(CompletionRequest(tuple(tokenizer.encode(prompt))), vocabulary, {})
        assert machine.rule().forbids(closing) is not may_close


class TestNames:
    """Inside a call that was opened only tokens may follow that lead to an offered tool's name."""

    @given(
        st.sets(st.sampled_from(["Calculator", "Calendar", "QA", "Q", "QA2"]), min_size=1),
        st.lists(
            st.binary(min_size=1, max_size=4) | st.sampled_from([b"Cal", b"cul", b"QA(", b"A(", b"(1", b"Q", b"2("])
        ),
        st.data(),
    )
    def test_the_mask_is_its_definition(self, names: set[str], chunks: list[bytes], data: st.DataObject) -> None:
        tokenizer = ChunkTokenizer(chunks)
        heads = [f"{name}(" for name in names]
        head = data.draw(st.sampled_from(heads))
        written = head[: data.draw(st.integers(0, len(head) - 1))]
        found = CallVocabulary.of(tokenizer, [END]).names.following(frozenset(names), written)
        texts = {token: written.encode() + tokenizer.token_bytes(token) for token in range(1, tokenizer.vocab_size)}
        assert found == {
            token
            for token, text in texts.items()
            if any(text.startswith(head.encode()) or head.encode().startswith(text) for head in heads)
        }

    def test_only_offered_names_and_their_parenthesis_may_follow(self) -> None:
        tokenizer = ChunkTokenizer([b" [", b"Calc", b"ulator(2", b"QA", b"QA(", b"Calendar", b"(", b" ", b"1"])
        opening, calc, rest, qa, qa_open, calendar, parenthesis, space, one = tokenizer.script
        request = CompletionRequest((1,), tools=("QA", "Calculator"), max_tokens=99)
        machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS)

        def allowed() -> set[int]:
            return {token for token in tokenizer.script if not machine.rule().forbids(token)}

        machine.accept(opening, forced=True)
        assert allowed() == {calc, qa, qa_open}
        machine.accept(calc)
        assert allowed() == {rest}
        machine.accept(rest)
        assert machine.rule() == StepRule(), "the input is the model's"
        assert calendar not in allowed() or parenthesis in allowed()
        assert {space, one} <= allowed()

    @pytest.mark.parametrize("name", ["Calendar", "Nothing"])
    def test_a_server_without_biases_has_its_call_taken_back(self, name: str) -> None:
        tokenizer = ChunkTokenizer([b"a", b" [", name.encode(), b"(", b" b"])
        seen, machine = run(tokenizer, tokenizer.script, forced=[1], tools=("QA",))
        assert "[" not in seen.text
        assert seen.text.endswith(" b")
        assert machine.usage.completion_tokens == len(machine.ids) + 1

    def test_a_bracket_of_the_models_own_is_no_call_of_a_tool_that_is_not_offered(self) -> None:
        tokenizer, script = whole("a [Calendar( b")
        request = CompletionRequest((1,), tools=("QA",), max_tokens=99)
        machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS)
        actions = [action for token in script for action in machine.accept(token)] + machine.finish("length")
        assert "".join(action.text for action in actions if isinstance(action, TextDelta)) == "a  b"


@pytest.mark.parametrize("show", [True, False])
def test_a_plain_completion_bans_and_calls_nothing(show: bool) -> None:
    tokenizer, script = whole(BEFORE + CALL + " x] y")
    seen, _ = run(tokenizer, script, plain=True, show_calls=show)
    assert seen.text == BEFORE + CALL + " x] y"
    assert not seen.calls
    request = CompletionRequest((1,), tools=tuple(TOOLS), plain=True)
    assert DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS).rule() == StepRule()


def test_a_plain_completion_emits_every_token_the_last_ones_too() -> None:
    tokenizer, script = whole("a é")
    vocabulary = CallVocabulary.of(tokenizer, [END])
    for tokens, max_tokens in ((script[:-1], 3), ([*script[:-1], END], 10), ([*script, END], 10)):
        machine = DecodingMachine(CompletionRequest((1,), max_tokens=max_tokens, plain=True), vocabulary, {})
        actions = [action for token in tokens for action in machine.accept(token, logprob=-1.0)]
        assert [one.id for action in actions if isinstance(action, TextDelta) for one in action.tokens] == tokens
        assert isinstance(actions[-1], Finished)


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


@pytest.mark.parametrize(
    ("chunks", "text", "forced"),
    [
        (["a", " b", " c"], "a b", ()),
        (["a", " [", "b", "c"], "a [", ()),
        (["a[", "Q", "c"], "a[Q", ()),
        (["a", " [", "c"], "a [", (1,)),
        (['Say "', "\u00e9x", "c"], 'Say "\u00e9x', ()),
    ],
)
def test_a_stop_token_can_be_kept(chunks: list[str], text: str, forced: tuple[int, ...]) -> None:
    tokenizer = ChunkTokenizer([chunk.encode() for chunk in chunks])
    sampling = SamplingParams(stop_token_ids=(tokenizer.script[1],))
    seen, machine = run(tokenizer, tokenizer.script[:2], forced=forced, sampling=sampling, include_stop=True)
    assert (seen.text, machine.ids) == (text, tokenizer.script[:2])
    assert [(done.reason, done.usage.completion_tokens) for done in seen.done] == [("stop", 2)]


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
            tokenizer, script + tokenizer.encode("ND b"), ["408"], stop=("END",), show_calls=False, include_stop=True
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
        seen, machine = run(tokenizer, script + tokenizer.encode(AFTER + "x" * 40), ["408"], max_tokens=limit)
        usage = machine.usage
        assert usage.completion_tokens == limit == len(machine.ids) - usage.spliced_tokens
        assert seen.done[0].reason == "length"
        assert ("->" in seen.text) == bool(seen.calls) == (limit >= len(BEFORE + CALL))
        if seen.calls:
            assert (BEFORE + CALL + " 408]" + AFTER).startswith(seen.text)
        else:
            assert len(seen.text) == limit
        begun, named = len(BEFORE + " "), len(BEFORE + " [Calculator(")
        assert usage.rolled_back_tokens == (limit - begun if begun < limit < len(script) else 0)
        assert [code for code, *_ in seen.refusals] == ["unfinished_call"] * (named <= limit < len(script))

    @given(st.integers(1, 30), st.randoms(use_true_random=False))
    def test_however_often_calls_are_taken_back_as_many_tokens_come_as_were_asked_for(
        self, limit: int, rng: random.Random
    ) -> None:
        """The model would write calls that come to nothing for ever."""
        tokenizer = ChunkTokenizer([b"a", b" [", b"[", b"Calculator", b"(", b"1", b"]", b") ->", b"\n"])
        request = CompletionRequest((1,), tools=tuple(TOOLS), max_tokens=limit, max_calls=3)
        machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS)
        made = 0
        while not machine.done:
            if machine.phase is Phase.PAUSED:
                machine.give_up()
                continue
            rule = machine.rule()
            forced = rule.start_top_k > 0 and rng.random() < 0.5
            tokens = [token for token in tokenizer.script if not rule.forbids(token)] or sorted(rule.allowed)
            machine.accept(tokenizer.script[1] if forced else rng.choice(tokens), forced=forced)
            made += 1
        usage = machine.usage
        assert usage.completion_tokens == limit == len(machine.ids)
        assert made == usage.completion_tokens + usage.rolled_back_tokens <= 2 * limit

    def test_a_call_whose_name_is_not_known_yet_is_reported_without_one(self) -> None:
        tokenizer = ChunkTokenizer([b"a", b" [", b"Cal", b" b", b" c"])
        a, opening, name, b, c = tokenizer.script
        seen, machine = run(tokenizer, [a, opening, name, b, c], forced=[1], max_tokens=3)
        assert seen.refusals == [("unfinished_call", "", "")]
        assert seen.text == "a b c"
        assert (machine.usage.completion_tokens, machine.usage.rolled_back_tokens) == (3, 2)

    def test_the_models_length_reached_inside_a_call_takes_it_back(self) -> None:
        tokenizer, script = whole("a" + CALL)
        request = CompletionRequest((1,), tools=tuple(TOOLS), max_tokens=1000)
        machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS)
        for token in script[:-1]:
            machine.accept(token)
        [refused, kept] = machine.run_out()
        assert isinstance(refused, CallFinished)
        assert (refused.record.tool, refused.record.input) == ("Calculator", "24 * 17) -")
        assert str(refused.record.error).startswith("unfinished_call: ")
        assert kept == Keep(2)
        [*_, done] = machine.run_out()
        assert isinstance(done, Finished)
        assert done.reason == "length"

    @pytest.mark.parametrize("token", [END, 1 + 0xC3])
    def test_the_last_token_is_reported_with_log_probabilities_although_it_has_no_text(self, token: int) -> None:
        """lm-evaluation-harness asks for one token and drops it."""
        vocabulary = CallVocabulary.of(ChunkTokenizer(), [END])
        machine = DecodingMachine(CompletionRequest((1,), max_tokens=1, logprobs=1), vocabulary, {})
        actions = machine.accept(token, logprob=-1.0)
        assert [one.id for action in actions if isinstance(action, TextDelta) for one in action.tokens] == [token]

    def test_no_token_is_taken_where_none_is_wanted(self) -> None:
        tokenizer, script = whole(BEFORE)
        seen, machine = run(tokenizer, script, max_tokens=0)
        assert (seen.text, seen.done[0].reason, machine.usage.completion_tokens) == ("", "length", 0)

    def test_a_limit_reached_inside_a_call_drops_the_call(self) -> None:
        tokenizer, script = whole(BEFORE + CALL)
        seen, machine = run(tokenizer, [*script[: len(BEFORE) + 10], *tokenizer.encode("x" * 20)], max_tokens=22)
        assert seen.text == BEFORE + " " + "x" * 9
        assert machine.usage.completion_tokens == 22

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
        assert [a.text for a in actions if isinstance(a, TextDelta)] == [" "]
        assert actions[-1] == Finished("timeout", machine.usage, "too slow")
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


@pytest.mark.parametrize("make", VOCABULARIES)
def test_real_vocabularies_start_calls_with_their_own_tokens(make: object) -> None:
    tokenizer = make()  # type: ignore[operator]
    vocabulary = CallVocabulary.of(tokenizer, [END])
    assert [tokenizer.token_bytes(i) for i in vocabulary.start_ids] == [b" ["]
    assert set(vocabulary.start_ids) <= vocabulary.starts <= vocabulary.openings
    assert all(b"[" in tokenizer.token_bytes(i) for i in vocabulary.openings)
    assert all(b" [" in tokenizer.token_bytes(i) for i in vocabulary.starts)
    assert all(b"]" in tokenizer.token_bytes(i) for i in vocabulary.closers)


@pytest.mark.shared_data
def test_gpt_j_start_ids() -> None:
    assert CallVocabulary.of(gpt2_tokenizer(), [50256]).start_ids == (685,)


WITHOUT_DATA = [small_tokenizer, sentencepiece_tokenizer, partial(sentencepiece_tokenizer, "unigram")]


@given(st.text(max_size=30), st.sampled_from(WITHOUT_DATA))
def test_any_text_without_brackets_comes_through_a_vocabulary(
    text: str, make: Callable[[], ByteLevelTokenizer]
) -> None:
    tokenizer = make()
    text = text.replace("[", "")
    assert run(tokenizer, tokenizer.encode(text))[0].text == text


@pytest.mark.parametrize("make", WITHOUT_DATA, ids=["small", "bpe", "unigram"])
@pytest.mark.parametrize("before", ["So they hold", "日本語 🙂", ""])
def test_a_call_is_made_in_a_vocabulary(make: Callable[[], ByteLevelTokenizer], before: str) -> None:
    """In SentencePiece's unigram ` ->` is three tokens, and half of the characters are several."""
    tokenizer = make()
    script = [*tokenizer.encode(before + CALL), *tokenizer.encode(AFTER)]
    seen, machine = run(tokenizer, script, ["408 é 漢"])
    assert seen.calls == [("Calculator", "24 * 17", "408 é 漢", len(before))]
    assert seen.text == before + CALL + " 408 é 漢]" + AFTER
    assert machine.ids == [
        *tokenizer.encode(before + CALL), *tokenizer.encode(" 408 é 漢"), *tokenizer.encode("]"),
        *tokenizer.encode(AFTER),
    ]  # fmt: skip
    failed, machine = run(tokenizer, tokenizer.encode(before + CALL), [None])
    assert failed.text.rstrip(" ") == before


@pytest.mark.parametrize(
    ("text", "fields", "shown"),
    [
        ("It is. " + "no, no, " * 8, {}, "It is. no, no, no, no,"),
        ("The answer is " * 9, {}, "The answer is " * 4),
        ("x" * 20, {}, "x" * 12),
        ("|--" * 20, {}, "|--" * 20),
        (" " * 20 + "a", {}, " " * 20 + "a"),
        ("ha ha ha ha!", {}, "ha ha ha ha!"),
        ("The answer is " * 9, {"max_repeats": 0}, "The answer is " * 9),
        ("The answer is " * 9, {"plain": True}, "The answer is " * 9),
        ("The answer is " * 9, {"sampling": SamplingParams(ignore_eos=True)}, "The answer is " * 9),
    ],
)
def test_a_text_that_goes_round_in_circles_ends(text: str, fields: dict[str, Any], shown: str) -> None:
    tokenizer, script = whole(text)
    seen, _ = run(tokenizer, script, **{"max_repeats": 4, "max_tokens": len(text), **fields})
    assert seen.text == shown
