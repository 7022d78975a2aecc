"""Model servers for the remote backends' tests: one small scripted model behind the streams of several servers.

The formats were written from the servers' documentation and sources (November 2026): vLLM, SGLang, llama.cpp, TGI.
They are no recordings; of these servers vLLM and llama.cpp are run too (tests/engines). The model, `Brain`, is a
function from token ids to logits; the local engine can be given the same one, so every backend must give the same
completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from torch import Tensor

from inference_gateway.backends.local import LocalBackend
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.sampling import Sampler
from inference_gateway.engine.sequence import Sequence as Row
from tests.support.models import SMALL, random_model
from tests.support.scripted import END as END
from tests.support.scripted import Script
from tests.support.vocabularies import small_tokenizer

VOCAB: Final = SMALL.vocab_size
WIDE: Final = " “größer” 🙂 end"

WRITES: Final = [
    ("Sum:", " It is [Calculator(24 * 17) ->"),
    ("Sum: It is", " unknown."),
    ("-> 408]", " 408 books."),
    ("Each:", " They hold many."),
    ("They hold [", "Calculator(24 * 17) ->"),
    ("Deep:", " Boxes hold few."),
    ("Two:", " One [Calculator(1 + 1) ->"),
    ("-> 2]", " and [Calculator(2 + 2) ->"),
    ("-> 4]", " done."),
    ("Odd:", " See [1] and [Nothing(2) there."),
    ("Half:", " A [Calculator(3"),
    ("Half: A", " half."),
    ("Wide:", WIDE),
    ("Long:", " on and on" * 60),
    ("Plain:", " a plain text."),
    ("jumps over", " the lazy dog."),
]
"""What the model writes (the second) where a text ends with the first; the first rule that fits holds, without one
it ends."""

START_RANKS: Final = {"Each: They hold": 4, "Deep: Boxes hold": 15}
"""Where the API-start token is likely without being the most likely, and its rank."""


class Brain:
    """The scripted model."""

    def __init__(self) -> None:
        self._bytes, self._script = small_tokenizer().token_bytes, Script(WRITES)
        [self._start] = small_tokenizer().encode(" [")
        self._background = -torch.arange(VOCAB).mul(7919).remainder(VOCAB).div(100.0) - 20

    def logits(self, ids: Sequence[int]) -> Tensor:
        """Logits ``[VOCAB]`` of what follows ``ids``."""
        text = b"".join(map(self._bytes, ids))
        logits = self._background.clone()
        rank = next((rank for cue, rank in START_RANKS.items() if text.endswith(cue.encode())), None)
        if rank is not None:
            fillers = [token for token in range(300, VOCAB - 8) if b"[" not in self._bytes(token)][: rank - 2]
            logits[fillers] = torch.linspace(4, 3, len(fillers))
            logits[self._start] = 2.0
        logits[self._script.follows(ids)] = 5.0
        return logits


class BrainSampler(Sampler):
    """The engine's own sampler, on the brain's logits instead of the model's."""

    def __init__(self, vocabulary: CallVocabulary, device: torch.device) -> None:
        super().__init__(vocabulary, device)
        self._brain = Brain()

    def choose(self, logits: Tensor, sequences: Sequence[Row], *args: Any, **kwargs: Any) -> Any:
        thought = [self._brain.logits(sequence.tokens_from(0)) for sequence in sequences]
        return super().choose(torch.stack(thought), sequences, *args, **kwargs)


def brainy_backend(**limits: Any) -> LocalBackend:
    """The local engine with the brain."""
    settings = EngineLimits(**{"max_model_len": 200, "max_sequences": 8, **limits})
    return LocalBackend(random_model(), small_tokenizer(), "brain", settings, BrainSampler)


@dataclass
class Behaviour:
    """How a server shall behave, changed by tests while it runs."""

    max_top: int = 20
    pace: float = 0.0
    """Seconds before each token."""
    die_after: int | None = None
    """Break the connection off after so many tokens."""
    silent_after: int | None = None
    """Say nothing more after so many tokens, and leave the connection open."""
    garbage_after: int | None = None
    error_after: int | None = None
    done: bool = True
    """Whether ``[DONE]`` is sent."""
    turn_away: int = 0
    """Answer that many requests with 503 first."""
    api_key: str | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    tokens_made: int = 0


@dataclass(frozen=True)
class Made:
    """A token the model made."""

    id: int
    logprob: float
    top: list[tuple[int, float]]
    last: str | None
    """The finish reason, if it is the last."""


class DiedError(Exception):
    """Stands for a server process that is gone."""


async def generate(
    behaviour: Behaviour, ids: Sequence[int], max_tokens: int, top: int, bias: dict[int, float]
) -> AsyncIterator[Made]:
    """Greedy tokens after ``ids``; the log probabilities are the model's own, without ``bias``."""
    brain, tokens = Brain(), list(ids)
    for number in range(max_tokens):
        await asyncio.sleep(behaviour.pace)
        if number == behaviour.die_after:
            raise DiedError
        if number == behaviour.silent_after:
            await asyncio.sleep(3600)
        logits = brain.logits(tokens)
        own = logits.log_softmax(dim=-1)
        for token, value in bias.items():
            logits[token] += value
        chosen = int(logits.argmax())
        values, likely = own.topk(top)
        behaviour.tokens_made += 1
        last = "stop" if chosen == END else "length" if number + 1 == max_tokens else None
        yield Made(chosen, float(own[chosen]), list(zip(likely.tolist(), values.tolist(), strict=True)), last)
        if last:
            return
        tokens.append(chosen)


def text_of(token: int) -> str:
    """A token's text as servers print it."""
    return small_tokenizer().token_bytes(token).decode(errors="replace")


class TextSoFar:
    """Gives out text in whole characters, as servers' incremental detokenizers do."""

    def __init__(self) -> None:
        self._pending = b""

    def add(self, token: int) -> str:
        self._pending += b"" if token == END else small_tokenizer().token_bytes(token)
        try:
            text = self._pending.decode()
        except UnicodeDecodeError:
            return ""
        self._pending = b""
        return text


def server_app(kind: str, behaviour: Behaviour) -> FastAPI:
    """The stand-in of a kind of server: of text-generation-inference for ``tgi``, else see `completions_app`."""
    return tgi_app(behaviour) if kind == "tgi" else completions_app(kind, behaviour)


def completions_app(kind: str, behaviour: Behaviour) -> FastAPI:
    """A server with ``/v1/completions`` in the manner of ``kind``: ``vllm``, ``sglang``, ``llamacpp`` or ``bare``
    (text in and out, nothing else, as ``transformers serve``)."""
    app = FastAPI()

    def refused(request: Request) -> Response | None:
        if behaviour.api_key and request.headers.get("authorization") != f"Bearer {behaviour.api_key}":
            return JSONResponse({"error": {"message": "wrong key"}}, 401)
        if behaviour.turn_away > 0:
            behaviour.turn_away -= 1
            return JSONResponse({"detail": "busy"}, 503, headers={"Retry-After": "0"})
        return None

    @app.get("/v1/models")
    async def models(request: Request) -> Response:
        model: dict[str, Any] = {"id": "brain", "object": "model", "owned_by": kind}
        if kind in ("vllm", "sglang"):
            model["max_model_len"] = 200
        if kind == "llamacpp":
            model["meta"] = {"n_ctx": 200}
        return refused(request) or JSONResponse({"object": "list", "data": [model]})

    @app.post("/v1/completions")
    async def complete(request: Request) -> Response:
        body = await request.json()
        if no := refused(request):
            return no
        behaviour.requests.append(body)
        if kind == "bare" and (unknown := body.keys() - _BARE_FIELDS):
            return JSONResponse({"detail": f"unexpected fields: {sorted(unknown)}"}, 422)
        if kind == "bare" and not isinstance(body["prompt"], str):
            return JSONResponse({"detail": "prompt must be a string."}, 400)
        if (body.get("logprobs") or 0) > behaviour.max_top:
            return JSONResponse({"error": {"message": f"at most {behaviour.max_top} logprobs"}}, 400)
        return StreamingResponse(_events(kind, behaviour, body), media_type="text/event-stream")

    return app


_BARE_FIELDS: Final = {"model", "prompt", "max_tokens", "temperature", "stream", "top_p", "seed"}


async def _events(kind: str, behaviour: Behaviour, body: dict[str, Any]) -> AsyncIterator[str]:
    prompt = body["prompt"]
    ids = small_tokenizer().encode(prompt) if isinstance(prompt, str) else prompt
    bias = {int(token): value for token, value in body.get("logit_bias", {}).items()}
    wanted = None if kind == "bare" else body.get("logprobs")
    text, number = TextSoFar(), 0
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "brain"}
    yield ": a comment, as some proxies send\n\n"
    async for made in generate(behaviour, ids, body["max_tokens"], wanted or 0, bias):
        if number == behaviour.garbage_after:
            yield 'data: {"choices": [{"text": 7, "logprobs": "\n\n'
        if number == behaviour.error_after:
            yield 'data: {"error": {"message": "out of memory", "type": "server_error", "code": 500}}\n\n'
            break
        number += 1
        new = text.add(made.id)
        choice: dict[str, Any] = {"index": 0, "text": new, "logprobs": None, "finish_reason": made.last}
        if kind in ("vllm", "sglang") and body.get("return_token_ids"):
            choice["token_ids"] = [made.id]
        if wanted is not None:
            as_ids = kind == "vllm" and bool(body.get("return_tokens_as_token_ids"))
            choice["logprobs"] = _logprobs(kind, made, wanted, as_ids=as_ids, text=new)
        if kind == "llamacpp":
            # A token that ends inside a character is not reported; the end comes in a chunk of its own.
            if made.id == END or new:
                yield _data({**head, "choices": [{**choice, "finish_reason": None}]})
            if made.last:
                end = {"index": 0, "text": "", "logprobs": None, "finish_reason": made.last}
                yield _data({**head, "choices": [end], "usage": _usage(ids)})
        else:
            yield _data({**head, "choices": [choice]})
    if kind in ("vllm", "sglang") and body.get("stream_options", {}).get("include_usage"):
        yield _data({**head, "choices": [], "usage": _usage(ids)})
    if behaviour.done and kind != "bare":
        yield "data: [DONE]\n\n"


def _logprobs(kind: str, made: Made, wanted: int, *, as_ids: bool, text: str) -> dict[str, Any]:
    if kind == "llamacpp":
        top = [{"id": token, "token": text_of(token), "bytes": [], "logprob": value} for token, value in made.top]
        return {"content": [{"id": made.id, "token": text, "bytes": [], "logprob": made.logprob, "top_logprobs": top}]}
    name = (lambda token: f"token_id:{token}") if as_ids else text_of
    likely = made.top
    if kind == "vllm" and made.id not in dict(likely):
        likely = [(made.id, made.logprob), *likely]
    top_logprobs: dict[str, float] = {}
    for token, value in likely:
        top_logprobs.setdefault(name(token), value)
    return {
        "text_offset": [0],
        "tokens": [name(made.id)],
        "token_logprobs": [made.logprob],
        "top_logprobs": [top_logprobs],
    }


def _usage(ids: Sequence[int]) -> dict[str, Any]:
    cached = len(ids) // 4 * 4
    return {"prompt_tokens": len(ids), "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": cached}}


def _data(event: dict[str, Any]) -> str:
    return f"data: {json.dumps(event)}\n\n"


def tgi_app(behaviour: Behaviour) -> FastAPI:
    """A text-generation-inference server: ``/info``, and streams at ``/``."""
    app = FastAPI()

    @app.get("/info")
    async def info(request: Request) -> Response:
        if behaviour.api_key and request.headers.get("authorization") != f"Bearer {behaviour.api_key}":
            return JSONResponse({"error": "wrong key", "error_type": "unauthorized"}, 401)
        return JSONResponse({"model_id": "brain", "max_total_tokens": 200, "max_input_tokens": 199, "version": "3"})

    @app.post("/")
    async def generate_stream(request: Request) -> Response:
        body = await request.json()
        behaviour.requests.append(body | {"authorization": request.headers.get("authorization")})
        if behaviour.turn_away > 0:
            behaviour.turn_away -= 1
            return JSONResponse({"error": "Model is overloaded", "error_type": "overloaded"}, 429)
        return StreamingResponse(_tgi_events(behaviour, body), media_type="text/event-stream")

    return app


async def _tgi_events(behaviour: Behaviour, body: dict[str, Any]) -> AsyncIterator[str]:
    parameters = body["parameters"]
    top = parameters.get("top_n_tokens", 0)
    if top > behaviour.max_top:
        message = f"Input validation error: `top_n_tokens` must be >= 0 and <= {behaviour.max_top}. Given: {top}"
        yield f"data:{json.dumps({'error': message, 'error_type': 'validation'})}\n\n"
        return
    ids, number, text = small_tokenizer().encode(body["inputs"]), 0, ""
    async for made in generate(behaviour, ids, parameters["max_new_tokens"], top, {}):
        if number == behaviour.garbage_after:
            yield "data:{not json\n\n"
        if number == behaviour.error_after:
            failed = {"error": "Request failed during generation: out of memory", "error_type": "generation"}
            yield f"data:{json.dumps(failed)}\n\n"
            return
        number += 1
        text += text_of(made.id)
        event: dict[str, Any] = {
            "index": number,
            "token": {"id": made.id, "text": text_of(made.id), "logprob": made.logprob, "special": made.id == END},
            "generated_text": text if made.last else None,
            "details": None,
        }
        if top:
            event["top_tokens"] = [
                {"id": token, "text": text_of(token), "logprob": value, "special": token == END}
                for token, value in made.top
            ]
        if made.last:
            reason = {"stop": "eos_token", "length": "length"}[made.last]
            event["details"] = {"finish_reason": reason, "generated_tokens": number, "seed": None, "input_length": 1}
        yield f"data:{json.dumps(event)}\n\n"
