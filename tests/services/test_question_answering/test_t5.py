"""T5 and BERT beside transformers' own, and the decoder's memory beside plain recomputation."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from services.question_answering.bert import Bert, BertConfig, UncentredNorm
from services.question_answering.t5 import T5, DecoderMemory, T5Config
from services.question_answering.weights import save_weights
from tests.services.test_question_answering.tiny import bert_config, lively_bert, lively_t5


def inputs(vocab_size: int, length: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    mask = torch.ones(3, length, dtype=torch.bool)
    mask[1, length // 3 :] = False
    return torch.randint(2, vocab_size, (3, length)), mask


def logits(model: T5, ids: Tensor, mask: Tensor, written: Tensor, *, step: int) -> Tensor:
    """All logits, computed ``step`` tokens at a time."""
    memory = DecoderMemory(model.encode(ids, mask), mask)
    return torch.cat([model.decode(part, memory) for part in torch.split(written, step, dim=1)], dim=1)


@torch.no_grad()
@pytest.mark.parametrize(("tied", "feed_forward"), [(False, "gated-gelu"), (True, "relu"), (True, "gated-gelu")])
def test_logits_equal_transformers(tied: bool, feed_forward: str, tmp_path: Path) -> None:
    from transformers import T5ForConditionalGeneration

    ours = lively_t5(tied=tied, feed_forward=feed_forward)
    ours.config.write(tmp_path / "config.json")
    save_weights(tmp_path, ours.state_dict(), torch.float32)
    theirs = T5ForConditionalGeneration.from_pretrained(tmp_path, local_files_only=True).eval()
    ids, mask = inputs(ours.config.vocab_size, 150)  # longer than the farthest relative position with its own bucket
    written = torch.randint(2, ours.config.vocab_size, (3, 9))
    expected = theirs(input_ids=ids, attention_mask=mask.long(), decoder_input_ids=written).logits
    torch.testing.assert_close(logits(ours, ids, mask, written, step=9), expected, atol=2e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("step", [1, 4])
def test_decoding_in_steps_equals_decoding_at_once(step: int) -> None:
    model = lively_t5()
    ids, mask = inputs(model.config.vocab_size, 40)
    written = torch.randint(2, model.config.vocab_size, (3, 9))
    at_once = logits(model, ids, mask, written, step=9)
    torch.testing.assert_close(logits(model, ids, mask, written, step=step), at_once, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_bert_states_equal_transformers(tmp_path: Path) -> None:
    from transformers import BertConfig as TheirConfig
    from transformers import BertModel

    ours = lively_bert()
    ours.config.write(tmp_path / "config.json")
    theirs = BertModel(TheirConfig.from_pretrained(tmp_path), add_pooling_layer=False).eval()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    ids, mask = inputs(ours.config.vocab_size, 60)
    expected = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(ours(ids, mask)[mask], expected[mask], atol=1e-5, rtol=1e-4)


def test_the_norm_of_atlas_divides_by_what_was_there_before_centring() -> None:
    norm = UncentredNorm(3, 0.0)
    root_mean_square = (14 / 3) ** 0.5
    expected = torch.tensor([-1.0, 0.0, 1.0]) / root_mean_square
    torch.testing.assert_close(norm(torch.tensor([1.0, 2.0, 3.0])), expected)
    ids, mask = inputs(bert_config().vocab_size, 20)
    with torch.no_grad():
        assert not torch.allclose(lively_bert()(ids, mask), lively_bert(uncentred_norm=True)(ids, mask), atol=1e-4)


def test_configurations_come_back_as_written(tmp_path: Path) -> None:
    for config in (lively_t5(tied=True, feed_forward="relu").config, bert_config(), bert_config(uncentred_norm=True)):
        config.write(tmp_path / "config.json")
        assert type(config).read(tmp_path / "config.json") == config


def test_fields_that_transformers_would_refuse_are_no_matter_of_its_layers() -> None:
    pad_id, epsilon = 10**9, 0  # beyond the vocabulary; a whole number
    assert Bert(replace(bert_config(), pad_id=pad_id, epsilon=epsilon)).embeddings.word_embeddings.padding_idx is None
    assert len(T5(replace(lively_t5().config, pad_id=pad_id, epsilon=epsilon)).encoder.block) == 3


@pytest.mark.parametrize(
    ("config", "change", "complaint"),
    [
        (lively_t5().config, {"d_model": 0}, "width"),
        (lively_t5().config, {"feed_forward_proj": "silu"}, "silu"),
        (lively_t5().config, {"num_heads": None}, "lacks a field"),
        (bert_config(), {"num_attention_heads": 5}, "5 attention heads"),
        (bert_config(), {"hidden_act": "relu"}, "relu"),
        (bert_config(), {"vocab_size": 0}, "vocab"),
    ],
)
def test_a_configuration_that_cannot_hold(
    config: T5Config | BertConfig, change: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    config.write(path)
    fields = json.loads(path.read_text()) | change
    path.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))
    with pytest.raises(ValueError, match=complaint):
        type(config).read(path)
