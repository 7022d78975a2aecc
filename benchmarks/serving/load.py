"""What is asked of a server, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from demo_world.texts import documents
from toolformer.api_call import Tokenizer

_PROMPT = "Each of the {boxes} trucks carries {books} boxes, so the fleet carries"
"""The bundled model goes on with a call, in nearly any context, without being pushed to (`api_top_k` 1)."""
_OPERANDS = range(11, 99)
_CONTEXT_SEED = 20_261_121


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked for.

    ``concurrency`` clients each send their next request as soon as their last has ended. ``call_share`` of the requests
    may call a tool, and will do so once. Each makes half of ``tokens`` tokens to half as many again, after a prompt of
    its own with about ``context`` tokens of text before it.

    Raises:
        ValueError: if one of them is out of range.
    """

    requests: int
    concurrency: int = 32
    call_share: float = 1.0
    tokens: int = 128
    context: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.requests, self.concurrency, self.tokens) < 1 or self.context < 0:
            raise ValueError("requests, concurrency and tokens must be at least 1, context 0 or more")
        if not 0 <= self.call_share <= 1:
            raise ValueError(f"call_share must be from 0 to 1, not {self.call_share}")

    @property
    def longest(self) -> int:
        """Tokens that a request makes at most."""
        return self.tokens + self.tokens // 2


@dataclass(frozen=True, slots=True)
class Job:
    """One request, which may call a tool if it ``calls``."""

    number: int
    prompt: str
    tokens: int
    calls: bool


def jobs(load: Load, tokenizer: Tokenizer) -> list[Job]:
    """The requests of ``load``, in the order in which they are sent. Each depends on the seed and its number alone, and
    exactly the asked-for share of any run of them calls a tool."""
    contexts = _contexts(load, tokenizer)
    planned = []
    for number in range(load.requests):
        rng = random.Random(f"{load.seed} {number}")
        prompt = _PROMPT.format(boxes=rng.choice(_OPERANDS), books=rng.choice(_OPERANDS))
        length = rng.randint(-(-load.tokens // 2), load.longest)
        calls = int((number + 1) * load.call_share) > int(number * load.call_share)
        planned.append(Job(number, next(contexts) + prompt, length, calls))
    return planned


def _contexts(load: Load, tokenizer: Tokenizer) -> Iterator[str]:
    """A text of about ``load.context`` tokens for each request."""
    texts = (text.plain for document in documents(10**9, seed=_CONTEXT_SEED + load.seed) for text in document.texts)
    while True:
        context, length = "", 0
        while length < load.context:
            sentence = next(texts) + " "
            ids = tokenizer.encode(sentence)
            cut = b"".join(map(tokenizer.token_bytes, ids[: load.context - length])).decode(errors="ignore")
            context, length = context + cut, length + len(ids)
        yield context.rstrip() + " " if context else ""
