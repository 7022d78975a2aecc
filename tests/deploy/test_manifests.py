"""k8s/: what is rendered is what the code needs, and a spoilt copy is noticed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.stage_run.programs import STAGES
from tests.deploy import manifest_checks as checks
from tests.deploy.code_facts import app_of, servers
from tests.deploy.manifests import NAME, Manifest, folders, is_stack, of_kind, render

Check = Callable[[list[Manifest]], None]
CHECKS: list[Check] = [
    checks.check_ports_and_probes,
    checks.check_variables,
    checks.check_rights,
    checks.check_limits,
    checks.check_images,
    checks.check_references,
    checks.check_drains,
    checks.check_job_modules,
    checks.check_shards,
    checks.check_cache,
]
STACKS = [folder for folder in folders() if is_stack(folder)]


def beside(folder: str) -> list[Manifest]:
    """The manifests of a folder; jobs with the stack that they run beside."""
    if is_stack(folder):
        return render(folder)
    manifests = render(folder)
    there = {(one["kind"], one["metadata"]["name"]) for one in manifests}
    stack = render("overlays/gpu" if "gpu" in folder else "base")
    return [*manifests, *(one for one in stack if (one["kind"], one["metadata"]["name"]) not in there)]


def named(check: Check) -> str:
    return check.__name__.removeprefix("check_")


@pytest.mark.parametrize("check", CHECKS, ids=named)
@pytest.mark.parametrize("folder", folders())
def test_manifests_hold_what_they_must(folder: str, check: Check) -> None:
    check(beside(folder))


@pytest.mark.parametrize("folder", STACKS)
def test_tools_are_where_the_registry_says(folder: str, tmp_path: Path) -> None:
    checks.check_tool_addresses(render(folder), tmp_path)


@pytest.mark.parametrize("folder", folders())
def test_only_who_needs_it_is_let_through(folder: str) -> None:
    checks.check_ways(beside(folder))


@pytest.mark.parametrize("folder", STACKS)
async def test_scalers_watch_metrics_that_exist(folder: str) -> None:
    transport = httpx.ASGITransport(app_of(servers()["gateway"]))
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        known = set(re.findall(r"^# TYPE (\S+)", (await client.get("/metrics")).text, re.MULTILINE))
    for scaler in of_kind(render(folder), "HorizontalPodAutoscaler"):
        for metric in scaler["spec"]["metrics"]:
            name = metric.get("pods", {}).get("metric", {}).get("name", "")
            assert name in known or name.startswith("vllm_") or metric["type"] == "Resource"


def _deployment(manifests: list[Manifest], name: str) -> Any:
    [found] = [one for one in of_kind(manifests, "Deployment") if one["metadata"]["name"] == name]
    return found["spec"]["template"]


def _container(manifests: list[Manifest], name: str = "tool-calculator") -> Any:
    return _deployment(manifests, name)["spec"]["containers"][0]


def _policy(manifests: list[Manifest], name: str) -> Any:
    [found] = [one for one in of_kind(manifests, "NetworkPolicy") if one["metadata"]["name"] == name]
    return found["spec"]


SPOIL: dict[str, tuple[Check, Callable[[list[Manifest]], object]]] = {
    "another port": (
        checks.check_ports_and_probes,
        lambda m: _container(m)["ports"][0].update(containerPort=8199),
    ),
    "a probe of another path": (
        checks.check_ports_and_probes,
        lambda m: _container(m)["readinessProbe"]["httpGet"].update(path="/readyz"),
    ),
    "no liveness probe": (checks.check_ports_and_probes, lambda m: _container(m).pop("livenessProbe")),
    "a misspelt variable": (
        checks.check_variables,
        lambda m: _container(m, "gateway")["env"].append({"name": "TOOLFORMER_GATEWAY_DRAIN_SECOND", "value": "9"}),
    ),
    "root": (checks.check_rights, lambda m: _deployment(m, "redis")["spec"]["securityContext"].update(runAsUser=0)),
    "a root that can be written": (
        checks.check_rights,
        lambda m: _container(m)["securityContext"].update(readOnlyRootFilesystem=False),
    ),
    "no limit of memory": (checks.check_limits, lambda m: _container(m)["resources"]["limits"].pop("memory")),
    "an image without a version": (checks.check_images, lambda m: _container(m, "redis").update(image="redis:latest")),
    "an image nobody builds": (checks.check_images, lambda m: _container(m).update(image="toolformer-abacus:0.1.0")),
    "a label that no selector takes": (
        checks.check_references,
        lambda m: _deployment(m, "gateway")["metadata"]["labels"].update({"app.kubernetes.io/name": "door"}),
    ),
    "a grace shorter than the drain": (
        checks.check_drains,
        lambda m: _deployment(m, "gateway")["spec"].update(terminationGracePeriodSeconds=130),
    ),
    "a way from tool to tool": (
        checks.check_ways,
        lambda m: (
            _policy(m, "callers-to-tools")["ingress"][0].pop("from"),
            _policy(m, "callers-out")["podSelector"]["matchExpressions"][0]["values"].append("tool"),
        ),
    ),
    "a gateway without the cache's password": (
        checks.check_cache,
        lambda m: _deployment(m, "gateway")["spec"].update(
            volumes=[one for one in _deployment(m, "gateway")["spec"]["volumes"] if one["name"] != "cache"]
        ),
    ),
    "a Redis that needs none": (
        checks.check_cache,
        lambda m: _deployment(m, "redis")["spec"]["volumes"][1]["secret"].update(optional=True),
    ),
    "no way to the cache": (checks.check_ways, lambda m: _policy(m, "callers-to-cache").update(ingress=[])),
}


@pytest.mark.parametrize("spoilt", SPOIL)
def test_a_spoilt_copy_is_noticed(spoilt: str) -> None:
    check, spoil = SPOIL[spoilt]
    manifests = render("base")
    check(manifests)
    spoil(manifests)
    with pytest.raises((AssertionError, KeyError)):
        check(manifests)


@pytest.mark.parametrize("folder", ["jobs", "overlays/jobs-gpu"])
def test_every_stage_has_its_job(folder: str) -> None:
    names = [one["metadata"]["labels"][NAME] for one in of_kind(render(folder), "Job")]
    assert sorted(names) == sorted(STAGES)


def test_gpt_j_is_made_on_the_papers_eight_cards() -> None:
    cards = {}
    for job in of_kind(render("overlays/jobs-gpu"), "Job"):
        [container] = job["spec"]["template"]["spec"]["containers"]
        each = int(container["resources"]["limits"].get("nvidia.com/gpu", 0))
        assert ("--device" in container["args"] or "--device=cuda" in container["args"]) == bool(each)
        cards[job["metadata"]["labels"][NAME]] = each * job["spec"].get("parallelism", 1)
    assert {name: number for name, number in cards.items() if number} == {"annotate": 8, "filter": 8, "finetune": 8}


def test_a_stage_of_another_number_of_shards_is_noticed() -> None:
    manifests = render("jobs")
    checks.check_shards(manifests)
    next(one for one in of_kind(manifests, "Job") if "annotate" in one["metadata"]["name"])["spec"]["completions"] = 4
    with pytest.raises(AssertionError):
        checks.check_shards(manifests)
