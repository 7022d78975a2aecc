"""An engine at work: loaded in the background, guarded by limits and a deadline, counted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from services.base.engine import Call, CannotStart, Engine, HasData, NotReady, ServiceInfo, ToolFailure
from toolformer.http_api import ApiError
from toolformer.http_api.metrics import SECONDS

logger = logging.getLogger("services.base")


@dataclass(frozen=True)
class CallAnswer:
    """What became of one call: a text or the reason there is none, and the milliseconds the engine took."""

    outcome: str | ToolFailure
    duration_ms: float


class BusyError(ApiError):
    """As many calls as the service admits are being answered."""

    def __init__(self, limit: int) -> None:
        message = f"the service is answering as many calls as it can ({limit}); try again in a second"
        super().__init__(503, message, code="busy", headers={"Retry-After": "1"})


class ToolRunner:
    """Stands between the service's front doors (HTTP and MCP) and its engine."""

    def __init__(self, info: ServiceInfo, engine: Engine, registry: CollectorRegistry) -> None:
        self.info = info
        self.engine = engine
        self._not_ready: str | None = "it has not been started"
        self._loading: asyncio.Task[None] | None = None
        self._in_flight = 0
        self.on_cannot_start: Callable[[], None] = lambda: None
        """Called when the engine can never start, which has been logged then."""

        self._calls = Counter(
            "tool_calls", "Tool calls by outcome: ok or the error's code.", ["outcome"], registry=registry
        )
        self._seconds = Histogram(
            "tool_call_duration_seconds", "Seconds the engine took for a call.", buckets=SECONDS, registry=registry
        )
        batch_sizes = [2**power for power in range(info.max_batch.bit_length() + 1)]
        self._batch_size = Histogram(
            "tool_batch_size", "Calls given to the engine together.", buckets=batch_sizes, registry=registry
        )
        gauge = Gauge("tool_calls_in_flight", "Calls being answered now.", registry=registry)
        gauge.set_function(lambda: self._in_flight)

    def begin(self) -> None:
        """Start the engine in the background; `require_ready` says when it is done."""
        self._not_ready = "it is still loading"
        self._loading = asyncio.create_task(self._load(), name=f"load {self.info.service}")

    @property
    def version(self) -> str:
        """What outputs depend on besides the call: the service's version, and that of its data where it has some."""
        data = self.engine.data_version if self._not_ready is None and isinstance(self.engine, HasData) else ""
        return f"{self.info.version}+{data}" if data else self.info.version

    async def end(self) -> None:
        """Stop loading if that is still going on, and stop the engine."""
        if self._loading is not None:
            self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loading
        self._not_ready = "it is shutting down"
        try:
            await self.engine.stop()
        except Exception:
            logger.exception("%s: the engine did not stop cleanly", self.info.service)

    def require_ready(self) -> None:
        """Pass if the engine can answer.

        Raises:
            NotReady: it is loading, could not start, or is shutting down; the text says which.
        """
        if self._not_ready is not None:
            raise NotReady(f"{self.info.service} cannot answer: {self._not_ready}")

    @contextlib.contextmanager
    def admitted(self, calls: int = 1) -> Iterator[None]:
        """Hold room for this many calls.

        Raises:
            NotReady: see `require_ready`.
            BusyError: there is no room.
        """
        self.require_ready()
        if self._in_flight + calls > self.info.max_in_flight:
            raise BusyError(self.info.max_in_flight)
        self._in_flight += calls
        try:
            yield
        finally:
            self._in_flight -= calls

    async def answer(self, calls: Sequence[Call]) -> list[CallAnswer]:
        """Answer calls together, in order; a call that is too long never reaches the engine.

        Raises:
            NotReady: the engine cannot answer now.
            BusyError: too many calls are being answered already.
        """
        limit = self.info.max_input_chars
        with self.admitted(len(calls)):
            began = time.perf_counter()
            fitting = [self._for_engine(call) for call in calls if len(call.input) <= limit]
            outcomes = iter(await self._ask(fitting) if fitting else [])
            seconds = time.perf_counter() - began

        answers = []
        for call in calls:
            if len(call.input) <= limit:
                answers.append(CallAnswer(next(outcomes), round(seconds * 1000, 3)))
                self._seconds.observe(seconds)
            else:
                message = f"the input has {len(call.input):,} characters; at most {limit:,} are allowed"
                answers.append(CallAnswer(ToolFailure("input_too_long", message), 0.0))
            outcome = answers[-1].outcome
            self._calls.labels("ok" if isinstance(outcome, str) else outcome.code).inc()
        return answers

    def _for_engine(self, call: Call) -> Call:
        return call if self.info.takes_context else Call(call.input)

    async def _ask(self, calls: Sequence[Call]) -> Sequence[str | ToolFailure]:
        """The engine's outcomes, one for each call whatever the engine does."""
        self._batch_size.observe(len(calls))
        failure: ToolFailure
        try:
            async with asyncio.timeout(self.info.answer_seconds):
                outcomes = await self.engine.answer(calls)
            _check(outcomes, len(calls))
            return outcomes
        except NotReady:
            raise
        except ToolFailure as raised:
            failure = raised
        except TimeoutError:
            logger.error("%s: no answer within %g s", self.info.service, self.info.answer_seconds)
            failure = ToolFailure("timeout", f"the tool did not answer within {self.info.answer_seconds:g} seconds")
        except Exception:
            logger.exception("%s: the engine failed on %d call(s)", self.info.service, len(calls))
            failure = ToolFailure("internal", "the tool failed unexpectedly; it is in the service's log")
        return [failure] * len(calls)

    async def _load(self) -> None:
        began = time.perf_counter()
        try:
            await self.engine.start()
        except CannotStart as error:
            self._not_ready = f"it cannot start: {error}"
            logger.error("%s cannot start: %s", self.info.service, error)
            self.on_cannot_start()
        except Exception as error:
            self._not_ready = f"it could not start ({type(error).__name__}: {error}); mend that and start it again"
            logger.exception("%s: the engine could not start", self.info.service)
        else:
            self._not_ready = None
            logger.info("%s: ready after %.2f s", self.info.service, time.perf_counter() - began)


def _check(outcomes: Sequence[object], expected: int) -> None:
    """Hold the engine to its contract, so that a fault of its own is not taken for the answer to another call."""
    if len(outcomes) != expected:
        raise RuntimeError(f"the engine gave {len(outcomes)} answers to {expected} calls")
    for outcome in outcomes:
        if not isinstance(outcome, str | ToolFailure):
            raise TypeError(f"the engine answered with {type(outcome).__name__}, not a text or a ToolFailure")
        if isinstance(outcome, str):
            outcome.encode()  # Raises where the text holds half a character, which no response can carry.
