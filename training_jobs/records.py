"""What the stages hand to one another, a JSON line each: documents, calls proposed for them, texts with calls.

A record's line is always the same bytes: fields are in the order of the class, numbers are rounded to six decimals
when a record is made (so a record read back equals the one written), counts are sorted by their names.

Offsets are characters (Unicode code points) of the document's text; positions are places before a token of the text's
ids; probabilities are between 0 and 1; losses and gains are in nats."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

KEPT: Final = "kept"
"""The verdict on a call that stays in the text. Every other verdict is a reason why not."""
BELOW: Final = "gain below threshold"

_DECIMALS: Final = 6


class RecordError(ValueError):
    """A line is not the record it should be. The message is one line: where, which field, what is wrong."""


class Record:
    """Something that is one line of a JSON lines file."""

    __slots__ = ()
    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="forbid")

    def to_line(self) -> str:
        """The record as JSON, with the line's end."""
        return _adapter(type(self)).dump_json(self).decode("utf-8") + "\n"

    @classmethod
    def from_line(cls, line: str | bytes, where: str = "record") -> Self:
        """The record in ``line``; ``where`` (such as file and line number) begins the message of an error.

        Raises:
            RecordError: if the line is not JSON, or a field is missing, unknown or wrong.
        """
        try:
            return cast(Self, _adapter(cls).validate_json(line))
        except ValidationError as error:
            [problem, *_] = error.errors(include_url=False)
            field_ = ".".join(str(part) for part in problem["loc"])
            said = problem["msg"].removeprefix("Value error, ")
            raise RecordError(f"{where}: {f'{field_}: ' if field_ else ''}{said}: not a {cls.__name__}") from error


R = TypeVar("R", bound=Record)


def records_in(path: Path, kind: type[R]) -> Iterator[R]:
    """The records of a file, one after the other.

    Raises:
        OSError: it cannot be read.
        RecordError: if a line is no such record; the message names file and line.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield kind.from_line(line, f"{path}:{number}")


_adapters: dict[type[Record], TypeAdapter[Any]] = {}


def _adapter(kind: type[Record]) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


@dataclass(frozen=True, slots=True)
class Document(Record):
    """A plain text without calls. ``date`` (``YYYY-MM-DD``) is the day its calendar calls are answered for."""

    id: str
    text: str
    url: str | None = None
    date: str | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if self.date is not None:
            try:
                good = dt.date.fromisoformat(self.date).isoformat() == self.date
            except ValueError:
                good = False
            if not good:
                raise ValueError(f"date must be a day as YYYY-MM-DD, not {self.date!r}")
        for name in ("id", "text"):
            try:
                getattr(self, name).encode("utf-8")
            except UnicodeEncodeError as error:
                raise ValueError(f"{name} is not Unicode text: half a surrogate pair at {error.start}") from None


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A call of ``tool`` behind ``offset`` characters of a text, and the ``answer`` that is expected, where known."""

    tool: str
    offset: int
    input: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ProposedCalls(Record):
    """The calls of the text ``id``: a line of ``--proposals``, and of the ``truth.jsonl`` of generated texts."""

    id: str
    calls: tuple[ProposedCall, ...]


WithoutResult = Literal["empty", "closed"]
"""What is before the text in a candidate's ``loss_call``: ``empty``, the paper's ``e(c, empty)``, which is written
`` [name(input) -> ]``, or ``closed``, ``e(c)``, `` [name(input)]``."""

CallsStand = Literal["first", "inside"]
"""Where a call stands when what follows it is scored: ``first``, before the whole text, as in the paper, whose model
has not seen calls inside of texts; or ``inside``, at its place, as a model that was finetuned on calls reads it."""


@dataclass(frozen=True, slots=True)
class Candidate(Record):
    """A call that the model proposed before token ``position`` (counted from 0) of a document.

    ``offset`` is the same place in the text; ``start_probability`` is ``p_i`` of section 2. After execution exactly one
    of ``output`` and ``error`` (a code) is set. The filter sets the rest: ``loss_empty`` is ``L_i`` of no call at all,
    ``loss_call`` of ``e(c, empty)`` (see `WithoutResult`), ``loss_result`` of ``e(c, r)``, ``gain`` is
    ``min(loss_empty, loss_call) - loss_result``.
    """

    position: int
    offset: int
    start_probability: float
    input: str
    output: str | None = None
    error: str | None = None
    loss_empty: float | None = None
    loss_call: float | None = None
    loss_result: float | None = None
    gain: float | None = None
    verdict: str | None = None

    def __post_init__(self) -> None:
        if self.position < 0 or self.offset < 0:
            raise ValueError("position and offset must be 0 or more")
        if self.output is not None and self.error is not None:
            raise ValueError("output and error exclude each other")
        for name in ("start_probability", "loss_empty", "loss_call", "loss_result", "gain"):
            _round(self, name)


@dataclass(frozen=True, slots=True)
class Annotated(Record):
    """A document with the calls proposed for one tool, in order of position and sampling; ``dropped`` counts what was
    sampled and dropped at once, by reason, and ``wrote`` has the first such sample of each."""

    document: Document
    tool: str
    candidates: tuple[Candidate, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)
    wrote: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("dropped", "wrote"):
            object.__setattr__(self, name, dict(sorted(getattr(self, name).items())))


@dataclass(frozen=True, slots=True)
class CallSegment(Record):
    """A call inside a text, with its result."""

    tool: str
    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Merged(Record):
    """A text of C*: its segments in reading order, and the gain of each of its calls."""

    id: str
    segments: tuple[str | CallSegment, ...]
    gains: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "gains", tuple(_rounded("gains", gain) for gain in self.gains))
        calls = sum(isinstance(segment, CallSegment) for segment in self.segments)
        if calls != len(self.gains):
            raise ValueError(f"there are {calls} calls in the text but {len(self.gains)} gains")


@dataclass(frozen=True, slots=True)
class Plain(Record):
    """A text of the baseline C: the same document without calls."""

    id: str
    segments: tuple[str, ...]


def _round(record: Any, name: str) -> None:
    value = getattr(record, name)
    if value is not None:
        object.__setattr__(record, name, _rounded(name, value))


def _rounded(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value}")
    return round(float(value), _DECIMALS) + 0.0  # -0.0 + 0.0 is 0.0


def says(output: str, answer: str) -> bool:
    """Whether ``answer`` is in ``output`` as whole words or a whole number."""
    return re.search(rf"(?<![\w.,]){re.escape(answer)}(?![\w]|[.,]\d)", output) is not None
