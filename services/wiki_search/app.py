"""Wikipedia search as a service."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, FastAPI, Query
from pydantic import BaseModel, Field

from services.base import ServiceInfo, create_app, read_settings
from services.wiki_search.engine import WikiSearchEngine, WikiSearchSettings
from toolformer.http_api import UnicodeText, documented_errors

MAX_QUERY_CHARS = 500
MAX_HITS = 100
MAX_OFFSET = 1_000

INFO = ServiceInfo(
    tool="WikiSearch",
    service="wiki_search",
    title="Wikipedia search",
    description="Searches an encyclopedia and returns the best matching snippet as `Title > text`.",
    version="1.0.0",
    input_description="A search query: the name of a thing, and what to know of it; behind it #2 for the next snippet.",
    example_input="population of Ljubljana",
    example_output="Ljubljana > The city has a population of 272,220.",
    max_input_chars=MAX_QUERY_CHARS,
)


class SearchHit(BaseModel):
    """One passage found."""

    passage_id: str = Field(description="The page's id and the passage's number on it, `12-0`.")
    title: str
    section: str = Field(description="The heading path, `History > Early years`; empty above the first heading.")
    text: str
    score: float = Field(description="BM25 over text and title; comparable within one query only.")


class SearchResults(BaseModel):
    """The passages found for a query, best first."""

    query: str
    offset: int
    hits: list[SearchHit]


def _router(engine: WikiSearchEngine) -> APIRouter:
    router = APIRouter(tags=["search"])

    @router.get("/search", summary="Search the encyclopedia", responses=documented_errors(422))
    async def search(
        query: Annotated[
            UnicodeText,
            Query(min_length=1, max_length=MAX_QUERY_CHARS, description="Words, no operators.", examples=["Ljubljana"]),
        ],
        k: Annotated[int, Query(ge=1, le=MAX_HITS, description="How many hits.")] = 5,
        offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="How many of the best to leave out.")] = 0,
    ) -> SearchResults:
        """The best passages by BM25, with their scores."""
        hits = await engine.search(query, k, offset)
        return SearchResults(
            query=query,
            offset=offset,
            hits=[
                SearchHit(
                    passage_id=hit.passage.id,
                    title=hit.passage.title,
                    section=hit.passage.section,
                    text=hit.passage.text,
                    score=round(hit.score, 4),
                )
                for hit in hits
            ],
        )

    return router


def build_app(settings: WikiSearchSettings | None = None) -> FastAPI:
    """The service's app.

    Args:
        settings: by default those of the environment.

    Raises:
        ConfigurationError: a setting cannot hold.
    """
    settings = settings or read_settings(WikiSearchSettings, INFO.service)
    engine = WikiSearchEngine(settings)
    return create_app(INFO, engine, _router(engine))
