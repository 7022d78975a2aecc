"""Each server's image by itself: nobody's rights, a root that cannot be written, the stack's own limits."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.containers.engine import Stack, docker, fails, inspect, python_in
from tests.deploy.code_facts import servers

pytestmark = pytest.mark.timeout(3600)
READY_SECONDS = 180
NETWORK = "toolformer-questions"
ASKED: dict[str, tuple[str, dict[str, Any], str]] = {
    "calculator": ("/call", {"input": "24 * 17"}, "408"),
    "calendar": ("/call", {"input": "", "context": {"date": "2026-11-20"}}, "Today is Friday, November 20, 2026."),
    "wiki-search": ("/call", {"input": "Ljubljana"}, "Ljubljana"),
    "question-answering": ("/call", {"input": "What is the capital of Peru?"}, "Lima"),
    "translation": ("/call", {"input": "El vuelo dura 5 horas."}, "hours"),
    "gateway": ("/v1/completions", {"prompt": "Today is", "max_tokens": 8, "tools": []}, "text_completion"),
}
"""What each is asked, and what stands in its answer."""


@pytest.fixture(scope="module", params=ASKED)
def alone(request: pytest.FixtureRequest, images: Stack) -> Iterator[tuple[str, str]]:
    """The name of a server that is ready, and its container."""
    name = str(request.param)
    limits = json.loads(images.compose("config", "--format", "json"))["services"][name]["deploy"]["resources"]["limits"]
    held = ["--memory", limits["memory"], "--memory-swap", limits["memory"], "--pids-limit", str(limits["pids"])]
    rights = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true"]
    published = ["-p", f"127.0.0.1::{servers()[name].port}"]
    beside = name == "question-answering"  # it reads what Wikipedia search finds
    network = ["--network", docker("network", "create", NETWORK)] if beside else []
    containers = []
    if beside:
        alias = ["--network-alias", "wiki-search"]
        containers.append(docker("run", "-d", *rights, *network, *alias, "toolformer-wiki-search"))
        network += ["-e", "TOOLFORMER_TOOL_WIKISEARCH_URL=http://wiki-search:8103"]
    container = docker("run", "-d", *held, *rights, *published, *network, f"toolformer-{name}")
    containers.append(container)
    try:
        deadline = time.monotonic() + READY_SECONDS
        while (state := inspect(container)["State"])["Health"]["Status"] != "healthy":
            if not state["Running"] or time.monotonic() > deadline:
                pytest.fail(docker("logs", "--tail", "30", container))
            time.sleep(1)
        yield name, container
    finally:
        docker("rm", "-f", *containers)
        if beside:
            docker("network", "rm", NETWORK)


def test_it_answers(alone: tuple[str, str]) -> None:
    name, container = alone
    path, body, wanted = ASKED[name]
    address = docker("port", container, str(servers()[name].port)).splitlines()[0]
    answer = httpx.post(f"http://{address}{path}", json=body, timeout=60)
    assert answer.status_code == 200
    assert wanted in answer.text


def test_it_can_do_nothing_else(alone: tuple[str, str]) -> None:
    _, container = alone
    printed = python_in(
        container,
        "import os\n"
        "print(os.getuid(), os.getgid())\n"
        "lines = open('/proc/self/status').readlines()\n"
        "print([line.split()[1] for line in lines if line.startswith(('CapEff', 'CapPrm', 'NoNew'))])\n"
        "for place in ('/app/x', '/x', '/usr/local/x', '/tmp/x'):\n"
        "    try: open(place, 'w').close(); print('wrote', place)\n"
        "    except OSError as error: print(error.strerror)\n",
    ).splitlines()
    assert printed[0] == "10001 10001"
    assert printed[1] == "['0000000000000000', '0000000000000000', '1']"
    assert printed[2:] == ["Read-only file system"] * 3 + ["wrote /tmp/x"]


def test_it_brings_no_compiler_and_no_cache(alone: tuple[str, str]) -> None:
    _, container = alone
    for program in ("cc", "gcc", "clang"):
        assert fails("exec", container, "which", program)
    assert (
        docker("exec", container, "sh", "-c", "ls -A /root 2>/dev/null; ls -d /wheels /image 2>/dev/null; true") == ""
    )


def test_it_says_what_it_is(alone: tuple[str, str]) -> None:
    name, container = alone
    config = inspect(container)["Config"]
    assert config["User"] == "10001:10001"
    assert config["Labels"]["org.opencontainers.image.title"] == f"toolformer-{name}"
