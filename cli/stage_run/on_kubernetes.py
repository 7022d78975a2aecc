"""A stage as a Job of a Kubernetes cluster, as ``k8s/jobs`` describes it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from cli.console import CommandError
from cli.stage_run.cluster import Cluster, RefusedError, ended
from cli.stage_run.manifests import rendered
from cli.stage_run.pods import Pods
from cli.stage_run.words import package, say

_PATIENCE_SECONDS: Final = 120.0
"""How long the cluster may be out of reach while a Job is followed."""
_LAST_WORDS_SECONDS: Final = 60.0
"""How long the logs may take to be shown to their end, after the Job's."""


def run_in_kubernetes(
    stage: str, arguments: Sequence[str], folder: Path | None, context: str | None, *, dry_run: bool, replace: bool
) -> int:
    """Create the Job of ``stage`` and show the logs of its pods; 0 if it completes, else the exit status of the
    container that failed last, 130 after Ctrl-C. A Job of that name that ended is deleted before.

    Raises:
        CommandError: what it needs is missing (packages, kubectl, cluster, rights), or the cluster was lost.
    """
    manifest, beside = rendered(stage, arguments, folder)
    if dry_run:
        print(package("yaml", "k8s").safe_dump_all([*beside, manifest], sort_keys=False), end="")
        return 0
    manifest["metadata"].setdefault("namespace", "default")
    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    with closing(Cluster(context)) as cluster:
        cluster.remove_ended(name, namespace, replace)
        for one in beside:
            cluster.ensure(one)
        job = followed = None
        try:
            job = cluster.create(manifest)
            followed = _Followed(cluster, job)
            say(f"job {name} is created in namespace {namespace} of {cluster.host}")
            return followed.to_the_end()
        except KeyboardInterrupt:
            say(f"stopping {stage}: its job is deleted; Ctrl-C again leaves it to the cluster")
            if job := job or cluster.job(name, namespace):  # it may be there though the answer was not waited for
                cluster.delete(job)
            if followed:
                followed.pods.finish(_LAST_WORDS_SECONDS)
            say(f"{stage} was stopped; what it finished is kept, and the same command goes on")
            return 130
        finally:
            if followed:
                followed.pods.leave()


class _Followed:
    """A Job, as the client's ``V1Job``, from its creation to its end."""

    def __init__(self, cluster: Cluster, job: Any) -> None:
        self._cluster, self._name, self._namespace = cluster, job.metadata.name, job.metadata.namespace
        self._uid, self._shards = job.metadata.uid, job.spec.completions or 1
        self._done = 0
        self.pods = Pods(cluster, self._namespace)

    def to_the_end(self) -> int:
        reached, lost = time.monotonic(), False
        while True:
            try:
                self._look_at_pods()
                job = self._cluster.job(self._name, self._namespace)
                reached, lost = time.monotonic(), False
            except CommandError as error:
                if isinstance(error, RefusedError) or time.monotonic() - reached > _PATIENCE_SECONDS:
                    known = f"kubectl -n {self._namespace} logs -f job/{self._name}"
                    raise CommandError(f"{error}; the job goes on: {known} shows it") from error
                if not lost:
                    say(f"{error}; it is asked again for {_PATIENCE_SECONDS:g} s")
                lost = True
                time.sleep(1)
                continue
            if job is None or job.metadata.uid != self._uid:
                raise CommandError(f"job {self._name} was deleted by somebody else")
            self._tell_progress(job)
            if (ending := ended(job)) is not None:
                return self._verdict(*ending)

    def _look_at_pods(self) -> None:
        for pod in self._cluster.pod_changes(self._name, self._namespace):
            if self.pods.seen(pod):
                return  # what that means for the Job, the Job says

    def _tell_progress(self, job: Any) -> None:
        done = (job.status and job.status.succeeded) or 0
        if self._shards > 1 and done != self._done:
            self._done = done
            say(f"{done} of {self._shards} shards done")

    def _verdict(self, complete: bool, words: str) -> int:
        try:
            for pod in self._cluster.pods(self._name, self._namespace):  # some ended since they were looked at
                self.pods.seen(pod)
        except CommandError as error:
            say(str(error))  # how the Job ended is known all the same
        self.pods.finish(_LAST_WORDS_SECONDS)
        if complete:
            return 0
        say(f"job {self._name} failed: {words}")
        return self.pods.last_failure or 1
