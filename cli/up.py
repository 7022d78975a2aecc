"""``toolformer up``: the whole system as processes of this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final

import httpx
from rich.console import Console
from rich.text import Text

from cli.components import DEFAULT_URL, Component, require_free_ports
from cli.console import CommandError, printable
from cli.supervisor import Supervisor

SAMPLE_PROMPT: Final = "There are 24 boxes with 17 books each. How many books are there altogether? The answer is"
_ASK_SECONDS: Final = 5.0
_ASK_AGAIN_SECONDS: Final = 1.0
_COLOURS: Final = ("cyan", "magenta", "blue", "yellow", "green", "bright_red")


class LogPrinter:
    """Writes the components' lines to standard error, each behind the component's name."""

    def __init__(self, names: Sequence[str], console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._width = max(map(len, names), default=0)
        self._colours = {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}

        self._held: list[tuple[str, str]] | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep lines back meanwhile, so that none falls into a text that is being streamed to the same terminal."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for name, lines in held:
                self(name, lines)

    def __call__(self, name: str, lines: str) -> None:
        """Write ``lines`` for the component ``name``."""
        if self._held is not None:
            self._held.append((name, lines))
            return
        for line in lines.split("\n"):
            prefix = Text(f"{name:<{self._width}} | ", style=self._colours.get(name, ""))
            # A log that nobody can read any more must not end the system.
            with contextlib.suppress(OSError):
                self._console.print(prefix.append(printable(line), style="default"), soft_wrap=True)


async def up(
    components: Sequence[Component],
    *,
    address: str,
    sample: bool,
    wait_seconds: float,
    elsewhere: Mapping[str, str] | None = None,
) -> int:
    """Run ``components`` until a signal to stop, and say ``ready: ADDRESS`` on standard output once all are ready.

    Args:
        components: what to start.
        address: what is reported as ready: the gateway's URL.
        sample: stream a completion with a tool call once ready.
        wait_seconds: how long it may take until all are ready.
        elsewhere: tools that are needed too but run somewhere else: names and URLs.

    Returns:
        The exit status: 0 after a stop that was asked for, or 128 and the signal's number if nothing was ready yet.

    Raises:
        CommandError: a port is in use, a component failed, or not all were ready, or reachable, in time.
    """
    require_free_ports(components)
    log = LogPrinter([component.name for component in components])
    was_ready = asyncio.Event()

    async def serve() -> None:
        try:
            async with asyncio.timeout(wait_seconds):
                await asyncio.gather(supervisor.all_ready(), reachable.all())
        except TimeoutError:
            waiting = supervisor.waiting_for() | reachable.missing
            reasons = "\n".join(f"  {name}: {reason}" for name, reason in waiting.items())
            raise CommandError(f"not ready within {wait_seconds:g} s (--wait):\n{reasons}") from None
        was_ready.set()
        print(f"ready: {address}", flush=True)
        if sample:
            with log.held():
                await _show_sample(address)
        await asyncio.Event().wait()

    async def watch() -> None:
        await supervisor.finished()
        raise CommandError("no component is running any more")

    supervisor = Supervisor(components, log)
    reachable = Reachable(elsewhere or {}, log)
    with stop_signals(supervisor.kill) as stop:
        async with supervisor:
            await _first(serve(), watch(), stop.wait())
            print("toolformer: stopping; press Ctrl-C again to stop at once", file=sys.stderr, flush=True)
        return 0 if was_ready.is_set() else 128 + stop.number


class Reachable:
    """Asks tools that run elsewhere until each has answered; what it answers does not matter.

    ``missing``: those that have not, each with why and the remedy.
    """

    def __init__(self, tools: Mapping[str, str], log: Callable[[str, str], None]) -> None:
        self._tools = tools
        self._log = log
        self.missing: dict[str, str] = {}

    async def all(self) -> None:
        """Return once all have answered."""
        async with httpx.AsyncClient(timeout=_ASK_SECONDS, trust_env=False) as client:
            await asyncio.gather(*(self._reach(client, tool, url) for tool, url in self._tools.items()))

    async def _reach(self, client: httpx.AsyncClient, tool: str, url: str) -> None:
        while (reason := await _why_unreachable(client, url)) is not None:
            if tool not in self.missing:
                variable = f"TOOLFORMER_TOOL_{tool.upper()}_URL"
                remedy = f"start it there, or correct {variable} or the file of TOOLFORMER_TOOLS"
                self.missing[tool] = f"cannot be reached at {url} ({reason}): {remedy}"
                self._log("up", f"{tool} {self.missing[tool]}")
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
        self.missing.pop(tool, None)


async def _why_unreachable(client: httpx.AsyncClient, url: str) -> str | None:
    try:
        await client.get(f"{url.rstrip('/')}/health")
    except httpx.TimeoutException:
        return "no answer in time"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return str(error) or type(error).__name__
    return None


class StopSignal(asyncio.Event):
    """Set by the first signal to stop; ``number`` is the signal's."""

    number = 0


@contextlib.contextmanager
def stop_signals(at_once: Callable[[], None]) -> Iterator[StopSignal]:
    """Catch SIGINT, SIGTERM and SIGHUP: the first sets the event, any further one calls ``at_once``."""
    loop = asyncio.get_running_loop()
    stop = StopSignal()

    def stopped(number: int) -> None:
        if stop.is_set():
            at_once()
        stop.number = number
        stop.set()

    # Who started us under nohup wants us to stay when the terminal goes.
    hangup = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    caught = [signal.SIGINT, signal.SIGTERM, *hangup]
    for number in caught:
        loop.add_signal_handler(number, stopped, number)
    try:
        yield stop
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


async def _first(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Wait for the first to end, raise what it raised, and cancel the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _show_sample(address: str) -> None:
    from cli.complete import CompletionPrinter, stream_completion

    print("\nA sample completion with a tool call:\n", flush=True)
    body = {"prompt": SAMPLE_PROMPT, "max_tokens": 64, "temperature": 0.0}
    try:
        await stream_completion(address, body, CompletionPrinter(echo=SAMPLE_PROMPT), seconds=60.0)
    except CommandError as error:
        print(f"toolformer: the sample failed: {error}", file=sys.stderr, flush=True)
    elsewhere = "" if address == DEFAULT_URL else f" --url {address}"
    print(f"\nTry it in a browser: {address}/")
    print(f"Or here: toolformer complete 'Today is'{elsewhere}")
    print("Ctrl-C stops everything.", flush=True)
