"""A model server for the jobs that gives the answers that a test wants."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from language_model.bulk.interface import Targets
from tests.training_jobs.servers import serve

TARGETS: Final = (Targets((1, 2, 3), (1, 2)),)
SCORES: Final = [[-0.5, -1.5]]
_SCORED: Final = {"choices": [{"prompt_logprobs": [None, {"2": {"logprob": -0.5}}, {"3": {"logprob": -1.5}}]}]}
"""What vLLM answers to a request for `TARGETS`, as far as it is read: `SCORES`."""


@dataclass
class ServerState:
    """What a test may look at or change while the server runs."""

    url: str = ""
    turn_away: int = 0
    """Answer that many requests with 503 first."""
    answer: object = field(default_factory=lambda: _SCORED)
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextlib.contextmanager
def answering_server() -> Iterator[ServerState]:
    """A server on a free port of this machine that answers what its state says, to those who have the key."""
    state = ServerState()
    app = FastAPI()

    @app.post("/v1/completions")
    async def complete(request: Request) -> Response:
        state.requests.append(await request.json())
        if state.turn_away:
            state.turn_away -= 1
            return JSONResponse({"object": "error", "message": "busy"}, status_code=503)
        if request.headers.get("authorization") != "Bearer secret":
            return JSONResponse({"object": "error", "message": "who are you?"}, status_code=401)
        return JSONResponse(state.answer)

    with serve(app) as state.url:
        yield state
