"""The rolling matcher: the same reports for every chunking, and never more held back than needed."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolformer.trigger import TriggerMatcher

letters = st.text("ab[ >-", max_size=20)
triggers = st.lists(st.text("ab[ >-", min_size=1, max_size=4), min_size=0, max_size=4)


def first_match(chunks: Sequence[str], strings: Sequence[str]) -> tuple[str, str | None, str]:
    """Text before the first trigger, the trigger, and everything after it."""
    matcher = TriggerMatcher(strings)
    passed = ""
    for number, chunk in enumerate(chunks):
        match = matcher.feed(chunk)
        passed += match.text
        if match.trigger is not None:
            return passed, match.trigger, match.rest + "".join(chunks[number + 1 :])
    match = matcher.flush()
    return passed + match.text, match.trigger, match.rest


def plainly(text: str, strings: Sequence[str]) -> tuple[str, str | None, str]:
    """The definition: the trigger that begins first and, of those, the longest."""
    for at in range(len(text)):
        for trigger in sorted(strings, key=len, reverse=True):
            if text.startswith(trigger, at):
                return text[:at], trigger, text[at + len(trigger) :]
    return text, None, ""


@st.composite
def chunkings(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(letters)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    bounds = [0, *cuts, len(text)]
    return text, [text[a:b] for a, b in itertools.pairwise(bounds)]


@given(chunkings(), triggers)
def test_every_chunking_gives_the_definition(chunking: tuple[str, list[str]], strings: list[str]) -> None:
    text, chunks = chunking
    assert first_match(chunks, strings) == plainly(text, strings)


@given(letters, triggers)
def test_exactly_the_longest_suffix_that_may_become_a_trigger_is_held(text: str, strings: list[str]) -> None:
    matcher = TriggerMatcher(strings)
    match = matcher.feed(text)
    if match.trigger is not None:
        return
    suffixes = [
        text[at:] for at in range(len(text)) if any(t.startswith(text[at:]) and t != text[at:] for t in strings)
    ]
    assert matcher.held == (suffixes[0] if suffixes else "")
    assert match.text + matcher.held == text


def test_an_empty_trigger_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        TriggerMatcher(["x", ""])
