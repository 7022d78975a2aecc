"""The compose stack from nothing: five tools through the gateway, closed networks, and what dies comes back."""

import json
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import httpx
import pytest

from tests.containers.engine import Stack, docker, inspect, python_in
from tests.deploy.code_facts import packaged, servers

pytestmark = pytest.mark.timeout(3600)
PROMPTS = {
    "Calculator": "There are 24 boxes with 17 books each. How many books are there altogether? The answer is",
    "Calendar": "Today is",
    "WikiSearch": "Mount Kilimanjaro is in",
    "QA": "What is the capital of Kenya?",
    "MT": 'How do you say "Ich verstehe dich nicht." in English?',
}
TOOLS = [name for name in servers() if name != "gateway"]
BACK_SECONDS = 120


def complete(stack: Stack, prompt: str) -> Any:
    body = {"prompt": prompt, "max_tokens": 48, "tool_context": {"date": "2026-11-20"}}
    answer = httpx.post(f"{stack.url}/v1/completions", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]


def until(holds: Callable[[], object], seconds: float = BACK_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(1)


def test_every_tool_of_the_registry_has_a_prompt() -> None:
    assert set(PROMPTS) == set(packaged().names())


@pytest.mark.parametrize("tool", PROMPTS)
def test_a_completion_with_each_tool(stack: Stack, tool: str) -> None:
    choice = complete(stack, PROMPTS[tool])
    [call] = choice["tool_calls"]
    assert (call["tool"], call["error"]) == (tool, None)
    assert call["output"] in choice["text"]


def test_results_are_in_a_redis_that_asks_for_its_password(stack: Stack) -> None:
    complete(stack, PROMPTS["Calculator"])
    scan = "redis-cli --scan --pattern 'toolformer:result:*'"
    known = f'export REDISCLI_AUTH="$(cat /data/password)"; {scan}'
    assert "toolformer:result:" in stack.compose("exec", "-T", "redis", "sh", "-c", known)
    assert "NOAUTH" in stack.compose("exec", "-T", "redis", "redis-cli", "ping")


@pytest.mark.parametrize("name", [*TOOLS, "redis", "gateway"])
def test_containers_have_the_rights_and_limits_of_the_file(stack: Stack, name: str) -> None:
    service = json.loads(stack.compose("config", "--format", "json"))["services"][name]
    host = inspect(stack.container(name))["HostConfig"]
    assert host["ReadonlyRootfs"]
    assert host["CapDrop"] == ["ALL"]
    assert host["CapAdd"] is None
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert host["Memory"] == int(service["deploy"]["resources"]["limits"]["memory"])
    assert host["PidsLimit"] == service["deploy"]["resources"]["limits"]["pids"]
    assert host["RestartPolicy"]["Name"] == "unless-stopped"


def test_nothing_but_the_gateway_is_published(stack: Stack) -> None:
    for name in [*TOOLS, "redis"]:
        published = inspect(stack.container(name))["NetworkSettings"]["Ports"]
        assert not any(published.values()), name
    [[gateway]] = [ports for ports in inspect(stack.container("gateway"))["NetworkSettings"]["Ports"].values() if ports]
    assert gateway["HostIp"] == "127.0.0.1"


def test_tools_cannot_be_reached_from_another_network(stack: Stack) -> None:
    """By name and by address, from a container beside the gateway; the tools' network has the tools, not Redis."""
    addresses: list[str] = []
    for name in [*TOOLS, "redis"]:
        [network] = inspect(stack.container(name))["NetworkSettings"]["Networks"].values()
        port = 6379 if name == "redis" else servers()[name].port
        addresses += [f"{name}:{port}", f"{network['IPAddress']}:{port}"]
    code = (
        "import socket, sys\n"
        "for place in sys.stdin.read().split():\n"
        "    host, port = place.split(':')\n"
        "    try: socket.create_connection((host, int(port)), timeout=3).close(); print('reached', place)\n"
        "    except OSError: print('closed', place)\n"
    )

    def tried(network: str) -> set[str]:
        """What can be reached from it."""
        words = ["run", "--rm", "-i", "--network", f"{stack.project}_{network}", "--entrypoint", "python"]
        said = docker(*words, "toolformer-calculator", "-c", code, given=" ".join(addresses), seconds=180)
        assert len(said.splitlines()) == len(addresses)
        return {line.split()[1] for line in said.splitlines() if line.startswith("reached")}

    redis = {place for place in addresses if place.endswith(":6379")}
    assert tried("outside") == set()
    assert tried("tools") == set(addresses) - redis
    assert tried("cache") == redis


@pytest.mark.parametrize("name", TOOLS)
def test_tools_have_no_way_out(stack: Stack, name: str) -> None:
    routes = python_in(stack.container(name), "print(open('/proc/net/route').read())").splitlines()[1:]
    assert routes
    assert not [route for route in routes if route.split()[1] == "00000000"], "there is a default route"


def test_a_killed_tool_comes_back_and_the_gateway_recovers(stack: Stack) -> None:
    container = stack.container("calculator")
    before = inspect(container)
    kill_server(container, "services.calculator")
    until(lambda: inspect(container)["State"]["StartedAt"] != before["State"]["StartedAt"])
    # Meanwhile completions go on: the call fails, the text does not.
    assert complete(stack, PROMPTS["Calculator"].replace("24", "31"))["finish_reason"] in {"stop", "length"}
    until(lambda: inspect(container)["State"]["Health"]["Status"] == "healthy")
    numbers = count(32)

    def answered() -> bool:
        # Of other boxes each time, so that no kept result answers: which two numbers the model takes does not matter.
        calls = complete(stack, PROMPTS["Calculator"].replace("24", str(next(numbers))))["tool_calls"]
        return [(call["tool"], call["error"]) for call in calls] == [("Calculator", None)]

    until(answered)


def test_a_killed_gateway_comes_back(stack: Stack) -> None:
    container = stack.container("gateway")
    before = inspect(container)["RestartCount"]
    kill_server(container, "inference_gateway")
    until(lambda: inspect(container)["RestartCount"] == before + 1)
    until(lambda: inspect(container)["State"]["Health"]["Status"] == "healthy")
    assert complete(stack, PROMPTS["Calculator"])["tool_calls"][0]["output"] == "408"


def kill_server(container: str, module: str) -> None:
    """SIGKILL to the program, as the kernel does when memory runs out; the engine sees its container end."""
    # Not waited for: the container may end before what is run in it has.
    docker(
        *("exec", "--detach", container, "python", "-c"),
        "import os, pathlib, signal\n"
        "for folder in pathlib.Path('/proc').glob('[0-9]*'):\n"
        f"    if folder.name != '1' and b'\\0{module}\\0' in (folder / 'cmdline').read_bytes():\n"
        "        os.kill(int(folder.name), signal.SIGKILL)\n",
    )
