"""Passages from Wikipedia search: BM25 in place of the dense retriever, for readers that have none."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import httpx2

from services.base import NotReady
from services.base.wire import VERSION_HEADER
from services.question_answering.passages import Found, PagePassage

_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.5


class PageSearch:
    """A running Wikipedia search service as a source of passages.

    Args:
        address: where it is, ``http://127.0.0.1:8103``; redirects are not followed and no proxy is looked for.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._http = httpx2.AsyncClient(base_url=address, timeout=_SECONDS, trust_env=False)

    async def version(self) -> str:
        """What its answers depend on besides the question; waits until it can answer."""
        while True:
            try:
                response = await self._get("/ready")
                return str(response.headers.get(VERSION_HEADER, ""))
            except NotReady:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def find(self, question: str, k: int) -> list[Found]:
        """The best ``k`` passages for ``question``, best first; none where it holds no word to look for.

        Raises:
            NotReady: the service cannot be reached, or does not answer as Wikipedia search does.
        """
        response = await self._get("/search", query=question, k=k)
        if response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY:
            return []
        try:
            return [_found(hit) for hit in response.json()["hits"]]
        except (ValueError, KeyError, TypeError) as error:
            raise NotReady(f"{self._address} does not answer as Wikipedia search does") from error

    async def close(self) -> None:
        """Let go of its connections."""
        await self._http.aclose()

    async def _get(self, path: str, **query: str | int) -> httpx2.Response:
        try:
            response = await self._http.get(path, params=query)
        except httpx2.HTTPError as error:
            raise NotReady(f"Wikipedia search at {self._address} cannot be reached") from error
        if response.status_code not in (HTTPStatus.OK, HTTPStatus.UNPROCESSABLE_ENTITY):
            raise NotReady(f"Wikipedia search at {self._address} answers with {response.status_code}")
        return response


def _found(hit: dict[str, Any]) -> Found:
    return Found(PagePassage.of_record(hit | {"id": hit["passage_id"]}), float(hit["score"]))
