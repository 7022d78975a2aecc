"""The pages that servers show: each brings all that it needs, so that it works where nothing else can be reached."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import expect

from inference_gateway.app import create_app
from inference_gateway.settings import GatewaySettings
from services.calculator import app as calculator
from services.calendar import app as calendar
from services.question_answering import app as question_answering
from services.translation import app as translation
from services.wiki_search import app as wiki_search
from tests.inference_gateway.http_harness import gateway, random_backend, serving, tools_at
from tests.inference_gateway.test_http_access import walked
from tests.support.browser import needs_chromium, page


def gateway_app() -> FastAPI:
    return create_app(random_backend, tools_at({}), GatewaySettings())


SERVERS: Final[dict[str, Callable[[], FastAPI]]] = {
    "gateway": gateway_app,
    "calculator": calculator.build_app,
    "calendar": calendar.build_app,
    "wiki_search": wiki_search.build_app,
    "question_answering": question_answering.build_app,
    "translation": translation.build_app,
}

ELSEWHERE: Final = re.compile(
    r"""https?:(?!//www\.w3\.org/)|(?:src|href|action)\s*=\s*["']?//|url\(\s*["']?//|["'`]//\w"""
)
"""What leads a browser to another server; the names of XML's vocabularies are no addresses."""

REFERENCE: Final = re.compile(r"""\b(?:src|href)="([^"]+)"|from "(\./[^"]+)\"""")


@pytest.mark.parametrize(
    "text", ['<script src="https://cdn.example/x.js">', "<link href=//a.b/c>", "url(//a.b/f.woff)", 'fetch("//a.b")']
)
def test_an_address_elsewhere_is_seen(text: str) -> None:
    assert ELSEWHERE.search(text)


@pytest.mark.parametrize("server", SERVERS)
async def test_no_page_names_another_server(server: str) -> None:
    app = SERVERS[server]()
    pages = dict[str, str]()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        for route in walked(app.routes):
            if "GET" in (route.methods or ()) and "{" not in route.path:
                found = await client.get(route.path)
                if found.headers.get("content-type", "").startswith("text/html"):
                    assert found.headers["content-security-policy"].startswith("default-src 'none'"), route.path
                    pages[route.path] = found.text
        assert "/docs" in pages
        assert (await client.get("/redoc")).status_code == 404
        waiting = set(pages)
        seen = dict(pages)
        while waiting:
            at = waiting.pop()
            assert not ELSEWHERE.search(seen[at]), f"{at}: {ELSEWHERE.findall(seen[at])}"
            for names in REFERENCE.findall(seen[at]):
                target = urlsplit(urljoin(f"http://here{at}", "".join(names)))
                if target.scheme == "http" and target.path not in seen:
                    part = await client.get(target.path)
                    assert part.status_code == 200, f"{at} names {target.path}, which is not there"
                    seen[target.path] = part.text
                    waiting.add(target.path)
        assert {"/docs/api.js", "/docs/base.css"} <= seen.keys()


def test_no_page_in_the_repository_names_another_server() -> None:
    """Also those that jobs write, for which there is no server."""
    root = Path(__file__).parents[1]
    packages = [folder for folder in root.iterdir() if (folder / "__init__.py").exists() and folder.name != "tests"]
    files = [file for folder in packages for file in folder.rglob("*") if file.suffix in (".html", ".css", ".js")]
    assert len(files) > 8
    assert [str(file) for file in files if ELSEWHERE.search(file.read_text())] == []


@needs_chromium
@pytest.mark.slow
async def test_the_api_page_works_without_other_servers_and_sends_requests() -> None:
    async with serving(calculator.build_app()) as url, page() as opened:
        asked = set[str]()
        opened.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
        await opened.goto(f"{url}/docs")
        await expect(opened.locator("#title")).to_have_text("Calculator")
        await expect(opened.locator(".operation")).to_have_count(7)
        call = opened.locator(r"#post-\/call")
        await call.locator("summary").first.click()
        await expect(call.locator(".fields").first).to_contain_text("required")
        await call.get_by_role("button", name="Send").click()
        await expect(call.locator(".received")).to_contain_text('"output": "')
        own = opened.locator(r"#get-\/calculate")
        await own.locator("summary").first.click()
        await own.locator("input").fill("6 * 7")
        await own.get_by_role("button", name="Send").click()
        await expect(own.locator(".received")).to_contain_text("42")
        assert asked == {urlsplit(url).netloc}


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1280])
async def test_the_gateways_api_page_asks_for_a_key_and_fits(width: int) -> None:
    async with (
        gateway(api_keys="right-key", key="right-key") as running,
        page("401 (Unauthorized)", viewport={"width": width, "height": 800}) as opened,
    ):
        await opened.goto(f"{running.url}/docs#post-/v1/completions")
        completions = opened.locator(r"#post-\/v1\/completions")
        await expect(completions.locator("textarea")).to_be_visible()  # the address opens it
        await completions.get_by_role("button", name="dated").click()
        await expect(completions.locator("textarea")).to_have_value(re.compile("tool_context"))
        await completions.get_by_role("button", name="Send").click()
        await expect(completions.get_by_role("status")).to_contain_text("401")
        await opened.get_by_label("API key").fill("right-key")
        await completions.get_by_role("button", name="Send").click()
        await expect(completions.locator(".received")).to_contain_text("finish_reason")
        await opened.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert await opened.evaluate("document.documentElement.scrollWidth") <= width
