"""A stage as a container of Docker's engine, beside the compose stack whose tools it calls."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from cli.console import CommandError, printable
from cli.stage_run.compose import ComposeStage
from cli.stage_run.log_lines import LogLines
from cli.stage_run.words import output_of, package, say

CALL_SECONDS: Final = 60
"""How long the engine may take for one answer; a log that is quiet for so long is asked for again."""
AGAIN_SECONDS: Final = 1
"""Between a log that broke off and the next look at it."""
STOP_SECONDS: Final = 20
"""From the request to end (SIGTERM) to the end (SIGKILL)."""


def run_in_docker(
    stage: str, arguments: Sequence[str], files: Sequence[Path] | None, project: str | None, *, dry_run: bool
) -> int:
    """Run ``stage`` in a container and show its log; its exit status, 130 after Ctrl-C.

    Raises:
        CommandError: what it needs is missing (packages, engine, image, network), or the engine was lost.
    """
    described = ComposeStage(stage, arguments, files, project)
    if dry_run:
        print(json.dumps({"services": {stage: described.shown()}}, indent=2))
        return 0
    docker = package("docker", "docker")
    trouble = _Trouble(docker)
    with trouble.told("no Docker engine answers", "start it, or set DOCKER_HOST"):
        client = docker.DockerClient(base_url=_address(), timeout=CALL_SECONDS)
    with closing(client):
        container = _create(client, described, trouble)
        try:
            _join(client, container, described.networks[1:], trouble)
            status = _Run(container, stage, trouble).to_the_end()
        except _EngineLostError:
            raise  # it goes on
        except BaseException:
            _remove(container, trouble)
            raise
        _remove(container, trouble)
        return status


def _remove(container: Any, trouble: _Trouble) -> None:
    with trouble.told("the container could not be removed", f"docker rm -f {container.short_id}"):
        container.remove(force=True)


def _address() -> str:
    """Where the engine is. The command line knows contexts, the client does not."""
    given = os.environ.get("DOCKER_HOST")
    asked = ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
    return given or output_of(asked, "set DOCKER_HOST").strip()


class _EngineLostError(CommandError):
    """The engine gives no more news of a container that it was running."""


class _Trouble:
    """What the client may raise, told in a line."""

    def __init__(self, docker: Any) -> None:
        from requests.exceptions import RequestException
        from urllib3.exceptions import HTTPError

        self.connection = (RequestException, HTTPError, OSError)
        self.missing = docker.errors.NotFound
        self._any = (docker.errors.DockerException, *self.connection)

    @contextmanager
    def told(self, what: str, remedy: str, error_class: type[CommandError] = CommandError) -> Iterator[None]:
        try:
            yield
        except self._any as error:
            said = getattr(error, "explanation", None) or str(error)
            raise error_class(f"{what} ({said}): {remedy}") from error


def _create(client: Any, described: ComposeStage, trouble: _Trouble) -> Any:
    settings = described.creation()
    image = settings["image"]
    with trouble.told(f"the image {image} is not here", "docker compose --profile jobs build " + described.stage):
        client.images.get(image)
    for name in described.networks:
        remedy = f"docker compose -p {described.project} up --wait"
        with trouble.told(f"the stack's network {name} is not there", remedy):
            client.networks.get(name)
    prefix = "com.docker.compose"
    for volume, name in described.volumes.items():
        try:
            client.volumes.get(volume)
        except trouble.missing:
            client.volumes.create(volume, labels={f"{prefix}.project": described.project, f"{prefix}.volume": name})
    with trouble.told("the container cannot be made", "see `--dry-run`"):
        return client.containers.create(**settings)


def _join(client: Any, container: Any, networks: Sequence[str], trouble: _Trouble) -> None:
    """The networks besides the one that it is created in."""
    for name in networks:
        with trouble.told(f"the container cannot join network {name}", "see `--dry-run`"):
            client.networks.get(name).connect(container)


class _Run:
    """A container from its start to its end."""

    def __init__(self, container: Any, stage: str, trouble: _Trouble) -> None:
        self._container, self._stage, self._trouble = container, stage, trouble
        self._log = LogLines()

    def to_the_end(self) -> int:
        try:
            with self._trouble.told("the container cannot be started", "see `--dry-run`"):
                self._container.start()
            say(f"{self._stage} runs in container {self._container.name}")
            while self._goes_on():
                self._show(ended=False)
        except KeyboardInterrupt:
            self._stop()
            return 130
        self._show(ended=True)  # what was said between the last look and the end
        return self._verdict()

    def _show(self, *, ended: bool) -> None:
        for line in self._log.fresh(self._pieces(), ended=ended):
            print(printable(line), flush=True)

    def _pieces(self) -> Iterator[bytes]:
        """The log from where it was left, until it ends or the connection does."""
        since = self._log.since()
        behind = {"since": since} if since else {}
        try:
            yield from self._container.logs(stream=True, follow=True, timestamps=True, **behind)
        except self._trouble.connection:
            # A quiet log, or a broken connection; whether the engine is there says the next question.
            time.sleep(AGAIN_SECONDS)

    def _goes_on(self) -> bool:
        remedy = f"the container goes on; docker logs -f {self._container.short_id} shows it"
        with self._trouble.told("the engine was lost", remedy, _EngineLostError):
            try:
                self._container.reload()
            except self._trouble.missing as error:
                raise _EngineLostError(f"container {self._container.name} was removed by somebody else") from error
        return bool(self._container.attrs["State"]["Running"])

    def _verdict(self) -> int:
        state = self._container.attrs["State"]
        status = int(state["ExitCode"])
        if state["OOMKilled"]:
            limit = self._container.attrs["HostConfig"]["Memory"] >> 20
            say(
                f"{self._stage} went over its {limit} MiB of memory and was killed; raise the limit in the compose file"
            )
            return status or 137
        if status:
            say(f"{self._stage} ended with exit status {status}; its log above says why")
        return status

    def _stop(self) -> None:
        say(f"stopping {self._stage}; Ctrl-C again kills it")
        remedy = f"docker stop {self._container.short_id}"
        with self._trouble.told("the container could not be stopped", remedy):
            try:
                self._container.stop(timeout=STOP_SECONDS)
            except KeyboardInterrupt:
                self._container.kill()
        self._show(ended=True)
        say(f"{self._stage} was stopped; what it finished is kept, and the same command goes on")
