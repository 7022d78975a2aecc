"""API keys in front of everything, shares of each key, room for all, and pages of other origins."""

import asyncio
import contextlib
import logging
import re
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.routing import BaseRoute, Route

from inference_gateway import api_keys
from inference_gateway.__main__ import main
from inference_gateway.api_keys import ApiKeyError, ApiKeys
from inference_gateway.app import create_app
from inference_gateway.quotas import OverQuota, Quotas
from inference_gateway.settings import GatewaySettings
from tests.inference_gateway.http_harness import answered, bearer, gateway, scripted_backend, serving, tools_at
from tests.support.waiting import until
from tests.toolformer import tool_service
from toolformer.model_files.whole import write_whole

PAGE = {"/", *(f"/playground/{name}" for name in ("style.css", "main.js", "view.js", "events.js", "link.js"))}
PAGE |= {"/docs", *(f"/docs/{name}" for name in ("base.css", "api.css", "api.js"))}
OPEN = PAGE | {"/health", "/ready", "/openapi.json", "/metrics"}


def walked(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """All routes, those of included routers too."""
    for route in routes:
        if isinstance(route, Route):
            yield route
        else:  # FastAPI keeps what was included as it is; anything else (a mounted app) has none and fails here
            yield from walked(getattr(route, "original_router").routes)  # noqa: B009


async def test_every_route_but_the_open_ones_needs_a_key() -> None:
    async with gateway(api_keys="alice:right-key", key="right-key") as running:
        routes = list(walked(running.app.routes))
        assert {"/v1/completions", "/v1/models", "/v1/models/{id:path}", "/v1/tools"} <= {r.path for r in routes}
        for route in routes:
            path = re.sub(r"\{[^}]*\}", "scripted", route.path)
            for method in {*(route.methods or ()), "OPTIONS"}:
                for headers in ({"Authorization": ""}, bearer("wrong-key"), {"Authorization": "Basic right-key"}):
                    refused = await running.http.request(method, path, headers=headers)
                    if route.path in OPEN:
                        assert refused.status_code != 401, path
                        continue
                    assert refused.status_code == 401, f"{method} {path} needs no key"
                    assert refused.headers["www-authenticate"].startswith("Bearer ")
                    assert refused.headers["x-request-id"]
                    if method != "HEAD":
                        error = refused.json()["error"]
                        assert (error["type"], set(error)) == (
                            "authentication_error",
                            {"message", "type", "param", "code"},
                        )
                        assert error["code"] in ("missing_api_key", "invalid_api_key")
                assert (await running.http.request(method, path)).status_code != 401
        assert (await running.http.get("/not/there", headers={"Authorization": ""})).status_code == 401
        assert (await running.complete("Plain:"))["choices"][0]["text"] == " a plain text."


async def test_metrics_need_a_key_where_it_is_asked_for() -> None:
    async with gateway(api_keys="k-1", metrics_need_key=True, key="k-1") as running:
        assert (await running.http.get("/metrics")).status_code == 200
        assert (await running.http.get("/metrics", headers={"Authorization": ""})).status_code == 401


async def test_the_description_names_keys_where_they_are_needed() -> None:
    async with gateway(api_keys="k-1", key="k-1") as running:
        document = (await running.http.get("/openapi.json", headers={"Authorization": ""})).json()
        assert (await running.http.get("/openapi.json")).json() == document
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert ("security" in operation) == ("401" in operation["responses"]) == (path not in OPEN), path
    async with gateway() as running:
        assert "security" not in (await running.http.get("/openapi.json")).text


async def test_keys_are_read_from_a_file_and_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_keys, "RELOAD_SECONDS", 0.01)
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "keys"
    write_whole(file, "# who may come in\nalice:first-key\n\nbob:bobs-key  # until May\n")

    async def answers(key: str, status: int) -> None:
        await answered(running.http, "/v1/models", status, headers=bearer(key))

    async with gateway(api_keys="admin:of-the-environment", api_keys_file=file, key="first-key") as running:
        await answers("bobs-key", 200)
        write_whole(file, "alice:first-key\nalice:second-key\n")
        await answers("second-key", 200)
        await answers("bobs-key", 401)
        await answers("first-key", 200)
        write_whole(file, "this is no key\n")
        await until(lambda: "stay as they were" in caplog.text)
        file.unlink()
        await answers("second-key", 200)
        write_whole(file, "")
        await answers("second-key", 401)
        await answers("of-the-environment", 200)
    for key in ("first-key", "second-key", "bobs-key", "of-the-environment", "this is no key"):
        assert key not in caplog.text


async def test_a_key_file_that_could_not_be_read_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_keys, "RELOAD_SECONDS", 0.01)
    caplog.set_level(logging.INFO)
    file, newer = tmp_path / "keys", tmp_path / "newer"
    file.write_text("alice:revoked-key\n")
    newer.write_text("alice:new-key\n")
    keys = ApiKeys(file=file)

    watching = asyncio.create_task(keys.watch())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))  # no file can be opened: holds for root too
    try:
        newer.replace(file)
        await until(lambda: "stay as they were" in caplog.text)
        assert keys.name_of("revoked-key") == "alice"
        assert caplog.messages[-1].endswith("these keys are taken: alice")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    await until(lambda: "read the API keys again" in caplog.text)  # though nothing about the file has changed since
    assert (keys.name_of("revoked-key"), keys.name_of("new-key")) == (None, "alice")
    watching.cancel()


async def test_a_key_file_is_watched_on_when_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_keys, "RELOAD_SECONDS", 0.01)
    file = tmp_path / "keys"
    file.write_text("old-key\n")
    keys = ApiKeys(file=file)

    async def no_thread(*_: object) -> bool:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(asyncio, "to_thread", no_thread)
        watching = asyncio.create_task(keys.watch())
        file.write_text("another-key\n")
        await until(lambda: "can't start new thread" in caplog.text)
    await until(lambda: keys.name_of("another-key") is not None)
    watching.cancel()


def test_a_key_has_its_name_and_is_not_kept() -> None:
    keys = ApiKeys("alice:first, second,alice:third")
    assert keys.required
    assert [keys.name_of(key) for key in ("first", "second", "third")] == ["alice", "key-2", "alice"]
    assert [keys.name_of(key) for key in ("", "alice", "alice:first", "firs", "first ", "\udcff")] == [None] * 6
    assert "first" not in repr(vars(keys))
    assert not ApiKeys().required


@pytest.mark.parametrize("listed", ["two words", "a:b:c", ":nameless", "käse", ", ,"])
def test_what_is_no_key_is_refused_and_not_repeated(listed: str) -> None:
    with pytest.raises(ApiKeyError) as refused:
        ApiKeys(f"fine:{'x' * 20},{listed}" if listed.strip(", ") else listed)
    assert listed not in str(refused.value)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"API_KEYS_FILE": "/nowhere/keys"}, "TOOLFORMER_GATEWAY_API_KEYS_FILE: cannot be read: No such file"),
        ({"API_KEYS": "alice:a secret"}, "TOOLFORMER_GATEWAY_API_KEYS: entry 1 of the list of keys"),
        ({"API_KEYS": ","}, "TOOLFORMER_GATEWAY_API_KEYS: there is no key in it"),
        ({"KEY_MAX_REQUESTS": "3"}, "set TOOLFORMER_GATEWAY_API_KEYS as well"),
    ],
)
def test_keys_that_cannot_be_read_stop_it_at_once(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"TOOLFORMER_GATEWAY_{name}", value)
    with pytest.raises(SystemExit) as exited:
        main()
    assert exited.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "a secret" not in said


async def test_a_client_s_share_is_429_and_the_gateway_s_limit_503() -> None:
    async with (
        tool_service.serve(tool_service.silent) as tool,
        gateway(
            {"Calculator": tool.url}, api_keys="a:key-a,b:key-b", key="key-a", key_max_requests=1, max_requests=2
        ) as running,
    ):
        body = {"prompt": "Sum:", "max_tokens": 40}
        holding = []
        for key in ("key-a", "key-b"):
            tool.arrived.clear()
            sent = running.http.post("/v1/completions", json={**body, "stream": key == "key-b"}, headers=bearer(key))
            holding.append(asyncio.create_task(sent))
            async with asyncio.timeout(60):
                await tool.arrived.wait()
            refused = await running.http.post("/v1/completions", json=body, headers=bearer(key))
            status, code = (429, "rate_limit_exceeded") if key == "key-a" else (503, "busy")
            assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
            assert refused.headers["retry-after"] == "1"
        assert (await running.http.get("/v1/models")).status_code == 200
        for task in holding:
            task.cancel()
        await asyncio.gather(*holding, return_exceptions=True)
        async with asyncio.timeout(60):  # the room is free again once the server has seen them leave
            while (await running.http.post("/v1/completions", json={"prompt": "Plain:"})).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


def test_requests_a_minute_fill_up_evenly() -> None:
    now = [0.0]
    quotas = Quotas(100, per_minute_each=3, clock=lambda: now[0])

    def begun(client: str | None) -> bool:
        with contextlib.suppress(OverQuota), quotas.admitted(client):
            return True
        return False

    assert [begun("a") for _ in range(5)] == [True, True, True, False, False]
    assert begun("b")
    assert [begun(None) for _ in range(5)] == [True] * 5
    with pytest.raises(OverQuota) as over, quotas.admitted("a"):
        pass
    assert (over.value.retry_after, over.value.everybody) == (20, False)
    now[0] = 20.0
    assert [begun("a"), begun("a")] == [True, False]
    now[0] = 1000.0
    assert [begun("a") for _ in range(5)] == [True, True, True, False, False]


async def test_pages_of_other_origins_are_let_in_by_setting_only() -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    async with gateway() as running:
        assert "access-control-allow-origin" not in (await running.http.get("/health", headers=asked)).headers
        assert (await running.http.options("/v1/completions", headers=asked)).status_code == 405
    async with gateway(cors_origins="https://app.example, https://b.example", api_keys="k-1", key="k-1") as running:
        preflight = await running.http.options(
            "/v1/completions", headers={**asked, "Access-Control-Request-Headers": "authorization", "Authorization": ""}
        )
        assert preflight.status_code == 200
        refused = await running.http.post("/v1/completions", json={}, headers={**asked, "Authorization": ""})
        assert refused.status_code == 401
        for response in (preflight, refused):
            assert response.headers["access-control-allow-origin"] == "https://app.example"
        other = await running.http.get("/health", headers={"Origin": "https://c.example"})
        assert "access-control-allow-origin" not in other.headers


async def test_a_file_with_keys_alone_guards_it(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("only-key\n")
    app = create_app(scripted_backend, tools_at({}), GatewaySettings(api_keys_file=file))
    async with serving(app) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
        assert (await http.get("/v1/tools")).status_code == 401
        assert (await http.get("/v1/tools", headers=bearer("only-key"))).status_code == 200


def test_a_share_counts_choices() -> None:
    now = [0.0]
    quotas = Quotas(100, concurrent_each=4, per_minute_each=6, clock=lambda: now[0])
    with quotas.admitted("a"), quotas.widened("a", 3):
        with (
            pytest.raises(OverQuota, match="4 choices in progress, and 4 are"),
            quotas.admitted("a"),
            quotas.widened("a", 2),
        ):
            pass
        with quotas.admitted("b"), quotas.widened("b", 4):
            pass
    with (
        pytest.raises(OverQuota, match="begun 6 choices within a minute") as over,
        quotas.admitted("a"),
        quotas.widened("a", 4),
    ):
        pass
    now[0] += over.value.retry_after
    with quotas.admitted("a"), quotas.widened("a", 3):
        pass


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_with_more_choices_than_are_left_is_turned_away(stream: bool) -> None:
    async with gateway(api_keys="a:key-a", key="key-a", key_requests_per_minute=6, key_max_requests=8) as running:
        body = {"prompt": "Plain:", "n": 7, "stream": stream}
        refused = await running.http.post("/v1/completions", json=body)
        assert refused.status_code == 429, refused.text
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert int(refused.headers["retry-after"]) > 0
        too_many = await running.http.post("/v1/completions", json={**body, "n": 9})
        assert (too_many.status_code, too_many.json()["error"]["code"]) == (422, "too_many_choices")
        assert (await running.complete("Plain:", n=2))["choices"]
