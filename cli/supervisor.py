"""Keeps components running: starts them, knows when each is ready, starts a fallen one again, stops them all.

A component that ends before it was ever ready is an error of the whole, since it will not do better the next time. One
that ends later is started again after a growing pause, a limited number of times; the others never notice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import httpx

from cli.child import Child
from cli.components import Component
from cli.console import CommandError
from cli.tethered import GRACE_SECONDS

Log = Callable[[str, str], None]
"""Takes a component's name and a line about it."""

POLL_SECONDS: Final = 0.2
PROBE_SECONDS: Final = 5.0
"""Deadline of one question for readiness."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When a fallen component is started again: at most ``limit`` times in a row.

    The pauses double from ``first_delay_s`` up to ``longest_delay_s``; one that ran for ``stable_after_s`` is forgiven
    what was before. Once ready it is asked for its health every ``look_every_s``; after ``failed_looks`` in a row
    without an answer it hangs, and is ended to be started again. All in seconds.
    """

    limit: int = 5
    first_delay_s: float = 0.5
    longest_delay_s: float = 8.0
    stable_after_s: float = 60.0
    look_every_s: float = 5.0
    look_deadline_s: float = 5.0
    failed_looks: int = 4

    def delay(self, failure: int) -> float:
        """The pause after the ``failure``-th end in a row, counted from 1."""
        return min(self.first_delay_s * 2.0 ** (failure - 1), self.longest_delay_s)


class ComponentError(CommandError):
    """A component ended and nothing can be done about it here; the message holds its last lines."""


class Supervised:
    """One component and its processes, one after the other."""

    def __init__(self, component: Component, log: Log, probe: httpx.AsyncClient, policy: RestartPolicy) -> None:
        self.component = component
        self.ready = asyncio.Event()
        """Set once it answered that it is ready, for good: what comes after is a restart's affair."""
        self.why_not_ready = "it has not answered yet"
        self._log = log
        self._probe = probe
        self._policy = policy
        self._child: Child | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Keep it running until `stop`, or until it has fallen too often.

        Raises:
            ComponentError: it ended before it was ever ready, or, an essential one, too often.
        """
        failures = 0
        while not self._stopping.is_set():
            began = asyncio.get_running_loop().time()
            child, ending = await self._run_once()
            if self._stopping.is_set():
                self._say(f"{self.component.name} {ending}")
                return
            how = f"{self.component.name} {ending}"
            if not self.ready.is_set():
                raise ComponentError(f"{how} before it was ready. Its last lines:\n{child.last_lines}")
            stable = asyncio.get_running_loop().time() - began >= self._policy.stable_after_s
            failures = 1 if stable else failures + 1
            if failures > self._policy.limit:
                message = f"{how}, {failures} times in a row: giving up. Its last lines:\n{child.last_lines}"
                if self.component.essential:
                    raise ComponentError(message)
                self._say(message)
                return
            delay = self._policy.delay(failures)
            self._say(f"{how}; starting it again in {delay:g} s ({failures} of {self._policy.limit})")
            await self._pause(delay)

    def stop(self) -> None:
        """Ask it to end (SIGTERM); `run` returns once it has."""
        self._stopping.set()
        if self._child is not None:
            self._child.terminate()

    def kill(self) -> None:
        """End at once the process that runs now, if one does."""
        if self._child is not None:
            self._child.kill()

    async def _run_once(self) -> tuple[Child, str]:
        try:
            self._child = child = await Child.start(self.component, self._say)
        except OSError as error:
            raise ComponentError(f"{self.component.name} cannot be started: {error}") from error
        self._say(f"started as process {child.pid}")
        if self._stopping.is_set():  # The request came while the process was being made.
            child.terminate()
        watching = asyncio.create_task(self._watch_readiness())
        try:
            return child, await child.ended()
        finally:
            self._child = None
            watching.cancel()

    async def _watch_readiness(self) -> None:
        while (reason := await self._ask_readiness()) is not None:
            # Why a component is not ready is worth a line once, such as the building of an index.
            if reason and reason != self.why_not_ready:
                self._say(f"not ready yet: {reason}")
                self.why_not_ready = reason
            await asyncio.sleep(POLL_SECONDS)
        self._say(f"{self.component.name} is ready")
        self.ready.set()
        await self._watch_health()

    async def _watch_health(self) -> None:
        """End the process once it hangs: `run` starts it again."""
        failed = 0
        while failed < self._policy.failed_looks:
            await asyncio.sleep(self._policy.look_every_s)
            try:
                await self._probe.get(f"{self.component.url}/health", timeout=self._policy.look_deadline_s)
                failed = 0
            except httpx.HTTPError:
                failed += 1
        if not self._stopping.is_set():
            self._say(f"{self.component.name} did not answer GET /health {failed} times in a row: ending it")
            self.kill()

    async def _ask_readiness(self) -> str | None:
        """``None`` if it is ready, else why not; an empty text while it does not answer at all."""
        try:
            response = await self._probe.get(f"{self.component.url}/ready")
            if response.status_code == httpx.codes.OK:
                return None
            return str(response.json()["error"]["message"])
        except httpx.HTTPError:
            return ""
        except (ValueError, LookupError, TypeError):
            return f"it answered with HTTP {response.status_code}"

    def _say(self, line: str) -> None:
        self._log(self.component.name, line)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


class Supervisor:
    """All components; an async context manager that has stopped every process when it ends."""

    def __init__(self, components: Sequence[Component], log: Log, policy: RestartPolicy | None = None) -> None:
        # The components are on this machine, where no proxy must come between.
        self._probe = httpx.AsyncClient(timeout=PROBE_SECONDS, trust_env=False)
        self._supervised = [
            Supervised(component, log, self._probe, policy or RestartPolicy()) for component in components
        ]
        self._runs: list[asyncio.Task[None]] = []
        self._log = log

    async def __aenter__(self) -> Self:
        self._runs = [asyncio.create_task(one.run(), name=one.component.name) for one in self._supervised]
        return self

    async def __aexit__(self, *_: object) -> None:
        for one in self._supervised:
            one.stop()
        late = (await asyncio.wait(self._runs, timeout=GRACE_SECONDS))[1]
        for run in late:
            self._log(run.get_name(), f"did not stop within {GRACE_SECONDS:g} s: killing it")
        self.kill()
        # `finished` reports what the runs have raised; here they only have to be over.
        await asyncio.gather(*self._runs, return_exceptions=True)
        await self._probe.aclose()

    async def all_ready(self) -> None:
        """Return once every component has answered that it is ready."""
        for one in self._supervised:
            await one.ready.wait()

    def waiting_for(self) -> dict[str, str]:
        """The components that are not ready, each with the reason it last gave."""
        return {one.component.name: one.why_not_ready for one in self._supervised if not one.ready.is_set()}

    async def finished(self) -> None:
        """Return when every component has ended.

        Raises:
            ComponentError: one ended that the rest cannot do without.
        """
        await asyncio.gather(*map(asyncio.shield, self._runs))

    def kill(self) -> None:
        """End every process at once."""
        for one in self._supervised:
            one.kill()
