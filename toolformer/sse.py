"""Server-sent events, as far as completions use them: the ``data`` of each event.

Of our own because httpx-sse has no limit to the length of an event."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Final

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024


class EventTooLargeError(Exception):
    """An event is longer than `MAX_EVENT_BYTES`."""


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """The ``data`` of every event, however the bytes are cut into chunks; comments and other fields are passed over.

    Lines end at a line feed only: the characters that Unicode also counts as line ends are unescaped in JSON.

    Raises:
        EventTooLargeError: the server sends an event without end.
    """
    held, data, size = b"", list[str](), 0
    async for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line:
                if data:
                    yield "\n".join(data)
                data, size = [], 0
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" ").decode("utf-8", "replace"))
                size += len(line)
        if len(held) + size > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event is longer than {MAX_EVENT_BYTES:,} bytes")
