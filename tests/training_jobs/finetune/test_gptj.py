"""GPT-J as it is trained computes what transformers' own computes."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from language_model import checkpoint
from tests.training_jobs.finetune.small_run import SHAPE, write_model
from training_jobs.finetune.gptj import IGNORED, GPTJForCausalLM
from training_jobs.finetune.models import load_model
from training_jobs.finetune.recipe import FinetuneRecipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def fast(folder: Path) -> Any:
    return load_model(folder, FinetuneRecipe())


@pytest.fixture
def plain(folder: Path) -> Any:
    return transformers.GPTJForCausalLM.from_pretrained(folder, dtype=torch.float32)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Two texts, the second padded."""
    ids = torch.randint(1, SHAPE.vocab_size, (2, 30), generator=torch.Generator().manual_seed(0))
    labels = ids.clone()
    labels[1, 20:] = IGNORED
    return ids, labels


def test_logits_loss_and_gradients_are_transformers(fast: Any, plain: Any) -> None:
    ids, labels = batch()
    assert torch.allclose(fast(ids).logits, plain(ids).logits, atol=1e-5)
    losses = [model(input_ids=ids, labels=labels).loss for model in (fast, plain)]
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=1e-6)
    for loss in losses:
        loss.backward()
    of_plain = dict(plain.named_parameters())
    assert of_plain.keys() == dict(fast.named_parameters()).keys()
    for name, parameter in fast.named_parameters():
        assert torch.allclose(parameter.grad, of_plain[name].grad, atol=1e-6), name


def test_a_loss_is_over_the_tokens_of_all_micro_batches(fast: Any) -> None:
    ids, labels = batch()
    whole = fast(input_ids=ids, labels=labels).loss
    count = (labels[:, 1:] != IGNORED).sum()
    rows = [fast(input_ids=ids[n : n + 1], labels=labels[n : n + 1], num_items_in_batch=count).loss for n in (0, 1)]
    assert sum(rows).item() == pytest.approx(whole.item(), abs=1e-5)


def test_padding_has_no_part_in_anything(fast: Any) -> None:
    ids, labels = batch()
    other = ids.clone()
    other[1, 20:] = 7
    assert fast(input_ids=other, labels=labels).loss.item() == fast(input_ids=ids, labels=labels).loss.item()


@pytest.mark.parametrize("what", ["logits in pieces", "activations again"])
def test_saving_memory_changes_nothing(fast: Any, what: str) -> None:
    other = copy.deepcopy(fast).train()
    if what == "logits in pieces":
        other.logits_at_once = 7 * SHAPE.vocab_size
    else:
        other.activation_checkpointing_enable()
    ids, labels = batch()
    for model in (fast.train(), other):
        model(input_ids=ids, labels=labels).loss.backward()
    of_fast = dict(fast.named_parameters())
    for name, parameter in other.named_parameters():
        assert torch.allclose(parameter.grad, of_fast[name].grad, atol=1e-6), name


def test_bfloat16_products_are_near(fast: Any) -> None:
    ids, labels = batch()
    exact = fast(input_ids=ids, labels=labels).loss.item()
    with torch.autocast("cpu", torch.bfloat16):
        assert fast(input_ids=ids, labels=labels).loss.item() == pytest.approx(exact, abs=0.02)


def test_what_it_saves_loads_in_transformers_and_in_the_gateways_model(fast: Any, tmp_path: Path) -> None:
    fast.save_pretrained(tmp_path)
    ids, _ = batch()
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert type(theirs) is transformers.GPTJForCausalLM
    assert type(fast) is GPTJForCausalLM
    expected = fast(ids).logits
    assert torch.allclose(theirs(ids).logits, expected, atol=1e-5)
    assert torch.allclose(checkpoint.load(tmp_path)(ids), expected, atol=1e-5)
