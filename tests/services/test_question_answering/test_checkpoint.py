"""A model on disk: whole, or refused with a reason."""

import json
from pathlib import Path

import pytest
import torch

from services.question_answering.checkpoint import (
    ModelError,
    load_model,
    load_reader,
    read_settings,
    verify,
    write_settings,
)
from services.question_answering.weights import WeightsError, load_weights, save_weights, shards_of
from tests.services.test_question_answering.tiny import QUESTIONS, lively_t5, t5_config, write_model


def test_a_model_answers_alike_before_and_after(tmp_path: Path) -> None:
    write_model(tmp_path, untied=True)
    model = load_model(tmp_path)
    again = load_model(tmp_path)
    assert model.reader.answer(QUESTIONS, [[] for _ in QUESTIONS]) == again.reader.answer(
        QUESTIONS, [[] for _ in QUESTIONS]
    )
    assert model.settings == verify(tmp_path)


def test_bfloat16_is_near_float32(tmp_path: Path) -> None:
    write_model(tmp_path)
    exact = load_model(tmp_path).retriever.embed_questions(QUESTIONS)
    rough = load_model(tmp_path, precision="bfloat16").retriever.embed_questions(QUESTIONS)
    assert rough.dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(exact, rough).min() > 0.98


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("atlas.json", None, "not a finished model"),
        ("atlas.json", b"{", "cannot be read"),
        ("reader/model.safetensors", None, "is missing"),
        ("reader/model.safetensors", b"short", "has 5 bytes"),
        ("retriever/tokenizer.json", None, "is missing"),
    ],
)
def test_an_incomplete_model_is_refused(file: str, content: bytes | None, complaint: str, tmp_path: Path) -> None:
    write_model(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(ModelError, match=complaint):
        read_settings(tmp_path)


@pytest.mark.parametrize("file", ["reader/model.safetensors", "retriever/tokenizer.json", "reader/config.json"])
def test_a_corrupt_file_of_the_right_size_is_refused(file: str, tmp_path: Path) -> None:
    write_model(tmp_path)
    path = tmp_path / file
    path.write_bytes(b"\xff" * path.stat().st_size)
    with pytest.raises(ModelError):
        load_model(tmp_path)
    with pytest.raises(ModelError, match="is damaged: its digest"):
        verify(tmp_path)


def test_a_marked_reader_whose_vocabulary_has_no_mark_is_refused(tmp_path: Path) -> None:
    settings = write_model(tmp_path)
    write_settings(tmp_path, settings.model_copy(update={"marked": True}))
    with pytest.raises(ModelError, match=r"marked is set, but tokenizer\.json has no <extra_id_3>"):
        load_reader(tmp_path)


def test_an_index_belongs_to_the_encoder_of_its_passages(tmp_path: Path) -> None:
    tied, untied = write_model(tmp_path / "tied"), write_model(tmp_path / "untied", untied=True)
    other = write_model(tmp_path / "other", seed=5)
    assert tied.retriever_digest == write_model(tmp_path / "again").retriever_digest
    assert len({settings.retriever_digest for settings in (tied, untied, other)}) == 3


def test_shards_hold_everything_and_load_alike(tmp_path: Path) -> None:
    state = lively_t5().state_dict()
    shards = shards_of(state, torch.float32, shard_bytes=20_000)
    assert [name for shard in shards for name in shard] == list(state)
    assert len(shards) > 3
    save_weights(tmp_path, state, torch.float32, shard_bytes=20_000)
    with torch.device("meta"):
        empty = type(lively_t5())(t5_config())
    loaded = load_weights(tmp_path, empty, dtype=torch.float32, device=torch.device("cpu"))
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, state[name])


@pytest.mark.parametrize("change", ["missing", "unknown", "shape", "no shard", "no index"])
def test_weights_of_another_model_are_refused(change: str, tmp_path: Path) -> None:
    state = dict(lively_t5().state_dict())
    if change == "missing":
        del state["shared.weight"]
    elif change == "unknown":
        state["extra.weight"] = torch.zeros(1)
    elif change == "shape":
        state["shared.weight"] = torch.zeros(3, 3)
    save_weights(tmp_path, state, torch.float32, shard_bytes=20_000)
    if change == "no shard":
        next(iter(tmp_path.glob("model-00002*"))).unlink()
    elif change == "no index":
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps([]))
    with torch.device("meta"):
        empty = type(lively_t5())(t5_config())
    with pytest.raises(WeightsError):
        load_weights(tmp_path, empty, dtype=torch.float32, device=torch.device("cpu"))
