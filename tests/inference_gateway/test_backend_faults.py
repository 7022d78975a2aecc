"""Servers that die, fall silent, talk nonsense, turn requests away or come back: each completion has one end, and says
why."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.responses import JSONResponse

from inference_gateway.backends.base import BackendBusy
from inference_gateway.backends.model_server import ModelServer, ServerAddress, ServerError
from inference_gateway.backends.openai import OpenAIServer
from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
from inference_gateway.backends.tgi import TGIServer
from inference_gateway.completion import Completer
from inference_gateway.core import CompletionRequest, Finished, TextDelta
from language_model.tokenizer import ByteLevelTokenizer
from tests.inference_gateway.backend_harness import SERVERS, VOCABULARY, Completed, remote, run_prompt
from tests.inference_gateway.http_harness import CLOSED, serving, tools_at
from tests.inference_gateway.model_servers import Behaviour, server_app
from tests.support.redis_server import free_port
from tests.support.vocabularies import small_tokenizer, small_vocabulary
from tests.support.waiting import until
from toolformer.tool_client import ToolClient


def server_at(
    url: str, kind: str = "vllm", tokenizer: ByteLevelTokenizer | None = None, api_key: str | None = None
) -> ModelServer:
    server = TGIServer if kind == "tgi" else OpenAIServer
    return server(ServerAddress(url, api_key=api_key), tokenizer or small_tokenizer())


async def completed(backend: RemoteBackend, prompt: str = "Long:", **fields: Any) -> Completed:
    tools = tools_at({})
    async with ToolClient(tools) as client, asyncio.timeout(60):
        return await run_prompt(Completer(backend, tools, client), prompt, **{"tools": ()} | fields)


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("fault", ["die_after", "garbage_after", "error_after", "silent_after"])
async def test_a_stream_that_goes_wrong_ends_the_completion_with_an_error(
    kind: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    behaviour = Behaviour(max_top=5)
    async with remote(kind, behaviour, silence_seconds=3 if fault == "silent_after" else 20) as backend:
        setattr(behaviour, fault, 6)
        result = await completed(backend)
        assert result.end.reason == "error"
        assert "127.0.0.1" in result.end.message or "model server" in result.end.message
        assert " on and on".startswith(result.text[:10]), "what came before the fault is returned"
        setattr(behaviour, fault, None)
        assert (await completed(backend, "Plain:")).text == " a plain text.", "the server is used again"


async def test_streams_that_are_cut_give_their_connections_free() -> None:
    async with remote("llamacpp", connections=1) as backend:
        results = [await completed(backend, max_tokens=3) for _ in range(8)]
        assert [one.end.reason for one in results] == ["length"] * 8


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llamacpp"])
async def test_a_missing_done_is_no_fault(kind: str) -> None:
    async with remote(kind, Behaviour(done=False)) as backend:
        assert (await completed(backend, "Plain:")).end.reason == "stop"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_that_is_busy_is_asked_again_but_not_for_ever(kind: str) -> None:
    behaviour = Behaviour(max_top=5)
    async with remote(kind, behaviour) as backend:
        behaviour.turn_away = 2
        assert (await completed(backend, "Plain:")).text == " a plain text."
        behaviour.turn_away = 3
        result = await completed(backend, "Plain:")
        assert (result.text, result.end.reason) == ("", "error")
        assert behaviour.turn_away == 0


@pytest.mark.parametrize("kind", ["vllm", "tgi"])
async def test_the_key_is_sent(kind: str) -> None:
    behaviour = Behaviour(max_top=5, api_key="open sesame")
    async with serving(server_app(kind, behaviour)) as url:
        for key, works in (("open sesame", True), ("other", False), (None, False)):
            server = server_at(url, kind, api_key=key)
            try:
                if works:
                    assert (await server.survey()).model == "brain"
                else:
                    with pytest.raises(ServerError, match="answers 401"):
                        await server.survey()
            finally:
                await server.aclose()


async def test_no_token_of_the_machines_user_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_user")
    behaviour = Behaviour(max_top=5)
    async with remote("tgi", behaviour) as backend:
        await completed(backend, "Plain:")
    assert {request["authorization"] for request in behaviour.requests} == {None}


class OtherTokenizer(ByteLevelTokenizer):
    """Ids mean other tokens. Prompts that are sent as ids are right all the same, for the scripted model to answer."""

    prompts_as_ids = True

    def encode(self, text: str) -> list[int]:
        ids = super().encode(text)
        return ids if self.prompts_as_ids else [token - 1 for token in ids]

    def token_bytes(self, token_id: int) -> bytes:
        return super().token_bytes(token_id + 1)


@pytest.mark.parametrize("kind", ["vllm", "tgi"])
async def test_another_vocabulary_is_found_out(kind: str) -> None:
    behaviour = Behaviour(max_top=5)
    async with serving(server_app(kind, behaviour)) as url:
        other = OtherTokenizer(small_vocabulary())
        other.prompts_as_ids = kind != "tgi"
        server = server_at(url, kind, tokenizer=other)
        try:
            with pytest.raises(ServerError, match="another vocabulary"):
                await server.survey()
        finally:
            await server.aclose()


async def test_what_is_no_model_server_is_reported() -> None:
    app = FastAPI()

    @app.get("/v1/models")
    async def models() -> JSONResponse:
        return JSONResponse({"object": "list", "data": [{"id": "other"}]})

    @app.get("/empty/v1/models")
    async def no_models() -> JSONResponse:
        return JSONResponse({"object": "list", "data": []})

    async with serving(app) as url:
        for address, why in (
            (ServerAddress(url, model="brain"), r"refuses the request \(404\)"),
            (ServerAddress(f"{url}/empty"), "lists no models; say which in TOOLFORMER_GATEWAY_BACKEND_MODEL"),
            (ServerAddress(url), r"refuses the request \(404\)"),
            (ServerAddress(f"{url}/nothing"), "answers 404"),
            (ServerAddress(CLOSED), "cannot be reached"),
        ):
            server = OpenAIServer(address, small_tokenizer())
            try:
                with pytest.raises(ServerError, match=why):
                    await server.survey()
            finally:
                await server.aclose()


async def test_more_than_it_holds_waits_and_more_than_may_wait_is_refused() -> None:
    behaviour = Behaviour()
    async with remote("vllm", behaviour, max_sequences=2, max_waiting=1) as backend:
        behaviour.pace = 0.02
        request = CompletionRequest(tuple(small_tokenizer().encode("Plain:")), max_tokens=30)
        sessions = [backend.open(request, {}) for _ in range(3)]
        assert (backend.stats().running, backend.stats().waiting) == (2, 1)
        with pytest.raises(BackendBusy):
            backend.open(request, {})

        async def text_of(session: Any) -> str:
            return "".join([action.text async for action in session if isinstance(action, TextDelta)])

        assert await asyncio.gather(*map(text_of, sessions)) == [" a plain text."] * 3
        assert (backend.stats().running, backend.stats().waiting) == (0, 0)


async def test_a_prompt_is_not_scored_but_may_be_all_that_is_wanted() -> None:
    behaviour = Behaviour()
    async with remote("vllm", behaviour) as backend:
        asked = len(behaviour.requests)
        scored = await completed(backend, max_tokens=0, logprobs=1, prompt_logprobs=True)
        assert (scored.end.reason, "leave out 'echo' or 'logprobs'" in scored.end.message) == ("error", True)
        assert (await completed(backend, max_tokens=0)).end.reason == "length"
        assert len(behaviour.requests) == asked, "no request is needed"


async def test_closing_ends_the_request_at_the_server() -> None:
    behaviour = Behaviour()
    async with remote("vllm", behaviour) as backend:
        behaviour.pace = 0.01
        session = backend.open(CompletionRequest(tuple(small_tokenizer().encode("Long:")), max_tokens=100), {})
        async for action in session:
            if isinstance(action, TextDelta):
                break
        session.close()
        await asyncio.gather(*backend._closing, return_exceptions=True)
        made = behaviour.tokens_made
        await asyncio.sleep(0.1)
        assert behaviour.tokens_made <= made + 1, "the server may have begun one more"
        assert backend.stats().running == 0


async def test_stopping_ends_what_runs_and_what_waits() -> None:
    behaviour = Behaviour()
    async with remote("vllm", behaviour, max_sequences=1) as backend:
        behaviour.silent_after = 2
        request = CompletionRequest(tuple(small_tokenizer().encode("Long:")), max_tokens=100)
        sessions = [backend.open(request, {}) for _ in range(2)]
        await backend.stop()
        for session in sessions:
            actions = [action async for action in session]
            assert isinstance(actions[-1], Finished)
            assert actions[-1].reason == "error"


async def test_a_server_may_come_late_go_and_come_back_as_another() -> None:
    port = free_port()
    limits = RemoteLimits(max_model_len=200, probe_seconds=0.05)
    backend = RemoteBackend(server_at(f"http://127.0.0.1:{port}"), small_tokenizer(), VOCABULARY, limits)

    await backend.start()
    try:
        assert not backend.ready()
        assert "cannot be reached" in backend.why_not_ready()
        with pytest.raises(BackendBusy):
            backend.open(CompletionRequest((1,)), {})
        async with serving(server_app("vllm", Behaviour(max_top=7)), port, drain_seconds=1):
            await until(backend.ready)
            assert any("at most 5 likely" in notice for notice in backend.notices)
            assert (await completed(backend, "Plain:")).end.reason == "stop"
        await until(lambda: not backend.ready())
        async with serving(server_app("bare", Behaviour()), port, drain_seconds=1):
            await until(backend.ready)
            assert any("no likely tokens" in notice for notice in backend.notices)
            assert (await completed(backend, "Plain:")).end.reason == "stop"
    finally:
        await backend.stop()
