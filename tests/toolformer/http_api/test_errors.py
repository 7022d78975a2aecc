"""Every refusal has the one error shape, names its field, and shows the client nothing of the inside."""

import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI, HTTPException, Query
from pydantic import FailFast, Field
from starlette.responses import StreamingResponse

from tests.toolformer.http_api.asgi import error_of, running
from toolformer.http_api import (
    ApiError,
    RequestBody,
    UnicodeText,
    documented_errors,
    error_body,
    errors,
    install_error_handlers,
    known_query,
)


class Item(RequestBody):
    name: UnicodeText
    count: int = Field(1, ge=0)


class Order(RequestBody):
    items: Annotated[list[Item], FailFast(), Field(max_length=1_000)]


def make_app() -> FastAPI:
    app = FastAPI(redirect_slashes=False, dependencies=[Depends(known_query)])
    install_error_handlers(app)

    @app.post("/orders", responses=documented_errors(400, 422))
    async def order(order: Order) -> int:
        return len(order.items)

    @app.get("/orders/{number}")
    async def one(
        number: int, page: Annotated[int, Query(ge=1)] = 1, title: Annotated[UnicodeText, Query(max_length=500)] = ""
    ) -> int:
        return number * page

    @app.get("/raise/{status}")
    async def refuse(status: int) -> None:
        raise ApiError(status, "not now; try later", param="when", code="later", headers={"Retry-After": "7"})

    @app.get("/framework/{status}")
    async def refuse_as_framework(status: int) -> None:
        raise HTTPException(status, "no", headers={"X-Kept": "yes"})

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the secret of the inside")

    @app.get("/breaks-off")
    async def breaks_off() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"a part"
            raise RuntimeError("the secret of the inside")

        return StreamingResponse(parts())

    return app


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with running(make_app()) as client:
        yield client


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({}, "items", "'items' is missing; add it"),
        ({"items": [{"name": "a"}, {}]}, "items.1.name", "'items.1.name' is missing; add it"),
        ({"items": [{"name": 3}]}, "items.0.name", "'items.0.name' must be a valid string"),
        ({"items": [{"name": "a", "count": -1}]}, "items.0.count", "must be greater than or equal to 0"),
        ({"items": [{"name": "a", "colour": 1}]}, "items.0.colour", "is not a known field; remove it"),
        ({"items": [{"name": "a\ud800"}]}, "items.0.name", r"\ud800 at position 2 is half a character"),
        ({"items": [{"name": 1, "count": -1}]}, "items.0.name", "(and 1 more)"),
        ({"items": [{"name": "a"}] * 1_001}, "items", "'items' has too many items; send at most 1,000"),
        ({"items": 5}, "items", "'items' must be a valid list"),
        ([], None, "must be a JSON object"),
        ("text", None, "must be a JSON object"),
        (None, None, "must be a JSON object"),
    ],
)
async def test_a_body_off_the_schema_is_422_and_names_the_field(
    client: httpx.AsyncClient, body: object, param: str | None, message: str
) -> None:
    response = await client.post("/orders", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    error = error_of(response)
    assert error["param"] == param
    assert message in str(error["message"])
    assert error["code"] == "invalid_value"
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "content",
    [b"{oops", b'{"items": [}', b'"open', b"\xff\xfe\xfd", b"[" * 100_000, b'{"items": ' + b"9" * 5_000 + b"}"],
    ids=["brace", "bracket", "quote", "not UTF-8", "too deep", "too many digits"],
)
async def test_a_body_that_is_not_json_is_400(client: httpx.AsyncClient, content: bytes) -> None:
    response = await client.post("/orders", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert error_of(response)["code"] == "invalid_json"


async def test_json_errors_name_the_place(client: httpx.AsyncClient) -> None:
    response = await client.post("/orders", content=b'{"items": oops}', headers={"Content-Type": "application/json"})
    assert "Expecting value at character 10" in str(error_of(response)["message"])


async def test_a_body_without_its_content_type_says_which_to_send(client: httpx.AsyncClient) -> None:
    response = await client.post("/orders", content=b'{"items": []}')
    assert response.status_code == 422
    assert "Content-Type: application/json" in str(error_of(response)["message"])


async def test_path_and_query_values_are_named_without_where_they_travel(client: httpx.AsyncClient) -> None:
    assert error_of(await client.get("/orders/x"))["param"] == "number"
    assert error_of(await client.get("/orders/1?page=0"))["param"] == "page"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"items": [1] * 300_000}, "items.0"),
        ({"items": [{}] * 300_000}, "items.0.name"),
        ({"items": [{"name": "a", **{f"{n:x}": 1 for n in range(100_000)}}]}, "items.0.0"),
        ({"items": [], **{f"{n:x}": 1 for n in range(100_000)}}, "0"),
    ],
    ids=["numbers", "empty objects", "unknown fields below", "unknown fields"],
)
async def test_no_body_makes_errors_without_end(
    client: httpx.AsyncClient, body: object, param: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    explain = errors.invalid_fields

    def counting(problems: Sequence[Mapping[str, Any]], *, above: int = 0) -> ApiError:
        made.append(len(problems))
        return explain(problems, above=above)

    monkeypatch.setattr(errors, "invalid_fields", counting)
    response = await client.post("/orders", json=body)
    assert response.status_code == 422
    assert error_of(response)["param"] == param
    assert made == [1]


async def test_the_length_of_a_text_is_counted_in_characters(client: httpx.AsyncClient) -> None:
    response = await client.get("/orders/1", params={"title": "x" * 501})
    assert error_of(response)["message"] == "'title' has 501 characters; send at most 500"


async def test_a_query_parameter_that_nobody_knows_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.get("/orders/1?page=1&pgae=2")
    assert response.status_code == 422
    error = error_of(response)
    assert (error["param"], error["code"]) == ("pgae", "invalid_value")
    assert "'pgae' is not a known query parameter; remove it or correct its name" in str(error["message"])
    assert (await client.post("/orders?dry_run=1", json={"items": []})).status_code == 422
    assert (await client.get("/orders/1?page=1&title=a")).json() == 1


async def test_a_huge_field_name_is_cut(client: httpx.AsyncClient) -> None:
    response = await client.post("/orders", json={"items": [{"name": "a", "x" * 100_000: 1}]})
    assert response.status_code == 422
    assert len(response.content) < 1_000


async def test_unknown_paths_and_methods(client: httpx.AsyncClient) -> None:
    missing = await client.get("/nothing/here")
    assert missing.status_code == 404
    assert error_of(missing)["code"] == "not_found"
    assert "/nothing/here" in str(error_of(missing)["message"])

    wrong_method = await client.delete("/orders")
    assert wrong_method.status_code == 405
    assert wrong_method.headers["allow"] == "POST"
    assert error_of(wrong_method)["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (429, "rate_limit_error"),
        (503, "server_error"),
    ],
)
async def test_an_api_error_is_reported_in_full(client: httpx.AsyncClient, status: int, kind: str) -> None:
    response = await client.get(f"/raise/{status}")
    assert response.status_code == status
    assert response.headers["retry-after"] == "7"
    assert error_of(response) == {"message": "not now; try later", "type": kind, "param": "when", "code": "later"}


async def test_the_frameworks_own_errors_keep_their_headers(client: httpx.AsyncClient) -> None:
    response = await client.get("/framework/409")
    assert response.status_code == 409
    assert response.headers["x-kept"] == "yes"
    assert error_of(response)["code"] == "conflict"
    assert error_of(await client.get("/framework/499"))["code"] == "error"  # No status of the standard's.


async def test_the_unforeseen_is_500_for_the_client_and_one_traceback_for_the_log(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        response = await client.get("/broken")
    assert response.status_code == 500
    assert error_of(response)["code"] == "internal_error"
    assert "secret" not in response.text
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert "GET '/broken'" in record.getMessage()


async def test_a_response_that_breaks_off_is_left_to_the_server(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RuntimeError, match="secret"):
        await client.get("/breaks-off")
    assert caplog.records == []  # The server logs it: once.


def test_error_body_replaces_what_utf8_cannot_carry() -> None:
    assert error_body(422, "a\ud800", param="\udfff")["error"] == {
        "message": "a?",
        "type": "invalid_request_error",
        "param": "?",
        "code": "invalid_value",
    }


def test_the_error_shape_is_documented() -> None:
    operation = make_app().openapi()["paths"]["/orders"]["post"]
    for status in ("400", "422"):
        schema = operation["responses"][status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorResponse"}
