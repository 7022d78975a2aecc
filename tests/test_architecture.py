"""The arrows between rooms (docs/architecture.md) and the house's other promises that a script can check."""

from __future__ import annotations

import ast
import graphlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {
    "toolformer": set(),
    "http_api": set(),
    "demo_world": set(),
    "language_model": {"toolformer"},
    "services": {"toolformer", "http_api"},
    "inference_gateway": {"toolformer", "http_api", "language_model"},
    "training_jobs": {"toolformer", "language_model", "demo_world"},
    "cli": {"toolformer", "http_api", "language_model", "services", "inference_gateway", "training_jobs", "demo_world"},
}
"""Which rooms a room may import besides itself."""
DEMO_DATA = {"services/wiki_search", "services/translation", "services/question_answering"}
"""Services whose bundled data is made of the demo world."""
WITH_TORCH = ("services/question_answering/", "services/translation/train", "services/translation/convert.py")
"""Where a service needs torch: Atlas runs on it; translation is trained and converted with it, and served without."""


def imports(path: Path) -> Iterator[str]:
    """Full names that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_run_one_way(room: str) -> None:
    assert files(room)
    for path in files(room):
        allowed = ROOMS[room] | {room}
        if any(path.is_relative_to(ROOT / folder) for folder in DEMO_DATA):
            allowed = allowed | {"demo_world"}
        used = {name.split(".")[0] for name in imports(path)} & ROOMS.keys()
        assert used <= allowed, f"{path.relative_to(ROOT)} imports {sorted(used - allowed)}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and for types alone count too: they hide a circle."""
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for room in ROOMS for path in files(room)}
    modules = {name.removesuffix(".__init__"): path for name, path in named.items()}
    arrows: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            for alias in node.names
        }
        nearest = {one if one in modules else one.rpartition(".")[0] for one in targets}
        arrows[name] = nearest & modules.keys() - {name}
    graphlib.TopologicalSorter(arrows).prepare()  # CycleError names the modules


def test_a_service_never_imports_another() -> None:
    for path in files("services"):
        own = path.relative_to(ROOT / "services").parts[0]
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "services" and len(parts) > 1:
                assert parts[1] in {"base", own}, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("room", ["toolformer", "services", "http_api", "demo_world"])
def test_rooms_without_a_model_import_no_torch(room: str) -> None:
    for path in files(room):
        if not str(path.relative_to(ROOT)).startswith(WITH_TORCH):
            assert not {name.split(".")[0] for name in imports(path)} & {"torch", "transformers"}, path


def test_the_shared_vocabulary_needs_no_web_framework() -> None:
    for path in files("toolformer"):
        assert not {name.split(".")[0] for name in imports(path)} & {"fastapi", "starlette", "uvicorn"}, path


def test_files_can_be_read_in_one_sitting() -> None:
    for room in [*ROOMS, "tests", "benchmarks"]:
        for path in files(room):
            assert len(path.read_text().splitlines()) <= 600, path


def test_no_tracked_file_is_large_and_none_names_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            assert path.stat().st_size <= 20_000_000, name
