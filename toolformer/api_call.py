r"""The text and token form of an API call: the project's one definition of it (section 2 of the paper).

A call ``c = (name, input)`` is written ``e(c)``, and with its result ``e(c, r)``::

    e(c)    = " [" + name + "(" + input + ")" + "]"
    e(c, r) = " [" + name + "(" + input + ")" + " ->" + " " + r + "]"

With an empty result, ``e(c, empty)`` is `` [name(input) -> ]``.

``QA`` and ``WikiSearch`` quote their input: `` [QA("Who wrote Emma?") -> Jane Austen]``. In GPT-J's vocabulary the
marks are single tokens: ``[`` 58, `` [`` 685, ``]`` 60, ``->`` 3784, `` ->`` 4613.

**Where an input ends.** At the first unescaped closer (``)``, or ``")`` for a quoted input) that is followed, spaces
aside, by ``->`` or ``]``. So parentheses, quotes, brackets and arrows *inside* an input need nothing; the one ambiguous
place, an input that itself contains a closer followed by a mark, is written with a backslash before that closer. A
backslash is written twice, line breaks as ``\n`` and ``\r``. Every input round-trips.

**A result is data.** It loses its line breaks, ``[``, ``]`` and ``->`` in it are neutralised, it is cut to a token
limit, and it is encoded with special tokens off, so it can neither open a call, nor end one early, nor become an
end-of-text.

**Token ids are the truth.** Ids are made a segment at a time, at the places where the gateway splices, so that training
and inference see the same ids: ``" ["`` | ``name(input)`` | ``" ->"`` | ``" " + r`` | ``"]"``.

**The marks are the vocabulary's.** A checkpoint that others trained may have special tokens for them
(`SPECIAL_MARKS`). Such a token reads as the text it stands for, so a call's text is the same everywhere; only its ids
differ: ``<START>`` | ``name(input)`` | ``<RESPONSE>`` | ``r`` | ``<END>``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

OPEN: Final = " ["
"""What starts a call in text; the space belongs to the call, so that taking the call out leaves the text as it was."""
ARROW: Final = " ->"
CLOSE: Final = "]"
GAP: Final = " "
"""What text has between the arrow and a result."""
SPECIAL_MARKS: Final = {
    "<TOOLFORMER_API_START>": OPEN,
    "<TOOLFORMER_API_RESPONSE>": ARROW + GAP,
    "<TOOLFORMER_API_END>": CLOSE,
}
"""The special tokens of the public Toolformer checkpoints, and the text that each stands for."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_ESCAPES: Final = {"\\": "\\", "n": "\n", "r": "\r"}
# A closer that a reader would take for the input's end, unquoted and quoted.
_AMBIGUOUS: Final = {False: re.compile(r"\)(?=\s*(?:->|\]))"), True: re.compile(r'"(?=\s*\)\s*(?:->|\]))')}
_CLOSERS: Final = {False: re.compile(r"\)\s*(->|\])"), True: re.compile(r'"\s*\)\s*(->|\])')}


class MalformedCall(ValueError):  # noqa: N818 - says what the text is
    """The text is not a call. The message says what was found where something else was expected."""


@dataclass(frozen=True, slots=True)
class CallMarks:
    """The ids of a call's opening, arrow and closing in a vocabulary.

    ``special``: each is one special token, and no other text is a mark."""

    opening: tuple[int, ...]
    arrow: tuple[int, ...]
    closing: tuple[int, ...]
    special: bool = False

    @classmethod
    def in_text(cls, encode: Callable[[str], list[int]]) -> CallMarks:
        """The marks of a vocabulary that writes them as the text they are."""
        return cls(tuple(encode(OPEN)), tuple(encode(ARROW)), tuple(encode(CLOSE)))

    @property
    def gap(self) -> str:
        """What is encoded between the arrow and a result: a special arrow has it in itself."""
        return "" if self.special else GAP


class Tokenizer(Protocol):
    """What call ids need of a tokenizer: a lossless byte-level vocabulary such as GPT-J's."""

    @property
    def marks(self) -> CallMarks:
        """How the vocabulary writes a call's marks."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of ``text``, special tokens neither added nor recognised in it."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that ``token_id`` stands for; of a special mark, those of its text."""
        ...


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call ``c``: the tool's name as it is in text, and the input, unescaped and without quotes."""

    tool: str
    input: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.tool):
            raise MalformedCall(f"tool name {self.tool!r} must be a letter followed by letters, digits or underscores")

    def head(self, *, quoted: bool) -> str:
        """``name(input)``: the part of the call a model writes between `` [`` and `` ->``."""
        text = self.input.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        # The closer that is about to follow counts as context: an input may end in what looks like one.
        tail = '")' if quoted else ")"
        escaped = _AMBIGUOUS[quoted].sub(r"\\\g<0>", text + tail + ARROW)
        text = escaped[: -len(tail + ARROW) - 1]  # the real closer was escaped too: drop its backslash
        mark = '"' if quoted else ""
        return f"{self.tool}({mark}{text}{mark})"

    def text(self, *, quoted: bool, result: str | None = None) -> str:
        """``e(c)``, or ``e(c, r)`` when ``result`` (already neutralised) is given."""
        answer = "" if result is None else f"{ARROW} {result}"
        return f"{OPEN}{self.head(quoted=quoted)}{answer}{CLOSE}"


@dataclass(frozen=True, slots=True)
class CallScan:
    """What the text after an opening bracket is so far.

    ``call`` is set once the input has ended and a mark follows; ``end`` is then the index just past that mark, and
    ``mark`` says which: ``->`` asks for a result, ``]`` closes the call without one. ``tool`` is set from the opening
    parenthesis on. ``refused`` is set as soon as no further text could make this a call.
    """

    call: ApiCall | None = None
    mark: str = ""
    end: int = 0
    tool: str | None = None
    refused: bool = False


_NOT_A_CALL: Final = CallScan(refused=True)
_UNDECIDED: Final = CallScan()


def scan_call(text: str, quoted_tools: Collection[str]) -> CallScan:
    """Read ``text``, which follows an opening ``[``, as the beginning of a call.

    ``quoted_tools`` are the names whose input is in double quotes; where such an input lacks its opening quote
    it is read as a plain one. The answer depends on the text alone, not on how it arrived: once a scan has found
    the call, every longer text gives the same call and the same ``end``."""
    name = _NAME.match(text)
    if name is None:
        return _NOT_A_CALL if text else _UNDECIDED
    tool, start = name.group(), name.end() + 1
    if start > len(text):
        return _UNDECIDED
    if text[start - 1] != "(":
        return _NOT_A_CALL
    quoted = tool in quoted_tools and text.startswith('"', start)
    start += quoted
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        closer = _CLOSERS[quoted].match(text, at)
        if closer is not None:
            call = ApiCall(tool, _unescape(text[start:at]))
            return CallScan(call, mark=closer.group(1), end=closer.end(), tool=tool)
        at += 1
    return CallScan(tool=tool)


def neutralise(result: str) -> str:
    """``result`` on one line, unable to open or close a call: ``[ ]`` become ``( )``, ``->`` becomes ``=>``."""
    line = " ".join(result.split())
    return line.replace("[", "(").replace("]", ")").replace("->", "=>")


_LONGEST_TOKEN: Final = 256
"""Characters of a token, in any vocabulary: of a long result, what is behind so many for each token it may have is not
even encoded, for that would take seconds in which nothing else is done."""


@dataclass(frozen=True, slots=True)
class SplicedResult:
    """What is appended at ``->``: ``ids`` of the gap, of ``text`` and of the closing, and the ``text`` itself."""

    ids: tuple[int, ...]
    text: str


def splice_result(result: str, tokenizer: Tokenizer, *, max_tokens: int) -> SplicedResult | None:
    """Ids to append after `` ->``, the result cut to ``max_tokens`` tokens at a character border; ``None`` if
    nothing is left."""
    line = neutralise(result)[: (max_tokens + 1) * _LONGEST_TOKEN]
    ids = tokenizer.encode(tokenizer.marks.gap + line) if line else []
    if len(ids) > max_tokens:
        ids = ids[:max_tokens]
        # A cut may fall inside a character of several tokens, or behind a space; give those tokens up too.
        while ids and not _ends_well(_bytes_of(ids, tokenizer)):
            ids.pop()
    text = _bytes_of(ids, tokenizer).decode("utf-8").removeprefix(GAP)
    if not text:
        return None
    return SplicedResult((*ids, *tokenizer.marks.closing), text)


def opening_id(tokenizer: Tokenizer) -> int | None:
    """The token that begins a call behind a word; ``None`` in a vocabulary that writes it with several."""
    ids = tokenizer.marks.opening
    return ids[0] if len(ids) == 1 else None


def call_ids(
    call: ApiCall, tokenizer: Tokenizer, *, quoted: bool, result: str | None = None, max_result_tokens: int = 10_000
) -> list[int]:
    """Ids of ``e(c)`` or, with a ``result``, of ``e(c, r)``, made from the same segments as at inference.

    Raises:
        MalformedCall: if nothing is left of the result once it is neutralised and cut.
    """
    ids = _before_result(call, tokenizer, quoted)
    if result is None:
        return [*ids, *tokenizer.marks.closing]
    spliced = splice_result(result, tokenizer, max_tokens=max_result_tokens)
    if spliced is None:
        raise MalformedCall("the result is empty")
    return [*ids, *tokenizer.marks.arrow, *spliced.ids]


def empty_call_ids(call: ApiCall, tokenizer: Tokenizer, *, quoted: bool) -> list[int]:
    """Ids of ``e(c, empty)``, by which the filter separates a result's help from that of the call alone."""
    marks = tokenizer.marks
    return [*_before_result(call, tokenizer, quoted), *marks.arrow, *tokenizer.encode(marks.gap), *marks.closing]


def _before_result(call: ApiCall, tokenizer: Tokenizer, quoted: bool) -> list[int]:
    return [*tokenizer.marks.opening, *tokenizer.encode(call.head(quoted=quoted))]


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), text, flags=re.DOTALL)


def _bytes_of(ids: Sequence[int], tokenizer: Tokenizer) -> bytes:
    return b"".join(tokenizer.token_bytes(i) for i in ids)


def _ends_well(data: bytes) -> bool:
    try:
        return not data.decode("utf-8").endswith(" ")
    except UnicodeDecodeError:
        return False
