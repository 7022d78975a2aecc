"""``POST /tokenize`` and ``POST /detokenize``, as vLLM has them: the ids of a text, the text of ids."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from inference_gateway.backends.base import Backend
from inference_gateway.serving.gateway import Gateway
from inference_gateway.serving.planning import check_ids, check_model
from toolformer.http_api import RequestBody, UnicodeText, documented_errors

MAX_TOKENS: Final = 1_048_576
"""More than a body of the usual size can hold."""


class _TokensBody(RequestBody):
    model_config = ConfigDict(strict=True, frozen=True)

    model: str | None = Field(None, description="The served model's name, which is also the default.")


class TokenizeBody(_TokensBody):
    """A text to be tokenised."""

    prompt: UnicodeText
    add_special_tokens: bool | None = Field(
        None,
        description="Add what the tokenizer puts around a text; by default as for completions: a SentencePiece "
        "vocabulary does, others do not.",
    )
    return_token_strs: bool | None = Field(None, description="Give the tokens as the vocabulary writes them too.")


class Tokens(BaseModel):
    """The tokens of a text."""

    tokens: list[int]
    count: int
    max_model_len: int = Field(description="Tokens of one sequence: prompt, completion and tools' results.")
    token_strs: list[str] | None

    @classmethod
    def of(cls, body: TokenizeBody, backend: Backend) -> Tokens:
        """Those of ``body`` in the vocabulary of ``backend``."""
        tokenizer = backend.tokenizer
        encode = tokenizer.encode_prompt
        if body.add_special_tokens is not None:
            encode = tokenizer.encode_with_special_tokens if body.add_special_tokens else tokenizer.encode
        ids = encode(body.prompt)
        written = [tokenizer.written(token) for token in ids] if body.return_token_strs else None
        return cls(tokens=ids, count=len(ids), max_model_len=backend.max_model_len, token_strs=written)


class DetokenizeBody(_TokensBody):
    """Tokens whose text is wanted."""

    tokens: list[Annotated[int, Field(ge=0)]] = Field(max_length=MAX_TOKENS, fail_fast=True)


class Text(BaseModel):
    """The text of tokens."""

    prompt: str = Field(description="Bytes that form no character are U+FFFD.")


def token_routes(gateway: Gateway) -> APIRouter:
    """The routes about the vocabulary of the model of ``gateway``."""
    router = APIRouter(tags=["tokens"])
    errors = documented_errors(400, 404, 413, 422, 503)

    # In a thread: a megabyte of text takes longer than other requests should wait.
    @router.post("/tokenize", summary="The tokens of a text", responses=errors)
    async def tokenize(body: TokenizeBody) -> Tokens:
        backend = gateway.ready_backend()
        check_model(body.model, backend)
        return await asyncio.to_thread(Tokens.of, body, backend)

    @router.post("/detokenize", summary="The text of tokens", responses=errors)
    async def detokenize(body: DetokenizeBody) -> Text:
        backend = gateway.ready_backend()
        check_model(body.model, backend)
        check_ids(body.tokens, backend.tokenizer.vocab_size, "tokens")
        return Text(prompt=await asyncio.to_thread(backend.tokenizer.decode, body.tokens))

    return router
