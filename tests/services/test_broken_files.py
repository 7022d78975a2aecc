"""A model or an index that is missing or broken: one line that names it and the remedy, and an end without success."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from services.base import CannotStart, ConfigurationError
from services.question_answering.app import build_app as question_answering
from services.question_answering.engine import QuestionAnsweringSettings
from services.translation.app import build_app as translation
from services.translation.engine import BUNDLED, TranslationSettings
from services.wiki_search.manifest import UnusableIndexError, check_files
from tests.services.real_services import INFOS, START_SECONDS, process_environment, tiny_question_answering

pytestmark = pytest.mark.timeout(400)

GONE, EMPTY, GARBAGE, SHORT, FLIPPED = "gone", "empty", "garbage", "short", "flipped"

DAMAGES: Final = {
    "question_answering": {
        "model": GONE, "model/atlas.json": GARBAGE, "model/reader/model.safetensors": GARBAGE,
        "model/retriever/model.safetensors": SHORT, "model/reader/tokenizer.json": GARBAGE,
        "model/retriever/config.json": GARBAGE, "index": GONE, "index/index.json": GARBAGE,
        "index/vectors.faiss": GARBAGE, "index/passages.jsonl": SHORT, "model/reader/model.safetensors ": FLIPPED,
        "index/vectors.faiss ": FLIPPED, "index/passages.jsonl ": FLIPPED, "index/passages.offsets.npy": GARBAGE,
    },
    "translation": {
        "model": GONE, "model/translation.json": GARBAGE, "model/model.bin": GARBAGE,
        "model/tokenizer.json": GARBAGE, "model/shared_vocabulary.json": GARBAGE, "model/lid.ftz": GONE,
        "model/lid.ftz ": GARBAGE, "model/lid.ftz  ": FLIPPED, "model/lid.ftz   ": SHORT,
        "model/lid.ftz    ": EMPTY, "model/model.bin ": FLIPPED,
    },
}  # fmt: skip
"""What happens to which file or folder of which service."""

CASES: Final = [(service, path.strip(), how) for service, paths in DAMAGES.items() for path, how in paths.items()]

AS_PROCESSES: Final = {
    "wiki_search": "index/lucene/segments_*",
    "question_answering": "model/reader/model.safetensors",
    "translation": "model/model.bin",
}
"""The file of each service that is filled with garbage for a whole process to start with."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with whole files for each service that has a model."""
    folders = {service: tmp_path_factory.mktemp(service) for service in DAMAGES}
    tiny_question_answering(folders["question_answering"])
    shutil.copytree(BUNDLED, folders["translation"] / "model")
    return folders


def damage(path: Path, how: str) -> None:
    """Spoil a file or a folder; its size stays the same where it is filled with garbage."""
    if how == GARBAGE:
        path.write_bytes(b"\xfe" * path.stat().st_size)
    elif how == FLIPPED:
        content = bytearray(path.read_bytes())
        content[-(len(content) // 4)] ^= 1
        path.write_bytes(content)
    elif how == SHORT:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif how == EMPTY:
        path.write_bytes(b"")
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


async def start(service: str, folder: Path) -> None:
    """Do in this process what the service does until it is ready, with the files in ``folder``."""
    model, index = folder / "model", folder / "index"
    if service == "translation":
        app = translation(TranslationSettings(model=model, language_id=model / "lid.ftz", device="cpu", threads=1))
    else:
        app = question_answering(QuestionAnsweringSettings(model=model, index=index))
    engine = app.state.runner.engine
    try:
        await engine.start()
    finally:
        await engine.stop()


@pytest.mark.parametrize(("service", "path", "how"), CASES)
async def test_it_is_named_with_a_remedy(
    service: str, path: str, how: str, whole: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    shutil.copytree(whole[service], folder)
    damage(folder / path, how)
    with pytest.raises((CannotStart, ConfigurationError)) as caught:
        await start(service, folder)
    message = str(caught.value)
    assert str(folder / path.split("/")[0]) in message
    assert re.search(r"\b(copy|make|name|remove|convert) ", message), message  # the remedy
    assert "\n" not in message


def test_a_flipped_bit_in_lucenes_biggest_file_is_found(wiki_index: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(wiki_index, index)
    check_files(index)
    biggest = max((index / "lucene").iterdir(), key=lambda file: file.stat().st_size)
    damage(biggest, FLIPPED)
    with pytest.raises(UnusableIndexError, match=f"{biggest.name} is damaged.*; remove .* and build it again"):
        check_files(index)


@pytest.mark.parametrize("service", DAMAGES)
async def test_whole_files_start(service: str, whole: dict[str, Path]) -> None:
    await start(service, whole[service])


@pytest.mark.parametrize("service", AS_PROCESSES)
def test_the_process_ends_with_one_line(service: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if service == "wiki_search":
        shutil.copytree(request.getfixturevalue("wiki_index"), tmp_path / "index")
    else:
        shutil.copytree(request.getfixturevalue("whole")[service], tmp_path, dirs_exist_ok=True)
    [spoilt] = tmp_path.glob(AS_PROCESSES[service])
    damage(spoilt, GARBAGE)
    files = {"MODEL": tmp_path / "model", "INDEX": tmp_path / "index"}
    settings = {f"TOOLFORMER_{service.upper()}_{name}": str(path) for name, path in files.items() if path.exists()}
    ended = subprocess.run(
        [sys.executable, "-m", f"services.{service}"],
        env=process_environment(INFOS[service], settings),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    [line] = [line for line in ended.stderr.splitlines() if " ERROR " in line]
    assert f"{service} cannot start: " in line
    assert str(spoilt.parent) in line
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].endswith("stopped")
