"""``toolformer up`` in the service of another command: services, or a gateway, for as long as a block of code runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from cli.components import load_registry, service_components
from cli.console import CommandError

_STOP_SECONDS: Final = 40.0
"""How long a process may take to stop; `toolformer up` itself gives its own less."""
_LAST_LINES: Final = 15


@contextlib.contextmanager
def services_up(
    tools: Sequence[str] | None, environ: Mapping[str, str], *, log: Path | None = None
) -> Iterator[dict[str, str]]:
    """The services of ``tools`` (by default all that nobody moved elsewhere) as processes that end with this one,
    however it ends. Gives the variables that hold their addresses.

    Args:
        tools: names of tools or services.
        environ: the environment they start in; their ports are read from it.
        log: the file that their log goes to, by default this process's standard error.

    Raises:
        CommandError: they do not start.
    """
    services = service_components(load_registry(environ), tools, environ)
    variables = {f"TOOLFORMER_{one.name.upper()}_PORT": str(one.port) for one in services}
    for one in services:
        variables |= one.url_variable
    if not services:
        yield variables
        return
    chosen = ",".join(one.name for one in services)  # by name: `up` leaves out what was moved, as these were
    with _up(["--no-gateway", "--tools", chosen], {**environ, **variables}, "the tool services", log):
        yield variables


@contextlib.contextmanager
def gateway_up(model: Path, environ: Mapping[str, str], *, log: Path | None = None) -> Iterator[str]:
    """A gateway for ``model`` on a free port; the tool services are those that ``environ`` names. Gives its address.

    Raises:
        CommandError: it does not start.
    """
    with _up(["--model", str(model), "--port", "0"], environ, "the gateway", log) as address:
        yield address


@contextlib.contextmanager
def _up(arguments: Sequence[str], environ: Mapping[str, str], what: str, log: Path | None) -> Iterator[str]:
    """``toolformer up ARGUMENTS``; the address that it says is ready."""
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(log.open("ab")) if log else None
        lines = stack.enter_context(tethered(["cli", "up", *arguments], environ, errors)).stdout or ()
        # `up` has a deadline of its own, and ends where it passes.
        ready = next((line for line in lines if line.startswith(b"ready: ")), None)
        if ready is None:
            raise CommandError(f"{what} did not start; {_why(log)}")
        yield ready.decode().removeprefix("ready: ").strip()


@contextlib.contextmanager
def tethered(
    command: Sequence[str], environ: Mapping[str, str], errors: int | IO[bytes] | None
) -> Iterator[subprocess.Popen[bytes]]:
    """``python -m COMMAND`` until the block ends, or this process, however it ends; ``errors`` is its standard error.
    The terminal's Ctrl-C does not reach it."""
    with subprocess.Popen(
        [sys.executable, "-m", "cli.tethered", *command], env=dict(environ), start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()  # the sign to stop
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _why(log: Path | None) -> str:
    return f"the end of {log}:\n{last_lines(log)}" if log else "their log above says why"


def last_lines(log: Path, count: int = _LAST_LINES) -> str:
    """The last lines of a file, those of its end only if it is long."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - (1 << 16)))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-count:])
