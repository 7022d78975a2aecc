"""Rendered manifests, and questions to them."""

from __future__ import annotations

import copy
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pytest
import yaml

from tests.deploy.code_facts import ROOT

Manifest = dict[str, Any]
COMPONENT: Final = "app.kubernetes.io/component"
NAME: Final = "app.kubernetes.io/name"


def folders() -> list[str]:
    """What can be rendered by itself: the base, the overlays, the jobs."""
    roots = [ROOT / "k8s/base", *sorted((ROOT / "k8s/overlays").iterdir()), *sorted((ROOT / "k8s").glob("jobs*"))]
    return [str(path.relative_to(ROOT / "k8s")) for path in roots]


def is_stack(folder: str) -> bool:
    """Whether it holds the servers; the jobs come beside those."""
    return "jobs" not in folder


@cache
def _rendered(folder: str) -> str:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    command = ["kubectl", "kustomize", str(ROOT / "k8s" / folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def render(folder: str) -> list[Manifest]:
    """The manifests of ``k8s/<folder>``, the caller's own to change."""
    return copy.deepcopy(_parsed(folder))


@cache
def _parsed(folder: str) -> list[Manifest]:
    return list(yaml.load_all(_rendered(folder), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


@dataclass(frozen=True)
class Pod:
    """A pod template, and what makes pods of it."""

    owner: Manifest
    template: Manifest

    @property
    def name(self) -> str:
        """The owner's name."""
        return str(self.owner["metadata"]["name"])

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its pods."""
        return dict(self.template["metadata"]["labels"])

    @property
    def spec(self) -> Manifest:
        """The pod's specification."""
        spec: Manifest = self.template["spec"]
        return spec

    @property
    def containers(self) -> list[Manifest]:
        """All containers, those that prepare included."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]


def pods(manifests: list[Manifest]) -> Iterator[Pod]:
    """Every pod template."""
    for one in manifests:
        spec = one.get("spec", {})
        if one["kind"] in {"Deployment", "Job"}:
            yield Pod(one, spec["template"])
        elif one["kind"] == "CronJob":
            yield Pod(one, spec["jobTemplate"]["spec"]["template"])
        elif one["kind"] == "JobSet":
            for group in spec["replicatedJobs"]:
                yield Pod(one, group["template"]["spec"]["template"])


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    """Those of one kind."""
    return [one for one in manifests if one["kind"] == kind]


def matches(selector: Manifest, labels: dict[str, str]) -> bool:
    """Whether a label selector takes ``labels``; an empty one takes all."""
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In", "only In is used and understood here"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def reaches(manifests: list[Manifest], client: Pod, server: Pod, port: str) -> bool:
    """Whether the network policies let ``client`` open the named ``port`` of ``server``."""
    policies = of_kind(manifests, "NetworkPolicy")
    return _allows(policies, "Egress", client, server, port) and _allows(policies, "Ingress", server, client, port)


def _allows(policies: list[Manifest], direction: str, subject: Pod, peer: Pod, port: str) -> bool:
    about = [
        one["spec"]
        for one in policies
        if direction in one["spec"]["policyTypes"] and matches(one["spec"]["podSelector"], subject.labels)
    ]
    if not about:
        return True
    key = direction.lower()
    peers_key = "from" if direction == "Ingress" else "to"
    return any(
        ("ports" not in rule or any(each["port"] == port for each in rule["ports"]))
        and (
            peers_key not in rule
            or any(
                "namespaceSelector" not in each and matches(each["podSelector"], peer.labels)
                for each in rule[peers_key]
            )
        )
        for spec in about
        for rule in spec.get(key, [])
    )
