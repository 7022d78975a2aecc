"""A stage as a Job of a Kubernetes cluster, as ``k8s/jobs`` describes it: ``kubectl create``, ``get``, ``logs``."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from cli.checkout import CHECKOUT
from cli.console import CommandError
from cli.stage_run.programs import STAGES, output_of, say, start

_LABEL: Final = "app.kubernetes.io/name"
_LOOK_SECONDS: Final = 2.0
"""Between one look at the Job and the next."""
_PATIENCE_SECONDS: Final = 120.0
"""How long the cluster may be out of reach while a Job is followed."""
_LAST_WORDS_SECONDS: Final = 60.0
"""How long the logs may take to be shown to their end, after the Job's."""
Manifest = dict[str, Any]


def run_in_kubernetes(
    stage: str, arguments: Sequence[str], folder: Path | None, context: str | None, *, dry_run: bool, replace: bool
) -> int:
    """Create the Job of ``stage`` and show the logs of its pods; 0 if it completes, else the exit status of the
    container that failed last, 130 after Ctrl-C. A Job of that name that ended is deleted before.

    Raises:
        CommandError: what it needs is missing (kubectl, cluster, rights), or the cluster was lost.
    """
    job, beside = rendered(stage, arguments, folder)
    if dry_run:
        print(yaml.safe_dump_all([*beside, job], sort_keys=False), end="")
        return 0
    name, namespace = job["metadata"]["name"], job["metadata"].get("namespace", "default")
    followed = _Job(name, [*(["--context", context] if context else []), "-n", namespace])
    if there := followed.read():
        if _ending(there) is None and not replace:
            known = f"kubectl -n {namespace} logs -f job/{name}"
            raise CommandError(f"job {name} is there and runs: {known} shows it, --replace stops it and starts again")
        say(f"job {name} of before is deleted")
        followed.delete()
    try:
        followed.create(beside, job)
        say(f"job {name} is created in namespace {namespace}")
        return followed.to_the_end()
    except KeyboardInterrupt:
        say(f"stopping {stage}: its job is deleted; Ctrl-C again leaves it to the cluster")
        followed.delete()
        followed.finish_logs()
        say(f"{stage} was stopped; what it finished is kept, and the same command goes on")
        return 130
    finally:
        followed.leave()


def rendered(stage: str, arguments: Sequence[str], folder: Path | None) -> tuple[Manifest, list[Manifest]]:
    """The Job of ``stage``, with ``arguments`` in place of the folder's, if any; and what the folder has beside Jobs.

    Raises:
        CommandError: there is no kubectl, the folder cannot be rendered, or holds no such Job.
    """
    folder = (folder or CHECKOUT / "k8s" / "jobs").absolute()
    if not folder.is_dir():
        raise CommandError(f"{folder} is no folder: name the one with the jobs' manifests by --kustomize DIR")
    manifests: list[Manifest] = list(filter(None, yaml.safe_load_all(output_of("kubectl", "kustomize", str(folder)))))
    jobs = {one["metadata"]["labels"][_LABEL]: one for one in manifests if one["kind"] == "Job"}
    if stage not in jobs:
        raise CommandError(f"{folder} holds no Job for {stage}; it has {', '.join(sorted(jobs)) or 'none'}")
    if arguments:
        _replace_arguments(jobs[stage], STAGES[stage], arguments)
    return jobs[stage], [one for one in manifests if one["kind"] not in {"Job", "CronJob"}]


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


class _Job:
    """A Job by its name, and the ``kubectl`` processes that show its pods and their logs."""

    def __init__(self, name: str, where: Sequence[str]) -> None:
        self._name, self._kubectl = name, ["kubectl", *where]
        self._chosen = ["-l", f"batch.kubernetes.io/job-name={name}"]
        self._uid = ""
        self._shown: dict[tuple[str, ...], subprocess.Popen[str]] = {}

    def read(self) -> Manifest | None:
        """The Job as it is; ``None`` if there is none."""
        text = self._ask("get", "job", self._name, "--ignore-not-found", "-o", "json")
        return dict(json.loads(text)) if text.strip() else None

    def create(self, beside: Sequence[Manifest], job: Manifest) -> None:
        """Create the Job; before, what is not there yet of what it needs."""
        try:
            self._ask("create", "-f", "-", given=yaml.safe_dump_all(beside))
        except CommandError as error:
            for line in str(error).splitlines():
                if "(AlreadyExists)" not in line:  # where others set the namespace up, it may be there all the same
                    say(line)
        self._uid = json.loads(self._ask("create", "-o", "json", "-f", "-", given=json.dumps(job)))["metadata"]["uid"]

    def delete(self) -> None:
        """Delete the Job and its pods, and return when they are gone."""
        self._ask("delete", "job", self._name, "--ignore-not-found", "--cascade=foreground", "--timeout=90s")

    def to_the_end(self) -> int:
        """Show its pods as they change, and their logs; the Job's exit status."""
        reached = time.monotonic()
        while True:
            try:
                job, pods = self.read(), json.loads(self._ask("get", "pods", *self._chosen, "-o", "json"))["items"]
                reached = time.monotonic()
            except CommandError as error:
                if time.monotonic() - reached > _PATIENCE_SECONDS:
                    known = shlex.join([*self._kubectl, "logs", "-f", f"job/{self._name}"])
                    raise CommandError(f"{error}; the job goes on: {known} shows it") from error
                time.sleep(_LOOK_SECONDS)
                continue
            if job is None or job["metadata"]["uid"] != self._uid:
                raise CommandError(f"job {self._name} was deleted by somebody else")
            self._show(["get", "pods", *self._chosen, "--watch"], stdout=2)
            for pod in pods:
                if pod["status"]["phase"] != "Pending":
                    self._show(["logs", "--follow", "--prefix", f"pod/{pod['metadata']['name']}"])
            if (ending := _ending(job)) is not None:
                self.finish_logs()
                if ending:
                    say(f"job {self._name} failed: {ending}")
                return _last_failure(pods) if ending else 0
            time.sleep(_LOOK_SECONDS)

    def finish_logs(self) -> None:
        """Wait until the logs of pods that ended are shown to their end, no longer than a minute in all."""
        deadline = time.monotonic() + _LAST_WORDS_SECONDS
        for words, shown in self._shown.items():
            if words[0] == "logs":
                try:
                    shown.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    say(f"a log could not be read to its end; {shlex.join([*self._kubectl, *words])}")

    def leave(self) -> None:
        """Show nothing any longer."""
        for shown in self._shown.values():
            shown.kill()
            shown.wait()

    def _show(self, words: Sequence[str], stdout: int | None = None) -> None:
        """Start ``kubectl WORDS``, again where its connection broke; it writes where we do, or to ``stdout``."""
        shown = self._shown.get(tuple(words))
        if shown is None or shown.poll():
            again = ["--since=10s"] if shown and words[0] == "logs" else []
            self._shown[tuple(words)] = start([*self._kubectl, *words, *again], stdout=stdout)

    def _ask(self, *words: str, given: str = "") -> str:
        return output_of(*self._kubectl, *words, given=given)


def _ending(job: Manifest) -> str | None:
    """Why a Job failed, empty where it completed; ``None`` while it goes on."""
    for condition in job.get("status", {}).get("conditions", []):
        if condition["status"] == "True" and condition["type"] in {"Complete", "Failed"}:
            why = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
            return "" if condition["type"] == "Complete" else why or "no reason is given"
    return None


def _last_failure(pods: Sequence[Manifest]) -> int:
    """The exit status of the container that failed last; 1 if none has one."""
    states = (container["state"] for pod in pods for container in pod["status"].get("containerStatuses", []))
    ends = [state["terminated"] for state in states if state.get("terminated", {}).get("exitCode")]
    return int(max(ends, key=lambda end: str(end["finishedAt"]))["exitCode"]) if ends else 1
