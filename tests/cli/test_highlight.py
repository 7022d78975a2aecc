"""Calls are found in a stream whatever they hold and however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from cli.highlight import LONGEST_CALL, CallHighlighter, Span
from toolformer.api_call import ApiCall, neutralise

NAMES = ("Calculator", "QA")
QUOTED = frozenset({"QA"})
PLAIN = st.text(st.characters(exclude_characters="[", exclude_categories=["Cs"]), min_size=1)
UNCALLED = st.sampled_from(["[", "[1]", "[see (2)]", "[Unknown(3) -> 4]"])


@st.composite
def calls(draw: st.DrawFn) -> Span:
    """A whole call, as it stands in text after its opening space."""
    call = ApiCall(draw(st.sampled_from(NAMES)), draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20)))
    result = draw(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(neutralise))
    return Span(call.text(quoted=call.tool in QUOTED, result=result).removeprefix(" "), is_call=True)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """``text`` in chunks."""
    places = sorted(draw(st.sets(st.integers(0, len(text)))))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@given(st.data(), st.lists(st.one_of(PLAIN.map(Span), calls(), UNCALLED.map(lambda text: Span(f"{text} ")))))
def test_every_call_is_found_and_no_text_is_lost(data: st.DataObject, spans: list[Span]) -> None:
    text = "".join(span.text for span in spans)
    highlighter = CallHighlighter(NAMES, QUOTED)
    shown = [span for piece in data.draw(cut(text)) for span in highlighter.feed(piece)] + list(highlighter.flush())
    assert "".join(span.text for span in shown) == text
    assert [span.text for span in shown if span.is_call] == [span.text for span in spans if span.is_call]


def test_only_what_may_be_a_call_is_held_back() -> None:
    highlighter = CallHighlighter(NAMES, QUOTED)
    assert list(highlighter.feed("see [Notes] and [Calcu")) == [Span("see "), Span("["), Span("Notes] and ")]
    assert list(highlighter.feed("lator(2")) == []
    assert list(highlighter.feed("+2) -> 4")) == []
    assert list(highlighter.feed("], so")) == [Span("[Calculator(2+2) -> 4]", is_call=True), Span(", so")]


def test_a_call_that_never_ends_is_text_in_the_end() -> None:
    highlighter = CallHighlighter(NAMES, QUOTED)
    endless = "[Calculator(" + "1" * LONGEST_CALL
    assert "".join(span.text for span in highlighter.feed(endless)) == endless
