"""The page at ``/`` in headless Chromium, with a real gateway and real tools behind it."""

import asyncio
import json
import shlex

import pytest
from playwright.async_api import Page, expect

from tests.inference_gateway.http_harness import Gateway, gateway
from tests.support.browser import needs_chromium, page
from tests.toolformer import tool_service

pytestmark = [needs_chromium, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


async def complete(opened: Page, prompt: str) -> None:
    """Put ``prompt`` in and ask for its completion with the keyboard."""
    await opened.fill("#prompt", prompt)
    await opened.press("#prompt", "Control+Enter")


async def ended(opened: Page) -> None:
    """Return once the completion has come to its end."""
    await expect(opened.locator("#run")).to_have_text("Complete")


async def test_a_call_becomes_a_chip_in_the_text(tooled: Gateway) -> None:
    async with page() as opened:
        await opened.goto(tooled.url)
        await expect(opened.locator("#tools label:not(.down)")).to_have_text(["Calculator", "Calendar"])
        await expect(opened.locator("#model")).to_have_text("scripted, 256 tokens")
        await complete(opened, "Sum:")
        await ended(opened)
        chip = opened.locator(".chip")
        await expect(chip).to_have_count(1)
        await expect(chip).to_have_class("chip done")
        assert (await chip.inner_text()).startswith("Calculator 24 * 17 → 408 ")
        text = await opened.locator("#with .text").inner_text()
        assert text.startswith("Sum: It is Calculator")
        assert text.endswith(" 408 books.")
        assert await opened.locator("#raw-text").text_content() == "Sum: It is [Calculator(24 * 17) -> 408] 408 books."
        cells = await opened.locator("#call-rows td").all_text_contents()
        assert cells[:3] == ["Calculator", "24 * 17", "408"]
        await expect(opened.locator("#with .ending")).to_have_text("The model ended its text here.")
        await expect(opened.locator("#with .counts")).to_contain_text("tokens written · ")


async def test_hidden_calls_still_have_their_chips(tooled: Gateway) -> None:
    async with page() as opened:
        await opened.goto(tooled.url)
        await opened.click("#settings summary")
        await opened.uncheck("#show_calls")
        await opened.fill("#max_calls", "2")
        await complete(opened, "Two:")
        await ended(opened)
        assert await opened.locator("#raw-text").text_content() == "Two: One and done."
        found = [(await chip.inner_text()).split("→")[0].strip() for chip in await opened.locator(".chip").all()]
        assert found == ["Calculator 1 + 1", "Calculator 2 + 2"]


async def test_a_call_that_fails_is_reported_and_leaves_no_text(plain: Gateway) -> None:
    async with page() as opened:
        await opened.goto(plain.url)
        await expect(opened.locator("#tools label.down")).not_to_have_count(0)
        await complete(opened, "Sum:")
        await ended(opened)
        await expect(opened.locator(".chip")).to_have_class("chip failed")
        await expect(opened.locator("#call-rows tr")).to_have_class("failed")
        assert "unreachable: Calculator cannot be reached" in await opened.locator("#call-rows").inner_text()
        await expect(opened.locator("#with .ending")).to_contain_text("Calculator gave no answer: Calculator cannot be")
        await expect(opened.locator("#down")).to_contain_text("Calculator is down: ")
        assert await opened.locator("#raw-text").text_content() == "Sum: It is unknown."
        await expect(opened.locator("#problem")).to_be_hidden()


async def test_stopping_during_a_call_frees_the_sequence() -> None:
    async with (
        tool_service.serve(tool_service.silent) as tool,
        gateway({"Calculator": tool.url}) as running,
        page() as opened,
    ):
        await opened.goto(running.url)
        await complete(opened, "Sum:")
        await expect(opened.locator(".chip")).to_have_class("chip calling")
        assert running.backend.stats().in_call == 1
        await opened.keyboard.press("Escape")
        await ended(opened)
        assert (await opened.locator("#with .ending").inner_text()).startswith("Stopped")
        async with asyncio.timeout(60):
            await tool.client_left.wait()
        await running.idle()
        await expect(opened.locator(".chip")).to_have_count(0)
        await expect(opened.locator("#run")).to_have_text("Complete")
        await complete(opened, "Plain:")
        await ended(opened)
        assert await opened.locator("#raw-text").text_content() == "Plain: a plain text."


async def test_what_the_gateway_refuses_is_said_with_the_remedy(plain: Gateway) -> None:
    async with page(expected_errors="400 (Bad Request)") as opened:
        await opened.goto(plain.url)
        await complete(opened, "word " * 400)
        await ended(opened)
        said = await opened.locator("#problem").inner_text()
        assert said.startswith("The gateway did not accept that.")
        assert "256" in said
        await complete(opened, "Plain:")
        await ended(opened)
        await expect(opened.locator("#problem")).to_be_hidden()


async def test_a_key_is_asked_for_and_then_used() -> None:
    async with (
        gateway(api_keys="right-key", key="right-key") as running,
        page(expected_errors="401 (Unauthorized)") as opened,
    ):
        await opened.goto(running.url)
        await expect(opened.locator("#api_key")).to_be_focused()
        await opened.fill("#api_key", "right-key")
        await opened.press("#api_key", "Control+Enter")
        await ended(opened)
        await expect(opened.locator("#problem")).to_be_hidden()
        await expect(opened.locator("#model")).to_have_text("scripted, 256 tokens")
        assert await opened.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
        command = await opened.locator("#curl").text_content()
        assert command is not None
        assert "right-key" not in command


async def test_the_command_shown_asks_for_the_same(tooled: Gateway) -> None:
    async with page() as opened:
        await opened.goto(tooled.url)
        await opened.click("#settings summary")
        await opened.fill("#seed", "7")
        await opened.fill("#date", "2026-11-20")
        await complete(opened, 'It\'s "Plain:" $HOME `x`\nDay:')
        await ended(opened)
        text = await opened.locator("#raw-text").text_content()
        command = await opened.locator("#curl").text_content()
        assert command is not None
        shell = await asyncio.create_subprocess_shell(
            f"{command} --noproxy '*' --max-time 30", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await shell.communicate()
        choice = json.loads(out)["choices"][0]
        assert text == 'It\'s "Plain:" $HOME `x`\nDay:' + choice["text"]
        assert choice["tool_calls"][0]["output"] == "Today is Friday, November 20, 2026."
        assert json.loads(shlex.split(command)[-1])["seed"] == 7


@pytest.mark.parametrize(
    ("prompt", "fields", "said"),
    [
        ("Long:", {"max_tokens": "5"}, "Cut off after 5 tokens"),
        ("Sum:", {"max_tokens": "6"}, "A call"),
        ("Closed:", {}, "A call of Calculator was refused: the call was closed without '->'."),
        ("Nothing to say", {}, "The model wrote no text. The model ended its text here."),
    ],
)
async def test_it_says_why_a_text_ended(tooled: Gateway, prompt: str, fields: dict[str, str], said: str) -> None:
    async with page() as opened:
        await opened.goto(tooled.url)
        await opened.click("#settings summary")
        for name, value in fields.items():
            await opened.fill(f"#{name}", value)
        await complete(opened, prompt)
        await ended(opened)
        await expect(opened.locator("#with .ending")).to_contain_text(said)
        if prompt == "Sum:":
            await expect(opened.locator("#with .ending")).to_contain_text("ran out of tokens and was not made.")
        if prompt == "Nothing to say":
            assert "first text" not in await opened.locator("#with .counts").inner_text()


async def test_it_stops_after_one_sentence(tooled: Gateway) -> None:
    async with page() as opened:
        await opened.goto(f"{tooled.url}/#prompt=Sum:&one_sentence=1")
        await complete(opened, "Sum:")
        await ended(opened)
        await expect(opened.locator("#with .ending")).to_have_text("Stopped after one sentence.")
        assert '"stop_at": "sentence"' in (await opened.locator("#curl").text_content() or "")


async def test_examples_are_their_texts_and_tools_are_apart(tooled: Gateway) -> None:
    async with page(viewport={"width": 375, "height": 812}) as opened:
        await opened.goto(tooled.url)
        group = opened.get_by_role("region", name="Examples")
        await expect(group.get_by_text("Examples")).to_be_visible()
        await expect(group.get_by_role("button", name="There are 24 boxes with 17 books each")).to_be_visible()
        await expect(opened.get_by_role("group", name="Tools it may call").get_by_role("checkbox")).not_to_have_count(0)
        await group.get_by_role("button", name="Today is").click()
        await ended(opened)
        assert await opened.input_value("#prompt") == "Today is"


async def test_the_page_says_what_the_model_knows() -> None:
    async with gateway(model_description="Knows <b>sums</b> alone.") as running, page() as opened:
        await opened.goto(running.url)
        await expect(opened.locator("#about")).to_have_text("Knows <b>sums</b> alone.")
    async with gateway(model_description="") as running, page() as opened:
        await opened.goto(running.url)
        await expect(opened.locator("#model")).to_have_text("scripted, 256 tokens")
        await expect(opened.locator("#about")).to_be_hidden()


@pytest.mark.parametrize("width", [375, 1280])
async def test_with_and_without_tools_side_by_side(tooled: Gateway, width: int) -> None:
    async with page(viewport={"width": width, "height": 812}) as opened:
        await opened.goto(tooled.url)
        await opened.check("#compare")
        await complete(opened, "Sum:")
        await ended(opened)
        await expect(opened.locator("#with .chip")).to_have_count(1)
        await expect(opened.locator("#without .text")).to_have_text("Sum: It is unknown.")
        await expect(opened.locator("#without .ending")).not_to_be_empty()
        with_tools = await opened.locator("#with").bounding_box()
        without = await opened.locator("#without").bounding_box()
        assert with_tools is not None
        assert without is not None
        beside = without["x"] >= with_tools["x"] + with_tools["width"]
        assert beside is (width == 1280)
        assert (without["y"] >= with_tools["y"] + with_tools["height"]) is not beside
        assert await opened.evaluate("document.documentElement.scrollWidth") <= width
        await opened.uncheck("#compare")
        await complete(opened, "Plain:")
        await ended(opened)
        await expect(opened.locator("#without")).to_be_hidden()


async def test_a_link_holds_prompt_and_settings_and_starts_nothing(tooled: Gateway) -> None:
    async with page() as opened:
        await opened.goto(tooled.url)
        await expect(opened.locator("#tools input")).not_to_have_count(0)
        await opened.click("#settings summary")
        await opened.fill("#max_tokens", "7")
        await opened.uncheck("#tools input[value=Calendar]")
        await opened.check("#compare")
        await complete(opened, "Plain: & more #1")
        await ended(opened)
        address = opened.url
    asked = list[str]()
    async with page() as opened:
        opened.on("request", lambda request: asked.append(request.method))
        await opened.goto(address)
        await expect(opened.locator("#tools input[value=Calendar]")).not_to_be_checked()
        await expect(opened.locator("#tools input[value=Calculator]")).to_be_checked()
        assert await opened.input_value("#prompt") == "Plain: & more #1"
        assert await opened.input_value("#max_tokens") == "7"
        assert await opened.is_checked("#compare")
        await expect(opened.locator("#result")).to_be_hidden()
        assert set(asked) == {"GET"}
        await opened.evaluate("location.hash = 'prompt=Sum:'")
        await expect(opened.locator("#prompt")).to_have_value("Sum:")
        await expect(opened.locator("#tools input:not(:checked)")).to_have_count(0)
        assert await opened.input_value("#max_tokens") == "48"


@pytest.mark.parametrize("width", [375, 1280])
async def test_words_and_chips_stay_whole(width: int) -> None:
    """No cell of a table, and no short chip, is torn apart within a word."""
    async with gateway() as running, page(viewport={"width": width, "height": 812}) as opened:
        await opened.goto(running.url)
        await complete(opened, "Sum:")
        await ended(opened)
        whole = """(element) => {
            const words = [...element.textContent.matchAll(/\\S+/g)], text = element.firstChild, range = new Range();
            return text === null || words.every(({ 0: word, index }) => {
                range.setStart(text, index);
                range.setEnd(text, index + word.length);
                return range.getClientRects().length === 1;
            });
        }"""
        for cell in await opened.locator("#call-rows td").all():
            assert await cell.evaluate(whole), await cell.inner_text()
        column, chip = opened.locator("#with"), opened.locator("#with .chip")
        assert await chip.evaluate("(chip) => chip.getClientRects().length") == 1
        outer, inner = await column.bounding_box(), await chip.bounding_box()
        assert outer is not None
        assert inner is not None
        assert inner["x"] >= outer["x"]
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 0.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_a_phone_in_light_and_dark(tooled: Gateway, scheme: str) -> None:
    async with page(viewport={"width": 360, "height": 740}, color_scheme=scheme) as opened:
        await opened.goto(tooled.url)
        await opened.click("#settings summary")
        await complete(opened, "Sum:")
        await ended(opened)
        for summary in await opened.locator("#result summary").all():
            await summary.click()
        assert await opened.evaluate("document.documentElement.scrollWidth") <= 360
        red, green, blue = await opened.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).map(Number)"
        )
        assert (min(red, green, blue) > 200) is (scheme == "light")
        assert (max(red, green, blue) < 60) is (scheme == "dark")
