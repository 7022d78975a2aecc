"""HTTP APIs as tools: what is sent, what of the answer is taken, trouble with the usual names. The server is real."""

# ruff: noqa: ASYNC109 - a call's timeout is what is tested

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolformer.outside_servers import registry
from tests.toolformer.test_tools import ATLAS, errors_of, load, write
from tests.toolformer.tool_service import Behaviour, Seen, endless, in_turn, response, sends, serve, silent, status
from toolformer.outside import HttpApi
from toolformer.result_cache import MemoryCache
from toolformer.tool_client import RetryPolicy, ToolClient, ToolResult

QUICK = RetryPolicy(backoff_s=0.001)
NAMES = {"data": [{"name": "Öl"}, {"name": 7.5}, {"name": None}]}


def says(body: Any) -> Behaviour:
    return sends(response(200, body if isinstance(body, bytes) else json.dumps(body).encode()))


async def called(
    behave: Behaviour, input: str = "a", *, timeout: float = 30, **http: Any
) -> tuple[ToolResult, list[Seen]]:
    async with serve(behave) as service:
        table = {"path": "/v1", "query": {"q": "{input}"}} | http
        async with ToolClient(registry(service.url, http=table), QUICK) as client:
            return await client.call("Calculator", input, timeout=timeout), service.seen


ODD = 'l\'été & "a=b"/../#? %2e {input} \n🙂'


class TestWhatIsSent:
    async def test_the_query(self) -> None:
        result, [seen] = await called(says(b" fine \n"), ODD, query={"q": "in {input}", "unit": "m"})
        assert result.output == "fine"
        assert (seen.method, urlsplit(seen.path).path) == ("GET", "/v1")
        assert parse_qsl(urlsplit(seen.path).query) == [("q", f"in {ODD}"), ("unit", "m")]

    async def test_the_path(self) -> None:
        _, [seen] = await called(says(b"x"), "a/b?c#d é", path="/items/{input}.json", query={})
        assert seen.path == "/items/a%2Fb%3Fc%23d%20%C3%A9.json"

    async def test_the_body(self) -> None:
        body = {"text": "say {input}", "n": 3, "deep": [{"again": "{input}"}]}
        _, [seen] = await called(says(b"x"), ODD, method="POST", path="", query={}, body=body)
        assert (seen.method, seen.path) == ("POST", "/")
        assert seen.headers["content-type"] == "application/json"
        assert seen.json == {"text": f"say {ODD}", "n": 3, "deep": [{"again": ODD}]}

    async def test_headers_take_secrets_from_the_environment_and_files(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("OUTSIDE_KEY", "k1")
        file = tmp_path / "secret"
        file.write_text("k2\n")
        headers = {"Authorization": "Bearer {env:OUTSIDE_KEY}", "X-Key": f"{{file:{file}}}", "Accept": "text/plain"}
        _, [seen] = await called(says(b"x"), headers=headers)
        assert [seen.headers[n] for n in ("authorization", "x-key", "accept")] == ["Bearer k1", "k2", "text/plain"]

        monkeypatch.setenv("OUTSIDE_KEY", "k1\r\nX: y")
        result, seen_now = await called(says(b"x"), headers=headers)
        assert result.error is not None
        assert result.error.code == "unreachable"
        assert "the value for the header Authorization is empty" in result.error.message
        assert not seen_now

    @given(st.text(st.characters(codec="utf-8")))
    def test_no_input_leads_to_another_route(self, input: str) -> None:
        path = HttpApi(path="/items/{input}/price").path_for(input)
        if path is None:
            assert not input or {".", ".."} & set(unquote(input).replace("\\", "/").split("/"))
        else:
            head, items, part, price = path.split("/")
            assert (head, items, price, unquote(part)) == ("", "items", "price", input)
            assert not {"?", "#"} & set(part)

    @pytest.mark.parametrize("input", ["..", ".", "", "a/../../b", "..\\x", "%2e%2e/x"])
    async def test_one_that_would_is_not_sent(self, input: str) -> None:
        result, seen = await called(says(b"x"), input, path="/items/{input}")
        assert result.error is not None
        assert (result.error.code, result.attempts, seen) == ("invalid_input", 0, [])


class TestWhatIsTaken:
    @pytest.mark.parametrize(
        ("answer", "output"),
        [("data.0.name", "Öl"), ("data.1.name", "7.5"), ("data.0", '{"name": "Öl"}'), ("", json.dumps(NAMES))],
    )
    async def test_the_answer(self, answer: str, output: str) -> None:
        assert (await called(says(NAMES), answer=answer))[0].output == output

    @pytest.mark.parametrize(
        ("behave", "code"),
        [
            (says(NAMES), "no_result"),
            (says({"data": []}), "no_result"),
            (status(404), "no_result"),
            (says(b"<html>"), "bad_response"),
            (says(b"[" * 100_000), "bad_response"),
            (status(401), "bad_response"),
            (status(500), "bad_response"),
            (status(307, {"Location": "http://127.0.0.1:9/"}), "bad_response"),
            (status(429), "busy"),
            (sends(b"nonsense\r\n\r\n"), "unreachable"),
            (endless, "too_large"),
            (sends(response(200, b"x", {"Content-Encoding": "gzip"})), "bad_response"),
        ],
    )
    async def test_trouble_has_a_name(self, behave: Behaviour, code: str) -> None:
        error = (await called(behave, answer="data.2.name"))[0].error
        assert error is not None
        assert error.code == code


class TestAsForServices:
    async def test_a_deadline(self) -> None:
        result, _ = await called(silent, timeout=0.2)
        assert result.error is not None
        assert result.error.code == "timeout"

    async def test_retries(self) -> None:
        result, seen = await called(in_turn(status(503), status(429), says(b"x")))
        assert (result.output, result.attempts, len(seen)) == ("x", 3, 3)

    async def test_the_cache(self) -> None:
        async with serve(says(b"x")) as service:
            tools = registry(service.url, http={"query": {"q": "{input}"}})
            async with ToolClient(tools, cache=MemoryCache()) as client:
                assert [(await client.call("Calculator", "a")).cached for _ in range(2)] == [False, True]
        assert [seen.path for seen in service.seen] == ["/", "/?q=a"]

    async def test_many_calls_are_one_request_each(self) -> None:
        async with (
            serve(says(b"x")) as service,
            ToolClient(registry(service.url, http={"query": {"q": "{input}"}})) as client,
        ):
            results = await client.call_many("Calculator", ["a", "b", "c"])
        assert [result.output for result in results] == ["x"] * 3
        assert sorted(seen.path for seen in service.seen) == ["/?q=a", "/?q=b", "/?q=c"]

    async def test_killed_and_back(self) -> None:
        async with serve(says(b"x")) as service:
            tools = registry(service.url, http={"query": {"q": "{input}"}})
            client = ToolClient(tools, RetryPolicy(max_attempts=1, failure_threshold=2, cool_down_s=0.1))
            await client.__aenter__()
            assert (await client.call("Calculator", "a")).ok
        codes = [(await client.call("Calculator", "a")).error for _ in range(3)]
        assert [error and error.code for error in codes] == ["unreachable", "unreachable", "circuit_open"]
        async with serve(says(b"x"), service.port):
            await asyncio.sleep(0.2)
            assert (await client.call("Calculator", "a")).ok
            await client.__aexit__()

    @pytest.mark.parametrize(
        ("code", "ready", "ok"), [(404, "", True), (404, "/up", False), (500, "", False), (200, "/up", True)]
    )
    async def test_readiness(self, code: int, ready: str, ok: bool) -> None:
        async with serve(status(code)) as service:
            tools = registry(service.url, http={"query": {"q": "{input}"}, "ready": ready})
            async with ToolClient(tools) as client:
                assert (await client.ready("Calculator")).ok is ok
        assert [seen.path for seen in service.seen] == [ready or "/"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("http = {path = 'items/{input}'}", "http.path: a path begins with /"),
        ("http = {path = '/a/../{input}'}", "http.path: a path begins with /"),
        ("http = {path = '/items'}", "[Atlas]: the input goes nowhere: write {input}"),
        ("http = {method = 'DELETE', path = '/{input}'}", "http.method: "),
        ("http = {pat = '/{input}'}", "http.pat: is not a field; did you mean path?"),
        ("http = {query = {q = 5}}", "http.query.q: "),
        ("http = {path = '/{input}', headers = {X-Key = 's3cret'}}", "http.headers: X-Key: take the value from {env:"),
        ("http = {path = '/{input}', body = 2026-01-01}", "http.body"),
        ("http = {path = '/{input}'}\ntakes_date = true", "takes_date = true needs a service"),
        ("http = {path = '/{input}'}\nmcp = {tool = 'a', arguments = {a = '{input}'}}", "http or mcp, not both"),
        ("mcp = {arguments = {a = '{input}'}}", "mcp.tool: is missing"),
        ("mcp = {tool = 'a'}", "the input goes nowhere"),
    ],
)
def test_a_wrong_table_is_explained(table: str, message: str, tmp_path: Path) -> None:
    errors = errors_of(write(tmp_path, ATLAS + table))
    assert message in errors
    assert "[Atlas]" in errors
    assert "s3cret" not in errors


def test_a_table_is_a_tool(tmp_path: Path) -> None:
    table = ATLAS + '[Atlas.http]\npath = "/places/{input}"\nanswer = "data.0.name"\n'
    tool = load(write(tmp_path, table), TOOLFORMER_TOOL_ATLAS_URL="http://places:1").get("Atlas")
    assert (tool.url, tool.batch, tool.outside) == ("http://places:1", 1, tool.http)
