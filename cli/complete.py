"""``toolformer complete``: one completion, streamed from the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.console import Console

from cli.components import load_registry
from cli.console import CommandError, printable, write
from cli.highlight import CallHighlighter
from toolformer.credentials import gateway_credentials
from toolformer.sse import EventTooLargeError, read_events

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ToolCall(BaseModel):
    """A call as the gateway reports it; ``error`` says why it has no result."""

    tool: str
    input: str
    error: str | None = None


class _Choice(BaseModel):
    index: int = 0
    text: str | None = None
    finish_reason: str | None = None
    timed_out: bool = False
    tool_calls: list[ToolCall] | None = None


class _Chunk(BaseModel):
    choices: list[_Choice]


class _Error(BaseModel):
    message: str
    param: str | None = None


class _Failure(BaseModel):
    error: _Error


_EVENT: Final[TypeAdapter[_Chunk | _Failure]] = TypeAdapter(_Chunk | _Failure)


class CompletionPrinter:
    """Writes a completion to standard output as it comes; calls are coloured on a terminal.

    Args:
        echo: the prompt, written first; ``None`` not to write it.
        console: where to write.
    """

    def __init__(self, echo: str | None, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._highlighter: CallHighlighter | None = None
        if self._console.is_terminal:
            registry = load_registry(os.environ)
            self._highlighter = CallHighlighter(registry.names(), registry.quoted_names)
        if echo:
            write(self._console, echo, "dim")

    def text(self, text: str) -> None:
        """Write the next piece of the completion."""
        if self._highlighter is None:
            write(self._console, text)
            return
        for span in self._highlighter.feed(text):
            write(self._console, span.text, "bold cyan" if span.is_call else "")

    def end(self, notes: Sequence[str]) -> None:
        """End the text; ``notes`` say on standard error what it cannot: calls without a result, why it is cut."""
        for span in self._highlighter.flush() if self._highlighter else ():
            write(self._console, span.text)
        write(self._console, "\n")
        errors = Console(stderr=True, highlight=False)
        for note in notes:
            write(errors, f"{note}\n", "yellow")


async def stream_completion(url: str, body: Mapping[str, Any], printer: CompletionPrinter, *, seconds: float) -> None:
    """Ask the gateway at ``url`` for a completion and print it as it comes.

    Args:
        url: the gateway's base URL.
        body: the request's fields; ``stream`` is set here.
        printer: where the text goes.
        seconds: how long the whole may take.

    Raises:
        CommandError: nobody answers, the request is refused, or the stream breaks off or reports an error.
    """
    async with _answer(url, {**body, "stream": True}, seconds) as response:
        await _print_stream(response.aiter_bytes(), printer)


async def print_completions(url: str, body: Mapping[str, Any], *, as_json: bool, seconds: float) -> None:
    """Ask for all choices at once and print them one after the other, or the gateway's JSON as it is.

    Raises:
        CommandError: as `stream_completion`.
    """
    async with _answer(url, body, seconds) as response:
        content = await response.aread()
    try:
        choices = _Chunk.model_validate_json(content).choices
    except ValidationError:
        raise CommandError(f"what answers is no gateway: {content[:200]!r}") from None
    if as_json:
        print(json.dumps(json.loads(content), indent=2))
    else:
        for choice in choices:
            print(f"[{choice.index}]{printable(choice.text or '')}")
    for choice in choices:
        for note in _notes(choice, choice.text or ""):
            print(f"[{choice.index}] {printable(note)}", file=sys.stderr)


@contextlib.asynccontextmanager
async def _answer(url: str, body: Mapping[str, Any], seconds: float) -> AsyncIterator[httpx.Response]:
    """The gateway's answer to a request that it accepted; its content may still be under way."""
    # A proxy that the environment names is for other machines.
    local = urlsplit(url).hostname in _LOOPBACK
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(timeout=httpx.Timeout(seconds, connect=5.0), trust_env=not local) as client,
            client.stream(
                "POST", f"{url.rstrip('/')}/v1/completions", json=body, headers=gateway_credentials()
            ) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise CommandError(_refusal(response.status_code, await response.aread()))
            yield response
    except TimeoutError:
        raise CommandError(f"the completion took longer than {seconds:g} s; allow more with --timeout") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise CommandError(
            f"no gateway answers at {url} ({error or 'no connection in time'}): start one with `toolformer up`, "
            "or give its address with --url"
        ) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise CommandError(
            f"--url: {url!r} is no address of a gateway, such as http://127.0.0.1:8080 ({error})"
        ) from None
    except httpx.TransportError as error:
        raise CommandError(f"the connection to {url} broke off: {error or type(error).__name__}") from None


async def _print_stream(chunks: AsyncIterator[bytes], printer: CompletionPrinter) -> None:
    text, notes = "", list[str]()
    try:
        async for data in read_events(chunks):
            if data == "[DONE]":
                return
            for choice in _choices(data):
                if choice.text:
                    text += choice.text
                    printer.text(choice.text)
                notes += _notes(choice, text)
        raise CommandError("the stream ended before the completion did; the gateway's log says why")
    except EventTooLargeError as error:
        raise CommandError(f"what answers is no gateway: {error}") from None
    finally:
        printer.end(notes)


def _notes(choice: _Choice, text: str) -> list[str]:
    """What ``text``, of which ``choice`` is the end, does not show: failed calls, and why it is cut or empty."""
    notes = [f"{call.tool}({call.input}) had no result: {call.error}" for call in choice.tool_calls or [] if call.error]
    if choice.finish_reason == "length":
        notes.append("cut off by the time limit" if choice.timed_out else "cut off: --max-tokens allows no more")
    if choice.finish_reason is not None and not text.strip():
        notes.append("the text is empty: the model wrote nothing, or the tokens went into a call that was not finished")
    return notes


def _choices(data: str) -> list[_Choice]:
    try:
        event = _EVENT.validate_json(data)
    except ValidationError:
        raise CommandError(f"the stream holds something that is no completion: {data[:200]!r}") from None
    if isinstance(event, _Failure):
        raise CommandError(f"the gateway gave up: {event.error.message}")
    return event.choices


def _refusal(status: int, body: bytes) -> str:
    try:
        error = _Failure.model_validate_json(body).error
    except ValidationError:
        return f"what answers is no gateway: HTTP {status}, {body[:200]!r}"
    return f"the gateway refused (HTTP {status}): {f'{error.param}: ' if error.param else ''}{error.message}"


def read_prompt(text: str) -> str:
    """``text``, or standard input for ``-``, without a final line break.

    Raises:
        CommandError: the prompt is empty, or standard input is not UTF-8.
    """
    if text == "-":
        try:
            text = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise CommandError(f"standard input is not UTF-8 text: {error}") from None
        text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise CommandError("the prompt is empty: give a text, or - and a text on standard input")
    return text
