"""Operations of OpenAPI documents as tools; the documents are FastAPI's."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from fastapi import FastAPI, Header
from pydantic import BaseModel, ValidationError

from tests.toolformer.outside_servers import registry
from tests.toolformer.test_tools import ATLAS, errors_of, write
from tests.toolformer.tool_service import Seen, response, sends, serve
from toolformer.outside import HttpApi
from toolformer.tool_client import ToolClient

app = FastAPI()


class Sentence(BaseModel):
    text: str
    to: str
    note: str = ""


@app.get("/items/{item_id}/stock", operation_id="stock")
def stock(item_id: str, warehouse: str = "main", limit: int = 1) -> int:
    return 0


@app.get("/search", operation_id="search")
def search(q: str) -> list[str]:
    return []


@app.post("/translate", operation_id="translate")
def translate(sentence: Sentence) -> str:
    return ""


@app.get("/secret", operation_id="secret")
def secret(q: str, x_key: Annotated[str, Header()]) -> str:
    return ""


@app.delete("/items/{item_id}", operation_id="remove")
def remove(item_id: str) -> None: ...


@pytest.fixture(name="document")
def document_(tmp_path: Path) -> str:
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(app.openapi()))
    return str(file)


async def sent(**http: Any) -> Seen:
    """What is sent for a call of ``a/b``."""
    async with serve(sends(response(200, b"5"))) as service:
        async with ToolClient(registry(service.url, http=http)) as client:
            assert (await client.call("Calculator", "a/b", timeout=60)).output == "5"
        [seen] = service.seen
        return seen


async def test_the_one_required_parameter_is_the_input(document: str) -> None:
    seen = await sent(openapi=document, operation="search")
    assert (seen.method, seen.path) == ("GET", "/search?q=a%2Fb")
    seen = await sent(openapi=document, operation="stock")
    assert (seen.method, seen.path) == ("GET", "/items/a%2Fb/stock")


async def test_parameters_have_their_places(document: str) -> None:
    given = {"item_id": "5 &{input}", "warehouse": "{input}", "limit": "3"}
    seen = await sent(openapi=document, operation="stock", parameters=given)
    assert urlsplit(seen.path).path == "/items/5%20%26a%2Fb/stock"
    assert parse_qsl(urlsplit(seen.path).query) == [("warehouse", "a/b"), ("limit", "3")]


async def test_properties_of_a_body_are_parameters(document: str) -> None:
    seen = await sent(openapi=document, operation="translate", parameters={"to": "de"})
    assert (seen.method, seen.path, seen.json) == ("POST", "/translate", {"to": "de", "text": "a/b"})


async def test_a_required_header_is_among_the_headers(document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSIDE_KEY", "k1")
    seen = await sent(openapi=document, operation="secret", headers={"X-Key": "{env:OUTSIDE_KEY}"})
    assert (seen.path, seen.headers["x-key"]) == ("/secret?q=a%2Fb", "k1")


def test_what_a_path_shares_and_references_count(tmp_path: Path) -> None:
    file = tmp_path / "openapi.json"
    document = {
        "openapi": "3.1.0",
        "paths": {
            "/{lang}/words": {
                "parameters": [{"$ref": "#/components/parameters/lang"}],
                "get": {"operationId": "words", "parameters": [{"name": "q", "in": "query"}]},
            }
        },
        "components": {"parameters": {"lang": {"name": "lang", "in": "path"}}},
    }
    file.write_text(json.dumps(document))
    api = HttpApi.model_validate(
        {"openapi": str(file), "operation": "words", "parameters": {"lang": "de", "q": "{input}"}}
    )
    assert (api.path, api.query, api.body) == ("/de/words", {"q": "{input}"}, None)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda d: d.pop("openapi"), "is no OpenAPI 3 document"),
        (lambda d: d["paths"].update({"/search": {"$ref": "#/nowhere"}}), "refers to what it does not hold"),
        (lambda d: d["paths"].update({"/search": {"$ref": "#/paths/~1search"}}), "refers to what it does not hold"),
        (lambda d: d["paths"].pop("/search"), "there is no operation 'search'; the document has: stock, translate"),
    ],
)
def test_a_broken_document_is_explained(changed: Callable[[Any], Any], message: str, document: str) -> None:
    broken = json.loads(Path(document).read_text())
    changed(broken)
    Path(document).write_text(json.dumps(broken))
    with pytest.raises(ValidationError, match=message):
        HttpApi.model_validate({"openapi": document, "operation": "search"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("openapi = 'FILE'", "openapi and operation, two texts, go together"),
        ("operation = 'search'", "openapi and operation, two texts, go together"),
        ("openapi = 'FILE.not', operation = 'search'", "cannot be read (No such file or directory)"),
        ("openapi = 'SELF', operation = 'search'", "is not JSON, which the document must be"),
        ("openapi = 'FILE', operation = 'search', path = '/a'", "the document gives path; remove it or openapi"),
        ("openapi = 'FILE', operation = 'search', parameters = {p = 'a'}", "no parameter 'p'; it has: q"),
        ("openapi = 'FILE', operation = 'stock', parameters = {limit = 3}", "http.parameters.limit: "),
        ("openapi = 'FILE', operation = 'translate'", "needs values in parameters for: text, to"),
        ("openapi = 'FILE', operation = 'secret'", "the operation needs the header 'x-key'"),
        ("openapi = 'FILE', operation = 'remove'", "http.method: "),
        ("openapi = 'FILE', operation = 'search', parameters = {q = 'a'}", "the input goes nowhere"),
    ],
)
def test_a_wrong_table_is_explained(table: str, message: str, document: str, tmp_path: Path) -> None:
    table = table.replace("FILE", document).replace("SELF", __file__)
    assert message in errors_of(write(tmp_path, f"{ATLAS}http = {{{table}}}"))
