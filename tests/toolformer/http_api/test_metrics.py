"""Requests are counted by method, route template and status, with no label a client can make up."""

from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from tests.toolformer.http_api.asgi import running
from toolformer.http_api import install_error_handlers, install_metrics


def make_app() -> FastAPI:
    app = FastAPI()
    install_error_handlers(app)
    install_metrics(app)

    @app.get("/items/{name}")
    async def item(name: str) -> str:
        if name == "broken":
            raise RuntimeError("broken")
        return name

    return app


def counts(text: str, sample_name: str) -> dict[tuple[str, str, str], float]:
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == sample_name
    }


async def test_requests_are_counted_and_timed_by_template() -> None:
    async with running(make_app()) as client:
        for name in ("a", "b", "c", "broken"):
            await client.get(f"/items/{name}")
        await client.post("/items/a")
        await client.get("/made/up")
        await client.get("/made/up/too")
        await client.request("BREW", "/items/a")
        response = await client.get("/metrics")

    assert response.headers["content-type"].startswith("text/plain")
    expected = {
        ("GET", "/items/{name}", "200"): 3.0,
        ("GET", "/items/{name}", "500"): 1.0,
        ("POST", "/items/{name}", "405"): 1.0,
        ("GET", "unmatched", "404"): 2.0,
        ("other", "/items/{name}", "405"): 1.0,
    }
    assert counts(response.text, "http_requests_total") == expected
    assert counts(response.text, "http_request_duration_seconds_count") == expected
    assert "process_resident_memory_bytes" in response.text


async def test_each_app_counts_for_itself() -> None:
    async with running(make_app()) as one, running(make_app()) as other:
        await one.get("/items/a")
        assert counts((await other.get("/metrics")).text, "http_requests_total") == {}
