"""Text as a request may carry it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StrictStr


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} is half of a surrogate pair (\\u{ord(text[error.start]):04x}); send whole characters"
        ) from None
    return text


UnicodeText = Annotated[StrictStr, AfterValidator(_encodable)]
"""A string that UTF-8 can carry. JSON's escapes can write half a character, which no response could repeat."""
