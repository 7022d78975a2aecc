"""Parts into a folder: the hub and plain addresses, kills, damage, and what a second run does."""

import asyncio
import contextlib
import io
import json
import random
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from cli.checks import check_models
from cli.console import CommandError
from cli.fetch.catalogue import Part, load_parts
from cli.fetch.command import run_fetch
from cli.fetch.fetching import fetch
from cli.fetch.part_manifest import read_manifest
from cli.fetch.transfer import Retries
from tests.cli.command import toolformer
from tests.cli.fetch.stand_in import StandIn, serve
from tests.support.processes import SECONDS

WEIGHTS = random.Random(2).randbytes(2_000_000)
SHARDS = {f"/index/shard.{number}.pt": bytes([number]) * 1_000 for number in range(3)}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandIn]:
    async with serve() as stand_in:
        stand_in.repositories["us/model"] = {"config.json": b"{}", "weights.bin": WEIGHTS, "merges.txt": b"a b\n"}
        stand_in.commits["us/model"] = COMMIT
        stand_in.files = {"/cdn/us/model/weights.bin": WEIGHTS, "/cdn/us/model/config.json": b"{}", **SHARDS}
        monkeypatch.setenv("HF_TOKEN", "secret")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        yield stand_in


@pytest.fixture
def parts_file(server: StandIn, tmp_path: Path) -> Path:
    common = 'purpose = "test"\nsize = 1\nsize_is = "published"\ndisk = 1\nmemory = ""\nlicence = "none"\nsource = ""\n'
    path = tmp_path / "parts.toml"
    path.write_text(
        f'[model]\nfolder = "m"\nnext = ["convert {{to}}/m"]\n{common}'
        '[[model.hub]]\nrepository = "us/model"\nfiles = ["config.json", "weights.bin"]\noptional = ["vocab.json"]\n'
        f'[index]\nfolder = "i"\nnext = []\n{common}'
        f'[[index.web]]\nurl = "{server.url}/index/shard.{{n}}.pt"\ncount = 3\nfolder = "shards"\n'
    )
    return path


@pytest.fixture
def parts(parts_file: Path) -> dict[str, Part]:
    return load_parts(parts_file)


async def bring(server: StandIn, to: Path, *parts: Part) -> str:
    """What is said while ``parts`` are fetched."""
    said = io.StringIO()
    console, retries = Console(file=said, width=200), Retries(3, 0.001)
    await asyncio.to_thread(lambda: fetch(parts, to, console, connections=2, endpoint=server.url, retries=retries))
    return said.getvalue()


def command(*names: str, **options: Any) -> int:
    """``toolformer fetch`` with these options; its exit status."""
    defaults: dict[str, Any] = {"to": None, "check": False, "digests": False, "as_json": False, "parts_file": None}
    return run_fetch(names, connections=1, environ={}, **defaults | options)


def checked(parts_file: Path, to: Path, capsys: pytest.CaptureFixture[str], *names: str, digests: bool = False) -> str:
    status = command(*names, to=to, check=True, digests=digests, parts_file=parts_file)
    return f"{capsys.readouterr().out}status {status}"


async def test_both_kinds_of_sources_and_a_second_run(server: StandIn, parts: dict[str, Part], tmp_path: Path) -> None:
    to = tmp_path / "data"
    log = await bring(server, to, *parts.values())
    assert f"convert {to}/m" in log, "the command that comes next"
    assert (to / "m" / "weights.bin").read_bytes() == WEIGHTS
    assert (to / "i" / "shards" / "shard.2.pt").read_bytes() == SHARDS["/index/shard.2.pt"]
    assert not list(to.rglob("*.partial"))
    manifest = read_manifest(to / "m")
    assert manifest is not None
    assert manifest.whole
    assert manifest.revisions == {"us/model@main": COMMIT}
    assert {name: file.verified for name, file in manifest.files.items()} == {
        "config.json": "published digest",
        "weights.bin": "published digest",
    }
    for seen in server.service.seen:
        if seen.path.startswith("/cdn/"):
            assert "authorization" not in seen.headers, "the token is the hub's alone"
        elif "/resolve/" in seen.path:
            assert COMMIT in seen.path
            assert seen.headers["authorization"] == "Bearer secret"
    server.service.seen.clear()
    log = await bring(server, to, *parts.values())
    assert log.count("nothing to download") == 2
    assert not server.service.seen


def came(file: Path) -> int:
    """Bytes of ``file`` so far."""
    return file.stat().st_size if file.exists() else 0


@pytest.mark.slow
async def test_a_killed_run_goes_on_with_the_commit_it_began_with(
    server: StandIn, parts_file: Path, parts: dict[str, Part], tmp_path: Path
) -> None:
    to = tmp_path / "data"
    server.held.add("/cdn/us/model/weights.bin")
    arguments = ("fetch", "model", "--to", str(to), "--parts", str(parts_file))
    async with toolformer(*arguments, env={"HF_ENDPOINT": server.url, "HF_TOKEN": "secret"}) as killed:
        partial = to / "m" / "weights.bin.partial"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                while killed.process.returncode is None and came(partial) < len(WEIGHTS) // 4:  # noqa: ASYNC110 - a file sends no event
                    await asyncio.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            killed.process.kill()
        await killed.ended()
    assert came(partial) >= len(WEIGHTS) // 4, f"{killed.out}{killed.log}{server.service.seen}"
    assert not (to / "m" / "weights.bin").exists()
    have = (to / "m" / "weights.bin.partial").stat().st_size
    server.held.clear()
    server.commits["us/model"] = COMMIT[::-1]
    server.service.seen.clear()
    await bring(server, to, parts["model"])
    assert (to / "m" / "weights.bin").read_bytes() == WEIGHTS
    assert (
        next(seen.path for seen in server.service.seen if seen.path.startswith("/api/")).split("?")[0].endswith(COMMIT)
    )
    assert server.gets("/cdn/us/model/weights.bin")[0]["range"] == f"bytes={have}-"


async def test_damage_is_found_and_mended(
    server: StandIn, parts_file: Path, parts: dict[str, Part], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "data"
    await bring(server, to, parts["index"])
    assert "absent      model" in checked(parts_file, to, capsys)
    assert checked(parts_file, to, capsys, "index").endswith("status 0")
    assert f"missing     model: not in {to}/m; toolformer fetch model" in checked(parts_file, to, capsys, "model")
    shards = to / "i" / "shards"
    (shards / "shard.0.pt").unlink()
    (shards / "shard.1.pt").write_bytes(b"\1" * 999)
    (shards / "shard.2.pt").write_bytes(b"\7" * 1_000)
    output = checked(parts_file, to, capsys)
    assert "missing     index/shards/shard.0.pt: missing; toolformer fetch index" in output
    assert "damaged     index/shards/shard.1.pt: 999 bytes instead of 1,000" in output
    assert "shard.2" not in output, "a size does not show it"
    assert output.endswith("status 1")
    assert "damaged     index/shards/shard.2.pt: its SHA-256" in checked(parts_file, to, capsys, digests=True)
    (shards / "shard.2.pt").unlink()
    await bring(server, to, parts["index"])
    assert checked(parts_file, to, capsys, digests=True).endswith("status 0")


async def test_the_doctor_sees_a_torn_download(server: StandIn, parts: dict[str, Part], tmp_path: Path) -> None:
    for name, content in {"config.json": b'{"model_type": "gptj"}', "tokenizer.json": b"{}"}.items():
        server.files[f"/cdn/us/model/{name}"] = server.repositories["us/model"][name] = content
    await bring(server, tmp_path, parts["model"])
    folder = tmp_path / "m"
    for name in ("tokenizer.json", "pytorch_model.bin"):
        (folder / name).write_bytes(b"{}")
    environ = {"TOOLFORMER_MODEL": str(folder)}
    assert [*check_models(environ, tmp_path)][-1].status == "ok"
    (folder / "weights.bin").write_bytes(WEIGHTS[:-1])
    finding = [*check_models(environ, tmp_path)][-1]
    assert finding.status == "problem"
    assert "weights.bin: 1,999,999 bytes instead of 2,000,000" in finding.detail


async def test_what_somebody_put_there_is_verified_and_kept(
    server: StandIn, parts: dict[str, Part], tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "m"
    folder.mkdir(parents=True)
    (folder / "weights.bin").write_bytes(WEIGHTS)
    (folder / "config.json").write_bytes(b"[]")
    log = await bring(server, tmp_path / "data", parts["model"])
    assert "config.json: its git-blob is" in log
    assert (folder / "config.json").read_bytes() == b"{}"
    assert not server.gets("/cdn/us/model/weights.bin")


async def test_a_small_disk_is_refused_before_anything_comes(
    server: StandIn, parts: dict[str, Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    with pytest.raises(CommandError, match=r"has 1\.0 MB free, and model, index still need 2\.0 MB: make room"):
        await bring(server, tmp_path, *parts.values())
    assert not [seen.path for seen in server.service.seen if seen.method == "GET" and "/api/" not in seen.path]


async def test_what_a_server_does_not_have(server: StandIn, parts: dict[str, Part], tmp_path: Path) -> None:
    del server.files["/index/shard.1.pt"]
    with pytest.raises(CommandError, match=r"index/shard\.1\.pt: status 404; it has moved"):
        await bring(server, tmp_path, parts["index"])
    del server.repositories["us/model"]["weights.bin"]
    with pytest.raises(CommandError, match=r"us/model@main holds no weights\.bin"):
        await bring(server, tmp_path, parts["model"])
    del server.repositories["us/model"]
    with pytest.raises(CommandError, match="there is no us/model on the hub, or it is private"):
        await bring(server, tmp_path, parts["model"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('folder = "../elsewhere"', r"\[x\] folder: .*leads out of the folder"),
        ('sha = "1"', r"\[x\] sha: Extra inputs"),
        ("size = -1", r"\[x\] size: "),
        ("size =", "is not TOML"),
    ],
)
def test_a_wrong_file_of_parts_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(f"[x]\n{line}\n")
    with pytest.raises(CommandError, match=message):
        load_parts(path)


def test_the_bundled_parts(capsys: pytest.CaptureFixture[str]) -> None:
    """Every part is complete, and what is to be done next names modules and options that there are."""
    parts = load_parts()
    assert {"gpt-j", "nllb", "language-id", "kilt", "atlas-large", "atlas-xxl"} <= parts.keys()
    assert len(parts["atlas-xxl"].required()) == 1 + 2 * 128 + 2
    assert {"config.json", "pytorch_model.bin", "tokenizer.json"} <= parts["gpt-j"].required()
    options = {
        "services.translation.convert": "services/translation/convert.py",
        "services.question_answering.convert": "services/question_answering/convert.py",
        "toolformer index wiki": "services/wiki_search/index.py",
        "toolformer jobs run": "training_jobs/model_choice.py",
        "toolformer jobs corpus": "training_jobs/corpora/web/__main__.py",
    }
    root = Path(__file__).parents[3]
    for part in parts.values():
        for line in part.next_commands("/data"):
            if line.startswith("cp "):
                continue
            source = (root / next(file for name, file in options.items() if name in line)).read_text()
            flags = [word for word in line.split() if word.startswith("--")]
            assert flags
            assert not [flag for flag in flags if f'"{flag}"' not in source], line
    assert command(as_json=True) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [part["name"] for part in listed["parts"]] == list(parts)
    assert listed["parts"][0]["from"] == ["EleutherAI/gpt-j-6b@float16"]


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["gpt-j"], {"check": True}, "name the folder in --to"),
        ([], {"to": Path("x")}, "name what to fetch"),
        (["gpt-k"], {"as_json": True}, "there is no part 'gpt-k'; did you mean 'gpt-j'"),
        (["gpt-j"], {"to": Path("x"), "as_json": True}, "--json is for the list"),
    ],
)
def test_options_that_do_not_fit(names: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        command(*names, **options)
