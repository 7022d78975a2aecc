"""Reading what the model wrote behind an opened bracket: a call of the tool, or the reason why it is dropped."""

from __future__ import annotations

from typing import Final

from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import scan_call
from toolformer.tools import Tool

MALFORMED: Final = "malformed"
"""No call, a call of another tool, or one with an input where the tool takes none."""
UNFINISHED: Final = "unfinished"
"""No end of the call within the limit of tokens, or the text ended first."""
EMPTY: Final = "empty input"
TOO_LONG: Final = "input too long"
REPEATED: Final = "repeated"
"""The same call was drawn before at this position."""

# What may be between the name and its input, and the input and the mark behind it: ("  ")  ->
_MARKS: Final = 6


class SampledCalls:
    """Reads calls of one tool as the model writes them.

    A call is at its end with the mark behind its input. That is ``]``; a model that goes on with `` ->`` instead, to
    make up a result, has said what it asks as well, and is not heard further."""

    def __init__(self, tool: Tool, tokenizer: ByteLevelTokenizer) -> None:
        self._tool, self._tokenizer = tool, tokenizer
        self._head = f"{tool.name}(".encode()
        self._quoted = (tool.name,) if tool.quoted else ()
        self.limit = len(tokenizer.encode(f"{tool.name}(")) + tool.max_input_tokens + _MARKS
        """Tokens of the longest call worth waiting for."""
        self.stops = (")]", ") ->", "\n", ") ]", ")->")
        """Texts behind which a call has ended, or gone wrong; the usual ones first."""

    def ended(self, written: bytes) -> bool:
        """Whether ``written`` is a whole call, or can no longer become one of this tool."""
        known = min(len(written), len(self._head))
        if written[:known] != self._head[:known] or b"\n" in written:
            return True
        if b"]" not in written and b">" not in written:
            return False
        scan = scan_call(written.decode("utf-8", errors="replace"), self._quoted)
        return scan.call is not None or scan.refused

    def read(self, written: bytes) -> tuple[str | None, str]:
        """The call's input, and an empty string; or ``None``, and the reason why there is none."""
        known = min(len(written), len(self._head))
        try:
            text = written.decode("utf-8")
        except UnicodeDecodeError as error:
            # Half a character at the end only says that the limit came first.
            cut = error.end == len(written) and error.reason == "unexpected end of data"
            return None, UNFINISHED if cut and not self.ended(written) else MALFORMED
        if written[:known] != self._head[:known] or "\n" in text:
            return None, MALFORMED
        call = scan_call(text, self._quoted).call
        if call is None:
            return None, UNFINISHED
        asked = call.input.strip()
        if not self._tool.takes_input:
            return (None, MALFORMED) if asked else ("", "")
        if not asked:
            return None, EMPTY
        if len(self._tokenizer.encode(asked)) > self._tool.max_input_tokens:
            return None, TOO_LONG
        return asked, ""
