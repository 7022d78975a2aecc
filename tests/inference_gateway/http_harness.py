"""The gateway over real sockets: real engine, cache, decoding machine and tool client; only what the model writes
is a script."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from collections.abc import Sequence as Many
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx
import torch
from fastapi import FastAPI
from torch import Tensor

from inference_gateway.app import create_app
from inference_gateway.backends.local import LocalBackend
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.sampling import Sampler
from inference_gateway.engine.sequence import Sequence
from inference_gateway.settings import GatewaySettings
from tests.support.models import SMALL, random_model
from tests.support.scripted import Script
from tests.support.serving import serving as serving
from tests.support.vocabularies import small_tokenizer
from toolformer.http_api import Tracing
from toolformer.result_cache import ResultCache
from toolformer.tools import ToolRegistry

WIDE: Final = " “größer”\u2028\u0085 🙂 end"
WRITES: Final = [
    ("Sum:", " It is [Calculator(24 * 17) ->"),
    ("Sum: It is", " unknown."),
    ("408]", " 408 books."),
    ("Day:", " Now [Calendar() ->"),
    ("Clock:", " It is [Clock(16:30) ->"),
    ("+9.0h]", " later."),
    ("Two:", " One [Calculator(1 + 1) ->"),
    ("-> 2]", " and [Calculator(2 + 2) ->"),
    ("-> 4]", " done."),
    ("Same:", " So [Calculator(3 * 3) ->"),
    ("-> 9]", " or [Calculator(3 * 3) ->"),
    ("-> 9] or", " not."),
    ("Wide:", WIDE),
    ("Long:", " on and on" * 60),
    ("Slow:", " on and on" * 60),
    ("Closed:", " So [Calculator(1 + 2)] it is."),
    ("Plain:", " a plain text."),
]
"""What the model writes (the second) where a text ends with the first; the first rule that fits holds, without one
it ends. Steps with ``Slow:`` take a while, so that others have to wait."""

CLOSED: Final = "http://127.0.0.1:9"
"""An address where nobody listens."""


class ScriptedSampler(Sampler):
    """Chooses the tokens of `WRITES`, but none that the machine's rule forbids."""

    def __init__(self, vocabulary: CallVocabulary, device: torch.device) -> None:
        super().__init__(vocabulary, device)
        self._slow, self._script = tuple(small_tokenizer().encode("Slow:")), Script(WRITES)

    def choose(self, logits: Tensor, sequences: Many[Sequence]) -> list[tuple[int, bool]]:
        if any(sequence.request.prompt_ids == self._slow for sequence in sequences):
            time.sleep(0.05)
        return [(self._script.follows(one.tokens_from(0), one.machine.rule().forbids), False) for one in sequences]


@dataclass(frozen=True)
class Gateway:
    """A running gateway."""

    url: str
    http: httpx.AsyncClient
    app: FastAPI
    backend: LocalBackend

    async def complete(self, prompt: Any, **fields: Any) -> dict[str, Any]:
        """A completion as JSON, which must succeed."""
        body = {"prompt": prompt, "max_tokens": 40, "tool_timeout": 60, **fields}
        response = await self.http.post("/v1/completions", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def stream(self, prompt: Any, **fields: Any) -> Stream:
        """A streamed completion, read to its end."""
        body = {"prompt": prompt, "max_tokens": 40, "tool_timeout": 60, "stream": True, **fields}
        response = await self.http.post("/v1/completions", json=body)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        return Stream.read(response.content)

    async def idle(self) -> None:
        """Return once no sequence holds anything; fails if that does not come."""
        async with asyncio.timeout(60):
            while True:
                stats = self.backend.stats()
                if (stats.waiting, stats.running, stats.in_call, stats.held_tokens) == (0, 0, 0, 0):
                    return
                await asyncio.sleep(0.01)

    async def metric(self, sample: str) -> float:
        """The value of a sample of ``/metrics``, 0 if it is not there."""
        lines = (await self.http.get("/metrics")).text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{sample} ")), 0.0)


@dataclass(frozen=True)
class Stream:
    """What a stream held: its chunks, and how many comments."""

    chunks: list[dict[str, Any]]
    comments: int

    @classmethod
    def read(cls, content: bytes) -> Stream:
        """Take a whole stream apart, strictly: events and comments, ``[DONE]`` once and last."""
        assert content.endswith(b"\n\n")
        pieces = content.decode("ascii").removesuffix("\n\n").split("\n\n")
        assert pieces.pop() == "data: [DONE]"
        comments = [piece for piece in pieces if piece.startswith(":")]
        events = [piece for piece in pieces if not piece.startswith(":")]
        assert all(event.startswith("data: {") and "\n" not in event for event in events)
        return cls([json.loads(event.removeprefix("data: ")) for event in events], len(comments))

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The choices of all chunks, in the order in which they came."""
        return [choice for chunk in self.chunks for choice in chunk.get("choices", [])]

    def text(self, index: int = 0) -> str:
        """The text of choice ``index``."""
        return "".join(choice["text"] for choice in self.choices if choice["index"] == index)

    def terminals(self, index: int = 0) -> list[dict[str, Any]]:
        """The chunks of choice ``index`` that say that it has ended."""
        return [c for c in self.choices if c["index"] == index and c["finish_reason"] is not None]


async def answered(http: httpx.AsyncClient, path: str, status: int, **request: Any) -> httpx.Response:
    """The first answer to ``GET path`` that has this ``status``."""
    async with asyncio.timeout(60):
        while (answer := await http.get(path, **request)).status_code != status:  # noqa: ASYNC110 - it says so if asked
            await asyncio.sleep(0.01)
    return answer


def bearer(key: str) -> dict[str, str]:
    """The header that carries an API key."""
    return {"Authorization": f"Bearer {key}"}


def tools_at(urls: Mapping[str, str]) -> ToolRegistry:
    """The packaged tools, those of ``urls`` there and all others down."""
    names = ToolRegistry.load(files=[], environ={}).names()
    environ = {f"TOOLFORMER_TOOL_{name.upper()}_URL": urls.get(name, CLOSED) for name in names}
    return ToolRegistry.load(files=[], environ=environ)


def random_backend(sampler: type[Sampler] = Sampler, **limits: Any) -> LocalBackend:
    """A small GPT-J of random weights, sampled for real."""
    settings = EngineLimits(**{"max_model_len": 256, "max_sequences": 8, **limits})
    return LocalBackend(random_model(), small_tokenizer(), "scripted", settings, sampler)


def scripted_backend(**limits: Any) -> LocalBackend:
    """The same, but it writes `WRITES`."""
    return random_backend(ScriptedSampler, **limits)


@asynccontextmanager
async def gateway(
    urls: Mapping[str, str] | None = None,
    limits: Mapping[str, int] | None = None,
    key: str = "",
    cache: ResultCache | None = None,
    make: Callable[..., Any] = scripted_backend,
    tracing: Tracing | None = None,
    registry: ToolRegistry | None = None,
    **settings: Any,
) -> AsyncIterator[Gateway]:
    """A gateway that is ready, with the tools of ``urls``; at the end nothing may be left in its engine.

    ``key`` is the API key that the client uses, ``cache`` what keeps tools' results; ``make`` gives a backend of those
    ``limits``, ``tracing`` takes the spans; ``registry`` has other tools than those of ``urls``.
    """
    assert SMALL.n_positions == 256
    backend = make(**(limits or {}))
    app = create_app(lambda: backend, registry or tools_at(urls or {}), GatewaySettings(**settings), cache, tracing)
    headers = bearer(key) if key else {}
    async with (
        serving(app) as url,
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, headers=headers) as http,
    ):
        # `/ready` would ask the tools as well, and some of a test's tools answer nothing but calls.
        await answered(http, "/v1/models", 200)
        running = Gateway(url, http, app, backend)
        yield running
        await running.idle()
