"""``toolformer complete`` against a stand-in gateway over real HTTP."""

import io
import json
import signal
from collections.abc import Sequence

import pytest
from rich.console import Console

from cli.complete import CompletionPrinter, stream_completion
from tests.cli.command import run, toolformer
from tests.cli.gateway import DONE, chunk, gateway

PROMPT = "Each of the 24 boxes holds 17 books, so together they hold"
CALL = " [Calculator(24 * 17) -> 408]"
STREAM = b": keep-alive\n\n" + chunk(CALL) + chunk(" 408 books.") + chunk("", finish="stop", tool_calls=[]) + DONE


async def test_the_text_goes_to_standard_output_as_it_is() -> None:
    async with gateway([STREAM]) as served:
        status, out, log = await run("complete", PROMPT, "--url", served.url)
    assert (status, out, log) == (0, f"{CALL} 408 books.\n", "")
    assert served.calls == [{"prompt": PROMPT, "max_tokens": 64, "temperature": 0.0, "stream": True}]


async def test_every_option_reaches_the_gateway() -> None:
    options = ["--tools", "Calculator,Calendar", "--max-calls", "2", "--api-top-k", "5", "--max-tokens", "9"]
    options += ["--temperature", "0.5", "--date", "2030-01-31", "--echo"]
    async with gateway([STREAM]) as served:
        status, out, _ = await run("complete", "-", *options, "--url", served.url, stdin=b"Today is\n")
    assert (status, out) == (0, f"Today is{CALL} 408 books.\n")
    assert served.calls == [
        {
            "prompt": "Today is",
            "max_tokens": 9,
            "temperature": 0.5,
            "tools": ["Calculator", "Calendar"],
            "max_calls": 2,
            "api_top_k": 5,
            "tool_context": {"date": "2030-01-31"},
            "stream": True,
        }
    ]


async def test_further_options_reach_the_gateway_and_tools_have_one_spelling() -> None:
    options = ["--tools", "calculator,question_answering", "--seed", "3", "--stop", ".", "--stop", "!", "--top-k", "7"]
    async with gateway([STREAM]) as served:
        assert (await run("complete", "Hi", *options, "--model", "m", "--one-sentence", "--url", served.url))[0] == 0
        assert (await run("complete", "Hi", "--no-tools", "--url", served.url))[0] == 0
    asked, without = served.calls
    assert without["tools"] == []
    assert (asked["seed"], asked["stop"], asked["top_k"], asked["model"]) == (3, [".", "!"], 7, "m")
    assert asked["tools"] == ["Calculator", "QA"]
    assert asked["stop_at"] == "sentence"


ANSWER = {
    "id": "cmpl-1",
    "choices": [
        {"index": 0, "text": " 4.", "finish_reason": "stop", "tool_calls": []},
        {"index": 1, "text": "", "finish_reason": "length", "tool_calls": []},
    ],
}


async def test_several_completions_are_numbered_or_json() -> None:
    async with gateway([json.dumps(ANSWER).encode()]) as served:
        status, out, log = await run("complete", "Hi", "--n", "2", "--url", served.url)
        json_status, as_json, _ = await run("complete", "Hi", "--json", "--url", served.url)
    assert (status, out) == (0, "[0] 4.\n[1]\n")
    assert log.startswith("[1] cut off: --max-tokens allows no more\n[1] the text is empty: ")
    assert (json_status, json.loads(as_json)) == (0, ANSWER)
    assert [("stream" in asked, asked.get("n")) for asked in served.calls] == [(False, 2), (False, None)]


@pytest.mark.parametrize(
    ("text", "end", "said"),
    [
        ("", {"finish_reason": "length"}, "the text is empty: the model wrote nothing, or the tokens went into a call"),
        (" 4", {"finish_reason": "length"}, "cut off: --max-tokens allows no more\n"),
        (" 4", {"finish_reason": "length", "timed_out": True}, "cut off by the time limit\n"),
    ],
)
async def test_why_a_text_is_empty_or_cut_is_said(text: str, end: dict[str, object], said: str) -> None:
    last = {"choices": [{"index": 0, "text": "", "tool_calls": [], **end}]}
    async with gateway([chunk(text) + b"data: " + json.dumps(last).encode() + b"\n\n" + DONE]) as served:
        status, out, log = await run("complete", "2 + 2 =", "--url", served.url)
    assert (status, out) == (0, f"{text}\n")
    assert said in log


async def test_an_api_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway([STREAM]) as served:
        printer = CompletionPrinter(None, Console(file=io.StringIO()))
        for key in ("", "k-1"):
            monkeypatch.setenv("TOOLFORMER_API_KEY", key)
            await stream_completion(served.url, {"prompt": "Hi"}, printer, seconds=60)
    assert [seen.headers.get("authorization") for seen in served.seen] == [None, "Bearer k-1"]


@pytest.mark.parametrize("size", [1, 7, len(STREAM)])
async def test_the_stream_may_be_cut_anywhere(size: int) -> None:
    text = "caf\u00e9 \u2028 \U0001f4da\x85 ]"
    stream = chunk(text) + STREAM
    async with gateway([stream[at : at + size] for at in range(0, len(stream), size)]) as served:
        shown = await shown_on_terminal(served.url)
    plain = "".join(part for part, _ in shown)
    assert plain == f"{text}{CALL} 408 books.\n".replace("\x85", "")


async def shown_on_terminal(url: str) -> list[tuple[str, bool]]:
    """The completion as a terminal shows it: pieces of text, and whether each is in colour."""
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=40)
    await stream_completion(url, {"prompt": "x"}, CompletionPrinter(None, console), seconds=60)
    assert isinstance(console.file, io.StringIO)
    pieces = console.file.getvalue().split("\033[1;36m")
    shown = [(pieces[0], False)]
    for piece in pieces[1:]:
        coloured, _, rest = piece.partition("\033[0m")
        shown += [(coloured, True), (rest, False)]
    return shown


async def test_a_terminal_shows_calls_in_colour() -> None:
    async with gateway([STREAM]) as served:
        assert await shown_on_terminal(served.url) == [
            (" ", False),
            ("[Calculator(24 * 17) -> 408]", True),
            (" 408 books.\n", False),
        ]


async def test_what_a_tool_writes_cannot_steer_the_terminal() -> None:
    async with gateway([chunk(" a\x1b[2Jb\x07\x9bc\r") + DONE]) as served:
        assert (await run("complete", "Hi", "--url", served.url))[1] == " a[2Jbc\n"


async def test_calls_without_a_result_are_told_apart_from_the_text() -> None:
    failed = {"tool": "WikiSearch", "input": "Lima", "output": None, "error": "unreachable: no answer", "offset": 3}
    async with gateway([chunk(" is far.") + chunk("", finish="stop", tool_calls=[failed]) + DONE]) as served:
        status, out, log = await run("complete", "Lima", "--url", served.url)
    assert (status, out) == (0, " is far.\n")
    assert log == "WikiSearch(Lima) had no result: unreachable: no answer\n"


REFUSAL = {"error": {"message": "there is no tool 'Abacus'", "type": "t", "param": "tools", "code": "unknown_tool"}}
BROKEN = {"error": {"message": "the engine stopped", "type": "server_error", "param": None, "code": "internal"}}


@pytest.mark.parametrize(
    ("http", "pieces", "out", "message"),
    [
        ("422 No", [json.dumps(REFUSAL).encode()], "", "refused (HTTP 422): tools: there is no tool 'Abacus'"),
        (
            "200 OK",
            [chunk(" 40"), b"data: " + json.dumps(BROKEN).encode() + b"\n\n", DONE],
            " 40\n",
            "the engine stopped",
        ),
        ("200 OK", [chunk(" 40")], " 40\n", "the stream ended before the completion did"),
        ("200 OK", [b"data: nonsense\n\n", DONE], "\n", "the stream holds something that is no completion: 'nonsense'"),
        ("200 OK", [b"data: 5\n\n", DONE], "\n", "the stream holds something that is no completion: '5'"),
        ("200 OK", [b'data: {"choices": [3]}\n\n', DONE], "\n", "something that is no completion"),
        ("404 No", [b"<html>"], "", "what answers is no gateway: HTTP 404"),
    ],
)
async def test_errors_are_reported_and_fail(http: str, pieces: Sequence[bytes], out: str, message: str) -> None:
    async with gateway(pieces, http) as served:
        status, shown, log = await run("complete", "Hi", "--url", served.url)
    assert (status, shown) == (1, out)
    assert message in log
    assert "Traceback" not in log


async def test_a_silent_gateway_is_left_at_the_deadline() -> None:
    async with gateway([chunk(" 40")], hold=True) as served:
        status, _, log = await run("complete", "Hi", "--timeout", "0.5", "--url", served.url)
    assert status == 1
    assert "the completion took longer than 0.5 s; allow more with --timeout" in log


async def test_ctrl_c_leaves_without_a_traceback() -> None:
    async with (
        gateway([chunk(" 40\n")], hold=True) as served,
        toolformer("complete", "Hi", "--url", served.url) as command,
    ):
        await command.line_with(" 40", "out")
        command.process.send_signal(signal.SIGINT)
        assert await command.ended() == 130
        assert command.log == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Hi", "--url", "http://127.0.0.1:1"], "no gateway answers at http://127.0.0.1:1"),
        (["Hi", "--url", "elsewhere"], "--url: 'elsewhere' is no address of a gateway"),
        (["Hi", "--tools", "A", "--no-tools"], "--tools and --no-tools exclude each other"),
        (["-"], "the prompt is empty"),
    ],
)
async def test_what_cannot_be_asked_is_reported(arguments: list[str], message: str) -> None:
    status, out, log = await run("complete", *arguments)
    assert (status, out) == (1, "")
    assert message in log
    assert "Traceback" not in log
