"""A small model server that speaks what vLLM's `/v1/completions` does of scoring and sampling, over a real model.

Written from vLLM's documentation; no recording. It computes everything the plain way, one sequence after the other."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from tests.training_jobs.plain_way import drawn
from tests.training_jobs.servers import serve


@dataclass
class ServerState:
    """What a test may look at or change while the server runs."""

    url: str = ""
    turn_away: int = 0
    """Answer that many requests with 503 first."""
    wrong: Any = None
    """Answer this instead, once it is set."""
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextlib.contextmanager
def vllm_server(model: GPTJ, tokenizer: ByteLevelTokenizer) -> Iterator[ServerState]:
    """The server, on a free port of this machine, until the block ends."""
    state = ServerState()
    app = FastAPI()

    @app.post("/v1/completions")
    async def complete(request: Request) -> Response:
        body = await request.json()
        state.requests.append(body)
        if state.turn_away:
            state.turn_away -= 1
            return JSONResponse({"object": "error", "message": "busy"}, status_code=503)
        if request.headers.get("authorization") != "Bearer secret":
            return JSONResponse({"object": "error", "message": "who are you?"}, status_code=401)
        if state.wrong is not None:
            return JSONResponse(state.wrong)
        ids = body["prompt"]
        if body.get("prompt_logprobs") is not None:
            choices: list[dict[str, Any]] = [
                {"index": 0, "text": "", "prompt_logprobs": prompt_logprobs(ids, body["prompt_logprobs"])}
            ]
        else:
            choices = [{"index": n, "text": text(ids, body, n)} for n in reversed(range(body["n"]))]
        return JSONResponse({"id": "cmpl-1", "object": "text_completion", "choices": choices})

    def prompt_logprobs(ids: list[int], tops: int) -> list[dict[str, Any] | None]:
        with torch.inference_mode():
            logprobs = model(torch.tensor([ids]))[0].log_softmax(-1)
        told: list[dict[str, Any] | None] = [None]
        for at in range(1, len(ids)):
            chosen = {ids[at], *logprobs[at - 1].topk(tops).indices.tolist()}
            told.append({str(token): {"logprob": float(logprobs[at - 1, token]), "rank": 1} for token in chosen})
        return told

    def text(ids: list[int], body: dict[str, Any], number: int) -> str:
        stream = random.Random(body["seed"] + number)
        written = b""
        for _ in range(body["max_tokens"]):
            with torch.inference_mode():
                logits = model(torch.tensor([ids]))[0, -1] / body["temperature"]
            token = drawn(logits, stream.random())
            if token in model.end_ids:
                break
            ids = [*ids, token]
            written += tokenizer.token_bytes(token)
            said = written.decode(errors="replace")
            ends = [said.index(stop) + len(stop) for stop in body["stop"] if stop in said]
            if ends:
                assert body["include_stop_str_in_output"]
                return said[: min(ends)]
        return written.decode(errors="replace")

    with serve(app) as state.url:
        yield state
