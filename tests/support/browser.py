"""Headless Chromium for tests of pages."""

import contextlib
import shutil
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from playwright.async_api import Page, async_playwright, expect

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (apt-get install chromium)")
"""For tests that open a page."""

_PATIENCE_MS: Final = 60_000
"""For a page to load and for what is expected of it: what is tested comes at once, but the machine may be busy."""

expect.set_options(timeout=_PATIENCE_MS)

_FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""No sandbox, as tests run as root in containers; the rest keeps the browser from calling its maker."""


@contextlib.asynccontextmanager
async def page(expected_errors: str = "", **context: Any) -> AsyncIterator[Page]:
    """An empty page of a new browser whose context has these options (``viewport``, ``color_scheme``, ...).

    The test fails at the end if the page logged an error or threw one, other than those that hold
    ``expected_errors``.
    """
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            opened = await browser.new_page(**context)
            opened.set_default_timeout(_PATIENCE_MS)
            problems: list[str] = []
            opened.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
            opened.on("pageerror", lambda error: problems.append(str(error)))
            yield opened
            unexpected = [problem for problem in problems if not expected_errors or expected_errors not in problem]
            assert unexpected == []
        finally:
            await browser.close()
