"""A client that asks for what a wish says, and judges what it gets."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.serving.stream import BrokenStream, Connection, Connections, Refused, post
from benchmarks.serving.tools import request_id
from benchmarks.soaking.wishes import Leave, Wish

REQUEST_SECONDS: Final = 240.0
"""What takes longer hangs: twice the gateway's own limit of a completion."""


@dataclass(slots=True)
class Tally:
    """What became of all wishes. ``faults`` is for people: one line for each answer that should not have been."""

    outcomes: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    """Completions whose client has seen their end."""
    sent: int = 0
    """Completions that were asked for."""
    faults: list[str] = field(default_factory=list)
    texts: dict[str, Counter[str]] = field(default_factory=dict)
    """The texts of wishes that must get the same, and how often each came."""


class Client:
    """Asks the gateway at ``url``; many wishes at a time."""

    def __init__(self, url: str, connections: Connections, tally: Tally) -> None:
        self._url, self._connections, self._tally = url, connections, tally

    async def ask(self, wish: Wish) -> None:
        """Ask for ``wish`` and tally what comes of it. Never raises for what the gateway does."""
        self._tally.sent += wish.completions
        request = post("/v1/completions", wish.body, {"X-Request-Id": request_id(wish.number, wish.fault)})
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                if wish.leave is not None:
                    outcome = await self._leave(wish, wish.leave, request)
                else:
                    outcome = await self._read(wish, request)
        except TimeoutError:
            outcome = self._fault(wish, "hung", f"no end after {REQUEST_SECONDS:g} s")
        except Refused as refused:
            busy = refused.status == 503
            outcome = "refused" if busy else self._fault(wish, "failed", str(refused))
        except (OSError, asyncio.IncompleteReadError) as broken:
            outcome = self._fault(wish, "lost", f"the connection ended: {broken!r}")
        except BrokenStream as broken:
            outcome = self._fault(wish, "malformed", str(broken))
        self._tally.outcomes[outcome] += 1

    async def _leave(self, wish: Wish, leave: Leave, request: bytes) -> str:
        """Ask and leave when it is time; an answer that was faster is judged as any other."""
        connection = await Connection.open(self._url)
        try:
            if wish.body["stream"]:
                return await self._leave_stream(wish, leave, connection, request)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(leave.seconds):
                    self._judge(wish, (await connection.whole(request))["choices"])
                    return "answered"
            return "left"
        finally:
            if leave.reset:
                connection.reset()
            else:
                connection.close()

    async def _leave_stream(self, wish: Wish, leave: Leave, connection: Connection, request: bytes) -> str:
        if leave.events == 0:
            await connection.send(request)
            return "left"
        seen: list[dict[str, Any]] = []
        async with contextlib.aclosing(connection.events(request)) as events:
            async for event in events:
                seen.append(event)
                calling = any("tool_event" in choice for choice in event.get("choices", ()))
                if len(seen) == leave.events or (leave.at_call and calling):
                    return "left"
        self._judge(wish, _ends(seen))
        return "answered"

    async def _read(self, wish: Wish, request: bytes) -> str:
        async with self._connections.one() as connection:
            if wish.body.get("stream"):
                choices = _ends([event async for event in connection.events(request)])
            else:
                choices = (await connection.whole(request))["choices"]
        self._judge(wish, choices)
        if wish.same_as and len(choices) == 1:
            self._tally.texts.setdefault(wish.same_as, Counter())[choices[0]["text"]] += 1
        return "answered"

    def _judge(self, wish: Wish, choices: list[dict[str, Any]]) -> None:
        """Whether every completion of the wish has one end, and its text shows the calls that were made."""
        if sorted(choice["index"] for choice in choices) != list(range(wish.completions)):
            ends = [choice["index"] for choice in choices]
            raise BrokenStream(f"{wish.completions} completions have ends {ends}")
        for choice in choices:
            self._tally.outcomes[f"completion: {'timeout' if choice['timed_out'] else choice['finish_reason']}"] += 1
            made = 0
            for call in choice["tool_calls"]:
                if (call["output"] is None) == (call["error"] is None):
                    raise BrokenStream(f"a call has no output or error, or both: {call}")
                made += call["error"] is None
                self._tally.calls["ok" if call["error"] is None else call["error"].partition(":")[0]] += 1
            if "stop" not in wish.body and "echo" not in wish.body and choice["text"].count(" -> ") < made:
                raise BrokenStream(f"{made} calls are not all in the text {choice['text']!r}")
        self._tally.answered += len(choices)

    def _fault(self, wish: Wish, outcome: str, why: str) -> str:
        self._tally.faults.append(f"request {wish.number}: {outcome}: {why}")
        return outcome


def _ends(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The terminal chunks of a stream, with the whole texts.

    Raises:
        BrokenStream: if an error is in it, or something follows the end of its choice.
    """
    ended: set[int] = set()
    parts: dict[int, list[str]] = {}
    ends: list[dict[str, Any]] = []
    for event in events:
        if "error" in event:
            raise BrokenStream(f"an error in the stream: {event['error']}")
        for choice in event["choices"]:
            if choice["index"] in ended:
                raise BrokenStream(f"choice {choice['index']} goes on behind its end: {choice}")
            parts.setdefault(choice["index"], []).append(choice["text"])
            if choice["finish_reason"] is not None:
                ended.add(choice["index"])
                ends.append(choice)
    if not events or "usage" not in events[-1] or events[-1]["choices"]:
        raise BrokenStream("the counts do not come last")
    return [{**end, "text": "".join(parts[end["index"]])} for end in ends]
