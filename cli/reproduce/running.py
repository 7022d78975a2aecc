"""The steps of a run, one after the other: each a process with a log of its own, ended with this one."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.components import SERVICES
from cli.console import CommandError, fail, printable
from cli.reproduce.marks import Marks
from cli.reproduce.plan import Step
from cli.stack import gateway_up, last_lines, services_up, tethered


class StepError(CommandError):
    """A step ended with ``status``; the message has the last lines of its log."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Runner:
    """Does what is left of the ``plan`` in the folder ``run``.

    Args:
        run: the folder.
        plan: all steps.
        about: what the manifest says besides: the setting.
        console: where to say what is going on.
        environ: the environment of the steps.
    """

    def __init__(
        self, run: Path, plan: Sequence[Step], about: Mapping[str, Any], console: Console, environ: Mapping[str, str]
    ) -> None:
        self._run, self._plan, self._about, self._console = run, plan, about, console
        self._marks = Marks(run)
        # Ports that nobody chose are free ones: a stack that runs on this machine must not be in the way.
        self._environ = {f"TOOLFORMER_{service}_PORT": "0" for service in map(str.upper, SERVICES.values())} | dict(
            environ
        )

    def run(self, until: str | None = None) -> None:
        """`do`, as a command does it: it ends this process where a step failed, and after Ctrl-C or SIGTERM."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends a run as Ctrl-C does: in order
        try:
            self.do(until)
        except StepError as error:
            fail(f"{error}\nMend what is wrong and give the same command again: what is done stays done.", error.status)
        except KeyboardInterrupt:
            fail("stopped; the same command goes on where it was", 130)

    def do(self, until: str | None = None) -> None:
        """Do what is left, to the step ``until``; the manifest is written again after each.

        Raises:
            StepError: a step ended with another status than 0.
            CommandError: the folder holds a run of other settings, or another process is at it; services or a gateway
                do not start.
        """
        names = [step.name for step in self._plan]
        steps = self._plan[: names.index(until) + 1] if until else self._plan
        self._run.mkdir(parents=True, exist_ok=True)
        with self._held(), contextlib.ExitStack() as stack:
            for step in steps:
                self._marks.check(step)
            made = up = False
            for number, step in enumerate(steps, start=1):
                about = f"[{number}/{len(steps)}] {step.name}"
                if self._marks.done(step) and not (step.summary and made):
                    self._say(f"{about}: done already, it took {self._took(step)}", "dim")
                    continue
                if step.services and not up:
                    up = self._start_services(stack)
                made = True
                self._say(f"{about}: {step.title}", "bold")
                self._do(step)
                self._say(f"{about}: done in {self._took(step)}", "green")
                self._marks.write_manifest(self._plan, self._about)
            self._marks.write_manifest(self._plan, self._about)

    def _do(self, step: Step) -> None:
        self._marks.begin(step)
        log = self._marks.log(step)
        with contextlib.ExitStack() as stack:
            where: tuple[str, ...] = ()
            if step.gateway is not None:
                gateway = gateway_up(step.gateway, self._environ, log=log.with_suffix(".gateway.log"))
                where = ("--gateway", stack.enter_context(gateway))
            status = self._process([step.module, *map(str, (*step.arguments, *step.how)), *where], log)
        if status:
            how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            message = f"step {step.name} {how}; the end of {log}:\n{last_lines(log)}"
            raise StepError(message, status if status > 0 else 1)
        self._marks.end(step)

    def _process(self, command: Sequence[str], log: Path) -> int:
        """``python -m COMMAND``; what it writes goes to ``log`` and is shown. Its exit status."""
        environ = {**self._environ, "PYTHONUNBUFFERED": "1"}
        with log.open("ab", buffering=0) as file, tethered(command, environ, subprocess.STDOUT) as process:
            now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
            file.write(f"--- {now} python -m {' '.join(command)}\n".encode())
            for line in process.stdout or ():
                file.write(line)
                self._say("    " + printable(line.decode(errors="replace").rstrip("\n")))
            return process.wait()

    def _start_services(self, stack: contextlib.ExitStack) -> bool:
        """Start them for as long as ``stack`` lasts; later steps find their addresses in the environment."""
        log = self._run / "logs" / "services.log"
        log.parent.mkdir(exist_ok=True)
        self._say(f"tool services: starting; their log: {log}", "bold")
        self._environ |= stack.enter_context(services_up(None, self._environ, log=log))
        self._say("tool services: ready", "green")
        return True

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with (self._run / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandError(f"{self._run}: another process is at it; wait for it, or end it first") from None
            except OSError:
                pass  # a file system without locks
            yield

    def _took(self, step: Step) -> str:
        return duration(self._marks.seconds(step))

    def _say(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Such as ``1:02:03``."""
    return str(dt.timedelta(seconds=round(seconds)))
