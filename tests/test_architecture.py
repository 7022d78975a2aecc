"""What the import graph promises (docs/architecture.md), and the other promises that a script can check."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
ROOMS = (
    "toolformer", "demo_world", "language_model", "services", "inference_gateway", "training_jobs", "cli",
)  # fmt: skip
Graph = Mapping[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    """Every module of the rooms, by its full name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if "_pb2" not in path.name
    }


def imports(path: Path) -> Iterator[str]:
    """Full names that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def graph() -> Graph:
    """Which modules each module imports."""
    known = modules()

    def module_of(name: str) -> str | None:
        while name and name not in known:
            name = name.rpartition(".")[0]
        return name or None

    return {
        name: {found for one in imports(path) if (found := module_of(one))} - {name} for name, path in known.items()
    }


def folder(module: str) -> str:
    return module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]


def folders() -> Graph:
    """Which folders each folder imports; a folder and one inside it are one."""
    found: dict[str, set[str]] = {}
    for module, imported in graph().items():
        own = folder(module)
        others = {folder(one) for one in imported}
        found.setdefault(own, set()).update(
            one for one in others if not f"{one}.".startswith(f"{own}.") and not f"{own}.".startswith(f"{one}.")
        )
    return found


@pytest.mark.parametrize("arrows", [graph, folders])
def test_no_import_runs_in_a_circle(arrows: object) -> None:
    assert callable(arrows)
    try:
        TopologicalSorter(arrows()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def between_rooms() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, imported in graph().items():
        found[module.split(".")[0]] |= {one.split(".")[0] for one in imported} - {module.split(".")[0]}
    return found


def test_the_page_shows_the_arrows_that_exist() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|.*\|([^|]*)\|$", PAGE.read_text(), re.MULTILINE)
    assert {room: set(re.findall(r"`(\w+)`", known)) for room, known in rows} == between_rooms()


def test_a_service_never_imports_another() -> None:
    for module, imported in graph().items():
        for one in imported:
            if module.startswith("services.") and one.startswith("services."):
                shared = {"base", "pages", "sentences", "bundled_pages", module.split(".")[1]}
                assert one.split(".")[1] in shared, f"{module} imports {one}"


WITH_TORCH = ("services.question_answering.", "services.translation.train", "services.translation.convert")
"""Where a service needs torch: Atlas runs on it; translation is trained and converted with it, and served without."""


def outside(names: Iterable[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_what_needs_no_model_imports_no_torch() -> None:
    for module, path in modules().items():
        if module.split(".")[0] in {"toolformer", "services", "demo_world"}:
            if not module.startswith(WITH_TORCH):
                assert not outside(imports(path)) & {"torch", "transformers"}, path
            if module.startswith("toolformer.") and not module.startswith("toolformer.http_api"):
                assert not outside(imports(path)) & {"fastapi", "starlette", "uvicorn"}, path
                assert not any(one.startswith("toolformer.http_api") for one in imports(path)), path


def test_files_can_be_read_in_one_sitting() -> None:
    for path in [*modules().values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        assert len(path.read_text().splitlines()) <= 600, path


def test_the_package_takes_along_what_its_code_reads() -> None:
    taken = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    others = {".py", ".pyc", ".so", ".md"}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.*"):
            if path.is_file() and path.suffix not in others:
                assert any(path.match(pattern) for pattern in taken), path


def test_no_tracked_file_is_large() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        assert not (ROOT / name).is_file() or (ROOT / name).stat().st_size <= 48_000_000, name


ROLES = {
    "__init__",
    "__main__",
    "app",
    "command",
    "convert",
    "engine",
    "evaluate",
    "job",
    "page",
    "passages",
    "sentences",
    "train",
}
"""File names that stand for one role wherever they are: a service's engine, a stage's job."""


@pytest.mark.parametrize("room", ROOMS)
def test_a_name_means_one_thing_in_a_room(room: str) -> None:
    own = {name: path for name, path in modules().items() if name.split(".")[0] == room}
    files = Counter(path.stem for path in own.values() if path.stem not in ROLES)
    classes = Counter(
        node.name
        for path in own.values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, times in (files + classes).items() if times > 1]
