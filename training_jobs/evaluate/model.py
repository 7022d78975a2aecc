"""The model under test, reached over HTTP: this project's gateway, or any server of OpenAI's completions."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import httpx

from toolformer.credentials import gateway_credentials
from toolformer.names import did_you_mean, find_name
from toolformer.retry_after import retry_after_s
from training_jobs.evaluate.answers import Call
from training_jobs.evaluate.conditions import Condition

_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""What may be otherwise in a moment."""
_REFUSED: Final = frozenset({400, 413})
"""What this prompt will never get past, while others do."""
_LONGEST_WAIT_S: Final = 30.0


class ModelTrouble(Exception):  # noqa: N818 - reads as what happened
    """The model cannot be asked at all; the message says why and what to do."""


class RequestFailed(Exception):  # noqa: N818 - reads as what happened
    """One request came to nothing, after retries."""


class PromptRefused(Exception):  # noqa: N818 - reads as what happened
    """The server will never take this prompt, as one that is too long."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said, without call text, the calls that it made, and whether its tokens ran out."""

    text: str
    calls: tuple[Call, ...] = ()
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """How requests are made: ``deadline_s`` seconds for one with its ``attempts`` and the waits between them, the first
    of ``first_wait_s`` seconds and each twice as long as the one before."""

    deadline_s: float = 180.0
    attempts: int = 4
    first_wait_s: float = 0.5


@dataclass(slots=True)
class Tools:
    """What a gateway says about its tools: names, and why some cannot answer."""

    names: tuple[str, ...] = ()
    not_ready: dict[str, str] = field(default_factory=dict)


class ServedModel:
    """A model behind ``url``; an async context manager.

    Once entered, ``name`` is the model's, and ``gateway`` says whether the server is this project's gateway, which
    takes settings of calls.
    """

    def __init__(self, url: str, name: str | None = None, reach: Reach | None = None, connections: int = 64) -> None:
        self.url, self.name = url.rstrip("/"), name or ""
        self.gateway = False
        self.tools = Tools()
        self._reach = reach or Reach()
        self._client = httpx.AsyncClient(
            base_url=self.url.removesuffix("/v1"),
            timeout=self._reach.deadline_s,
            trust_env=False,
            headers=gateway_credentials(),
            limits=httpx.Limits(max_connections=connections),
        )

    async def __aenter__(self) -> Self:
        """Find out what is served.

        Raises:
            ModelTrouble: if the server cannot be reached or is not ready.
        """
        try:
            await self._survey()
        except BaseException:
            await self._client.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    def named_tools(self, given: Sequence[str] | None) -> tuple[str, ...]:
        """The gateway's spelling of the tools that a person calls ``given``, all of them for ``None``; an unknown one
        stays as it is, for `check_tools`."""
        return self.tools.names if given is None else tuple(find_name(one, self.tools.names) or one for one in given)

    def check_tools(self, wanted: Sequence[str]) -> None:
        """Make sure that calls can be answered.

        Raises:
            ModelTrouble: if the server is no gateway, does not have a tool of ``wanted``, or one is not ready.
        """
        if not self.gateway:
            raise ModelTrouble(f"{self.url} is no gateway of this project and calls no tools: give --k 0")
        if unknown := [name for name in wanted if name not in self.tools.names]:
            raise ModelTrouble(
                f"--tools: the gateway has no {unknown[0]!r}; {did_you_mean(unknown[0], self.tools.names)}"
                f"its tools are: {', '.join(self.tools.names)}"
            )
        if down := [f"{name} ({self.tools.not_ready[name]})" for name in wanted if name in self.tools.not_ready]:
            raise ModelTrouble(
                f"tools of the gateway {self.url} are not ready: {', '.join(down)}; start them (toolformer up), leave "
                "them out with --tools, or measure without calls (--k 0)"
            )

    async def complete(
        self, prompt: str, condition: Condition, *, tools: Sequence[str], date: dt.date | None, max_tokens: int
    ) -> Completion:
        """What the model says behind ``prompt``, greedily.

        Raises:
            PromptRefused: if the server will never take the prompt.
            RequestFailed: if there is no answer in spite of retries.
            ModelTrouble: if the server refuses what every request has, such as the key.
        """
        body: dict[str, Any] = {"model": self.name, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        if self.gateway:
            body |= {"show_calls": False, "tools": [] if condition.disabled else list(tools)}
            if not condition.disabled:
                body |= {"api_top_k": condition.k, "max_calls": condition.max_calls}
            if date is not None:
                body["tool_context"] = {"date": date.isoformat()}
        try:
            async with asyncio.timeout(self._reach.deadline_s):
                response = await self._post(body)
        except TimeoutError:
            raise RequestFailed(f"no answer within {self._reach.deadline_s:g} s") from None
        return _read(response)

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        wait = self._reach.first_wait_s
        for attempt in range(1, self._reach.attempts + 1):
            trouble, asked_wait = "", 0.0
            try:
                response = await self._client.post("/v1/completions", json=body)
            except httpx.HTTPError as error:
                trouble = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                if response.is_success:
                    return response
                trouble = f"HTTP {response.status_code}: {_message(response)}"
                if response.status_code in _REFUSED:
                    raise PromptRefused(trouble)
                if response.status_code not in _PASSING:
                    raise ModelTrouble(f"the server {self.url} refused a request: {trouble}")
                asked_wait = retry_after_s(response.headers)
            if attempt < self._reach.attempts:
                await asyncio.sleep(min(max(wait, asked_wait), _LONGEST_WAIT_S))
                wait *= 2
        raise RequestFailed(f"{trouble} (tried {self._reach.attempts} times)")

    async def _survey(self) -> None:
        remedy = "start it first (toolformer up), or name another with --gateway"
        try:
            tools = await self._client.get("/v1/tools")
            models = await self._client.get("/v1/models")
            ready = await self._client.get("/ready") if tools.is_success else None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ModelTrouble(f"the gateway {self.url} cannot be reached ({error}): {remedy}") from None
        if ready is not None and not ready.is_success:
            raise ModelTrouble(f"the gateway {self.url} is not ready (HTTP {ready.status_code}): {remedy}")
        if not models.is_success:
            raise ModelTrouble(
                f"{self.url}/v1/models: HTTP {models.status_code}: {_message(models)}; is this a server of OpenAI's "
                "completions, and TOOLFORMER_API_KEY its key?"
            )
        try:
            self.name = self.name or str(models.json()["data"][0]["id"])
            if tools.is_success:
                self.gateway = True
                listed = tools.json()["data"]
                down = {
                    str(one["name"]): str(one.get("reason") or "no reason given") for one in listed if not one["ready"]
                }
                self.tools = Tools(tuple(str(one["name"]) for one in listed), down)
        except (ValueError, LookupError, TypeError) as error:
            raise ModelTrouble(f"{self.url}: its lists of models and tools cannot be read ({error!r})") from error


def _read(response: httpx.Response) -> Completion:
    try:
        choice = response.json()["choices"][0]
        text = choice["text"]
        if not isinstance(text, str):
            raise TypeError("text is no string")
        calls = tuple(
            Call(call["tool"], call["input"], call["output"], call["error"]) for call in choice.get("tool_calls") or ()
        )
        timed_out = bool(choice.get("timed_out"))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RequestFailed(f"the answer is not of OpenAI's shape ({error!r})") from error
    if timed_out:
        raise RequestFailed("the gateway's time limit cut the completion off")
    return Completion(text, calls, choice.get("finish_reason") == "length")


def _message(response: httpx.Response) -> str:
    """What an error's body says, in one short line."""
    try:
        message = response.json()["error"]["message"]
    except (ValueError, LookupError, TypeError):
        message = response.text
    return " ".join(str(message).split())[:300]
