"""docker-compose.yml: what it says of the code is true, and no container has more rights than it needs."""

import json
import re
from typing import Any

import httpx
import pytest
import yaml

from cli.stage_run.programs import STAGES
from tests.deploy.code_facts import ROOT, app_of, check_modules, job_variables, packaged, servers, unknown_variables

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
CONTAINERS: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: one for name, one in CONTAINERS.items() if one["image"].startswith("toolformer-")}
JOBS = {name: one for name, one in OURS.items() if one["image"] == "toolformer-jobs"}
PINNED = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+(-[a-z]+)?")
MAY_REACH_TOOLS = {"gateway", "prometheus", "otel-collector"}


@pytest.mark.parametrize("name", CONTAINERS)
def test_no_container_has_more_than_it_needs(name: str) -> None:
    one = CONTAINERS[name]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert one["init"] is True
    limits = one["deploy"]["resources"]["limits"]
    assert limits["memory"]
    assert limits["pids"]
    assert "cpus" in limits or "reservations" in one["deploy"]["resources"]
    assert not {"privileged", "network_mode", "pid", "ipc", "cap_add", "devices"} & one.keys()
    if name not in OURS:  # ours say it in their Dockerfiles
        assert not one["user"].startswith(("0", "root"))
    assert one["restart"] == ("no" if name in JOBS else "unless-stopped")


@pytest.mark.parametrize("name", CONTAINERS)
def test_images_are_built_here_or_pinned(name: str) -> None:
    one = CONTAINERS[name]
    if name in OURS:
        assert (ROOT / one["build"]["dockerfile"]).is_file()
        image = "jobs" if name in JOBS else name
        assert one["image"] == f"toolformer-{image}"
    else:
        assert "build" not in one
        [(variable, image)] = re.findall(r"^\$\{([A-Z_]+):-(.+)\}$", one["image"])
        assert PINNED.fullmatch(image), image
        assert f"\n{variable}={image}" in (ROOT / "docker/images.env").read_text(), "docker/images.env has another one"


@pytest.mark.parametrize("name", OURS)
def test_variables_are_read_by_the_code(name: str) -> None:
    known = job_variables() if name in JOBS else servers()[name].variables
    assert not unknown_variables(set(OURS[name].get("environment", {})), known)


@pytest.mark.parametrize("name", ["gateway", *JOBS])
def test_tools_are_where_they_are_looked_for(name: str) -> None:
    environment = CONTAINERS[name]["environment"]
    for tool in packaged():
        url = environment[f"TOOLFORMER_TOOL_{tool.name.upper()}_URL"]
        host, _, port = url.removeprefix("http://").partition(":")
        assert servers()[host].port == int(port)
        assert "ports" not in CONTAINERS[host]
    assert environment["TOOLFORMER_CACHE_URL"].startswith("redis://redis:")
    assert environment["TOOLFORMER_CACHE_PASSWORD_FILE"] == "/run/cache/password"
    assert "cache:/run/cache:ro" in CONTAINERS[name]["volumes"]


def test_only_gateway_jobs_and_what_measures_reach_the_tools() -> None:
    assert COMPOSE["networks"]["tools"] == {"internal": True}
    for name, one in CONTAINERS.items():
        assert "tools" not in one["networks"] or name in MAY_REACH_TOOLS | servers().keys() | JOBS.keys(), name
        outside = "outside" in one["networks"]
        assert outside == (name in {"gateway", "grafana"}), name
        assert ("ports" in one) == outside
    for name in servers().keys() - {"gateway"}:
        assert CONTAINERS[name]["networks"] == ["tools"]


def test_only_gateway_and_jobs_reach_the_cache_and_its_password() -> None:
    """Anyone who writes to it answers calls for everybody."""
    assert COMPOSE["networks"]["cache"] == {"internal": True}
    assert CONTAINERS["redis"]["networks"] == ["cache"]
    callers = {"gateway", *JOBS}
    assert {name for name, one in CONTAINERS.items() if "cache" in one["networks"]} == {"redis", *callers}
    mounted = {name for name, one in CONTAINERS.items() if any("cache:" in volume for volume in one.get("volumes", []))}
    assert mounted == {"redis", *callers}
    assert CONTAINERS["redis"]["environment"] == {"CACHE_PASSWORD": None}, "no password of its own is in the file"


def test_a_stop_waits_for_the_longest_completion() -> None:
    gateway = CONTAINERS["gateway"]
    drain = gateway["environment"]["TOOLFORMER_GATEWAY_DRAIN_SECONDS"]
    assert gateway["environment"]["TOOLFORMER_GATEWAY_COMPLETION_TIMEOUT"] < drain
    assert drain < int(gateway["stop_grace_period"].removesuffix("s"))


def test_what_comes_up_by_default_needs_no_profile() -> None:
    default = {name for name, one in CONTAINERS.items() if "profiles" not in one}
    assert default == {*servers(), "redis"}
    assert set(CONTAINERS["gateway"]["depends_on"]) == default - {"gateway"}
    assert {on["condition"] for on in CONTAINERS["gateway"]["depends_on"].values()} == {"service_healthy"}


@pytest.mark.parametrize("file", sorted(path.name for path in (ROOT / "docker").glob("*.env")))
def test_settings_files_set_what_exists(file: str) -> None:
    lines = [line for line in (ROOT / "docker" / file).read_text().splitlines() if line and not line.startswith("#")]
    values = dict(line.split("=", 1) for line in lines)
    if profile := values.pop("COMPOSE_PROFILES", None):
        assert any(profile in one.get("profiles", []) for one in CONTAINERS.values())
    files = [ROOT / name for name in values.pop("COMPOSE_FILE", "docker-compose.yml").split(":")]
    text = "".join(path.read_text() for path in files)
    for name in values:
        assert re.search(rf"^ +{name}:|\$\{{{name}\b|\b{name}: ", text, re.MULTILINE), name
    if address := values.get("TOOLFORMER_GATEWAY_BACKEND_URL"):
        server, port = address.removeprefix("http://").split(":")
        assert port in CONTAINERS[server]["command"]
        assert values["TOOLFORMER_GATEWAY_BACKEND"] in {"openai", "tgi"}


@pytest.mark.parametrize("name", JOBS)
def test_jobs_run_modules_that_exist(name: str) -> None:
    command = JOBS[name]["command"]
    check_modules(command.split() if isinstance(command, str) else command)


def test_every_stage_is_a_job() -> None:
    assert set(JOBS) == set(STAGES)


def test_gpus_go_to_what_computes() -> None:
    overlay = yaml.safe_load((ROOT / "docker/gpus.yml").read_text())["services"]
    assert set(overlay) == {"gateway", "question-answering", "translation", "annotate", "filter", "finetune"}
    for name, one in overlay.items():
        [device] = one["deploy"]["resources"]["reservations"]["devices"]
        assert device["capabilities"] == ["gpu"], name
        assert ("command" in one) == (name in JOBS)
        if name in JOBS:
            assert f"--module training_jobs.{name} " in one["command"]
            check_modules(one["command"].split())


@pytest.mark.parametrize("file", ["vllm.yml", "vllm-gpu.yml"])
def test_vllm_inside_changes_the_gateway_alone(file: str) -> None:
    overlay = yaml.safe_load((ROOT / "docker" / file).read_text())["services"]
    assert list(overlay) == ["gateway"]
    gateway = overlay["gateway"]
    image = (ROOT / "inference_gateway/Dockerfile").read_text()
    assert f" AS {gateway['build']['args']['ENGINE']}\n" in image
    assert gateway["shm_size"], "ranks talk through it"
    environment = gateway.get("environment", {})
    assert not unknown_variables(set(environment), servers()["gateway"].variables)
    without = {name for name, value in environment.items() if value is None}
    assert not [name for name in without if f"{name}=" in image], "this would take away the image's value"
    limits = gateway["deploy"]["resources"]["limits"]
    assert limits["memory"]
    assert limits["pids"]
    assert not {"privileged", "cap_add", "security_opt", "read_only", "networks", "ports"} & gateway.keys()
    assert ",exec," in gateway.get("tmpfs", ",exec,"), "what vLLM compiles there is run from there"


def test_prometheus_looks_at_every_server() -> None:
    jobs = yaml.safe_load((ROOT / "docker/observability/prometheus.yml").read_text())["scrape_configs"]
    targets = {target for job in jobs for config in job["static_configs"] for target in config["targets"]}
    assert {f"{name}:{server.port}" for name, server in servers().items()} <= targets
    assert all(target.split(":")[0] in CONTAINERS for target in targets)


async def test_the_dashboard_shows_metrics_that_exist() -> None:
    known = {"kube_job_status_succeeded", "kube_job_status_failed"}
    for server in servers().values():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app_of(server)), base_url="http://app") as client:
            known |= set(re.findall(r"^# TYPE (\S+)", (await client.get("/metrics")).text, re.MULTILINE))
    dashboard = json.loads((ROOT / "docker/observability/grafana/dashboards/toolformer.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(queries) > 20
    for query in queries:
        metrics = re.findall(r"\b((?:toolformer|tool|http|process|kube)_[a-z_]+)(?=[{\[)])", query)
        assert metrics, query
        for metric in metrics:
            assert metric in known or re.sub(r"_(bucket|sum|count)$", "", metric) in known, f"{metric} in {query}"
