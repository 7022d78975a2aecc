"""GPT-2 and Llama through the engine: the same schedules, the same oracle, tiny random checkpoints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CompletionRequest, Finished, TextDelta
from inference_gateway.engine.limits import EngineLimits
from language_model.config import CheckpointError
from language_model.other_models import DynamicRows, OtherCausalLM
from tests.inference_gateway.test_engine_schedules import assert_all_happened, check
from tests.support.vocabularies import save_small_tokenizer

SIZES = {"vocab_size": 424, "bos_token_id": 0, "eos_token_id": 0, "initializer_range": 0.3}


def gpt2() -> Any:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_positions=256, n_embd=32, n_layer=2, n_head=2, **SIZES)
    )


def llama() -> Any:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=256,
            **SIZES,
        )
    )


@pytest.fixture(params=[gpt2, llama])
def theirs(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    make: Callable[[], Any] = request.param
    return make().eval()


def test_any_schedule_equals_full_recomputation(theirs: Any) -> None:
    model = OtherCausalLM(theirs)
    with torch.inference_mode():
        assert_all_happened(check(range(12), model, lambda ids: theirs(ids, use_cache=False).logits[0]))


def test_a_row_takes_the_bytes_it_says(theirs: Any) -> None:
    model = OtherCausalLM(theirs)
    cache = model.new_cache(2)
    model.extend(cache, [0, 1], [[1, 2, 3], [4]])
    layers = cache.caches[0].layers
    assert sum(layer.keys.nbytes + layer.values.nbytes for layer in layers) == 3 * model.cache_bytes_per_token
    cache.cut(0, 1)
    layers = cache.caches[0].layers
    assert sum(layer.keys.untyped_storage().nbytes() for layer in layers) * 2 == model.cache_bytes_per_token


async def test_a_checkpoint_is_served_by_the_local_backend(theirs: Any, tmp_path: Path) -> None:
    theirs.save_pretrained(tmp_path)
    save_small_tokenizer(tmp_path)
    backend = LocalBackend.load(tmp_path, limits=EngineLimits(max_sequences=2), cache_bytes=2**20)
    assert backend.max_model_len == 256
    prompt = torch.tensor([[5, 6, 7, 8]])
    # To the end of text, which the engine takes for the end and generate would put behind it.
    expected = theirs.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=0)[0, 4:].tolist()
    expected = expected[: expected.index(0)] if 0 in expected else expected
    await backend.start()
    try:
        request = CompletionRequest((5, 6, 7, 8), max_tokens=12, plain=True)
        actions = [action async for action in backend.open(request, {})]
    finally:
        await backend.stop()
    assert isinstance(actions[-1], Finished)
    made = [token.id for action in actions if isinstance(action, TextDelta) for token in action.tokens]
    # Random models write bytes that form no character at the end: those are made, but not shown.
    assert made == expected[: len(made)]
    assert len(made) >= len(expected) - 4


def test_rows_lack_what_was_never_there() -> None:
    cache = DynamicRows(2)
    with pytest.raises(ValueError, match="cannot copy 1 tokens of row 0, which holds 0"):
        cache.copy(0, 1, 1)
    with pytest.raises(ValueError, match="cannot cut row 1 of 0 tokens to 2"):
        cache.cut(1, 2)


def test_gptj_is_refused_here() -> None:
    config = transformers.GPTJConfig(n_positions=64, n_embd=32, n_layer=1, n_head=2, rotary_dim=8, vocab_size=424)
    with pytest.raises(CheckpointError, match="not through transformers"):
        OtherCausalLM(transformers.GPTJForCausalLM(config))


def test_a_model_that_forgets_is_refused() -> None:
    config = transformers.MistralConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=8,
        vocab_size=424,
    )
    with pytest.raises(CheckpointError, match="cannot be cut back"):
        OtherCausalLM(transformers.MistralForCausalLM(config))


def test_what_transformers_cannot_load_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(CheckpointError, match="transformers cannot load this gpt2"):
        OtherCausalLM.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="has no model_type"):
        OtherCausalLM.from_pretrained(tmp_path)
