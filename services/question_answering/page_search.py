"""Passages from Wikipedia search: BM25 in place of the dense retriever, for readers that have none."""

from __future__ import annotations

import asyncio
import contextlib
import json
from http import HTTPStatus
from typing import Any, Final

import httpx2

from services.base import NotReady
from services.base.wire import VERSION_HEADER
from services.question_answering.passages import Found, PagePassage

_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.5
_MAX_BYTES: Final = 4 << 20
"""Of an answer; far more than a hundred passages have."""
_QUERY_CHARACTERS: Final = 500
"""Of a question, what is searched with: Wikipedia search takes no more."""


class PageSearch:
    """A running Wikipedia search service as a source of passages.

    Args:
        address: where it is, ``http://127.0.0.1:8103``; redirects are not followed and no proxy is looked for.

    Attributes:
        version: what its answers depend on besides the question, as its last answer said.
    """

    def __init__(self, address: str) -> None:
        self.version = ""
        self._address = address
        self._http = httpx2.AsyncClient(base_url=address, timeout=_SECONDS, trust_env=False)

    async def wait(self) -> None:
        """Wait until it can answer."""
        while True:
            with contextlib.suppress(NotReady):
                await self._get("/ready")
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    async def find(self, question: str, k: int) -> list[Found]:
        """The best ``k`` passages for ``question``, best first; none where it holds no word to look for.

        Raises:
            NotReady: the service cannot be reached, or does not answer as Wikipedia search does.
        """
        body = await self._get("/search", query=question[:_QUERY_CHARACTERS], k=k)
        if body is None:
            return []
        try:
            return [_found(hit) for hit in json.loads(body)["hits"]]
        except (ValueError, KeyError, TypeError) as error:
            raise NotReady(f"{self._address} does not answer as Wikipedia search does") from error

    async def aclose(self) -> None:
        """Let go of its connections."""
        await self._http.aclose()

    async def _get(self, path: str, **query: str | int) -> bytes | None:
        """The body of its answer; ``None`` where it cannot look for this."""
        body = bytearray()
        try:
            async with asyncio.timeout(_SECONDS), self._http.stream("GET", path, params=query) as response:
                if response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY:
                    return None
                if response.status_code != HTTPStatus.OK:
                    raise NotReady(f"Wikipedia search at {self._address} answers with {response.status_code}")
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        raise NotReady(
                            f"Wikipedia search at {self._address} answers with more than {_MAX_BYTES:,} bytes"
                        )
                self.version = str(response.headers.get(VERSION_HEADER, ""))
        except (TimeoutError, httpx2.HTTPError) as error:
            raise NotReady(f"Wikipedia search at {self._address} cannot be reached") from error
        return bytes(body)


def _found(hit: dict[str, Any]) -> Found:
    return Found(PagePassage.of_record(hit | {"id": hit["passage_id"]}), float(hit["score"]))
