"""Whole calls read back from text, for what writes them."""

from collections.abc import Collection

from toolformer.api_call import CLOSE, ApiCall, MalformedCall, scan_call


def parse_call(text: str, quoted_tools: Collection[str]) -> tuple[ApiCall, str | None]:
    """Read a whole ``e(c)`` or ``e(c, r)``; the opening space may be missing. The result is ``None`` for ``e(c)``.

    Raises:
        MalformedCall: if the text is not exactly one call.
    """
    body = text.removeprefix(" ")
    if not body.startswith("["):
        raise MalformedCall(f"a call starts with '[', not {body[:1]!r}")
    body = body[1:]
    scan = scan_call(body, quoted_tools)
    if scan.call is None:
        raise MalformedCall("expected name(input) followed by '->' or ']'")
    rest = body[scan.end :]
    if scan.mark == CLOSE:
        if rest:
            raise MalformedCall(f"unexpected text after the call: {rest[:20]!r}")
        return scan.call, None
    if not rest.endswith(CLOSE) or CLOSE in rest[:-1]:
        raise MalformedCall("a result must be followed by exactly one ']' at the end")
    return scan.call, rest[:-1].removeprefix(" ")
