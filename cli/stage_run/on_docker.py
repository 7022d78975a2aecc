"""A stage as a container of the compose project, beside the stack whose tools it calls: ``docker compose run``."""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli.checkout import CHECKOUT
from cli.console import CommandError
from cli.stage_run.programs import STAGES, output_of, say, start

_LAST_WORDS_SECONDS: Final = 30.0
"""How long compose may take to show the end of the log, after the container ended."""


def run_in_docker(
    stage: str, arguments: Sequence[str], files: Sequence[Path] | None, project: str | None, *, dry_run: bool
) -> int:
    """Run ``stage`` in a container and show its log; its exit status, or compose's own; 130 after Ctrl-C.

    Raises:
        CommandError: docker is not installed, or the compose file is missing or has no such stage.
    """
    if not files and not (CHECKOUT / "docker-compose.yml").is_file():
        raise CommandError("docker-compose.yml is not beside this installation: name it with --compose FILE")
    compose = ["docker", "compose", "--project-directory", str(CHECKOUT), "--profile", "jobs"]
    compose += [word for file in files or () for word in ("-f", str(file.absolute()))]
    compose += ["-p", project] if project else []
    name = f"toolformer-{stage}-{secrets.token_hex(4)}"
    command = [*compose, "run", "--rm", "--no-deps", "-T", "--name", name, *_words(compose, stage, arguments)]
    if dry_run:
        print(shlex.join(command))
        return 0
    running = start(command)
    say(f"{stage} runs in container {name}")
    try:
        status = running.wait()
    except KeyboardInterrupt:
        _stop(stage, name, running)
        return 130
    if status:
        memory = "; 137 is mostly too little memory: raise its limit in the compose file" if status == 137 else ""
        say(f"{stage} ended with exit status {status}; its log above says why{memory}")
    return status


def _words(compose: Sequence[str], stage: str, arguments: Sequence[str]) -> list[str]:
    """What is behind ``run``: the stage and, where given, ``arguments`` in place of the file's. What is before the
    module there, such as torchrun's options, stays; a script that runs the module gives way to the module alone."""
    if not arguments:
        return [stage]
    services = json.loads(output_of(*compose, "config", "--format", "json"))["services"]
    if stage not in services:
        raise CommandError(f"the compose file has no job {stage}; it has {', '.join(services)}")
    module, words = STAGES[stage], services[stage].get("command") or []
    before = words[: words.index(module)] if module in words else []
    entrypoint = ["--entrypoint", "python -m"] if services[stage].get("entrypoint") else []
    return [*entrypoint, stage, *before, module, *arguments]


def _stop(stage: str, name: str, running: subprocess.Popen[str]) -> None:
    say(f"stopping {stage}; Ctrl-C again kills it")
    with contextlib.suppress(CommandError, KeyboardInterrupt, subprocess.TimeoutExpired):
        output_of("docker", "stop", "-t", "20", name)
        running.wait(_LAST_WORDS_SECONDS)
    running.terminate()
    with contextlib.suppress(CommandError):  # it was never there, or is gone, as it should be
        output_of("docker", "rm", "--force", name)
    running.wait()
    say(f"{stage} was stopped; what it finished is kept, and the same command goes on")
