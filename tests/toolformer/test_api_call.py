"""Call text and ids: every input round-trips, every result stays within its bounds, every chunking reads the same."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from language_model.tokenizer import ByteLevelTokenizer
from tests.support.calls import parse_call
from tests.support.vocabularies import VOCABULARIES, gpt2_tokenizer, marked_tokenizer, small_tokenizer
from toolformer.api_call import (
    ApiCall,
    CallMarks,
    MalformedCall,
    call_ids,
    empty_call_ids,
    neutralise,
    scan_call,
    splice_result,
)

QUOTED = frozenset({"QA", "WikiSearch"})
# Inputs full of the characters that matter, and any Unicode text at all.
tricky = st.lists(
    st.sampled_from(['"', "(", ")", "[", "]", "->", "-", ">", " ", "\\", "\n", "\r", "n", "x", '")', ") ->", "])"])
).map("".join)
inputs = st.one_of(tricky, st.text(), st.tuples(tricky, st.text(), tricky).map("".join))
calls = st.builds(ApiCall, st.sampled_from(["QA", "WikiSearch", "Calculator", "MT", "My_Tool2"]), inputs)


@given(calls)
def test_every_call_without_result_round_trips(call: ApiCall) -> None:
    assert parse_call(call.text(quoted=call.tool in QUOTED), QUOTED) == (call, None)


@given(calls, inputs)
def test_every_call_with_result_round_trips(call: ApiCall, result: str) -> None:
    line = neutralise(result)
    assert parse_call(call.text(quoted=call.tool in QUOTED, result=line), QUOTED) == (call, line)


@given(calls, inputs)
def test_a_call_reads_the_same_however_it_arrives(call: ApiCall, after: str) -> None:
    """The scan depends on the text alone: before the mark it is undecided, from the mark on it never changes."""
    text = call.text(quoted=call.tool in QUOTED, result=neutralise(after)).removeprefix(" [")
    whole = scan_call(text, QUOTED)
    assert whole.call == call
    assert whole.mark == "->"
    for end in range(len(text) + 1):
        part = scan_call(text[:end], QUOTED)
        assert not part.refused
        assert (part.call, part.end) == ((call, whole.end) if end >= whole.end else (None, 0))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (ApiCall("Calculator", "27 + 4 * 2"), " [Calculator(27 + 4 * 2) -> 35]"),
        (ApiCall("Calculator", "(1 + 2) * (3 + 4)"), " [Calculator((1 + 2) * (3 + 4)) -> 35]"),
        (ApiCall("QA", "Where was Ada born?"), ' [QA("Where was Ada born?") -> 35]'),
        (ApiCall("QA", 'Who wrote "Emma"?'), ' [QA("Who wrote "Emma"?") -> 35]'),
        (ApiCall("Calendar", ""), " [Calendar() -> 35]"),
        (ApiCall("MT", "a) -> b"), r" [MT(a\) -> b) -> 35]"),
        (ApiCall("QA", 'x") ] y'), r' [QA("x\") ] y") -> 35]'),
    ],
)
def test_call_text_is_the_papers(call: ApiCall, text: str) -> None:
    """Only the ambiguous place is escaped; all else reads as in the paper."""
    assert call.text(quoted=call.tool in QUOTED, result="35") == text


@pytest.mark.parametrize("text", ["1]", "see(", " Calculator(", "(3)", "]", "Calculator x("])
def test_what_cannot_become_a_call_is_refused_at_once(text: str) -> None:
    scan = scan_call(text, QUOTED)
    assert scan.refused or scan.tool == "see"


@pytest.mark.parametrize(
    "text",
    ["", "x", "[QA]", '[QA("x")', '[QA("x") -> y', '[QA("x") -> y] z', '[QA("x") -> y]]', '[QA("x")] z', "[1()]"],
)
def test_what_is_not_exactly_one_call_is_malformed(text: str) -> None:
    with pytest.raises(MalformedCall):
        parse_call(text, QUOTED)


@pytest.mark.parametrize("name", ["", "2x", "a b", "QA(", "é"])
def test_a_tool_name_must_be_readable_in_text(name: str) -> None:
    with pytest.raises(MalformedCall, match="tool name"):
        ApiCall(name, "x")


@given(inputs)
def test_a_neutralised_result_has_no_marks_and_one_line(result: str) -> None:
    line = neutralise(result)
    assert not any(mark in line for mark in ("[", "]", "->", "\n", "\r", "\u2028"))
    assert neutralise(line) == line


@pytest.mark.parametrize("tokenizer", VOCABULARIES)
class TestIds:
    @settings(max_examples=300)
    @given(call=calls, result=inputs, limit=st.integers(1, 60))
    def test_ids_decode_to_the_text(
        self, tokenizer: Callable[[], ByteLevelTokenizer], call: ApiCall, result: str, limit: int
    ) -> None:
        vocabulary, quoted = tokenizer(), call.tool in QUOTED
        assert vocabulary.decode(call_ids(call, vocabulary, quoted=quoted)) == call.text(quoted=quoted)
        spliced = splice_result(result, vocabulary, max_tokens=limit)
        if spliced is None:
            return
        ids = call_ids(call, vocabulary, quoted=quoted, result=result, max_result_tokens=limit)
        assert parse_call(vocabulary.decode(ids), QUOTED)[0] == call
        assert vocabulary.decode(ids).endswith(f" -> {spliced.text}]")
        assert len(spliced.ids) <= limit + 1
        assert neutralise(result).startswith(spliced.text)

    @given(result=inputs)
    def test_a_result_never_becomes_a_special_token(
        self, tokenizer: Callable[[], ByteLevelTokenizer], result: str
    ) -> None:
        vocabulary = tokenizer()
        names = "".join([*vocabulary.special_tokens, "<TOOLFORMER_API_END><|endoftext|>"])
        spliced = splice_result(result + names, vocabulary, max_tokens=10_000)
        assert spliced is not None
        closing = len(vocabulary.marks.closing)
        assert not vocabulary.special_ids & set(spliced.ids[:-closing])
        assert spliced.text.endswith(names)

    def test_a_cut_never_splits_a_character(self, tokenizer: Callable[[], ByteLevelTokenizer]) -> None:
        for limit in range(1, 12):
            spliced = splice_result("日本語🙂", tokenizer(), max_tokens=limit)
            assert spliced is None or "日本語🙂".startswith(spliced.text)

    def test_a_cut_leaves_no_space_before_the_bracket(self, tokenizer: Callable[[], ByteLevelTokenizer]) -> None:
        """Found by the property above: the text reported and the ids spliced must be the same."""
        for limit in range(1, 8):
            for result in ("0\r0", "0 ƀ", "a b c d"):
                spliced = splice_result(result, tokenizer(), max_tokens=limit)
                if spliced is not None:
                    assert tokenizer().decode(list(spliced.ids)) == f"{tokenizer().marks.gap}{spliced.text}]"
                    assert not spliced.text.endswith(" ")

    @given(call=calls)
    def test_a_call_with_an_empty_result_has_the_papers_form(
        self, tokenizer: Callable[[], ByteLevelTokenizer], call: ApiCall
    ) -> None:
        vocabulary, quoted = tokenizer(), call.tool in QUOTED
        ids = empty_call_ids(call, vocabulary, quoted=quoted)
        assert vocabulary.decode(ids) == f" [{call.head(quoted=quoted)} -> ]"
        with_result = call_ids(call, vocabulary, quoted=quoted, result="r")
        same = len(ids) - len(vocabulary.encode(vocabulary.marks.gap)) - len(vocabulary.marks.closing)
        assert ids[:same] == with_result[:same], "not the ids that stand before a result"

    def test_an_empty_result_is_no_result(self, tokenizer: Callable[[], ByteLevelTokenizer]) -> None:
        assert splice_result(" \n ", tokenizer(), max_tokens=5) is None
        with pytest.raises(MalformedCall, match="empty"):
            call_ids(ApiCall("QA", "x"), tokenizer(), quoted=True, result="")


@pytest.mark.shared_data
def test_gpt_j_ids_of_the_marks() -> None:
    """The figures in the module's docstring."""
    vocabulary = gpt2_tokenizer()
    marks = {"[": 58, " [": 685, "]": 60, "->": 3784, " ->": 4613}
    assert {mark: vocabulary.encode(mark) for mark in marks} == {mark: [number] for mark, number in marks.items()}


def test_special_marks_are_the_ids_of_the_public_checkpoints_and_read_as_the_papers_text() -> None:
    vocabulary = marked_tokenizer()
    end, response, start = range(vocabulary.vocab_size - 3, vocabulary.vocab_size)
    one, text = ApiCall("Calculator", "1 + 2"), vocabulary.encode
    assert call_ids(one, vocabulary, quoted=False) == [start, *text("Calculator(1 + 2)"), end]
    with_result = call_ids(one, vocabulary, quoted=False, result="3")
    assert with_result == [start, *text("Calculator(1 + 2)"), response, *text("3"), end]
    assert vocabulary.decode(with_result) == " [Calculator(1 + 2) -> 3]"
    assert empty_call_ids(one, vocabulary, quoted=False)[-2:] == [response, end]


def test_bytes_of_any_text_round_trip_in_the_small_vocabulary() -> None:
    vocabulary = small_tokenizer()
    text = "\x00\t naïve 🙂 \r\n" + "".join(map(chr, range(0x20, 0x180)))
    assert vocabulary.decode(vocabulary.encode(text)) == text


class Counting:
    """A vocabulary that notes how long the texts are that it encodes."""

    def __init__(self) -> None:
        self.longest = 0
        self._vocabulary = small_tokenizer()

    @property
    def marks(self) -> CallMarks:
        return self._vocabulary.marks

    def encode(self, text: str) -> list[int]:
        self.longest = max(self.longest, len(text))
        return self._vocabulary.encode(text)

    def token_bytes(self, token_id: int) -> bytes:
        return self._vocabulary.token_bytes(token_id)


@pytest.mark.parametrize("result", ["1" * 200_000, "the cat sat " * 20_000, "🙂" * 50_000])
def test_a_long_result_is_cut_before_it_is_encoded(result: str) -> None:
    counting = Counting()
    spliced = splice_result(result, counting, max_tokens=24)
    assert spliced is not None
    assert 0 < len(spliced.ids) - 1 <= 24
    assert result.startswith(spliced.text)
    assert counting.longest < 10_000
