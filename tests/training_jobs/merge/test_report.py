"""The page in headless Chromium, opened as the file it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.browser import needs_chromium, page
from tests.training_jobs.merge.filtered import candidate, write
from toolformer.tools import ToolRegistry
from training_jobs.merge.examples import examples
from training_jobs.merge.job import write_report
from training_jobs.merge.table import ToolCounts

REGISTRY = ToolRegistry.load(environ={})


def make(folder: Path) -> Path:
    """A page of a calculator's and a question answering's calls; some texts are written to break it."""
    evil = "A <b>bold</b> text </script><script>document.title = 'taken'</script> with 5 in it."
    files = {
        "Calculator": write(folder, "Calculator", {
            f"d{n}": (f"There are {n} times 2 apples here.", [candidate(9, f"{n} * 2", str(2 * n), n / 10)])
            for n in range(60)
        }),
        "QA": write(folder, "QA", {
            "evil": (evil, [candidate(1, "<img src=x onerror=alert(1)>", "<i>r</i>", 7.5)]),
            "none": ("Nobody answers.", [candidate(3, "who?", None, None)]),
        }),
    }  # fmt: skip
    counts = {tool: ToolCounts() for tool in files}
    write_report(folder / "report.html", counts, examples(files, REGISTRY), {"run": "a <run>"})
    return folder / "report.html"


def test_the_page_stands_alone(tmp_path: Path) -> None:
    made = make(tmp_path).read_text(encoding="utf-8")
    assert made.count("<script") == made.count("</script>") == 1
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", made.split("const data")[0])


@needs_chromium
@pytest.mark.slow
async def test_a_person_sorts_filters_and_reads_calls_in_their_text(tmp_path: Path) -> None:
    async with page() as opened:
        await opened.goto(make(tmp_path).as_uri())
        calls, number = opened.locator("#calls li"), opened.locator("#number")
        await expect(number).to_have_text("61 calls")
        await expect(calls).to_have_count(50)
        await expect(calls.nth(0).locator(".gain")).to_have_text("+7.500")
        assert (await calls.nth(0).locator(".text").inner_text()).startswith(
            'A [QA("<img src=x onerror=alert(1)>") -> <i>r</i>] <b>bold</b> text </script>'
        )
        assert await opened.title() == "Calls that help"
        await opened.click("#more")
        await expect(calls).to_have_count(61)
        await opened.select_option("#sort", "up")
        await expect(calls.nth(0).locator(".gain")).to_have_text("+0.000")
        await opened.select_option("#tool", "Calculator")
        await expect(number).to_have_text("60 calls")
        await opened.select_option("#verdict", "kept")
        await expect(number).to_have_text("55 calls")
        await expect(calls.nth(0)).to_have_class("kept")
        await expect(calls.nth(0).locator("mark")).to_have_text(" [Calculator(5 * 2) -> 10]")
        assert "There are" in await calls.nth(0).locator(".text").inner_text()
        await opened.fill("#words", "42 times")
        await expect(number).to_have_text("1 calls")
        await opened.fill("#words", "no such words")
        await expect(opened.locator("#none")).to_be_visible()
        assert await opened.locator("#about").inner_text() == "run\na <run>"
        await expect(opened.locator("#counts tbody tr")).to_have_count(2)
