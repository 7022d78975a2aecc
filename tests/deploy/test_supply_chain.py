"""What is installed is what was chosen: packages by hash, images in versions that are named once."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from requirements.audit import verdict
from tests.deploy.code_facts import ROOT

FILES = sorted((ROOT / "requirements").glob("*.txt"))
WITHOUT_HASHES = {"torch-cpu", "torch-apart"}  # each says why
ADVISORIES_MENDED = (0, 11, 1)  # vLLM: GHSA-mrw7-hf4f-83pf, GHSA-pmqf-x6x8-p7qw, GHSA-69j4-grxj-j64p


def pins(file: Path) -> dict[str, str]:
    """Name and version of each pin of a file, its hashes looked at on the way."""
    found = {}
    for entry in re.split(r"\n(?=\S)", file.read_text()):
        if pin := re.match(r"([a-z0-9-]+)==(\S+)", entry):
            found[pin[1]] = pin[2]
            if file.stem not in WITHOUT_HASHES:
                assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), f"{file.name}: {pin[0]} has no hash"
    return found


def test_every_pin_has_hashes_and_one_version() -> None:
    versions: dict[str, set[str]] = {}
    for file in FILES:
        for name, version in pins(file).items():
            if file.stem != "maintenance":  # an environment of its own
                versions.setdefault(name, set()).add(version)
    assert len(versions) > 150
    assert not {name: found for name, found in versions.items() if len(found) > 1}
    assert len(pins(ROOT / "requirements/torch-cpu.txt")) == 1


def test_every_role_is_locked_and_every_install_asks_for_hashes() -> None:
    roles = {file.stem for file in (ROOT / "requirements").glob("*.in")} - {"http"}
    assert roles == {file.stem for file in FILES} - WITHOUT_HASHES - {"ctranslate2-cpu"}
    done = subprocess.run(["make", "-n", "-B", "setup"], cwd=ROOT, capture_output=True, text=True, check=True)
    installs = [line for line in done.stdout.splitlines() if re.search(r"pip install.* -r ", line)]
    assert len(installs) == 4
    for line in installs:
        assert "--require-hashes" in line or "torch-cpu.txt" in line, line


def test_images_install_only_what_has_the_hash(tmp_path: Path) -> None:
    """The script of the images, in an environment of its own, with a wheel as it was and one that was replaced."""
    wheel = tmp_path / "honest-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("honest.py", "")
        file.writestr("honest-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: honest\nVersion: 1.0\n")
        file.writestr("honest-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("honest-1.0.dist-info/RECORD", "")
    (tmp_path / "requirements").mkdir()
    pin = tmp_path / "requirements" / "role.txt"
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    variables = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull,
    }  # fmt: skip

    def install(digest: str) -> subprocess.CompletedProcess[str]:
        pin.write_text(f"honest==1.0 --hash=sha256:{digest}\n" if digest else "honest==1.0\n")
        command = [str(ROOT / "docker/image/install"), "role"]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    replaced, without = install("0" * 64), install("")
    assert "DO NOT MATCH THE HASHES" in replaced.stderr
    assert "Hashes are required" in without.stderr
    assert 0 not in {replaced.returncode, without.returncode}
    good = install(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert good.returncode == 0, good.stderr


def test_base_images_have_one_place_for_a_digest() -> None:
    [python] = re.findall(r"^PYTHON_IMAGE=(\S+)$", (ROOT / "docker/images.env").read_text(), re.MULTILINE)
    files = [path for path in ROOT.glob("*/**/Dockerfile") if not {"tests", ".venv"} & set(path.parts)]
    assert len(files) == 7
    for path in files:
        text = path.read_text()
        assert f"\nARG PYTHON_IMAGE={python.partition('@')[0]}\n" in text
        stages = set(re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE))
        assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) <= {"${PYTHON_IMAGE}", "scratch"} | stages
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    assert all("PYTHON_IMAGE" in service["build"]["args"] for service in services if "build" in service)


def test_pin_leaves_the_file_alone_where_no_registry_answers(tmp_path: Path) -> None:
    for name in ("pin", "images.env"):
        shutil.copy(ROOT / "docker" / name, tmp_path / name)
    dead = tmp_path / "dead.sock"
    done = subprocess.run(
        [tmp_path / "pin"], env=os.environ | {"DOCKER_HOST": f"unix://{dead}", "DOCKER_CONFIG": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode == 0:
        pytest.skip("a registry answered")
    assert "no digest for python:3.11-slim" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".json") == ["images.env", "pin"]
    assert (tmp_path / "images.env").read_bytes() == (ROOT / "docker/images.env").read_bytes()


def test_kubernetes_has_the_versions_of_compose_and_vllm_is_past_its_advisories() -> None:
    ours = (ROOT / "docker/images.env").read_text()
    found = re.findall(r"name: (redis|vllm/vllm-openai), newTag: (\S+)", "".join(
        path.read_text() for path in (ROOT / "k8s").rglob("kustomization.yaml")
    ).replace(" }", " "))  # fmt: skip
    assert {name for name, _ in found} == {"redis", "vllm/vllm-openai"}
    for name, tag in found:
        assert f"={name}:{tag}" in ours
    [version] = re.findall(r"vllm-openai:v([\d.]+)", ours)
    assert tuple(map(int, version.split("."))) >= ADVISORIES_MENDED


def test_an_audit_that_learned_nothing_does_not_end_well() -> None:
    fine = {"name": "a", "version": "1", "vulns": []}
    known = {"name": "b", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
    skipped = {"name": "c", "skip_reason": "not found"}
    assert verdict([fine]) == (0, ["audit: no advisory known for 1 packages"])
    assert verdict([]) == (2, ["audit: NOT RUN: no packages in these files"])
    assert verdict([fine, skipped]) == (2, ["audit: NOT RUN for 1 of 2 packages, the first: not found"])
    status, lines = verdict([fine, known, skipped])
    assert (status, lines[0]) == (1, "b 1: CVE-1, mended in 2")
    assert "NOT RUN for 1 of 3" in lines[1]


def test_an_audit_without_its_tool_says_so() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "requirements/audit.py", ROOT / "requirements/demo-world.txt"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, f"audit: NOT RUN: {sys.executable}: No module named pip_audit\n")
