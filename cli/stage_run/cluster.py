"""The API server of a cluster: every request with a deadline, every refusal told in a line."""

from __future__ import annotations

import binascii
import datetime as dt
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from cli.console import CommandError
from cli.stage_run.manifests import Manifest
from cli.stage_run.words import package, say

_CONNECT_SECONDS: Final = 5.0
_SECONDS: Final = (_CONNECT_SECONDS, 30.0)
"""Connecting, and waiting for an answer."""
_WATCH_SECONDS: Final = 5
"""How long one watch over the pods lasts before the Job itself is asked."""
_QUIET_SECONDS: Final = 60.0
"""A log that is quiet for so long is asked for again: its connection may be dead."""
_GONE_SECONDS: Final = 90.0
"""How long the pods of a deleted Job may take to end; the stages need none of the 30 s that they are given."""
_REMEDIES: Final = {
    401: ": log in again, or name another --context",
    403: ": your account needs the rights that docs/deploy.md lists under 'Starting one stage'",
    404: ": make the namespace first (k8s/overlays/demo brings it)",
}
_FINAL: Final = {401, 403, 404, 409, 422}


class RefusedError(CommandError):
    """The cluster answered, and it was no: asking again does not help."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.forbidden = status == 403
        """The account may not do it."""
        self.missing = status == 404
        """What it is about is not there."""
        self.conflict = status == 409
        """It is there already, or is not what it was taken for."""


class Cluster:
    """The API server of a kubeconfig's context.

    All methods raise `RefusedError` where the cluster says no, and `CommandError` where it is out of reach.

    Raises:
        CommandError: the packages are missing, or no kubeconfig has the context.
    """

    def __init__(self, context: str | None) -> None:
        package("kubernetes", "k8s")
        from kubernetes import client, config, utils, watch
        from urllib3.exceptions import HTTPError
        from yaml import YAMLError

        self._failed, self._unreachable = client.exceptions.ApiException, (HTTPError, OSError)
        self._models, self._utils, self._watch = client, utils, watch
        logging.getLogger("urllib3").setLevel(logging.ERROR)  # it would tell each retry; what counts is told here
        # By name: the client looks at the environment once, when it is imported.
        kubeconfig = os.environ.get("KUBECONFIG") or "~/.kube/config"
        try:
            self._client = config.new_client_from_config(kubeconfig, context)
        except (config.ConfigException, YAMLError, OSError, binascii.Error) as error:
            words = _one_line(error)
            raise CommandError(f"no cluster: {words}: set KUBECONFIG, or name a --context it has") from error
        self.host = self._client.configuration.host
        self._core, self._batch = client.CoreV1Api(self._client), client.BatchV1Api(self._client)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def create(self, manifest: Manifest) -> Any:
        """Create what ``manifest`` describes, and give it back as the client's object."""
        with self._trouble(f"{manifest['kind']} {manifest['metadata']['name']} cannot be created"):
            try:
                [made] = self._utils.create_from_dict(self._client, manifest, _request_timeout=_SECONDS)
            except self._utils.FailToCreateError as error:
                raise error.api_exceptions[0] from error
        return made

    def ensure(self, manifest: Manifest) -> None:
        """Create what ``manifest`` describes; what is there already stays as it is."""
        try:
            self.create(manifest)
        except RefusedError as error:
            if error.forbidden:  # where others set the namespace up, it is there, and may not be made
                say(f"{error}; it is taken to be there")
            elif not error.conflict:
                raise

    def job(self, name: str, namespace: str) -> Any | None:
        """The Job, as the client's ``V1Job``; ``None`` if there is none."""
        try:
            with self._trouble(f"job {name} cannot be read"):
                return self._batch.read_namespaced_job(name, namespace, _request_timeout=_SECONDS)
        except RefusedError as error:
            if error.missing:
                return None
            raise

    def remove_ended(self, name: str, namespace: str, replace: bool) -> None:
        """Delete a Job of that name that ended, or with ``replace`` any.

        Raises:
            CommandError: there is one that still runs.
        """
        there = self.job(name, namespace)
        if there is None:
            return
        going = ended(there) is None and there.metadata.deletion_timestamp is None
        if going and not replace:
            known = f"kubectl -n {namespace} logs -f job/{name}"
            raise CommandError(f"job {name} is there and runs: {known} shows it, --replace stops it and starts anew")
        say(f"job {name} of before is deleted")
        self.delete(there)

    def delete(self, job: Any) -> None:
        """Delete a ``V1Job`` and its pods, and return when they are gone.

        Raises:
            CommandError: they do not end in time.
        """
        name, namespace, uid = job.metadata.name, job.metadata.namespace, job.metadata.uid
        remedy = f"kubectl -n {namespace} delete job {name}"
        options = self._models.V1DeleteOptions(
            propagation_policy="Foreground", preconditions=self._models.V1Preconditions(uid=uid)
        )
        try:
            with self._trouble(f"job {name} could not be deleted; {remedy}"):
                self._batch.delete_namespaced_job(name, namespace, body=options, _request_timeout=_SECONDS)
        except RefusedError as error:
            if not (error.missing or error.conflict):  # it is gone, or there is another one by that name
                raise
        deadline = time.monotonic() + _GONE_SECONDS
        while (there := self.job(name, namespace)) is not None and there.metadata.uid == uid:
            if time.monotonic() > deadline:
                raise CommandError(f"job {name} was told to end and has not within {_GONE_SECONDS:g} s; {remedy}")
            time.sleep(0.5)

    def pods(self, job: str, namespace: str) -> list[Mapping[str, Any]]:
        """The Job's pods as they are."""
        with self._trouble(f"the pods of job {job} cannot be listed"):
            answer = self._core.list_namespaced_pod(
                namespace, label_selector=_of_job(job), _preload_content=False, _request_timeout=_SECONDS
            )
            found: list[Mapping[str, Any]] = json.loads(answer.data)["items"]
            return found

    def pod_changes(self, job: str, namespace: str) -> Iterator[Mapping[str, Any]]:
        """The Job's pods as they are, then as they change, for a few seconds."""
        watching = self._watch.Watch(return_type="object")  # as the server tells it
        with self._trouble(f"the pods of job {job} cannot be watched"):
            events = watching.stream(
                self._core.list_namespaced_pod, namespace, label_selector=_of_job(job),
                timeout_seconds=_WATCH_SECONDS, _request_timeout=(_CONNECT_SECONDS, _WATCH_SECONDS + 10.0),
            )  # fmt: skip
            for event in events:
                if event["type"] in {"ADDED", "MODIFIED"}:
                    yield event["raw_object"]

    def log(self, pod: str, namespace: str, since: dt.datetime | None) -> Iterator[bytes]:
        """A pod's log with stamps, all or ``since`` then, in pieces as they come, until it or its connection ends."""
        asked = [("follow", "true"), ("timestamps", "true")]
        if since is not None:
            # `read_namespaced_pod_log` knows seconds before now alone: then lines were lost where clocks differ.
            asked.append(("sinceTime", since.strftime("%Y-%m-%dT%H:%M:%SZ")))
        request = self._client.param_serialize(
            "GET", "/api/v1/namespaces/{namespace}/pods/{name}/log", path_params={"namespace": namespace, "name": pod},
            query_params=asked, header_params={"Accept": "*/*"}, auth_settings=["BearerToken"],
        )  # fmt: skip
        with self._trouble(f"the log of {pod} cannot be read"):
            answer = self._client.call_api(*request, _request_timeout=(_CONNECT_SECONDS, _QUIET_SECONDS)).response
            try:
                if answer.status != 200:
                    raise self._failed(http_resp=answer)
                yield from answer.stream()
            finally:
                answer.close()

    @contextmanager
    def _trouble(self, what: str) -> Iterator[None]:
        """What the client raises, told in a line."""
        try:
            yield
        except self._failed as error:
            message = f"{what}: {_said(error)}{_REMEDIES.get(error.status, '')}"
            raise (RefusedError(message, error.status) if error.status in _FINAL else CommandError(message)) from error
        except self._unreachable as error:
            remedy = "see kubectl cluster-info"
            raise CommandError(f"{what}: {self.host} cannot be reached ({_innermost(error)}): {remedy}") from error


def ended(job: Any) -> tuple[bool, str] | None:
    """Whether a Job completed, and why not; ``None`` while it goes on."""
    for condition in (job.status and job.status.conditions) or []:
        if condition.status == "True" and condition.type in {"Complete", "Failed"}:
            words = ": ".join(filter(None, (condition.reason, condition.message)))
            return condition.type == "Complete", words
    return None


def _of_job(name: str) -> str:
    return f"batch.kubernetes.io/job-name={name}"


def _said(error: Any) -> str:
    """What the API server said: a ``Status`` with a message, where it is not something before the server."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return _one_line(error.reason or error)


def _innermost(error: BaseException) -> str:
    """The reason without the layers that the client puts around it."""
    reason = getattr(error, "reason", None)
    return _innermost(reason) if isinstance(reason, BaseException) else _one_line(error)


def _one_line(words: object) -> str:
    return " ".join(str(words).split())
