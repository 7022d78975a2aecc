"""Files of models: damage that leaves their length is found, and absurd numbers are refused at once, in one line."""

import json
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from language_model import checkpoint
from language_model.config import CheckpointError
from language_model.other_models.from_transformers import load_other
from services.question_answering.bert import BertConfig
from services.question_answering.t5 import T5Config
from services.translation.engine import BUNDLED as TRANSLATION
from tests.services.test_question_answering.tiny import bert_config, t5_config
from toolformer.model_files.digests import SUMS, DamagedError, check, forget, record
from toolformer.model_files.fasttext import why_unusable
from toolformer.model_files.home import BUNDLED_MODELS
from training_jobs.corpora.web.language_id import FastTextLanguages
from training_jobs.errors import StageError
from training_jobs.runner.chunks import plan
from training_jobs.runner.parts import Parts

MODELS = Path(__file__).parents[2] / "models"
ABSURD: dict[str, Any] = {
    "n_layer": 10**9, "n_head": 0, "n_embd": "x", "vocab_size": -1, "n_positions": 10**12, "rotary_dim": 2.5,
    "n_inner": [], "layer_norm_epsilon": "small",
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    shutil.copytree(MODELS / "gptj-tools", tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, **fields: Any) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | fields))


def test_a_list_of_digests_is_what_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    assert check(tmp_path) == 0
    record(tmp_path)
    done = subprocess.run(["sha256sum", "--check", SUMS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "b: OK\ninner/a: OK\n")
    assert check(tmp_path) == 2
    assert check(tmp_path, at_most=0) == 0
    (tmp_path / "b").write_text("c")
    assert check(tmp_path, name="inner/a") == 1
    with pytest.raises(DamagedError, match="b is damaged"):
        check(tmp_path)
    (tmp_path / "b").unlink()
    with pytest.raises(DamagedError, match="b cannot be read"):
        check(tmp_path)
    (tmp_path / SUMS).write_text("nonsense")
    with pytest.raises(DamagedError, match="no list of digests"):
        check(tmp_path)


@pytest.mark.parametrize("folder", ["base", "gptj-tools", "translation-small"])
def test_bundled_models_have_digests_and_are_what_was_written(folder: str) -> None:
    assert check(MODELS / folder) >= 2


def test_the_link_in_the_package_leads_to_the_models() -> None:
    assert MODELS.resolve() == BUNDLED_MODELS


def test_one_flipped_bit_of_the_weights_is_found(model: Path) -> None:
    weights = model / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-100] ^= 1
    weights.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model.safetensors is damaged"):
        checkpoint.load(model)


def test_a_saved_model_is_recorded(model: Path, tmp_path: Path) -> None:
    checkpoint.save(checkpoint.load(model), tmp_path / "saved")
    assert check(tmp_path / "saved") == 1


def test_a_weight_that_is_no_number_is_refused(model: Path) -> None:
    tensors = load_file(model / "model.safetensors")
    name = "transformer.h.1.mlp.fc_in.weight"
    tensors[name][3, 4] = torch.nan
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    forget(model)
    with pytest.raises(CheckpointError, match="holds a weight that is no number"):
        checkpoint.load(model)


def test_an_index_that_leads_out_of_the_folder_is_refused(model: Path) -> None:
    (model / "model.safetensors").unlink()
    index = model / "model.safetensors.index.json"
    for shard in ("../../etc/passwd", "/etc/passwd"):
        index.write_text(json.dumps({"weight_map": {"transformer.wte.weight": shard}}))
        with pytest.raises(CheckpointError, match="which is no file of this folder"):
            checkpoint.load(model)


@pytest.mark.parametrize("content", [b"root:x:0:0:root:/root:/bin/bash\n", pickle.dumps(Path)])
def test_a_file_that_is_no_checkpoint_gets_a_line(model: Path, content: bytes) -> None:
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"pytorch_model.bin is damaged \(.*\): fetch"):
        checkpoint.load(model)


@pytest.mark.parametrize("field", ABSURD)
def test_absurd_sizes_of_gptj_get_a_line(model: Path, field: str) -> None:
    change(model, **{field: ABSURD[field]})
    with pytest.raises(CheckpointError, match=rf"config.json: {field} is ") as caught:
        checkpoint.load(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "null", "3", '"gptj"', "{", "[" * 100_000])
def test_a_config_that_is_no_object_gets_a_line(model: Path, text: str) -> None:
    (model / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config.json (holds no JSON object|is not JSON)"):
        checkpoint.load(model)


@pytest.mark.parametrize("fields", [{"n_layer": 10**9}, {"n_head": "x"}, {"vocab_size": 0}, {"n_embd": [8]}])
def test_absurd_sizes_of_other_models_get_a_line(tmp_path: Path, fields: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"} | fields))
    with pytest.raises(CheckpointError, match=f"config.json: {next(iter(fields))} is "):
        load_other(tmp_path)


@pytest.mark.parametrize("fields", [
    {"num_hidden_layers": 10**9, "num_layers": 10**9}, {"num_attention_heads": 0, "num_heads": 0},
    {"hidden_size": "x", "d_model": "x"}, {"vocab_size": None}, {"layer_norm_eps": "x", "layer_norm_epsilon": "x"},
])  # fmt: skip
@pytest.mark.parametrize("kind", ["retriever", "reader"])
def test_absurd_sizes_of_retriever_and_reader_get_a_line(tmp_path: Path, kind: str, fields: dict[str, Any]) -> None:
    (bert_config() if kind == "retriever" else t5_config()).write(tmp_path / "config.json")
    change(tmp_path, **fields)
    with pytest.raises(ValueError, match=r"must be a (whole )?number from"):
        (BertConfig if kind == "retriever" else T5Config).read(tmp_path / "config.json")


# Where fastText's header has the number: `dim`, runs of words, loss, kind of model, buckets, parts of words.
@pytest.mark.parametrize("place", [2, 7, 8, 9, 10, 11, 12])
def test_a_broken_fasttext_header_gets_a_line(tmp_path: Path, place: int) -> None:
    content = (TRANSLATION / "lid.ftz").read_bytes()
    file = tmp_path / "lid.ftz"
    file.write_bytes(content[: place * 4] + b"\xff\xff\xff\x7f" + content[place * 4 + 4 :])
    assert "cannot be" in (why_unusable(file) or "")
    with pytest.raises(ValueError, match=r"--language-id: .* cannot be used, it is no whole fastText classifier"):
        FastTextLanguages(file)


def test_a_finished_output_that_changed_is_not_taken(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    parts = Parts(output, {"a": 1}, 1)
    with parts.held(0):
        parts.write(0, b'{"a": 1}\n')
        assert parts.join()
    assert parts.finished()
    assert plan(output, 1).lines == 1
    output.write_bytes(b'{"a": 2}\n')
    with pytest.raises(StageError, match=r"out.jsonl is damaged: .*--restart"):
        parts.finished()
    with pytest.raises(StageError, match=r"not what its stage wrote: .*run that stage again"):
        plan(output, 1)
