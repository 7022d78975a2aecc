"""Text as a request may carry it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StrictStr


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise ValueError(f"{half} at position {error.start + 1} is half a character; send whole ones") from None
    return text


UnicodeText = Annotated[StrictStr, AfterValidator(_encodable)]
"""A string that UTF-8 can carry. JSON's escapes can write half a character, which no response could repeat."""
