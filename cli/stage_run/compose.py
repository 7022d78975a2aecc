"""A stage as docker-compose.yml describes it, and the same in the words of Docker's client."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cli.console import CommandError
from cli.stage_run.words import output_of

ROOT: Final = Path(__file__).parents[2]
Service = dict[str, Any]
_KNOWN: Final = {
    "image", "entrypoint", "command", "environment", "user", "init", "read_only", "tmpfs", "cap_drop", "security_opt",
    "logging", "networks", "volumes", "deploy", "shm_size",
}  # fmt: skip
_NOT_OURS: Final = {"build", "depends_on", "profiles", "restart"}
"""What `compose` does and starting one stage does not: it neither builds nor starts others, nor starts again."""


class ComposeStage:
    """The stage ``stage`` of a compose project, with ``arguments`` of its own in place of the file's, if any.

    Raises:
        CommandError: there is no compose, the file cannot be read, or describes no such stage.
    """

    def __init__(self, stage: str, arguments: Sequence[str], files: Sequence[Path] | None, project: str | None) -> None:
        named = [word for file in files or () for word in ("-f", str(file.absolute()))]
        named += ["-p", project] if project else []
        # Beside the file, which is where its own relative paths start, unless the environment names others.
        if not files and not (ROOT / "docker-compose.yml").is_file():
            raise CommandError("docker-compose.yml is not beside this installation: name it with --compose FILE")
        command = ["docker", "compose", "--project-directory", str(ROOT), *named, "--profile", "jobs", "config"]
        remedy = "install Docker with its compose plugin, or correct the file"
        said = output_of([*command, "--format", "json"], remedy, folder=ROOT)
        config = json.loads(said.replace("$$", "$"))  # compose writes each dollar twice
        services = config["services"]
        if stage not in services or "jobs" not in services[stage].get("profiles", []):
            jobs = ", ".join(name for name, one in services.items() if "jobs" in one.get("profiles", []))
            raise CommandError(f"the compose file has no job {stage}; it has {jobs or 'none'}")
        self.stage = stage
        self.project: str = config["name"]
        self.service: Service = services[stage]
        if unknown := sorted(_unknown(self.service)):
            raise CommandError(
                f"{stage} in the compose file: {', '.join(unknown)}: not understood here; use `compose run`"
            )
        self._networks: Mapping[str, Any] = config.get("networks", {})
        self._volumes: Mapping[str, Any] = config.get("volumes", {})
        if arguments:
            # What is before the module, such as torchrun's options, stays; a script gives way to the module alone.
            module, words = f"training_jobs.{stage}", self.service.get("command") or []
            before = words[: words.index(module)] if module in words else []
            self.service["command"] = [*before, module, *arguments]
            self.service["entrypoint"] = None  # the image's: python -m

    @property
    def networks(self) -> list[str]:
        """The engine's names of its networks."""
        return [self._networks[name]["name"] for name in self.service.get("networks") or {}]

    @property
    def volumes(self) -> dict[str, str]:
        """The file's names of its named volumes, by the engine's."""
        return {self._volumes[one["source"]]["name"]: one["source"] for one in self._mounts("volume")}

    def shown(self) -> Service:
        """What of the description counts here."""
        return {key: value for key, value in self.service.items() if key in _KNOWN and value is not None}

    def labels(self) -> dict[str, str]:
        """By which `docker compose ps` and `down` know the container as one of the project."""
        prefix = "com.docker.compose"
        return {f"{prefix}.project": self.project, f"{prefix}.service": self.stage, f"{prefix}.oneoff": "True"}

    def creation(self) -> dict[str, Any]:
        """The arguments of ``client.containers.create``."""
        service = self.service
        limits = _limits(service)
        log = service.get("logging", {})
        return {
            "name": f"{self.project}-{self.stage}-run-{secrets.token_hex(4)}",
            "image": service["image"],
            "entrypoint": service.get("entrypoint"),
            "command": service.get("command"),
            "environment": {name: value for name, value in service.get("environment", {}).items() if value is not None},
            "user": service.get("user"),
            "init": service.get("init", False),
            "read_only": service.get("read_only", False),
            "tmpfs": dict(_tmpfs(one) for one in service.get("tmpfs", [])),
            "cap_drop": service.get("cap_drop", []),
            "security_opt": service.get("security_opt", []),
            "log_config": {"type": log.get("driver", "json-file"), "config": log.get("options", {})},
            "network": next(iter(self.networks), None),
            "volumes": self._binds(),
            "mem_limit": int(limits["memory"]) if "memory" in limits else None,
            "nano_cpus": round(float(limits["cpus"]) * 1e9) if "cpus" in limits else None,
            "pids_limit": int(limits["pids"]) if "pids" in limits else None,
            "shm_size": int(service["shm_size"]) if "shm_size" in service else None,
            "device_requests": [_device_request(one) for one in _devices(service)],
            "labels": self.labels(),
        }

    def _binds(self) -> list[str]:
        named = [(self._volumes[one["source"]]["name"], one) for one in self._mounts("volume")]
        named += [(one["source"], one) for one in self._mounts("bind")]
        return [f"{source}:{one['target']}:{'ro' if one.get('read_only') else 'rw'}" for source, one in named]

    def _mounts(self, kind: str) -> list[Mapping[str, Any]]:
        return [one for one in self.service.get("volumes", []) if one["type"] == kind]


def _limits(service: Service) -> Mapping[str, Any]:
    found: Mapping[str, Any] = service.get("deploy", {}).get("resources", {}).get("limits", {})
    return found


def _devices(service: Service) -> Sequence[Mapping[str, Any]]:
    resources = service.get("deploy", {}).get("resources", {})
    found: Sequence[Mapping[str, Any]] = resources.get("reservations", {}).get("devices", [])
    return found


def _device_request(one: Mapping[str, Any]) -> dict[str, Any]:
    """A reserved device, such as a GPU, in the words of Docker's client; a count of -1 is all there are."""
    named = one.get("device_ids", [])
    count = None if named else int(one.get("count", -1))
    return {"driver": one.get("driver", ""), "count": count, "device_ids": named, "capabilities": [one["capabilities"]]}


def _unknown(service: Service) -> Iterator[str]:
    """What the file says and a container started here would not have."""
    yield from (key for key in service.keys() - _KNOWN - _NOT_OURS if service[key])
    deploy = service.get("deploy", {})
    yield from (f"deploy.{key}" for key, value in deploy.items() if value and key != "resources")
    resources = deploy.get("resources", {})
    known = {"limits", "reservations"}
    yield from (f"deploy.resources.{key}" for key, value in resources.items() if value and key not in known)
    reserved = resources.get("reservations", {}).keys()
    yield from (f"deploy.resources.reservations.{key}" for key in reserved - {"devices"})
    yield from (f"deploy.resources.limits.{key}" for key in _limits(service).keys() - {"memory", "cpus", "pids"})
    for one in service.get("volumes", []):
        if one["type"] not in {"volume", "bind"} or not one.get("source"):
            yield f"a volume at {one['target']} that is neither named nor a folder"


def _tmpfs(one: str) -> tuple[str, str]:
    target, _, options = one.partition(":")
    return target, options
