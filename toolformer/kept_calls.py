"""Not asking twice: results that are kept answer calls, and identical calls under way at once are made once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolformer.result_cache import CacheUnavailable, CallKey, Lookup, ResultCache
from toolformer.tool_versions import ToolVersions
from toolformer.tool_wire import ErrorCode, Request, ToolError
from toolformer.tools import Tool


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one call: an output or an error, the requests it took, whether it is another call's output."""

    outcome: str | ToolError
    attempts: int
    cached: bool = False


Ask = Callable[[Sequence[Request]], Awaitable[tuple[Sequence[Answer], str]]]
"""Asks the tool's service, within bounds of its own, for answers in the order of the calls and the version that they
hold for; raises nothing for trouble with the service."""

_Flight = asyncio.Future[Answer | None]
"""A call under way; ``None`` if its caller gave it up."""


def ignore_lookup(tool: str, lookup: Lookup) -> None:
    """Nobody counts."""


class KeptCalls:
    """Answers the calls of one client from a cache where it can.

    Args:
        cache: where outputs are kept.
        versions: what the services' versions are.
        saw: called with each call that was looked for: the tool's name and what came of it.
    """

    def __init__(
        self, cache: ResultCache, versions: ToolVersions, saw: Callable[[str, Lookup], None] = ignore_lookup
    ) -> None:
        self._cache: Final = cache
        self._versions: Final = versions
        self._saw: Final = saw
        self._flights: Final[dict[CallKey, _Flight]] = {}

    async def answers(self, tool: Tool, requests: Sequence[Request], ask: Ask, patience: float) -> list[Answer]:
        """An answer to each request, in order.

        Args:
            tool: the tool.
            requests: calls of it.
            ask: asks its service for those that nothing kept answers.
            patience: seconds from now until which identical calls of others are waited for.
        """
        ends = asyncio.get_running_loop().time() + patience
        keys = await self._keys(tool, requests, patience)
        answered = await self._kept(tool, keys)
        led: dict[int, CallKey | None] = {}
        joined: dict[int, _Flight] = {}
        own: dict[CallKey, _Flight] = {}
        for at, key in enumerate(keys):
            if at in answered:
                continue
            if key is not None and key in self._flights:
                joined[at] = self._flights[key]
                self._saw(tool.name, "shared")
                continue
            led[at] = key
            if key is not None:
                own[key] = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            answered |= await self._asked(tool, requests, led, ask, own)
        finally:
            for key, flight in own.items():
                del self._flights[key]
                if not flight.done():
                    flight.set_result(None)
        answered |= await _arrived(joined, set(own.values()), ends)
        left = {at: keys[at] for at in joined if at not in answered}
        answered |= await self._asked(tool, requests, left, ask, {})
        return [answered[at] for at in range(len(requests))]

    async def _keys(self, tool: Tool, requests: Sequence[Request], patience: float) -> list[CallKey | None]:
        """The key of each call whose output may be kept."""
        version = None
        if any(tool.cacheable(request.date) for request in requests):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    version = await self._versions.of(tool)
        if version is None:  # nobody knows which of the outputs kept would be right
            return [None] * len(requests)
        keys = [CallKey.of(tool, version, request) if tool.cacheable(request.date) else None for request in requests]
        return [key if key is not None and key.fits() else None for key in keys]

    async def _kept(self, tool: Tool, keys: Sequence[CallKey | None]) -> dict[int, Answer]:
        """The outputs that are kept, by place."""
        wanted = list(dict.fromkeys(key for key in keys if key is not None))
        if not wanted:
            return {}
        try:
            outputs = dict(zip(wanted, await self._cache.get(wanted), strict=True))
        except CacheUnavailable:
            self._count(tool, ("unavailable" for _ in wanted))
            return {}
        self._count(tool, ("miss" if output is None else "hit" for output in outputs.values()))
        return {
            at: Answer(output, attempts=0, cached=True)
            for at, key in enumerate(keys)
            if key is not None and (output := outputs[key]) is not None
        }

    async def _asked(
        self,
        tool: Tool,
        requests: Sequence[Request],
        places: Mapping[int, CallKey | None],
        ask: Ask,
        own: Mapping[CallKey, _Flight],
    ) -> dict[int, Answer]:
        """The service's answers to the requests at ``places``; they end the flights, and outputs are kept."""
        if not places:
            return {}
        answers, version = await ask([requests[at] for at in places])
        keyed = [(key, answer) for key, answer in zip(places.values(), answers, strict=True) if key is not None]
        for key, answer in keyed:
            if key in own:
                own[key].set_result(answer)
        # The service may have been exchanged since its version was asked for.
        outputs = {
            key._replace(service_version=version): answer.outcome
            for key, answer in keyed
            if isinstance(answer.outcome, str) and key.fits(answer.outcome)
        }
        if outputs:
            self._versions.heard(tool, version)
            with contextlib.suppress(CacheUnavailable):  # the cache itself says so in the log
                await self._cache.put(outputs)
        return dict(zip(places, answers, strict=True))

    def _count(self, tool: Tool, lookups: Iterable[Lookup]) -> None:
        for lookup in lookups:
            self._saw(tool.name, lookup)


async def _arrived(joined: Mapping[int, _Flight], own: set[_Flight], ends: float) -> dict[int, Answer]:
    """What the calls that were joined came to. An error of another caller's is left out: its patience was its own."""
    if not joined:
        return {}
    left = ends - asyncio.get_running_loop().time()
    await asyncio.wait(set(joined.values()), timeout=max(left, 0.0))
    answered = {}
    for at, flight in joined.items():
        if not flight.done():
            message = "an identical call was waited for until the time was up"
            answered[at] = Answer(ToolError(ErrorCode.TIMEOUT, message), 0)
        elif (answer := flight.result()) is not None and (flight in own or isinstance(answer.outcome, str)):
            answered[at] = replace(answer, attempts=0, cached=isinstance(answer.outcome, str))
    return answered
