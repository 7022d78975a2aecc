"""What a tool service brings to the app factory: a description of itself and an engine. No web code here."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

MAX_BATCH: Final = 1_024
"""No service takes more calls in one ``POST /calls``: more are not even read."""


class ToolFailure(Exception):  # noqa: N818 - an outcome of a call, not an error of the service
    """The tool has no answer to this call. Not an HTTP error: the answer's output is null and its error says why.

    An engine returns it (in the place of that call's answer) or raises it (for all calls it was given).

    Args:
        code: a stable word out of a small fixed set, such as ``division_by_zero``; it labels a metric.
        message: what is wrong with the call, for the client to read.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NotReady(Exception):  # noqa: N818 - a state
    """The engine cannot answer yet or for the moment; its text says why. Becomes 503 with ``Retry-After``."""


class CannotStart(Exception):  # noqa: N818 - a state
    """What the engine needs is missing or broken, and stays so; the text names the file and the remedy.

    `run_service` ends the process with it, where another exception of `Engine.start` leaves the service up, not ready.
    """

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.split()))  # one line, whatever a library put into it


@dataclass(frozen=True)
class Call:
    """One tool call: its input, and the day the caller takes for today (None: the tool's own clock)."""

    input: str
    date: datetime.date | None = None


class Engine(Protocol):
    """What a tool does.

    The methods run on the event loop and must not block it: work of more than about a millisecond belongs in a thread
    or a process. `answer` is called concurrently, up to `ServiceInfo.max_in_flight` calls at once over all requests; an
    engine that gains from larger batches may collect calls of several requests itself.
    """

    async def start(self) -> None:
        """Load whatever answering needs. Runs in the background: the service is up, but not ready, until it returns.

        Raises:
            CannotStart: what it needs is missing or broken; the process ends.
            Exception: anything else; the service then stays up, not ready, and says why.
        """

    async def stop(self) -> None:
        """Release what `start` took; called once at shutdown, also where `start` failed or was cancelled."""

    async def answer(self, calls: Sequence[Call]) -> Sequence[str | ToolFailure]:
        """Answer a batch: one text or failure for each call, in order.

        Inputs are at most `ServiceInfo.max_input_chars` long; the batch has at least one call. After
        `ServiceInfo.answer_seconds` the task is cancelled and the calls fail with the code ``timeout``.

        Raises:
            NotReady: cannot answer for the moment.
            ToolFailure: the same failure for every call of the batch.
            Exception: a fault of the tool; logged, and every call of the batch fails with the code ``internal``.
        """
        ...


@runtime_checkable
class HasData(Protocol):
    """An engine whose answers come from data that may be exchanged: a model, an index."""

    @property
    def data_version(self) -> str:
        """Changes whenever an answer to the same call may; known once `Engine.start` has returned."""
        ...


def fingerprint(*parts: object) -> str:
    """Names what ``parts`` say of themselves in 16 hexadecimal digits."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ServiceInfo:
    """What a service says of itself, and its limits.

    Raises:
        ValueError: a limit that cannot hold.
    """

    tool: str
    """The tool's name in text, ``Calculator``: what the registry, a call and MCP name it."""
    service: str
    """The service's name in snake case, ``calculator``; environment variables begin with ``TOOLFORMER_CALCULATOR_``."""
    title: str
    description: str
    """What the tool does, for people and for models that choose a tool by it."""
    version: str
    input_description: str
    example_input: str
    example_output: str
    max_input_chars: int = 1_000
    """Unicode characters of one input; a longer one fails with the code ``input_too_long``."""
    max_batch: int = 64
    """Calls in one ``POST /calls``; at most `MAX_BATCH`."""
    max_body_bytes: int = 1_048_576
    """Bytes of one request body; a larger one is refused with 413."""
    takes_input: bool = True
    """Whether there is anything to say to the tool; if not, an MCP client may leave the input out."""
    takes_context: bool = False
    """Whether the engine is passed `Call.date`."""
    max_in_flight: int = 256
    """Calls being answered at once over all requests; one more is refused with 503 and ``Retry-After``."""
    answer_seconds: float = 30.0
    """Deadline for the engine's answer to one batch."""

    def __post_init__(self) -> None:
        for name in ("max_input_chars", "max_batch", "max_body_bytes", "answer_seconds"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if self.max_batch > MAX_BATCH:
            raise ValueError(f"max_batch must be at most {MAX_BATCH}, not {self.max_batch}")
        if self.max_in_flight < self.max_batch:
            raise ValueError(f"max_in_flight ({self.max_in_flight}) must admit a whole max_batch ({self.max_batch})")
