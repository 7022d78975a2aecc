"""What the clients of a soak ask for, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final, Literal

from demo_world.texts import documents

Fault = Literal["none", "slow", "error", "status", "garbage", "wrong_tool", "large", "hang", "hang_up"]
"""What becomes of a request's tool calls; see `tools`."""
FAULTS: Final[tuple[Fault, ...]] = ("slow", "error", "status", "garbage", "wrong_tool", "large", "hang", "hang_up")

_FAULT_SHARE: Final = 0.3
_LEAVE_SHARE: Final = 0.2
_PLAIN_PROMPTS: Final = 24
_CONTEXTS: Final = 40
_WORLD_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Leave:
    """When a client leaves: behind so many events of its stream (0: as soon as it has asked), at its first call, or
    after so many seconds. It hangs up properly or, with ``reset``, not."""

    events: int | None = None
    at_call: bool = False
    seconds: float | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """One request: its ``body``, the completions it asks for, what happens to its calls, and whether its client waits
    for the end. ``same_as`` names wishes that must all get the same text."""

    number: int
    body: dict[str, Any]
    completions: int
    fault: Fault
    leave: Leave | None
    same_as: str = ""


class Wishes:
    """Makes wishes of ``seed``; each depends on the seed and its number alone."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        texts = [text.plain for document in documents(_CONTEXTS, seed=_WORLD_SEED) for text in document.texts]
        self._contexts = [" ".join(texts[at : at + 12])[:2_000] for at in range(_CONTEXTS)]

    def wish(self, number: int) -> Wish:
        """Wish ``number``."""
        rng = random.Random(f"{self._seed} {number}")
        if rng.random() < 0.15:
            return self._plain(number, rng)
        prompts = [self._prompt(rng) for _ in range(rng.choices((1, 2), (95, 5))[0])]
        copies = rng.choices((1, 2, 3, 4), (60, 20, 10, 10))[0]
        fault = rng.choice(FAULTS) if rng.random() < _FAULT_SHARE else "none"
        body: dict[str, Any] = {
            "prompt": prompts if len(prompts) > 1 else prompts[0],
            "n": copies,
            "max_tokens": rng.randint(4, 32),
            "max_calls": rng.choices((1, 2, 3), (7, 2, 1))[0],
            "api_top_k": rng.choice((1, 10)),
            "tool_timeout": rng.choice((0.2, 0.5, 2.0)),
            "stream": rng.random() < 0.7,
        }
        if rng.random() < 0.3:
            body |= {"temperature": 0.8, "seed": rng.randrange(10**6), "top_p": rng.choice((0.9, 1.0))}
        if rng.random() < 0.15:
            body["stop"] = rng.choice((["."], ["books", "Mon"], ["\n", "the"]))
        if rng.random() < 0.1:
            body |= {"logprobs": 2, "echo": rng.random() < 0.5}
        if body["stream"]:
            body |= {"stream_options": {"include_usage": True}, "stream_tool_events": True}
        leave = self._leave(rng, stream=body["stream"]) if rng.random() < _LEAVE_SHARE else None
        return Wish(number, body, len(prompts) * copies, fault, leave)

    def _plain(self, number: int, rng: random.Random) -> Wish:
        """A wish that others have too: whatever else runs, the text must be the same."""
        which = rng.randrange(_PLAIN_PROMPTS)
        prompt = self._contexts[which][: 120 + 10 * which]
        body = {"prompt": prompt, "max_tokens": 16, "tools": []}
        return Wish(number, body, 1, "none", None, same_as=f"plain {which}")

    def _prompt(self, rng: random.Random) -> str:
        boxes, books = rng.randint(11, 998), rng.randint(11, 98)
        short = rng.choice((f"Each of the {boxes} boxes holds {books} books, so together they hold", "Today is"))
        return f"{rng.choice(self._contexts)} {short}" if rng.random() < 0.3 else short

    @staticmethod
    def _leave(rng: random.Random, *, stream: bool) -> Leave:
        reset = rng.random() < 0.5
        if not stream:
            return Leave(seconds=rng.choice((0.0, 0.05, 0.3)), reset=reset)
        at_call = rng.random() < 0.4
        return Leave(events=None if at_call else rng.choice((0, 1, 2, 5)), at_call=at_call, reset=reset)
