"""What is installed is what was chosen: packages by hash, images in versions that are named once."""

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from cli.roles import read_lock
from tests.deploy.code_facts import ROOT

LOCK = ROOT / "requirements.lock"
AUDIT = ROOT / ".ci" / "audit.py"
ADVISORIES_MENDED = (0, 11, 1)  # vLLM: GHSA-mrw7-hf4f-83pf, GHSA-pmqf-x6x8-p7qw, GHSA-69j4-grxj-j64p


def test_every_pin_has_hashes() -> None:
    pins = list(read_lock(ROOT))
    assert len({pin.name for pin in pins}) == len(pins) > 200
    for pin in pins:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", pin.entry), pin.name


def test_every_role_is_locked() -> None:
    roles = runpy.run_path(str(ROOT / ".ci" / "lock.py"))["read_roles"]()
    pins = {pin.name: pin for pin in read_lock(ROOT)}
    assert {role for pin in pins.values() for role in pin.roles} == roles.keys()
    for role, named in roles.items():
        for name in named:
            assert role in pins[re.split(r"[=\[]", name)[0]].roles, f"{name} of {role}: run make lock"


def test_every_install_asks_for_hashes() -> None:
    done = subprocess.run(["make", "-n", "-B", "setup"], cwd=ROOT, capture_output=True, text=True, check=True)
    installs = [line for line in done.stdout.splitlines() if re.search(r"pip\b.* install ", line)]
    without = [line for line in installs if "--require-hashes" not in line]
    assert (len(installs), len(without)) == (4, 2)
    assert without[0].endswith("--no-deps $(grep -o '^torch==[^ ]*' requirements.lock)")
    assert without[1].endswith("--no-deps --no-build-isolation --editable .")


@pytest.mark.parametrize("options", [["calculator"], ["gateway", "jobs"], ["--cuda", "gateway"]])
def test_a_role_gets_its_part_of_the_lock(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "cli/roles.py", *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = set(re.findall(r"^([a-z0-9-]+)==", done.stdout, re.MULTILINE))
    assert ("torch" in names) == any(name.startswith("nvidia-") for name in names) == ("--cuda" in options)
    assert ("grpcio" in names) == ("gateway" in options)
    assert ("transformers" in names) == ("gateway" in options)
    assert {"pydantic"} < names <= {pin.name for pin in read_lock(ROOT)}


def test_images_install_only_what_has_the_hash(tmp_path: Path) -> None:
    """The script of the images, in an environment of its own, with a wheel as it was and one that was replaced."""
    wheel = tmp_path / "honest-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("honest.py", "")
        file.writestr("honest-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: honest\nVersion: 1.0\n")
        file.writestr("honest-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("honest-1.0.dist-info/RECORD", "")
    shutil.copy(ROOT / "cli" / "roles.py", tmp_path)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    variables = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull,
    }  # fmt: skip

    def install(digest: str) -> subprocess.CompletedProcess[str]:
        pin = f"honest==1.0 --hash=sha256:{digest}" if digest else "honest==1.0"
        (tmp_path / "requirements.lock").write_text(f"{pin}\n    # for role\n")
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
    chosen = {"${ENGINE}", "${VLLM_IMAGE}"}  # of the gateway's
    for path in files:
        text = path.read_text()
        assert f"\nARG PYTHON_IMAGE={python.partition('@')[0]}\n" in text
        stages = set(re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE))
        assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) <= {"${PYTHON_IMAGE}", "scratch"} | stages | chosen
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
    assert f"ARG VLLM_IMAGE=vllm/vllm-openai:v{version}\n" in (ROOT / "inference_gateway/Dockerfile").read_text()
    assert f"\nvllm-cpu=={version}\n" in (ROOT / ".ci/vllm.txt").read_text(), "the one that the tests run"
    assert f"pip install vllm=={version} " in (ROOT / "docs/vllm.md").read_text()


def test_an_audit_that_learned_nothing_does_not_end_well() -> None:
    verdict = runpy.run_path(str(AUDIT))["verdict"]
    fine = {"name": "a", "version": "1", "vulns": []}
    known = {"name": "b", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
    skipped = {"name": "c", "skip_reason": "not found"}
    assert verdict([fine]) == (0, ["audit: no advisory known for 1 packages"])
    assert verdict([]) == (2, ["audit: NOT RUN: no packages in this file"])
    assert verdict([fine, skipped]) == (2, ["audit: NOT RUN for 1 of 2 packages, the first: not found"])
    status, lines = verdict([fine, known, skipped])
    assert (status, lines[0]) == (1, "b 1: CVE-1, mended in 2")
    assert "NOT RUN for 1 of 3" in lines[1]


def test_an_audit_without_its_tool_says_so() -> None:
    done = subprocess.run(
        [sys.executable, AUDIT, LOCK],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, f"audit: NOT RUN: {sys.executable}: No module named pip_audit\n")
