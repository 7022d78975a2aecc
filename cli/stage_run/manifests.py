"""A stage as the manifests in ``k8s/jobs`` describe it. They are rendered, never copied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cli.console import CommandError
from cli.stage_run.words import output_of, package

FOLDER: Final = Path(__file__).parents[2] / "k8s" / "jobs"
_NAME: Final = "app.kubernetes.io/name"
Manifest = dict[str, Any]


def rendered(stage: str, arguments: Sequence[str], folder: Path | None) -> tuple[Manifest, list[Manifest]]:
    """The Job of ``stage``, with ``arguments`` in place of the folder's, if any; and what it needs beside it: its
    Service and network policies, the volume claim and the registry that it mounts.

    Raises:
        CommandError: there is no kubectl, the folder cannot be rendered, or holds no such job.
    """
    folder = folder or FOLDER
    if not folder.is_dir():
        raise CommandError(f"{folder} is no folder: name the one with the jobs' manifests by --kustomize DIR")
    yaml = package("yaml", "k8s")
    text = output_of(["kubectl", "kustomize", str(folder)], "install kubectl, or correct the folder")
    manifests: list[Manifest] = [one for one in yaml.safe_load_all(text) if one]
    jobs = {_label(one): one for one in manifests if one["kind"] == "Job"}
    if stage not in jobs:
        raise CommandError(f"{folder} holds no Job for {stage}; it has {', '.join(sorted(map(str, jobs))) or 'none'}")
    job = jobs[stage]
    if arguments:
        _replace_arguments(job, f"training_jobs.{stage}", arguments)
    volumes = job["spec"]["template"]["spec"].get("volumes", [])
    mounted = {one for volume in volumes for one in _mounted(volume)}
    beside = [
        one
        for one in manifests
        if one["kind"] not in {"Job", "CronJob"}
        and (_label(one) == stage or (one["kind"], one["metadata"]["name"]) in mounted)
    ]
    return job, beside


def _label(one: Manifest) -> str | None:
    """The stage that a manifest belongs to; a network policy says it of the pods that it is about."""
    selected = one.get("spec", {}).get("podSelector", {}).get("matchLabels", {})
    found: str | None = one["metadata"].get("labels", {}).get(_NAME) or selected.get(_NAME)
    return found


def _mounted(volume: Manifest) -> list[tuple[str, str]]:
    claim, table = volume.get("persistentVolumeClaim"), volume.get("configMap")
    found = [("PersistentVolumeClaim", claim["claimName"])] if claim else []
    return [*found, ("ConfigMap", table["name"])] if table else found


def _replace_arguments(job: Manifest, module: str, arguments: Sequence[str]) -> None:
    """Behind the module's name; what is before it, such as torchrun's options, stays. A script that runs the module,
    among others, gives way to the module alone."""
    for container in job["spec"]["template"]["spec"]["containers"]:
        words = container.get("args", [])
        if module in words:
            container["args"] = [*words[: words.index(module) + 1], *arguments]
            return
        if "command" in container and any(module in word.split() for word in words):
            del container["command"]  # the image's own is python -m
            container["args"] = [module, *arguments]
            return
    raise CommandError(f"Job {job['metadata']['name']} does not run {module}: give it no options here")
