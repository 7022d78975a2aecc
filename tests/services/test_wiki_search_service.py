"""The service on the real Lucene, in a process of its own: once Java runs in a process, that must not fork."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from demo_world import geography
from demo_world.titles import city_titles, unique_cities
from services.wiki_search.app import INFO
from services.wiki_search.manifest import read_manifest
from tests.services.real_services import RunningService, running_service
from tests.services.test_base_readmes import as_request, comparable, shown
from tests.support.processes import started

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(wiki_search: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=wiki_search.url, timeout=60) as client:
        yield client


async def call(service: httpx.AsyncClient, query: str) -> dict[str, Any]:
    answer = await service.post("/call", json={"input": query})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.parametrize(
    ("query", "output"),
    [
        ("capital of Australia", "Australia > Its capital is Canberra."),
        ("What is the currency of Japan?", "Japan > In Japan the currency is the Japanese Yen (JPY)."),
        ("sao paulo population", "São Paulo > São Paulo is a city in Brazil"),
        ("Statehood Day in Slovenia", "Public holidays in Slovenia > "),
        ("How many people live in Nairobi?", "Nairobi > Nairobi is the capital of Kenya"),
    ],
)
async def test_questions_are_answered(service: httpx.AsyncClient, query: str, output: str) -> None:
    assert (await call(service, query))["output"].startswith(output)


@pytest.mark.parametrize(
    "query",
    [
        'Tokyo" AND (title:x OR *:*) +-!{}[]^~\\/',
        "Tokyo 😀 \x00 \u202eطوكيو\u202c",
        "طوكيو 東京 Токио Tokyo",
        "Tokyo\n\t\r\u2028population",
        "Tokyo AND OR NOT",
        "Tokyo " + "x" * 490,
    ],
)
async def test_any_text_is_a_safe_query(service: httpx.AsyncClient, query: str) -> None:
    assert (await call(service, query))["output"].startswith("Tokyo > ")


async def test_many_at_once_get_their_own_answers(service: httpx.AsyncClient) -> None:
    titles = city_titles()
    cities = [city for city in geography.cities()[:300] if city in unique_cities()][:120]
    batches = [cities[start : start + 10] for start in range(0, 60, 10)]
    singles = [call(service, f"{titles[city.key]} population") for city in cities[60:]]
    grouped = [
        service.post("/calls", json={"calls": [{"input": f"population of {city.name}"} for city in batch]})
        for batch in batches
    ]
    answers = await asyncio.gather(*singles)
    for city, answer in zip(cities[60:], answers, strict=True):
        assert answer["output"].startswith(f"{city.name} > ")
        assert f"{city.population:,}" in answer["output"]
    for batch, response in zip(batches, await asyncio.gather(*grouped), strict=True):
        for city, answer in zip(batch, response.json()["calls"], strict=True):
            assert f"{city.population:,}" in answer["output"]


async def test_search_lists_hits_best_first_and_pages_through_them(service: httpx.AsyncClient) -> None:
    async def hits(**parameters: str | int) -> list[dict[str, Any]]:
        response = await service.get("/search", params={"query": "capital of Japan", **parameters})
        assert response.status_code == 200
        found: list[dict[str, Any]] = response.json()["hits"]
        return found

    first = await hits(k=8)
    assert len(first) == 8
    assert [hit["score"] for hit in first] == sorted((hit["score"] for hit in first), reverse=True)
    assert first[0]["title"] == "Japan"
    assert first[0].keys() == {"passage_id", "title", "section", "text", "score"}
    assert await hits(k=3, offset=5) == first[5:]
    assert await hits(k=5, offset=1000) == []


async def test_searches_side_by_side_find_what_each_finds_alone(service: httpx.AsyncClient) -> None:
    asked = [f"{word} in {place}" for word in ("city", "holiday") for place in ("Japan", "Kenya", "Chile", "Oman")]

    async def hits(query: str) -> Any:
        return (await service.get("/search", params={"query": query, "k": 40})).json()["hits"]

    alone = [await hits(query) for query in asked]
    assert await asyncio.gather(*map(hits, asked)) == alone
    for found in alone:
        assert len(found) == 40
        assert [hit["score"] for hit in found] == sorted((hit["score"] for hit in found), reverse=True)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"query": ""}, {"query": "?"}, {"query": "x", "k": 0}, {"query": "x", "k": 101}, {"query": "x", "offset": -1}],
)
async def test_bad_parameters_have_the_error_shape(service: httpx.AsyncClient, parameters: dict[str, Any]) -> None:
    response = await service.get("/search", params=parameters)
    assert response.status_code == 422
    assert response.json()["error"].keys() == {"message", "type", "param", "code"}


async def test_terms_of_many_words_are_those_of_each(wiki_index: Path) -> None:
    program = """
import sys
from pathlib import Path
from services.wiki_search.lucene import Searcher
searcher = Searcher(Path(sys.argv[1]) / "lucene")
text = "The cities' U.S. populations, 1,234 São-Paulo's (running) the \\x00 x\\x00y qzxqzxq 東京 running " + "long" * 99
for words in (text, text.replace("qzxqzxq", "")):
    assert searcher.terms(words) == [term for word in words.split() for term in searcher._terms_in(word)]
assert {"citi", "popul", "run", "1,234"} < set(searcher.terms(text))
searcher.close()
"""
    command = [sys.executable, "-c", program, str(wiki_index)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("damage", ["too few passages", "no lucene"])
async def test_an_index_that_is_not_whole_is_refused(wiki_index: Path, tmp_path: Path, damage: str) -> None:
    lucene, manifest = tmp_path / "lucene", read_manifest(wiki_index)
    manifest.model_copy(update={"passages": manifest.passages + 1}).write(tmp_path)
    if damage == "no lucene":
        lucene.mkdir()
    else:
        lucene.symlink_to(wiki_index / "lucene")
    environment = {"TOOLFORMER_WIKI_SEARCH_INDEX": str(tmp_path), "TOOLFORMER_WIKI_SEARCH_PORT": "0"}
    async with started("services.wiki_search", env=environment) as server:
        assert await server.ended() == 1
    [line] = [line for line in server.lines["log"] if " ERROR " in line]
    assert "wiki_search cannot start: " in line
    assert "build" in line
    assert "Traceback" not in server.log


@pytest.mark.slow
async def test_the_bundled_index_is_built_once_and_finds_cities_by_name(tmp_path: Path) -> None:
    settings = {"TOOLFORMER_DATA_DIR": str(tmp_path)}
    with running_service(INFO, settings, tmp_path) as service:
        assert "indexing" in service.log.read_text()
        _found_by_name(service.http)
        _readme_is_true(service.http)
    with running_service(INFO, settings, tmp_path) as service:
        assert "indexing" not in service.log.read_text()
    assert read_manifest(tmp_path / "wiki_search" / "index").pages > 10_000


def _found_by_name(client: httpx.Client) -> None:
    titles = city_titles()
    cities = random.Random(20).sample([city for city in geography.cities() if city.key in titles], 500)
    for phrasing in ("population of {}", "{} population", "How many people live in {}?"):
        right = 0
        for start in range(0, len(cities), 50):
            batch = cities[start : start + 50]
            calls = [{"input": phrasing.format(titles[city.key])} for city in batch]
            answers = client.post("/calls", json={"calls": calls}).json()["calls"]
            for city, answer in zip(batch, answers, strict=True):
                output = answer["output"] or ""
                right += output.startswith(f"{titles[city.key]} > ") and f"{city.population:,}" in output
        assert right / len(cities) > 0.97, phrasing


def _readme_is_true(client: httpx.Client) -> None:
    examples = shown("wiki_search")
    assert examples
    for command, answer in examples:
        request = as_request(command)
        request.url = client.base_url.join(request.url.raw_path.decode())
        response = client.send(request)
        assert comparable(response.text) == comparable(answer), command


async def test_a_title_counts_as_much_as_is_set(service: httpx.AsyncClient, wiki_index: Path, tmp_path: Path) -> None:
    settings = {"TOOLFORMER_WIKI_SEARCH_INDEX": str(wiki_index), "TOOLFORMER_WIKI_SEARCH_TITLE_BOOST": "0"}
    with running_service(INFO, settings, tmp_path) as plain:
        async with httpx.AsyncClient(base_url=plain.url, timeout=60) as client:
            [unboosted] = (await client.get("/search?query=Ljubljana&k=1")).json()["hits"]
    [boosted] = (await service.get("/search?query=Ljubljana&k=1")).json()["hits"]
    assert boosted["title"] == unboosted["title"] == "Ljubljana"
    assert boosted["score"] > unboosted["score"] > 0
