"""Which weights Muon changes, and which AdamW."""

import pytest
from torch import nn

from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.optimizers import optimizers


def names(model: nn.Module, kind: str) -> list[list[set[str]]]:
    """The weights of each optimizer's groups."""
    by_id = {id(weight): name for name, weight in model.named_parameters()}
    found = optimizers(model, kind, betas=(0.9, 0.95), weight_decay=0.1)  # type: ignore[arg-type]
    return [[{by_id[id(one)] for one in group["params"]} for group in each.param_groups] for each in found]


@pytest.fixture(scope="module")
def model() -> GPTJ:
    return GPTJ.from_config(
        GPTJConfig(
            vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2, rotary_dim=4, bos_token_id=0, eos_token_id=0
        )
    )


def test_muon_has_the_layers_matrices_and_adamw_the_rest(model: GPTJ) -> None:
    [matrices, others], [layers] = names(model, "muon")
    assert matrices == {"lm_head.weight"}
    assert layers == {f"blocks.0.{name}.weight" for name in ("qkv_proj", "out_proj", "fc_in", "fc_out")}
    assert others >= {"wte.weight", "lm_head.bias", "ln_f.weight"}
    assert len(matrices | layers | others) == len(list(model.named_parameters()))


def test_adamw_alone_has_all(model: GPTJ) -> None:
    [[matrices, others]] = names(model, "adamw")
    assert "blocks.0.fc_in.weight" in matrices
    assert "wte.weight" in others
    assert len(matrices | others) == len(list(model.named_parameters()))


def test_a_head_that_is_the_embedding_is_an_embedding() -> None:
    model = nn.Module()
    model.embedding, model.lm_head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
    model.lm_head.weight = model.embedding.weight
    [[matrices, others]] = names(model, "muon")
    assert (matrices, others) == (set(), {"embedding.weight"})
