"""Checkpoints and indexes in the layout Atlas publishes, made of tiny random weights."""

import argparse
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from services.question_answering.checkpoint import load_model
from services.question_answering.convert import main
from services.question_answering.engine import retrieve
from services.question_answering.index_folder import Blocks, open_index
from services.question_answering.published import PublishedError, read_checkpoint, read_passages
from services.question_answering.reader import Reader
from services.question_answering.retriever import Retriever
from services.question_answering.t5 import T5Config
from tests.services.test_question_answering.tiny import (
    MAX_TOKENS,
    PASSAGES,
    QUESTIONS,
    lively_bert,
    lively_t5,
    tokenizers,
)

SHARDS = 2


def published_state(
    *, untied: bool = False, several_machines: bool = False, tied_output: bool = False
) -> dict[str, Any]:
    """A state dictionary with the names, the buffers and the copies that Atlas' own code saves."""
    reader, middle = lively_t5(tied=tied_output), "module." if several_machines else ""
    state: dict[str, Any] = {}
    for name, tensor in reader.state_dict().items():
        state[f"reader.{middle}{name}"] = tensor
    for copy in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        state[f"reader.{middle}{copy}"] = reader.shared.weight.data
    if tied_output:
        state[f"reader.{middle}lm_head.weight"] = reader.shared.weight.data
    sides = {"query_contriever": 0, "passage_contriever": 1} if untied else {"contriever": 0}
    for side, seed in sides.items():
        for name, tensor in lively_bert(seed).state_dict().items():
            state[f"retriever.{middle}{side}.{name}"] = tensor
        state[f"retriever.{middle}{side}.embeddings.position_ids"] = torch.arange(MAX_TOKENS)[None]
    return state


def publish(folder: Path, **kind: bool) -> list[str]:
    """A checkpoint, tokenizers and an index in ``folder``; the command line that converts them."""
    options = argparse.Namespace(n_context=4, text_maxlength=MAX_TOKENS, query_side_retriever_training=False)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"step": 7, "model": published_state(**kind), "opt": options}, folder / "model.pth.tar")
    for name, tokenizer in zip(("bert", "t5"), tokenizers(), strict=True):
        (folder / name).mkdir(exist_ok=True)
        tokenizer.save(str(folder / name / "tokenizer.json"))
    encoder = lively_bert(1 if kind.get("untied") else 0, uncentred_norm=True)
    vectors = Retriever(encoder, tokenizers()[0], max_tokens=MAX_TOKENS).embed_passages(PASSAGES).half()
    share = len(PASSAGES) // SHARDS
    for shard in range(SHARDS):
        mine = slice(shard * share, (shard + 1) * share)
        torch.save(vectors[mine].T.clone(), folder / f"embeddings.{shard}.pt")
        records = [passage.record() | {"section": ""} for passage in PASSAGES[mine]]
        (folder / f"passages.{shard}.pt").write_bytes(pickle.dumps(records, protocol=pickle.HIGHEST_PROTOCOL))
    return [
        *("--checkpoint", str(folder), "--embeddings", str(folder), "--retriever-heads", "3"),
        *("--retriever-tokenizer", str(folder / "bert"), "--reader-tokenizer", str(folder / "t5")),
    ]


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command complains of."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("kind", [{}, {"untied": True}, {"several_machines": True}, {"tied_output": True}])
def test_a_published_model_answers_as_its_weights_say(kind: dict[str, bool], tmp_path: Path) -> None:
    main([*publish(tmp_path / "published", **kind), "--out", str(tmp_path / "out")])
    model = load_model(tmp_path / "out" / "model")
    assert (model.settings.passages, model.settings.max_tokens) == (4, MAX_TOKENS)
    index = open_index(tmp_path / "out" / "index", model.settings.retriever_digest, 24)
    assert list(index.passages) == list(PASSAGES)
    own = Retriever(lively_bert(0, uncentred_norm=True), tokenizers()[0], max_tokens=MAX_TOKENS)
    torch.testing.assert_close(model.retriever.embed_questions(QUESTIONS), own.embed_questions(QUESTIONS))
    found = retrieve(model, index, QUESTIONS, 4)
    answers = model.reader.answer(QUESTIONS, [[one.passage for one in row] for row in found])
    plain = lively_t5(tied=kind.get("tied_output", False))
    expected = Reader(plain, tokenizers()[1], max_tokens=MAX_TOKENS, max_answer_tokens=32)
    assert answers == expected.answer(QUESTIONS, [[one.passage for one in row] for row in found])


def test_sizes_are_read_off_the_weights(tmp_path: Path) -> None:
    publish(tmp_path)
    checkpoint = read_checkpoint(tmp_path / "model.pth.tar", heads=3)
    assert checkpoint.reader_config == lively_t5().config
    assert checkpoint.retriever_config == lively_bert(uncentred_norm=True).config
    assert not checkpoint.passage_retriever


def test_a_killed_conversion_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [*publish(tmp_path / "published"), "--out", str(tmp_path / "out")]
    written: list[int] = []
    write = Blocks.write

    def interrupted(self: Blocks, number: int, vectors: Any) -> None:
        if number == 1 and not written.count(1):
            written.append(1)
            raise KeyboardInterrupt
        written.append(number)
        write(self, number, vectors)

    monkeypatch.setattr(Blocks, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    model_written = (tmp_path / "out/model/reader/model.safetensors").stat().st_mtime_ns
    main(arguments)
    assert written == [0, 1, 1]  # the first shard's vectors were kept
    assert (tmp_path / "out/model/reader/model.safetensors").stat().st_mtime_ns == model_written
    main([*arguments[:-1], str(tmp_path / "straight")])
    for name in ("index/vectors.faiss", "index/passages.jsonl"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


def test_a_finished_conversion_is_only_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*publish(tmp_path / "published"), "--out", str(tmp_path / "out")]
    main(arguments)
    main(arguments)
    assert capsys.readouterr().out.count('"verified": true') == 2
    path = tmp_path / "out/model/reader/model.safetensors"
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert "is damaged: its digest" in failure(arguments, capsys)


def test_disk_and_memory_are_said_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    main([*publish(tmp_path / "published"), "--out", str(tmp_path / "out")])
    said = [record.message for record in caplog.records]
    assert [text for text in said if "GB of disk and" in text] == said[:2]


def test_too_little_disk_is_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*publish(tmp_path / "published"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: argparse.Namespace(free=1_000))
    assert "GB free" in failure(arguments, capsys)
    assert not (tmp_path / "out/model").exists()


def test_embeddings_of_another_model_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = publish(tmp_path / "published")
    for shard in range(SHARDS):
        torch.save(torch.randn(24, 4).half(), tmp_path / "published" / f"embeddings.{shard}.pt")
    assert "another model's" in failure([*arguments, "--out", str(tmp_path / "out")], capsys)
    assert not (tmp_path / "out/index/index.json").exists()


def test_another_conversion_in_the_same_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*publish(tmp_path / "published"), "--out", str(tmp_path / "out")]
    main(arguments)
    assert "another conversion" in failure([*arguments, "--precision", "bfloat16"], capsys)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda folder: (folder / "model.pth.tar").unlink(), "there is no"),
        (lambda folder: (folder / "model.pth.tar").write_bytes(b"nonsense"), "cannot be read"),
        (lambda folder: torch.save({"weights": {}}, folder / "model.pth.tar"), "no state dictionary"),
        (lambda folder: torch.save({"model": {"other": torch.ones(1)}}, folder / "model.pth.tar"), "no tensors named"),
        (lambda folder: (folder / "passages.1.pt").unlink(), "lacks passages.1.pt"),
        (lambda folder: (folder / "passages.1.pt").write_bytes(b"\x80"), "passages.1.pt"),
        (lambda folder: (folder / "passages.1.pt").write_bytes(pickle.dumps([{"id": "1"}])), "'text'"),
        (lambda folder: (folder / "passages.1.pt").write_bytes(pickle.dumps([])), "0 passages"),
        (lambda folder: torch.save(torch.ones(3, 4), folder / "embeddings.1.pt"), "expected a tensor of 24 rows"),
        (lambda folder: (folder / "t5" / "tokenizer.json").unlink(), "no tokenizer.json"),
    ],
)
def test_what_is_not_as_published_is_named(
    spoil: Any, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = publish(tmp_path / "published")
    spoil(tmp_path / "published")
    assert complaint in failure([*arguments, "--out", str(tmp_path / "out")], capsys)


def test_a_checkpoint_without_a_layer_is_named(tmp_path: Path) -> None:
    state = published_state()
    del state["reader.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
    torch.save({"model": state}, tmp_path / "model.pth.tar")
    with pytest.raises(PublishedError, match="relative_attention_bias"):
        read_checkpoint(tmp_path / "model.pth.tar")


class Trap:
    """Pickled, it would write a file when it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._path,))


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    (tmp_path / "passages.0.pt").write_bytes(pickle.dumps([{"id": "0", "text": Trap(sprung)}]))
    with pytest.raises(PublishedError, match="names code"):
        read_passages(tmp_path / "passages.0.pt")
    torch.save({"model": Trap(sprung)}, tmp_path / "model.pth.tar")
    with pytest.raises(PublishedError, match="cannot be read"):
        read_checkpoint(tmp_path / "model.pth.tar")
    assert not sprung.exists()


def test_the_converted_reader_is_a_hugging_face_t5(tmp_path: Path) -> None:
    from transformers import T5ForConditionalGeneration

    main([*publish(tmp_path / "published"), "--out", str(tmp_path / "out")])
    folder = tmp_path / "out/model/reader"
    theirs = T5ForConditionalGeneration.from_pretrained(folder, local_files_only=True)
    assert torch.equal(theirs.lm_head.weight, lively_t5().lm_head.weight)
    assert T5Config.read(folder / "config.json") == lively_t5().config
    assert json.loads((folder / "config.json").read_text())["model_type"] == "t5"
