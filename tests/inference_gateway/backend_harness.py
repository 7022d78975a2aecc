"""Backends that are started, and what a client receives from them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from inference_gateway.backends.base import Backend
from inference_gateway.backends.model_server import ServerAddress
from inference_gateway.backends.openai import OpenAIServer
from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
from inference_gateway.backends.tgi import TGIServer
from inference_gateway.call_vocabulary import CallVocabulary, PromptTokenizer
from inference_gateway.completion import Completer
from inference_gateway.core import CallFinished, CallStarted, CompletionRequest, Finished, TextDelta
from tests.inference_gateway.http_harness import serving
from tests.inference_gateway.model_servers import END, Behaviour, brainy_backend, server_app
from tests.support.vocabularies import small_tokenizer
from toolformer.api_call import ApiCall
from toolformer.tool_client import RetryPolicy

SERVERS: Final = ["vllm", "sglang", "llamacpp", "bare", "tgi"]
NO_CIRCUIT: Final = RetryPolicy(failure_threshold=1000)
VOCABULARY: Final = CallVocabulary.of(small_tokenizer(), [END])


@asynccontextmanager
async def remote(
    kind: str, behaviour: Behaviour | None = None, *, silence_seconds: float = 20, connections: int = 64, **limits: Any
) -> AsyncIterator[RemoteBackend]:
    """A started backend that stands on a server of ``kind``."""
    behaviour = behaviour or Behaviour(max_top=5 if kind == "tgi" else 20)
    async with serving(server_app(kind, behaviour)) as url:
        address = ServerAddress(url, silence_seconds=silence_seconds, connections=connections)
        server = TGIServer(address, small_tokenizer()) if kind == "tgi" else OpenAIServer(address, small_tokenizer())
        backend = RemoteBackend(server, small_tokenizer(), VOCABULARY, RemoteLimits(**{"max_model_len": 200} | limits))
        await backend.start()
        assert backend.ready(), backend.why_not_ready()
        try:
            yield backend
        finally:
            await backend.stop()


@asynccontextmanager
async def started(kind: str) -> AsyncIterator[Backend]:
    if kind != "local":
        async with remote(kind) as backend:
            yield backend
        return
    local = brainy_backend()
    await local.start()
    try:
        yield local
    finally:
        await local.stop()


@dataclass
class Completed:
    """What a client receives of a completion."""

    text: str = ""
    ids: list[int] = field(default_factory=list)
    calls: list[tuple[str, str, str | None, str | None, int]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    ends: list[Finished] = field(default_factory=list)

    @property
    def end(self) -> Finished:
        [end] = self.ends
        return replace(end, usage=replace(end.usage, cached_tokens=0))


async def run_prompt(
    completer: Completer, prompt: str, tokenizer: PromptTokenizer | None = None, **fields: Any
) -> Completed:
    """Complete ``prompt``."""
    encode = (tokenizer or small_tokenizer()).encode_prompt
    wanted: dict[str, Any] = {"max_tokens": 60, "tools": ("Calculator",), "max_calls": 2, "tool_timeout": 30.0}
    return await run_request(completer, CompletionRequest(prompt_ids=tuple(encode(prompt)), **wanted | fields))


async def run_request(completer: Completer, request: CompletionRequest) -> Completed:
    """Run ``request``."""
    completed = Completed()
    async for event in completer.stream(request):
        assert not completed.ends, "nothing may follow the end"
        match event:
            case TextDelta(text, tokens):
                completed.text += text
                completed.ids += [token.id for token in tokens]
            case CallStarted(ApiCall(tool)):
                completed.started.append(tool)
            case CallFinished(record):
                error = record.error and record.error.partition(":")[0]
                completed.calls.append((record.tool, record.input, record.output, error, record.offset))
            case Finished():
                completed.ends.append(event)
    return completed
