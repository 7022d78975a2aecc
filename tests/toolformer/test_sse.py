"""Server-sent events are read however their bytes are cut, and never without end."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolformer.sse import MAX_EVENT_BYTES, EventTooLargeError, read_events


@given(st.data(), st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)))
async def test_events_are_read_however_their_bytes_are_cut(data: st.DataObject, events: list[str]) -> None:
    wire = "".join(f": comment\nevent: x\ndata: {event}\r\n\r\n" for event in events).encode()
    places = sorted(data.draw(st.sets(st.integers(0, len(wire)))))
    chunks = [wire[start:end] for start, end in zip([0, *places], [*places, len(wire)], strict=True)]

    async def arriving() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    assert [event async for event in read_events(arriving())] == events


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 65_536, b"data: " + b"x" * 65_536 + b"\n"], ids=["line", "lines"])
async def test_an_event_without_end_is_refused(piece: bytes) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += len(piece)
            yield piece

    with pytest.raises(EventTooLargeError, match="longer than"):
        assert not [event async for event in read_events(endless())]
    assert sent < 2 * MAX_EVENT_BYTES
