"""What ``toolformer up`` starts: the tool services and the gateway, and the variables that set where each listens.

Addresses come from the environment (``TOOLFORMER_<SERVICE>_HOST``, ``_PORT``) and, for a tool service, else from the
packaged registry. The gateway learns where the started services are through ``TOOLFORMER_TOOL_<NAME>_URL``.
"""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cli.console import CommandError
from services.wiki_search.java import LuceneError, anserini_jar
from toolformer.names import did_you_mean, find_name
from toolformer.tools import Tool, ToolConfigError, ToolRegistry

SERVICES: Final = {
    "Calculator": "calculator",
    "Calendar": "calendar",
    "WikiSearch": "wiki_search",
    "QA": "question_answering",
    "MT": "translation",
}
"""The project's own tool services, by the tool's name in text; each is the folder ``services/<service>``."""

GATEWAY: Final = "gateway"
GATEWAY_PORT: Final = 8080
DEFAULT_URL: Final = f"http://127.0.0.1:{GATEWAY_PORT}"
"""Where the gateway is unless somebody moved it."""
_GRPC_PORT: Final = "TOOLFORMER_GATEWAY_GRPC_PORT"
_INSTEAD_OF_SEARCH: Final = (
    "TOOLFORMER_QUESTION_ANSWERING_INDEX", "TOOLFORMER_QUESTION_ANSWERING_SEARCH", "TOOLFORMER_TOOL_WIKISEARCH_URL",
)  # fmt: skip
"""Where question answering's passages come from, if not from a search beside it."""
MAX_THREADS: Final = 8
"""Threads for the gateway's matrix products; more than this gains nothing on a small model."""


@dataclass(frozen=True)
class Component:
    """One process of the system.

    ``name`` is the service's name, ``module`` what ``python -m`` runs, ``port_remedy`` how a user chooses another port,
    ``environment`` what is laid over ours. ``essential``: nothing can be completed without it. ``further_ports``: those
    that it listens on besides, with the remedy of each.
    """

    name: str
    module: str
    host: str
    port: int
    port_remedy: str
    environment: Mapping[str, str] = field(default_factory=dict)
    essential: bool = False
    further_ports: Mapping[int, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The base URL at which this machine reaches it."""
        return base_url(self.host, self.port)

    @property
    def url_variable(self) -> dict[str, str]:
        """Of a tool service: the variable that gives others its URL."""
        tool = next(tool for tool, service in SERVICES.items() if service == self.name)
        return {f"TOOLFORMER_TOOL_{tool.upper()}_URL": self.url}


def load_registry(environ: Mapping[str, str]) -> ToolRegistry:
    """The tools in use.

    Raises:
        CommandError: their configuration is wrong.
    """
    try:
        return ToolRegistry.load(environ=environ)
    except ToolConfigError as error:
        raise CommandError(str(error)) from error


def base_url(host: str, port: int) -> str:
    """The URL of a server that listens on ``host``; one that listens everywhere is reached over loopback."""
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def service_components(
    registry: ToolRegistry, chosen: Sequence[str] | None, environ: Mapping[str, str]
) -> list[Component]:
    """The tool services to start.

    Args:
        registry: the tools in use.
        chosen: names of services or tools, in any case (beside question answering, Wikipedia search, which the bundled
            reader reads from, is started too); ``None`` for every tool of the registry that is one of the
            project's own, that nobody moved to another address and that is not among ``left_out``.
        environ: the process's environment.

    Raises:
        CommandError: a name is not known, its service is not installed, or a variable's value cannot hold.
    """
    if chosen is None:
        missing = left_out(registry)
        tools = [tool for tool in registry if is_ours(tool) and tool.name not in missing]
    else:
        names = dict.fromkeys(_startable(name, registry) for name in chosen)
        if "QA" in names and "WikiSearch" in registry and not any(map(environ.get, _INSTEAD_OF_SEARCH)):
            names |= {"WikiSearch": None}
        tools = [registry.get(name) for name in names]
    components = [_service_component(tool, environ) for tool in tools]
    search = next((one for one in components if one.name == SERVICES["WikiSearch"]), None)
    if search is None:
        return components
    # Question answering without a retriever reads what Wikipedia search finds.
    return [
        replace(one, environment={**one.environment, **search.url_variable}) if one.name == SERVICES["QA"] else one
        for one in components
    ]


def left_out(registry: ToolRegistry) -> dict[str, str]:
    """Why each of the project's own tools that cannot be served from this installation cannot."""
    ours = [tool.name for tool in registry if is_ours(tool)]
    return {name: reason for name in ours if (reason := _why_not_installed(SERVICES[name]))}


def gateway_component(
    services: Sequence[Component],
    environ: Mapping[str, str],
    *,
    port: int | None = None,
    grpc_port: int | None = None,
    model: Path | None = None,
) -> Component:
    """The gateway, with the addresses of ``services``; ``port``, ``grpc_port`` and ``model`` win over the
    environment's. Without any gRPC port it serves HTTP alone.

    Raises:
        CommandError: a variable's value cannot hold.
    """
    host = environ.get("TOOLFORMER_GATEWAY_HOST", "127.0.0.1")
    port = _port_of("TOOLFORMER_GATEWAY_PORT", GATEWAY_PORT, host, environ) if port is None else free_port(port, host)
    variables = {"TOOLFORMER_GATEWAY_HOST": host, "TOOLFORMER_GATEWAY_PORT": str(port)}
    variables["TOOLFORMER_GATEWAY_MAX_REPEATS"] = environ.get("TOOLFORMER_GATEWAY_MAX_REPEATS", "4")
    if model is not None:
        variables["TOOLFORMER_MODEL"] = str(model.absolute())
    further = {}
    if grpc_port is not None or environ.get(_GRPC_PORT):
        rpc = _port_of(_GRPC_PORT, 0, host, environ) if grpc_port is None else free_port(grpc_port, host)
        variables[_GRPC_PORT] = str(rpc)
        further[rpc] = f"--grpc-port or {_GRPC_PORT}"
    for service in services:
        variables |= service.url_variable
    variables["OMP_NUM_THREADS"] = environ.get("OMP_NUM_THREADS", str(min(MAX_THREADS, usable_cpus())))
    remedy = "--port or TOOLFORMER_GATEWAY_PORT"
    return Component(GATEWAY, "inference_gateway", host, port, remedy, variables, essential=True, further_ports=further)


def tools_elsewhere(registry: ToolRegistry, components: Sequence[Component]) -> dict[str, str]:
    """The tools that the gateway calls and that are not among ``components``, with their addresses. The project's own
    at their usual place are left out on purpose, and not named.
    """
    started = {tool for tool, service in SERVICES.items() if any(one.name == service for one in components)}
    return {tool.name: tool.address for tool in registry if tool.name not in started and not is_ours(tool)}


def require_free_ports(components: Sequence[Component]) -> None:
    """Pass if every component can have its port.

    Raises:
        CommandError: a port is in use or not available, or two components want the same one; names all of them.
    """
    problems, owners = [], dict[tuple[str, int], str]()
    for one in components:
        for port, how in ((one.port, one.port_remedy), *one.further_ports.items()):
            remedy, owner = f"choose another port with {how}", owners.get((one.host, port))
            if owner == one.name:
                problems.append(f"{one.name} cannot serve HTTP and gRPC on one port, {port}: {remedy}")
            elif owner:
                problems.append(f"{one.name} and {owner} both want port {port}: {remedy}")
            elif reason := why_not_free(one.host, port):
                wanted = f"{one.name} needs port {port} on {one.host}, but {reason}"
                problems.append(f"{wanted}: stop what uses it, or {remedy}")
            owners.setdefault((one.host, port), one.name)
    if problems:
        raise CommandError("\n".join(problems))


def why_not_free(host: str, port: int) -> str | None:
    """Why nothing can listen on this port now, or ``None`` if it is free."""
    try:
        _listen(host, port)
    except OSError as error:
        return _reason(error)
    return None


def free_port(port: int, host: str) -> int:
    """``port``, or a free one for 0: the others need the number before the server takes it.

    Raises:
        CommandError: there is no such host on this machine.
    """
    try:
        return port or _listen(host, 0)
    except OSError as error:
        raise CommandError(f"no port can be had on {host}: {_reason(error)}") from error


def _listen(host: str, port: int) -> int:
    """The port's number, after listening there for a moment."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    with socket.create_server((host, port), family=family) as listener:
        return int(listener.getsockname()[1])


def _why_not_installed(service: str) -> str | None:
    try:
        if importlib.util.find_spec(f"services.{service}.__main__") is None:
            return f"there is no module services.{service}"
        if service == SERVICES["WikiSearch"]:
            anserini_jar()
    except (ModuleNotFoundError, LuceneError) as error:
        return str(error)
    return None


def usable_cpus() -> int:
    """CPUs this process may run on, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _packaged() -> ToolRegistry:
    """The tools as they come."""
    return ToolRegistry.load(files=[], environ={})


def is_ours(tool: Tool) -> bool:
    """Whether the tool is one of the project's own, at the address it comes with."""
    return tool.name in SERVICES and tool.name in _packaged() and _packaged().get(tool.name).url == tool.url


def tool_name(name: str) -> str:
    """The tool that a person means, who may call it by its service's name; others stay as they are."""
    return next((tool for tool, service in SERVICES.items() if find_name(name, [service])), name)


def tool_names(listed: str) -> list[str]:
    """The tools of a list with commas between them."""
    return [tool_name(name.strip()) for name in listed.split(",") if name.strip()]


def _startable(name: str, registry: ToolRegistry) -> str:
    known = [tool for tool in registry.names() if tool in SERVICES]
    if found := find_name(tool_name(name), known):
        return found
    hint = did_you_mean(name, known)
    raise CommandError(f"--tools: there is no service of a tool {name!r}; {hint}use some of: {', '.join(known)}")


def _service_component(tool: Tool, environ: Mapping[str, str]) -> Component:
    service = SERVICES[tool.name]
    if reason := _why_not_installed(service):
        raise CommandError(f"{service} cannot be started: {reason}; or leave it out with --tools")
    variable = f"TOOLFORMER_{service.upper()}"
    address = urlsplit((_packaged().get(tool.name) if tool.name in _packaged() else tool).url)
    host = environ.get(f"{variable}_HOST", address.hostname or "127.0.0.1")
    port = _port_of(f"{variable}_PORT", address.port or 80, host, environ)
    variables = {
        f"{variable}_HOST": host,
        f"{variable}_PORT": str(port),
        "OMP_NUM_THREADS": environ.get("OMP_NUM_THREADS", "1"),  # The gateway's products need the cores.
    }
    return Component(service, f"services.{service}", host, port, f"{variable}_PORT", variables)


def _port_of(variable: str, default: int, host: str, environ: Mapping[str, str]) -> int:
    value = environ.get(variable, "")
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and int(value) <= 65535):
        raise CommandError(f"{variable} must be a port from 0 to 65535, not {value!r}")
    return free_port(int(value), host)


def _reason(error: OSError) -> str:
    # What the resolver says has a negative number and a text of its own.
    return (os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)).lower()
