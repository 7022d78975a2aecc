"""A model on a server, for many texts at once: ``/v1/completions`` with ``prompt_logprobs``, as vLLM speaks it.

For a model that outgrows one machine. Nothing is held here. Three things differ from a local model:

- A server may compute the shared prompt anew for each text: vLLM's prefix cache serves samples, but not requests for
  ``prompt_logprobs``.
- A server reports the log probabilities of the ``prompt_tops`` likeliest tokens at each place, by default 20, the most
  that vLLM gives unless it is set otherwise. At most 20 tokens can have more than 1/21 each, so positions with
  ``tau_s`` = 0.05 are found exactly; with ``tau_s`` = 0 only those where a call is among the 20 likeliest.
- Samples are drawn by the server, from a seed that is the first number of the stream of the place's first sample."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import httpx

from language_model.bulk.interface import Place, PromptedText, SamplingRule, Targets, barred_elsewhere

_T = TypeVar("_T")
_R = TypeVar("_R")

_RETRIED: Final = {408, 429, 500, 502, 503, 504}
_MESSAGE_CHARACTERS: Final = 300
_SEEDS: Final = 2**31
_MOST_STOPS: Final = 4
"""Stop strings of one request; vLLM takes no more."""


class ServerTrouble(Exception):  # noqa: N818 - reads as what happened
    """The model server did not answer, or not as it should. The message names the address and the remedy."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the server is and how it is asked.

    ``url``: before ``/v1``. ``model``: its name there. ``max_positions``: its ``--max-model-len``. ``begin_id``: the
    token that is before a text, if the model has one. ``timeout_s``: of one request, which is tried ``attempts``
    times. ``connections``: requests at once. ``prompt_tops``: likeliest tokens reported at a place of a prompt
    (``--max-logprobs``)."""

    url: str
    model: str
    max_positions: int
    begin_id: int | None = None
    api_key: str | None = None
    timeout_s: float = 300.0
    attempts: int = 5
    connections: int = 32
    prompt_tops: int = 20

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url must be an address such as http://127.0.0.1:8000, not {self.url!r}")
        for name in ("max_positions", "timeout_s", "attempts", "connections", "prompt_tops"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0")


class BulkServer:
    """A model on a server; see :class:`~language_model.bulk.interface.BulkModel`. Close it, or use it in ``with``."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        headers = {"authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        limits = httpx.Limits(max_connections=settings.connections, max_keepalive_connections=settings.connections)
        self._client = httpx.Client(headers=headers, timeout=settings.timeout_s, limits=limits)
        self._threads = ThreadPoolExecutor(settings.connections, thread_name_prefix="model-server")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections and threads."""
        self._threads.shutdown(cancel_futures=True)
        self._client.close()

    @property
    def begin_id(self) -> int | None:
        return self.settings.begin_id

    @property
    def max_positions(self) -> int:
        return self.settings.max_positions

    def hold(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """The prompt's ids."""
        return tuple(prompt)

    def read(self, prompt: tuple[int, ...], texts: Sequence[PromptedText], opening: int) -> ServerReading:
        """See :meth:`BulkModel.read`.

        Raises:
            ServerTrouble: if the server cannot be asked.
            ValueError: if a text does not fit the model with the prompt.
        """
        for text in texts:
            self._require_room(len(prompt) + len(text.ids) + 1)

        def places(text: PromptedText) -> list[float]:
            # The opening token itself is behind the last place, so that the server reports that one too.
            reported = self._prompt_logprobs([*prompt, *text.ids, opening], self.settings.prompt_tops)
            first = len(prompt) + text.first
            return [_logprob(reported[at], opening) for at in range(first, len(reported))]

        return ServerReading(self, prompt, texts, opening, self.side_by_side(places, texts))

    def score(self, sequences: Sequence[Targets], *, without: int | None = None) -> list[list[float]]:
        """See :meth:`BulkModel.score`; ``without`` is taken out where it is among the likeliest that the server
        reports.

        Raises:
            ServerTrouble: if the server cannot be asked, or does not report a token's log probability.
            ValueError: if a sequence does not fit the model.
        """
        for sequence in sequences:
            self._require_room(max(sequence.wanted, default=0) + 1)

        def one(sequence: Targets) -> list[float]:
            if not sequence.wanted:
                return []
            tops = 0 if without is None else self.settings.prompt_tops
            reported = self._prompt_logprobs(sequence.ids[: sequence.wanted[-1] + 1], tops)
            found = [_logprob(reported[at], sequence.ids[at]) for at in sequence.wanted]
            if -math.inf in found:
                raise ServerTrouble(f"{self.settings.url}: does not report the log probability of a prompt's own token")
            if without is None:
                return found
            of_barred = [_logprob(reported[at], without) for at in sequence.wanted]
            return barred_elsewhere(found, of_barred, [sequence.ids[at] for at in sequence.wanted], without)

        return self.side_by_side(one, sequences)

    def side_by_side(self, work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
        """``work`` on all items, many at once; in order."""
        return list(self._threads.map(work, items))

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a completion request; asked again, after a while, where that may help.

        Raises:
            ServerTrouble: if no attempt brought an answer.
        """
        address = f"{self.settings.url.rstrip('/')}/v1/completions"
        trouble = ""
        for attempt in range(self.settings.attempts):
            if attempt:
                time.sleep(min(30.0, 0.5 * 2**attempt))
            try:
                answer = self._client.post(address, json={"model": self.settings.model, **body})
            except httpx.HTTPError as error:
                trouble = f"{type(error).__name__} {error}".strip()
                continue
            if answer.status_code == httpx.codes.OK:
                return _object(answer, address)
            trouble = f"HTTP {answer.status_code}: {answer.text[:_MESSAGE_CHARACTERS]}"
            if answer.status_code not in _RETRIED:
                break
        raise ServerTrouble(f"{address}: {trouble}; see that the server runs and serves {self.settings.model}")

    def _prompt_logprobs(self, ids: Sequence[int], tops: int) -> list[Mapping[str, Any] | None]:
        """For each of ``ids``, what the server reports of it and of the ``tops`` likeliest at its place."""
        body = {"prompt": list(ids), "max_tokens": 1, "temperature": 0, "prompt_logprobs": tops}
        choice = _choices(self.ask(body), 1, self.settings.url)[0]
        places = choice.get("prompt_logprobs")
        if not isinstance(places, list) or len(places) != len(ids):
            raise ServerTrouble(
                f"{self.settings.url}: answers without prompt_logprobs for each of {len(ids)} tokens; it must be a "
                "server that scores prompts, as vLLM does"
            )
        return places

    def _require_room(self, tokens: int) -> None:
        # One more is made, since a server makes at least one.
        if tokens + 1 > self.max_positions:
            raise ValueError(f"{tokens} tokens and one more do not fit a model of {self.max_positions} positions")


class ServerReading:
    """Texts behind a prompt, on a server; see :class:`~language_model.bulk.interface.Reading`."""

    def __init__(
        self,
        owner: BulkServer,
        prompt: tuple[int, ...],
        texts: Sequence[PromptedText],
        opening: int,
        log_probabilities: list[list[float]],
    ) -> None:
        self._owner, self._prompt, self._texts, self._opening = owner, prompt, texts, opening
        self.log_probabilities = log_probabilities

    def continuations(
        self, places: Sequence[Place], streams: Sequence[Sequence[random.Random]], rule: SamplingRule
    ) -> list[list[bytes]]:
        """See :meth:`Reading.continuations`; one request for all samples of a place.

        Raises:
            ServerTrouble: if the server cannot be asked.
        """

        def at(pair: tuple[Place, Sequence[random.Random]]) -> list[bytes]:
            place, of_place = pair
            if not of_place:
                return []
            body = {
                "prompt": [*self._prompt, *self._texts[place.text].ids[: place.length], self._opening],
                "max_tokens": rule.limit,
                "temperature": rule.temperature,
                "top_p": 1.0,
                "top_k": 0,
                "min_p": 0.0,
                "repetition_penalty": 1.0,
                "n": len(of_place),
                "seed": int(of_place[0].random() * _SEEDS),
                "stop": rule.stops[:_MOST_STOPS],
                "include_stop_str_in_output": True,
            }
            choices = _choices(self._owner.ask(body), len(of_place), self._owner.settings.url)
            ordered = sorted(choices, key=lambda choice: choice.get("index", 0))
            texts = [_until(str(choice.get("text", "")), rule.stops) for choice in ordered]
            return [text.encode("utf-8", errors="replace") for text in texts]

        return self._owner.side_by_side(at, list(zip(places, streams, strict=True)))


def _object(answer: httpx.Response, address: str) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ServerTrouble(f"{address}: answers what is not a JSON object: {answer.text[:_MESSAGE_CHARACTERS]!r}")
    return found


def _choices(answer: Mapping[str, Any], count: int, url: str) -> list[Mapping[str, Any]]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or len(choices) != count or not all(isinstance(one, dict) for one in choices):
        raise ServerTrouble(f"{url}: answers without the {count} choices that it was asked for")
    return choices


def _until(text: str, stops: Sequence[str]) -> str:
    """``text`` up to the first of ``stops`` in it, with that."""
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    return text[: min(ends, default=len(text))]


def _logprob(reported: Mapping[str, Any] | None, token: int) -> float:
    """The log probability of ``token`` in what a server reported of a place; ``-inf`` if it did not."""
    entry = (reported or {}).get(str(token))
    value = entry.get("logprob") if isinstance(entry, Mapping) else None
    return float(value) if isinstance(value, int | float) else -math.inf
