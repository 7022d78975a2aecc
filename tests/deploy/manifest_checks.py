"""What must hold of rendered manifests. Each check takes a list of them, so that tests can give it a spoilt copy."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from inference_gateway.settings import GatewaySettings
from services.base.command import ServerSettings
from tests.deploy.code_facts import Server, job_variables, module_exists, paths_of, servers, unknown_variables
from tests.deploy.manifests import COMPONENT, NAME, Manifest, Pod, matches, of_kind, pods, reaches
from toolformer.tools import ToolRegistry

BUILT: Final = {f"toolformer-{name}" for name in [*servers(), "jobs"]}
SECRET: Final = "cache-password"
PINNED: Final = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+(-[a-z]+)?")
MADE_BY_HAND: Final = {
    ("Secret", "gateway-api-keys"), ("Secret", "cache-password"), ("PersistentVolumeClaim", "runs"),
}  # fmt: skip
"""What an operator makes before (docs/deploy.md), or another folder brings."""


def server_of(pod: Pod) -> Server | None:
    """The server of ours that a pod runs."""
    return servers().get(pod.labels[NAME]) if pod.labels[COMPONENT] in {"tool", "gateway"} else None


def environment(container: Manifest) -> dict[str, str]:
    """A container's environment variables."""
    return {one["name"]: str(one.get("value", "")) for one in container.get("env", [])}


def check_ports_and_probes(manifests: list[Manifest]) -> None:
    """Ports are where the code listens, and probes ask for paths that it answers."""
    for pod in pods(manifests):
        server = server_of(pod)
        for container in pod.containers:
            ports = {one["name"]: one["containerPort"] for one in container.get("ports", [])}
            if server is not None:
                assert ports == {"http": server.port}, pod.name
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if pod.owner["kind"] == "Deployment":
                    assert probe in container, f"{pod.name}: no {probe}"
                asked = container.get(probe, {})
                for way in ("httpGet", "tcpSocket"):
                    assert way not in asked or asked[way]["port"] in ports, f"{pod.name}: {probe}"
                if server is not None:
                    wanted = "/ready" if probe == "readinessProbe" else "/health"
                    assert asked["httpGet"]["path"] == wanted, pod.name
                    assert wanted in paths_of(server.name)


def check_variables(manifests: list[Manifest]) -> None:
    """Every variable is read by the program that gets it."""
    for pod in pods(manifests):
        server = server_of(pod)
        if server is None and pod.labels[COMPONENT] != "job":
            continue
        known = job_variables() if server is None else server.variables
        for container in pod.containers:
            assert not unknown_variables(set(environment(container)), known), pod.name


def check_job_modules(manifests: list[Manifest]) -> None:
    """Jobs run modules that exist."""
    for pod in pods(manifests):
        if pod.labels[COMPONENT] == "job":
            for container in pod.containers:
                check_modules(container["args"])


def check_modules(words: list[str]) -> None:
    """The modules that a job's command names can be run."""
    modules = set(re.findall(r"\b(?:training_jobs|torch)\.[a-z_.]+", " ".join(words)))
    assert modules, words
    assert all(module_exists(module) for module in modules), modules


def check_shards(manifests: list[Manifest]) -> None:
    """A stage in shards is told of how many, and a shard that failed is run again alone."""
    for pod in pods(manifests):
        told = environment(pod.spec["containers"][0])
        if "WORLD_SIZE" in told:
            spec = pod.owner["spec"]
            assert spec["completionMode"] == "Indexed", pod.name
            assert int(told["WORLD_SIZE"]) == spec["completions"] >= spec["parallelism"], pod.name
            assert spec["backoffLimitPerIndex"] > 0, pod.name
        nodes = [word.partition("=")[2] for word in pod.spec["containers"][0].get("args", []) if "--nnodes=" in word]
        if nodes and pod.owner["kind"] == "Job":
            assert [str(pod.owner["spec"]["completions"])] == nodes, pod.name


def check_rights(manifests: list[Manifest]) -> None:
    """What the restricted profile asks for, a root that cannot be written, and no token."""
    for pod in pods(manifests):
        context = pod.spec["securityContext"]
        assert context["runAsNonRoot"] is True, pod.name
        assert context["runAsUser"] > 0, pod.name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, pod.name
        assert pod.spec["automountServiceAccountToken"] is False, pod.name
        assert pod.spec["enableServiceLinks"] is False, pod.name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.spec.keys(), pod.name
        assert not any("hostPath" in volume for volume in pod.spec.get("volumes", [])), pod.name
        for container in pod.containers:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False, pod.name
            assert own["readOnlyRootFilesystem"] is True, pod.name
            assert own["capabilities"] == {"drop": ["ALL"]}, pod.name
            assert own.get("runAsUser", 1) != 0, pod.name
    accounts = of_kind(manifests, "ServiceAccount")
    assert all(account["automountServiceAccountToken"] is False for account in accounts)
    for namespace in of_kind(manifests, "Namespace"):
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def check_cache(manifests: list[Manifest]) -> None:
    """Redis asks for the password of a secret, and who has its address has that secret."""
    for pod in pods(manifests):
        secret = [
            volume for volume in pod.spec.get("volumes", []) if volume.get("secret", {}).get("secretName") == SECRET
        ]
        asked = [environment(container) for container in pod.containers]
        knows = any("TOOLFORMER_CACHE_URL" in one for one in asked)
        assert bool(secret) == (knows or pod.labels[COMPONENT] == "cache"), pod.name
        if knows:
            [file] = [one["TOOLFORMER_CACHE_PASSWORD_FILE"] for one in asked]
            [mount] = [
                one["mountPath"] for one in pod.containers[0]["volumeMounts"] if one["name"] == secret[0]["name"]
            ]
            assert file == f"{mount}/password", pod.name
        if secret:
            assert not secret[0]["secret"].get("optional"), pod.name
    assert not any(one["metadata"]["name"].startswith(SECRET) for one in of_kind(manifests, "Secret")), (
        "a known password"
    )


def check_limits(manifests: list[Manifest]) -> None:
    """Every container asks for what it needs, and is held to a limit."""
    for pod in pods(manifests):
        for container in pod.containers:
            for key in ("requests", "limits"):
                assert {"cpu", "memory"} <= container["resources"][key].keys(), pod.name
        for volume in pod.spec.get("volumes", []):
            assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"], pod.name


def check_images(manifests: list[Manifest]) -> None:
    """Images are built here, or named and pinned."""
    for pod in pods(manifests):
        for container in pod.containers:
            image = container["image"]
            assert PINNED.fullmatch(image), image
            if image.startswith("toolformer-"):
                assert image.partition(":")[0] in BUILT, image


def check_references(manifests: list[Manifest]) -> None:
    """Selectors take pods that are there; scalers, volumes and routes name what is there."""
    everything = list(pods(manifests))
    names = {(one["kind"], one["metadata"]["name"]) for one in manifests} | MADE_BY_HAND
    for service in of_kind(manifests, "Service"):
        chosen = [pod for pod in everything if matches({"matchLabels": service["spec"]["selector"]}, pod.labels)]
        assert len({pod.name for pod in chosen}) == 1, service["metadata"]["name"]
        ports = {port["name"] for container in chosen[0].containers for port in container.get("ports", [])}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports | {None}, service["metadata"]["name"]
    for deployment in of_kind(manifests, "Deployment"):
        spec = deployment["spec"]
        takes = [pod.name for pod in everything if matches(spec["selector"], pod.labels)]
        assert takes == [deployment["metadata"]["name"]]
        for constraint in spec["template"]["spec"].get("topologySpreadConstraints", []):
            assert constraint["labelSelector"] == spec["selector"], takes
    for budget in of_kind(manifests, "PodDisruptionBudget"):
        takes = [pod.name for pod in everything if matches(budget["spec"]["selector"], pod.labels)]
        assert takes == [budget["metadata"]["name"]]
    for scaler in of_kind(manifests, "HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) in names, target
    for pod in everything:
        for volume in pod.spec.get("volumes", []):
            for kind, reference in _referred(volume):
                assert (kind, reference) in names, f"{pod.name}: no {kind} {reference}"
        mounted = {mount["name"] for container in pod.containers for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in pod.spec.get("volumes", [])}, pod.name
        assert ("ServiceAccount", pod.spec["serviceAccountName"]) in names, pod.name
    for policy in of_kind(manifests, "NetworkPolicy"):
        assert any(matches(policy["spec"]["podSelector"], pod.labels) for pod in everything)


def _referred(volume: Manifest) -> list[tuple[str, Any]]:
    found = []
    if "configMap" in volume:
        found.append(("ConfigMap", volume["configMap"]["name"]))
    if "secret" in volume:
        found.append(("Secret", volume["secret"]["secretName"]))
    if "persistentVolumeClaim" in volume:
        found.append(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    return found


def check_tool_addresses(manifests: list[Manifest], scratch: Path) -> None:
    """The registry's file is one, and each tool's address is a service's that leads to that tool."""
    services = {one["metadata"]["name"]: one["spec"] for one in of_kind(manifests, "Service")}
    [table] = [one["data"]["tools.toml"] for one in of_kind(manifests, "ConfigMap") if "tools.toml" in one["data"]]
    file = scratch / "tools.toml"
    file.write_text(table)
    registry = ToolRegistry.load(files=[file], environ={})
    by_tool = {name: server for name, server in servers().items() if name != "gateway"}
    assert len(list(registry)) == len(tomllib.loads(table)) == len(by_tool)
    for tool in registry:
        host, _, port = tool.url.removeprefix("http://").partition(":")
        server = servers()[services[host]["selector"][NAME]]
        assert server.module.rpartition(".")[2] in server.folder.name
        assert [one["port"] for one in services[host]["ports"]] == [int(port)] == [server.port], tool.name


def check_ways(manifests: list[Manifest]) -> None:
    """Gateway and jobs reach tools and cache; tools reach nobody and nobody else reaches them."""
    by_component: dict[str, list[Pod]] = {}
    for pod in pods(manifests):
        by_component.setdefault(pod.labels[COMPONENT], []).append(pod)
    everybody = [pod for group in by_component.values() for pod in group]
    for client in everybody:
        component = client.labels[COMPONENT]
        for server in everybody:
            kind = server.labels[COMPONENT]
            port = "redis" if kind == "cache" else "http"
            wanted = component in {"gateway", "job"} and kind in {"tool", "cache"}
            wanted |= (component, kind) in {("gateway", "model-server")}
            if client.labels[NAME] == "evaluate":
                wanted = wanted or kind == "gateway"
            if kind == "job":
                port, wanted = "rendezvous", client.labels[NAME] == server.labels[NAME] == "finetune"
            if kind != "gateway" or client.labels[NAME] == "evaluate":
                assert reaches(manifests, client, server, port) == wanted, f"{client.name} to {server.name}"


def check_drains(manifests: list[Manifest]) -> None:
    """A pod is given the time that its program takes to drain; the gateway's longer than the longest completion."""
    for pod in pods(manifests):
        server = server_of(pod)
        if server is None:
            continue
        [container] = pod.spec["containers"]
        told = environment(container)
        default = (
            (GatewaySettings if server.name == "gateway" else ServerSettings).model_fields["drain_seconds"].default
        )
        drain = int(told.get(f"{server.prefix}DRAIN_SECONDS", default))
        pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pause + drain < pod.spec["terminationGracePeriodSeconds"], pod.name
        if server.name == "gateway":
            longest = float(told["TOOLFORMER_GATEWAY_COMPLETION_TIMEOUT"])
            assert longest < drain
