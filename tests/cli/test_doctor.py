"""``toolformer doctor`` on this machine, and on machines made ill."""

import asyncio
import hashlib
import json
import re
import socket
from pathlib import Path
from typing import Literal

import pytest

from cli import checks
from cli.checkout import CHECKOUT
from cli.checks import CHECKS, Check, Finding
from cli.console import CommandError
from cli.doctor import diagnose, show_findings
from services.wiki_search.manifest import MANIFEST_NAME, Manifest, Recipe
from tests.cli.command import FREE_PORTS, run, toolformer
from tests.support.redis_server import needs_redis, redis_server
from tests.toolformer.tool_service import Seen, response, serve
from toolformer.model_files.digests import record


def find(name: str, environ: dict[str, str], checkout: Path = CHECKOUT) -> list[Finding]:
    return list(CHECKS[name](environ, checkout))


def matches(pattern: str, name: str, environ: dict[str, str] | None = None, checkout: Path = CHECKOUT) -> None:
    """The check has one finding, and its status and detail begin as ``pattern`` says."""
    [finding] = find(name, environ or {}, checkout)
    assert re.match(pattern, f"{finding.status}: {finding.detail}"), finding


@pytest.mark.slow
async def test_json_holds_every_check_and_agrees_with_the_status() -> None:
    status, out, log = await run("doctor", "--json")
    findings = json.loads(out)
    assert log == ""
    assert set(findings) == {"ok", "checks"}
    for finding in findings["checks"]:
        assert finding["status"] in ("ok", "warning", "problem")
        assert finding["detail"]
        assert bool(finding["remedy"]) == (finding["status"] != "ok")
    assert {"python", "java", "torch", "tools", "disk", "memory"} <= {finding["name"] for finding in findings["checks"]}
    assert findings["ok"] == all(finding["status"] != "problem" for finding in findings["checks"])
    assert status == (0 if findings["ok"] else 1)


def test_lines_for_people_are_the_same_findings(capsys: pytest.CaptureFixture[str]) -> None:
    findings = [Finding("java", "ok", "21.0.8"), Finding("models", "problem", "none\x1b[2J", "get one")]
    show_findings(findings, as_json=False)
    assert capsys.readouterr().out == (
        "ok       java    21.0.8\nproblem  models  none[2J; get one\nMend what these lines name: models\n"
    )


@pytest.mark.parametrize(
    ("status", "last"), [("ok", "All is well."), ("warning", "It can run; look at what these lines name: disk")]
)
def test_the_last_line_says_whether_all_is_well(
    status: Literal["ok", "warning"], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_findings([Finding("disk", status, "1 GB free", "")], as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_what_nobody_needs_here_is_no_warning(tmp_path: Path) -> None:
    (tmp_path / "requirements.lock").write_text("no-such-package==1.0\n    # for evaluation-harness\n")
    [optional] = find("packages", {}, tmp_path)
    assert (optional.status, optional.name) == ("ok", "packages: optional")
    assert optional.detail.endswith(": evaluation-harness")


def test_an_own_tool_that_is_down_is_not_ok() -> None:
    closed = {"TOOLFORMER_TOOL_QA_URL": "http://127.0.0.1:9"}
    found = {finding.name: finding for finding in find("tools", closed)}
    assert found["tool QA"].status == "warning"
    assert found["tool QA"].detail.startswith("is down: ")
    assert found["tool QA"].remedy
    assert "QA" not in found["tools"].detail.split(", ")


def test_a_check_that_fails_itself_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[Finding]:
        raise OSError("no such thing")

    healthy: Check = CHECKS["tools"]
    monkeypatch.setattr("cli.doctor.CHECKS", {"broken": broken, "tools": healthy})
    first, second = diagnose({})
    assert (first.name, first.status, first.detail) == ("broken", "problem", "OSError: no such thing")
    assert second.status == "ok"


def test_pins_are_compared_with_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "requirements.lock").write_text(
        "httpx==0.0.1 \\\n    --hash=sha256:0\n    # via x\n    # for x\n"
        "no-such-package==1.0\n    # for y\ntyper==0.1 ; python_version > '3'\n    # for w, x\n"
    )
    first, other, missing = find("packages", {}, tmp_path)
    assert first.status == other.status == missing.status == "warning"
    assert first.name == "packages: w"
    assert "httpx" not in first.detail
    assert "httpx" in other.detail
    assert "instead of 0.0.1" in other.detail
    assert "typer" in other.detail
    assert missing.detail == "missing: no-such-package"
    assert missing.remedy == "python cli/roles.py y | pip install --no-deps -r /dev/stdin"
    matches("warning: ", "packages", {}, tmp_path / "elsewhere")


def test_the_cache_is_in_memory_or_off_or_wrongly_set() -> None:
    matches(r"ok: in memory, at most 4,096 results for 3600 s$", "cache")
    matches("ok: no results", "cache", {"TOOLFORMER_CACHE_SIZE": "0"})
    matches("problem: .*TOOLFORMER_CACHE_URL", "cache", {"TOOLFORMER_CACHE_URL": "http://localhost"})


@needs_redis
async def test_the_cache_in_redis_answers_or_does_not() -> None:
    async with redis_server() as server:
        environ = {"TOOLFORMER_CACHE_URL": server.url}
        [up] = await asyncio.to_thread(find, "cache", environ)
        await server.kill()
        [down] = await asyncio.to_thread(find, "cache", environ)
    assert up.status == "ok"
    assert f"redis://127.0.0.1:{server.port}/0 answers in" in up.detail
    assert (down.status, down.remedy.startswith("start Redis")) == ("problem", True)
    assert server.password not in up.detail + down.detail


def test_ports_are_free_or_taken_by_somebody_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        findings = find("ports", {**FREE_PORTS, "TOOLFORMER_CALENDAR_PORT": str(port)})
    by_name = {finding.name: finding for finding in findings}
    taken = by_name.pop(f"port {port}")
    assert taken.status == "problem"
    assert "calendar on 127.0.0.1" in taken.detail
    assert "TOOLFORMER_CALENDAR_PORT" in taken.remedy
    assert by_name
    assert {finding.status for finding in by_name.values()} == {"ok"}


async def test_ports_show_who_of_ours_answers() -> None:
    async with toolformer("up", "--tools", "calculator", "--no-gateway") as up:
        port = (await up.line_with(r"listening on http://127\.0\.0\.1:(\d+)"))[1]
        await up.line_with("^ready: ", "out")
        findings = find("ports", {**FREE_PORTS, "TOOLFORMER_CALCULATOR_PORT": port})
        [answering] = [finding for finding in findings if finding.name == f"port {port}"]
        assert (answering.status, answering.detail) == ("ok", "calculator on 127.0.0.1: runs and is ready")
        up.process.terminate()
        assert await up.ended() == 0


def test_models_are_found_whole_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "BUNDLED_MODELS", tmp_path)
    matches("problem: ", "models")
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gptj"}')
    matches(r"problem: .*tokenizer\.json", "models")
    (folder / "tokenizer.json").write_text("{}")
    matches(r"problem: .*model\.safetensors", "models")
    (folder / "model.safetensors").write_bytes(b"0" * 2_000_000)
    whole, named = find("models", {"TOOLFORMER_MODEL": str(tmp_path / "other")})
    assert (whole.status, whole.detail) == ("ok", "gptj, 2.0 MB, no digests to compare with")
    assert (named.name, named.status) == ("model other", "problem")


def test_a_model_of_two_is_whole_or_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "BUNDLED_MODELS", tmp_path)
    weights = tmp_path / "atlas" / "reader" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"0" * 1_000_000)
    entry = {"bytes": 1_000_000, "sha256": hashlib.sha256(b"0" * 1_000_000).hexdigest()}
    (tmp_path / "atlas" / "atlas.json").write_text(json.dumps({"files": {"reader/model.safetensors": entry}}))
    matches(r"ok: question answering, 1\.0 MB, 1 digests right$", "models")
    weights.write_bytes(b"0" * 999_999 + b"1")
    matches(r"problem: .*reader/model\.safetensors is damaged", "models")
    weights.write_bytes(b"0")
    matches(r"problem: .*reader/model\.safetensors", "models")
    weights.unlink()
    matches("problem: ", "models")


def test_the_index_is_there_or_will_be_built_or_is_broken(tmp_path: Path) -> None:
    environ = {"TOOLFORMER_DATA_DIR": str(tmp_path)}
    matches("ok: not indexed yet", "encyclopedia", environ)
    folder = tmp_path / "wiki_search" / "index"
    folder.mkdir(parents=True)
    recipe = Recipe(source="bundled", source_digest="0", passage_words=100, pyserini="1")
    Manifest(recipe=recipe, pages=12345, passages=20000, build_seconds=1).write(folder)
    matches(f"ok: 12,345 pages indexed in {folder}, no digests to compare with$", "encyclopedia", environ)
    (folder / "segments").write_bytes(b"as written")
    record(folder)
    matches("ok: .*, 2 digests right$", "encyclopedia", environ)
    (folder / "segments").write_bytes(b"as Written")
    matches("problem: .*segments is damaged", "encyclopedia", environ)
    (folder / MANIFEST_NAME).write_text('{"pa')
    matches("problem: ", "encyclopedia", environ)
    matches("problem: ", "encyclopedia", {"TOOLFORMER_WIKI_SEARCH_INDEX": str(tmp_path / "mine")})


def test_passages_may_be_another_services(tmp_path: Path) -> None:
    matches("ok: found by Wikipedia search", "passages", {})
    environ = {"TOOLFORMER_QUESTION_ANSWERING_INDEX": str(tmp_path)}
    matches("problem: .* is not a finished index", "passages", environ)
    environ["TOOLFORMER_QUESTION_ANSWERING_SEARCH"] = "http://127.0.0.1:8103"
    matches("ok: found by http://127.0.0.1:8103", "passages", environ)


def test_the_registry_is_checked_and_ports_do_not_repeat_it(tmp_path: Path) -> None:
    environ = {"TOOLFORMER_TOOLS": str(tmp_path / "tools.toml")}
    matches(r"problem: .*tools\.toml", "tools", environ)
    assert find("ports", environ) == []


def test_a_wrong_port_is_an_error_of_the_check() -> None:
    with pytest.raises(CommandError, match="TOOLFORMER_GATEWAY_PORT"):
        find("ports", {**FREE_PORTS, "TOOLFORMER_GATEWAY_PORT": "eighty"})


def test_every_bundled_model_is_found_whole() -> None:
    findings = {finding.name: finding for finding in find("models", {})}
    assert len(findings) >= 2
    assert {finding.status for finding in findings.values()} == {"ok"}
    assert findings["model gptj-tools"].detail.startswith("gptj, ")


async def test_the_model_server_is_asked_where_there_is_one(tmp_path: Path) -> None:
    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        known = seen.headers.get("authorization") == "Bearer sesame"
        writer.write(response((200 if known else 401) if seen.path == "/v1/models" else 404, b""))

    async def backend(kind: str = "", url: str = "", key: str = "") -> tuple[str, str]:
        variables = {"": kind, "_URL": url, "_API_KEY_FILE": key}
        environ = {f"TOOLFORMER_GATEWAY_BACKEND{name}": value for name, value in variables.items() if value}
        [finding] = await asyncio.to_thread(find, "backend", environ)
        return finding.status, finding.detail

    (tmp_path / "key").write_text("sesame\n")
    key = str(tmp_path / "key")
    async with serve(behave) as server:
        url = server.url
        assert await backend() == ("ok", "the gateway's own engine")
        assert (await backend("openai", f"{url}/v1", key))[0] == "ok"
        assert await backend("openai", url) == ("problem", f"{url}/v1/models answers 401")
        assert await backend("tgi", url) == ("problem", f"{url}/info answers 404")
        assert await backend("openai") == ("problem", "openai, but no address is set")
        assert await backend("vllm") == ("problem", "there is no backend 'vllm'")
        assert "cannot be read" in (await backend("openai", url, f"{key}s"))[1]
    assert "cannot be reached" in (await backend("openai", url))[1]
    environ = {"TOOLFORMER_GATEWAY_BACKEND": "openai", "TOOLFORMER_MODEL": str(tmp_path)}
    assert find("models", environ)[0].detail.endswith("holds no tokenizer.json and no config.json")
