"""Rendered manifests, and questions to them."""

import copy
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pytest
import yaml

from tests.deploy.code_facts import ROOT, Server, servers

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
def _rendered(folder: str) -> list[Manifest]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    command = ["kubectl", "kustomize", str(ROOT / "k8s" / folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.load_all(done.stdout, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def render(folder: str) -> list[Manifest]:
    """The manifests of ``k8s/<folder>``, the caller's own to change."""
    return copy.deepcopy(_rendered(folder))


def beside(folder: str) -> list[Manifest]:
    """The manifests of a folder; jobs with the stack that they run beside."""
    manifests = render(folder)
    if is_stack(folder):
        return manifests
    there = {(one["kind"], one["metadata"]["name"]) for one in manifests}
    stack = render("overlays/gpu" if "gpu" in folder else "base")
    return [*manifests, *(one for one in stack if (one["kind"], one["metadata"]["name"]) not in there)]


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
        return dict(self.template["spec"])

    @property
    def containers(self) -> list[Manifest]:
        """All containers, those that prepare included."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of all containers."""
        return {one["name"]: str(one.get("value", "")) for each in self.containers for one in each.get("env", [])}

    @property
    def server(self) -> Server | None:
        """The server of ours that it runs."""
        return servers().get(self.labels[NAME]) if self.labels[COMPONENT] in {"tool", "gateway"} else None


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
        elif one["kind"] == "RayJob":
            cluster = spec["rayClusterSpec"]
            yield from (
                Pod(one, group["template"]) for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
            )


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    """Those of one kind."""
    return [one for one in manifests if one["kind"] == kind]


def matches(selector: Manifest, labels: dict[str, str]) -> bool:
    """Whether a label selector takes ``labels``; an empty one takes all."""
    expressions = selector.get("matchExpressions", [])
    assert all(expression["operator"] == "In" for expression in expressions), "only In is understood here"
    return all(labels.get(one["key"]) in one["values"] for one in expressions) and all(
        labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()
    )


def reaches(manifests: list[Manifest], client: Pod, server: Pod, port: str) -> bool:
    """Whether the network policies let ``client`` open the named ``port`` of ``server``."""
    policies = [one["spec"] for one in of_kind(manifests, "NetworkPolicy")]
    return _allows(policies, "Egress", client, server, port) and _allows(policies, "Ingress", server, client, port)


def _allows(policies: list[Manifest], direction: str, subject: Pod, peer: Pod, port: str) -> bool:
    about = [one for one in policies if direction in one["policyTypes"] and matches(one["podSelector"], subject.labels)]
    peers = "from" if direction == "Ingress" else "to"

    def let_through(rule: Manifest) -> bool:
        chosen = [each["podSelector"] for each in rule.get(peers, []) if "namespaceSelector" not in each]
        return ("ports" not in rule or any(each["port"] == port for each in rule["ports"])) and (
            peers not in rule or any(matches(selector, peer.labels) for selector in chosen)
        )

    return not about or any(let_through(rule) for spec in about for rule in spec.get(direction.lower(), []))
