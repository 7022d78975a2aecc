"""k8s/: what is rendered is what the code needs, asks for few rights, hangs together, and is valid."""

import functools
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import kubernetes_validate
import pytest
from kubernetes_validate import utils

from cli.stage_run.programs import STAGES
from inference_gateway.settings import GatewaySettings
from services.base.command import ServerSettings
from tests.deploy.code_facts import app_of, check_modules, job_variables, paths_of, servers, unknown_variables
from tests.deploy.manifests import (
    COMPONENT,
    NAME,
    Manifest,
    beside,
    folders,
    is_stack,
    matches,
    of_kind,
    pods,
    reaches,
    render,
)
from toolformer.tools import ToolRegistry

Check = Callable[[list[Manifest]], None]
STACKS: Final = [folder for folder in folders() if is_stack(folder)]
BUILT: Final = {f"toolformer-{name}" for name in [*servers(), "jobs"]}
PINNED: Final = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+(-[a-z]+)?")
SECRET: Final = "cache-password"
MADE_BY_HAND: Final = {("Secret", "gateway-api-keys"), ("Secret", SECRET), ("PersistentVolumeClaim", "runs")}
"""What an operator makes before (docs/deploy.md), or another folder brings."""


def ports_and_probes(manifests: list[Manifest]) -> None:
    """Ports are where the code listens, and probes ask for paths that it answers."""
    for pod in pods(manifests):
        for container in pod.containers:
            ports = {one["name"]: one["containerPort"] for one in container.get("ports", [])}
            assert pod.server is None or ports == {"http": pod.server.port}, pod.name
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                assert probe in container or pod.owner["kind"] != "Deployment", f"{pod.name}: no {probe}"
                asked = container.get(probe, {})
                for way in {"httpGet", "tcpSocket"} & asked.keys():
                    assert asked[way]["port"] in ports, f"{pod.name}: {probe}"
                if pod.server is not None:
                    wanted = "/ready" if probe == "readinessProbe" else "/health"
                    assert asked["httpGet"]["path"] == wanted, pod.name
                    assert wanted in paths_of(pod.server.name)


def variables(manifests: list[Manifest]) -> None:
    """Every variable is read by the program that gets it, and every job runs a module that exists."""
    for pod in pods(manifests):
        if pod.server is not None:
            assert not unknown_variables(set(pod.environment), pod.server.variables), pod.name
        elif pod.labels[COMPONENT] == "job":
            assert not unknown_variables(set(pod.environment), job_variables()), pod.name
            for container in pod.containers:
                check_modules(container.get("args") or [pod.owner["spec"]["entrypoint"]])


def shards(manifests: list[Manifest]) -> None:
    """A stage in shards is given their number, and a shard that failed is run again alone."""
    for pod in pods(manifests):
        spec = pod.owner["spec"]
        if "WORLD_SIZE" in pod.environment:
            assert spec["completionMode"] == "Indexed", pod.name
            assert int(pod.environment["WORLD_SIZE"]) == spec["completions"] >= spec["parallelism"], pod.name
            assert spec["backoffLimitPerIndex"] > 0, pod.name
        nodes = re.findall(r"--nnodes=(\S+)", " ".join(pod.spec["containers"][0].get("args", [])))
        if nodes and pod.owner["kind"] == "Job":
            assert [str(spec["completions"])] == nodes, pod.name


def rights(manifests: list[Manifest]) -> None:
    """What the restricted profile asks for, a root that cannot be written, no token; and a limit for each container."""
    for pod in pods(manifests):
        context = pod.spec["securityContext"]
        assert context["runAsNonRoot"] is True, pod.name
        assert context["runAsUser"] > 0, pod.name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, pod.name
        assert pod.spec["automountServiceAccountToken"] is pod.spec["enableServiceLinks"] is False, pod.name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.spec.keys(), pod.name
        for volume in pod.spec.get("volumes", []):
            assert "hostPath" not in volume, pod.name
            assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"], pod.name
        for container in pod.containers:
            own = container["securityContext"]
            assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True), pod.name
            assert (own["capabilities"], own.get("runAsUser", 1) > 0) == ({"drop": ["ALL"]}, True), pod.name
            for key in ("requests", "limits"):
                assert {"cpu", "memory"} <= container["resources"][key].keys(), pod.name
            assert container["resources"]["limits"]["ephemeral-storage"], pod.name
    assert all(account["automountServiceAccountToken"] is False for account in of_kind(manifests, "ServiceAccount"))
    for namespace in of_kind(manifests, "Namespace"):
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def cache(manifests: list[Manifest]) -> None:
    """Redis asks for the password of a secret, and who has its address has that secret."""
    for pod in pods(manifests):
        secrets = [one for one in pod.spec.get("volumes", []) if one.get("secret", {}).get("secretName") == SECRET]
        calls = "TOOLFORMER_CACHE_URL" in pod.environment
        assert bool(secrets) == (calls or pod.labels[COMPONENT] == "cache"), pod.name
        assert not any(one["secret"].get("optional") for one in secrets), pod.name
        if calls:
            mounts = {one["name"]: one["mountPath"] for one in pod.containers[0]["volumeMounts"]}
            file = pod.environment["TOOLFORMER_CACHE_PASSWORD_FILE"]
            assert file == f"{mounts[secrets[0]['name']]}/password", pod.name
    assert not any(one["metadata"]["name"].startswith(SECRET) for one in of_kind(manifests, "Secret")), "a known one"


def images(manifests: list[Manifest]) -> None:
    """Images are built here, or named and pinned."""
    for image in (container["image"] for pod in pods(manifests) for container in pod.containers):
        assert PINNED.fullmatch(image), image
        assert not image.startswith("toolformer-") or image.partition(":")[0] in BUILT, image


def references(manifests: list[Manifest]) -> None:
    """Selectors take pods that are there; scalers, volumes and routes name what is there."""
    everything = list(pods(manifests))
    names = {(one["kind"], one["metadata"]["name"]) for one in manifests} | MADE_BY_HAND
    for service in of_kind(manifests, "Service"):
        chosen = [pod for pod in everything if matches({"matchLabels": service["spec"]["selector"]}, pod.labels)]
        assert len({pod.name for pod in chosen}) == 1, service["metadata"]["name"]
        ports = {port["name"] for container in chosen[0].containers for port in container.get("ports", [])}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports | {None}, service["metadata"]["name"]
    for owner in of_kind(manifests, "Deployment") + of_kind(manifests, "PodDisruptionBudget"):
        takes = [pod.name for pod in everything if matches(owner["spec"]["selector"], pod.labels)]
        assert takes == [owner["metadata"]["name"]]
        template = owner["spec"].get("template", {"spec": {}})
        for constraint in template["spec"].get("topologySpreadConstraints", []):
            assert constraint["labelSelector"] == owner["spec"]["selector"], takes
    for scaler in of_kind(manifests, "HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) in names, target
    kinds = {"configMap": ("ConfigMap", "name"), "secret": ("Secret", "secretName")}
    kinds["persistentVolumeClaim"] = ("PersistentVolumeClaim", "claimName")
    for pod in everything:
        volumes = pod.spec.get("volumes", [])
        for volume, key in ((volume, key) for volume in volumes for key in kinds if key in volume):
            kind, field = kinds[key]
            assert (kind, volume[key][field]) in names, f"{pod.name}: no {kind} {volume[key][field]}"
        mounted = {mount["name"] for container in pod.containers for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in volumes}, pod.name
        assert ("ServiceAccount", pod.spec["serviceAccountName"]) in names, pod.name
    for policy in of_kind(manifests, "NetworkPolicy"):
        assert any(matches(policy["spec"]["podSelector"], pod.labels) for pod in everything)


def ways(manifests: list[Manifest]) -> None:
    """Gateway and jobs reach tools and cache; question answering reaches Wikipedia search, no other tool anybody."""
    everybody = list(pods(manifests))
    for client, server in ((client, server) for client in everybody for server in everybody):
        component, kind = client.labels[COMPONENT], server.labels[COMPONENT]
        evaluates = client.labels[NAME] == "evaluate"
        port = {"cache": "redis", "job": "rendezvous"}.get(kind, "http")
        wanted = component in {"gateway", "job"} and kind in {"tool", "cache"}
        wanted |= (client.labels[NAME], server.labels[NAME]) == ("question-answering", "wiki-search")
        wanted |= (component, kind) == ("gateway", "model-server") or (evaluates and kind == "gateway")
        if kind == "job":
            wanted = client.labels[NAME] == server.labels[NAME] and client.labels[NAME] in {"finetune", "ray"}
        if kind != "gateway" or evaluates:
            assert reaches(manifests, client, server, port) == wanted, f"{client.name} to {server.name}"


def drains(manifests: list[Manifest]) -> None:
    """A pod is given the time that its program takes to drain; the gateway's longer than the longest completion."""
    for pod in pods(manifests):
        if pod.server is None:
            continue
        settings = GatewaySettings if pod.server.name == "gateway" else ServerSettings
        default = settings.model_fields["drain_seconds"].default
        drain = int(pod.environment.get(f"{pod.server.prefix}DRAIN_SECONDS", default))
        pause = pod.spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pause + drain < pod.spec["terminationGracePeriodSeconds"], pod.name
        if pod.server.name == "gateway":
            assert float(pod.environment["TOOLFORMER_GATEWAY_COMPLETION_TIMEOUT"]) < drain


CHECKS: Final[list[Check]] = [
    ports_and_probes, variables, shards, rights, cache, images, references, ways, drains
]  # fmt: skip


@pytest.mark.parametrize("folder", folders())
def test_manifests_hold_what_they_must(folder: str) -> None:
    for check in CHECKS:
        check(beside(folder))


@pytest.mark.parametrize("folder", STACKS)
def test_tools_are_where_the_registry_says(folder: str, tmp_path: Path) -> None:
    manifests, file = render(folder), tmp_path / "tools.toml"
    services = {one["metadata"]["name"]: one["spec"] for one in of_kind(manifests, "Service")}
    [table] = [one["data"]["tools.toml"] for one in of_kind(manifests, "ConfigMap") if "tools.toml" in one["data"]]
    file.write_text(table)
    registry = ToolRegistry.load(files=[file], environ={})
    assert len(list(registry)) == len(tomllib.loads(table)) == len(servers()) - 1
    for tool in registry:
        host, _, port = tool.url.removeprefix("http://").partition(":")
        server = servers()[services[host]["selector"][NAME]]
        assert [one["port"] for one in services[host]["ports"]] == [int(port)] == [server.port], tool.name


@pytest.mark.parametrize("folder", STACKS)
async def test_scalers_watch_metrics_that_exist(folder: str) -> None:
    transport = httpx.ASGITransport(app_of(servers()["gateway"]))
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        known = set(re.findall(r"^# TYPE (\S+)", (await client.get("/metrics")).text, re.MULTILINE))
    for scaler in of_kind(render(folder), "HorizontalPodAutoscaler"):
        for metric in scaler["spec"]["metrics"]:
            name = metric.get("pods", {}).get("metric", {}).get("name", "")
            assert name in known or name.startswith("vllm_") or metric["type"] == "Resource"


def _named(manifests: list[Manifest], name: str, kind: str = "Deployment") -> Any:
    names = {name, f"stage-{name}"}
    [found] = [one["spec"] for one in of_kind(manifests, kind) if one["metadata"]["name"] in names]
    return found


def _pod(manifests: list[Manifest], name: str) -> Any:
    return _named(manifests, name)["template"]["spec"]


def _container(manifests: list[Manifest], name: str = "tool-calculator") -> Any:
    return _pod(manifests, name)["containers"][0]


UNKNOWN: Final = {"name": "TOOLFORMER_GATEWAY_DRAIN_SECOND", "value": "9"}
SPOIL: Final[dict[str, tuple[Check, Callable[[list[Manifest]], object]]]] = {
    "another port": (ports_and_probes, lambda m: _container(m)["ports"][0].update(containerPort=8199)),
    "another path": (ports_and_probes, lambda m: _container(m)["readinessProbe"]["httpGet"].update(path="/readyz")),
    "no liveness probe": (ports_and_probes, lambda m: _container(m).pop("livenessProbe")),
    "a misspelt variable": (variables, lambda m: _container(m, "gateway")["env"].append(UNKNOWN)),
    "root": (rights, lambda m: _pod(m, "redis")["securityContext"].update(runAsUser=0)),
    "a root to write": (rights, lambda m: _container(m)["securityContext"].update(readOnlyRootFilesystem=False)),
    "no limit of memory": (rights, lambda m: _container(m)["resources"]["limits"].pop("memory")),
    "no limit of disk": (rights, lambda m: _container(m)["resources"]["limits"].update({"ephemeral-storage": ""})),
    "no version": (images, lambda m: _container(m, "redis").update(image="redis:latest")),
    "an image nobody builds": (images, lambda m: _container(m).update(image="toolformer-abacus:0.1.0")),
    "a label nobody takes": (references, lambda m: _named(m, "gateway")["template"]["metadata"].update(labels={})),
    "a grace too short": (drains, lambda m: _pod(m, "gateway").update(terminationGracePeriodSeconds=130)),
    "no secret": (cache, lambda m: _pod(m, "gateway").update(volumes=[])),
    "no need of it": (cache, lambda m: _pod(m, "redis")["volumes"][1]["secret"].update(optional=True)),
    "no way": (ways, lambda m: _named(m, "callers-to-cache", "NetworkPolicy").update(ingress=[])),
    "another number of shards": (shards, lambda m: _named(m, "annotate", "Job").update(completions=4)),
}


@pytest.mark.parametrize("spoilt", SPOIL)
def test_a_spoilt_copy_is_noticed(spoilt: str) -> None:
    check, spoil = SPOIL[spoilt]
    manifests = render("jobs" if check is shards else "base")
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


def test_a_gateway_that_runs_vllm_has_a_rank_and_shared_memory_for_its_gpus() -> None:
    manifests = render("overlays/gpu-inside")
    pod, container = _pod(manifests, "gateway"), _container(manifests, "gateway")
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert variables["TOOLFORMER_GATEWAY_BACKEND"] == "vllm"
    for amounts in container["resources"].values():
        assert amounts["nvidia.com/gpu"] == variables["TOOLFORMER_GATEWAY_TENSOR_PARALLEL"]
    paths = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    memory = {paths[one["name"]] for one in pod["volumes"] if one.get("emptyDir", {}).get("medium") == "Memory"}
    assert memory == {"/dev/shm"}
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 900
    deployments = {one["metadata"]["name"] for one in of_kind(manifests, "Deployment")}
    assert "vllm" not in deployments
    assert deployments | {"vllm"} == {one["metadata"]["name"] for one in of_kind(render("overlays/gpu"), "Deployment")}


VERSIONS: Final = sorted(set(utils.all_versions()), key=lambda version: [int(part) for part in version.split(".")])[-3:]
OTHERS: Final = {"ServiceMonitor", "HTTPRoute", "JobSet", "RayJob"}
"""Kinds that operators bring along; Kubernetes has no schema of them, so they are checked by nobody here."""


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_is_rendered_is_valid(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against Kubernetes' own schemas, strictly, for its three newest versions."""
    assert VERSIONS[-1] >= "1.37"
    monkeypatch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))  # each is read once
    rendered: dict[str, Manifest] = {str(one): one for folder in folders() for one in render(folder)}
    known = [one for one in rendered.values() if one["kind"] not in OTHERS]
    assert len(known) > 40
    for one in known:
        kubernetes_validate.validate(one, version, strict=True)
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate({**one, "sepc": {}}, version, strict=True)
