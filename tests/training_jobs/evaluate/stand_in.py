"""Stand-in models behind the gateway's API, or behind that of any OpenAI server."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from tests.training_jobs.servers import serve
from training_jobs.evaluate.example import Example, Prompts
from training_jobs.evaluate.prompts import prompt_of
from training_jobs.evaluate.suites import Suite

TOOLS = ("Calculator", "Calendar", "WikiSearch", "QA", "MT")

Reply = Callable[[dict[str, Any]], "dict[str, Any] | JSONResponse"]
"""What the model makes of a request's body: a choice, or a whole answer."""


def stand_in(reply: Reply, *, gateway: bool = True, ready: int = 200, down: Iterable[str] = ()) -> FastAPI:
    """A server whose choice for a request is ``reply(body)``; tools that are ``down`` are not ready. The bodies it was
    sent are in ``app.state.bodies``."""
    app = FastAPI()
    app.state.bodies = []

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"data": [{"id": "stand-in"}]}

    if gateway:

        @app.get("/ready")
        async def readiness() -> JSONResponse:
            return JSONResponse({}, ready)

        @app.get("/v1/tools")
        async def tools() -> dict[str, Any]:
            listed = [{"name": name, "ready": name not in down, "reason": "it is out"} for name in TOOLS]
            return {"data": listed}

    @app.post("/v1/completions")
    async def complete(body: dict[str, Any]) -> JSONResponse:
        app.state.bodies.append(body)
        made = reply(body)
        return made if isinstance(made, JSONResponse) else JSONResponse({"choices": [{"index": 0, **made}]})

    return app


def perfect(suite: Suite, examples: Iterable[Example], prompts: Prompts = "paper") -> Reply:
    """Knows the answer to each of ``examples`` where calls are enabled, and then says which call gave it."""
    known = {(prompt_of(one, suite.form, prompts), one.date.isoformat() if one.date else None): one for one in examples}

    def reply(body: dict[str, Any]) -> dict[str, Any]:
        example = known[body["prompt"], body.get("tool_context", {}).get("date")]
        calls = [
            {"tool": tool, "input": asked, "output": example.answers[0], "error": None, "offset": 0, "duration_ms": 1.0}
            for tool, asked in example.calls
            if tool in body.get("tools", ())
        ]
        return {"text": f" {example.answers[0]}, and so on.", "tool_calls": calls}

    return reply


def silent(body: dict[str, Any]) -> dict[str, Any]:
    """Says nothing, ever."""
    return {"text": "", "tool_calls": []}


def only_with_calls(reply: Reply) -> Reply:
    """As ``reply`` where calls are enabled, and ignorant otherwise."""
    return lambda body: reply(body) if body.get("tools") else {"text": " I do not know.", "tool_calls": []}


def trouble(status: int, message: str, **headers: str) -> JSONResponse:
    """An error as the gateway returns it."""
    return JSONResponse({"error": {"message": message, "type": "t", "param": None, "code": "c"}}, status, headers)


@contextlib.contextmanager
def served(reply: Reply, **options: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve a stand-in: its address, and the bodies that it is sent."""
    app = stand_in(reply, **options)
    with serve(app, loads=False) as url:
        yield url, app.state.bodies
