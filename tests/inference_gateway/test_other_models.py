"""Other models through the engine: the same schedules, the same oracle, tiny random checkpoints."""

import asyncio
import copy
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
from language_model.native.library import Unavailable
from language_model.native.packing import Weights
from language_model.other_models.from_transformers import load_other, wrap
from language_model.other_models.one_by_one import DynamicRows, OneByOne
from language_model.other_models.together import Together
from language_model.tokenizer import ByteLevelTokenizer
from tests.inference_gateway.http_harness import gateway
from tests.inference_gateway.test_engine_schedules import assert_all_happened, check
from tests.support.vocabularies import save_sentencepiece, save_small_tokenizer

SIZES = {"vocab_size": 424, "bos_token_id": 0, "eos_token_id": 0, "initializer_range": 0.3}
LLAMA_SIZES = SIZES | {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}


def gpt2() -> Any:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_positions=256, n_embd=32, n_layer=2, n_head=2, **SIZES)
    )


def llama() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA_SIZES))


def mistral() -> Any:
    """All layers see the last 16 tokens only."""
    return transformers.MistralForCausalLM(transformers.MistralConfig(sliding_window=16, **LLAMA_SIZES))


def qwen2() -> Any:
    """The second layer sees the last 16 tokens only."""
    config = transformers.Qwen2Config(use_sliding_window=True, sliding_window=16, max_window_layers=1, **LLAMA_SIZES)
    return transformers.Qwen2ForCausalLM(config)


def qwen3() -> Any:
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(head_dim=16, **LLAMA_SIZES))


def gpt_neox() -> Any:
    """No kind that is computed together."""
    config = transformers.GPTNeoXConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        **SIZES,
    )
    return transformers.GPTNeoXForCausalLM(config)


def stretched_llama() -> Any:
    """A token's rotation depends on how long the text is."""
    scaling = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(rope_parameters=scaling, **LLAMA_SIZES))


def made(make: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    return make().eval()


@pytest.fixture(params=[gpt2, llama, mistral, qwen2, qwen3])
def theirs(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


def test_any_schedule_equals_full_recomputation(theirs: Any) -> None:
    model = wrap(copy.deepcopy(theirs))
    assert isinstance(model, Together)
    with torch.inference_mode():
        assert_all_happened(check(range(12), model, lambda ids: theirs(ids, use_cache=False).logits[0]))


def packed(theirs: Any, kind: Weights) -> Together:
    """The model with its products in compiled code."""
    model = wrap(copy.deepcopy(theirs))
    assert isinstance(model, Together)
    try:
        model.pack(kind)
    except Unavailable as why:
        pytest.skip(str(why))
    return model


def test_any_schedule_equals_full_recomputation_in_compiled_code(theirs: Any) -> None:
    model = packed(theirs, Weights.FLOAT32)
    with torch.inference_mode():
        assert_all_happened(check(range(12, 24), model, lambda ids: theirs(ids, use_cache=False).logits[0]))


@pytest.mark.parametrize("kind", [Weights.BFLOAT16, Weights.INT8, Weights.INT4])
def test_fewer_bits_give_nearly_the_same(theirs: Any, kind: Weights) -> None:
    model = packed(theirs, kind)
    ids = [5, 6, 7, 8, 9]
    with torch.inference_mode():
        exact = theirs(torch.tensor([ids])).logits[0]
    made = model.extend_every(model.new_cache(1, 8), 0, ids)
    assert (made - exact).norm() / exact.norm() < {Weights.BFLOAT16: 0.05, Weights.INT8: 0.1, Weights.INT4: 0.7}[kind]


@pytest.mark.parametrize("make", [gpt2, gpt_neox])
def test_any_schedule_equals_full_recomputation_one_by_one(make: Callable[[], Any]) -> None:
    theirs = made(make)
    with torch.inference_mode():
        assert_all_happened(check(range(12), OneByOne(theirs), lambda ids: theirs(ids, use_cache=False).logits[0]))


@pytest.mark.parametrize("make", [gpt_neox, stretched_llama])
def test_what_cannot_go_together_goes_one_by_one(make: Callable[[], Any]) -> None:
    assert isinstance(wrap(made(make)), OneByOne)


def test_a_row_beside_others_gets_what_it_gets_alone(theirs: Any) -> None:
    model = wrap(theirs)
    ids = [[1, 2, 3, 4, 5], [6], [7, 8, 9], [10], [11]]
    beside, alone = model.new_cache(5, 32), model.new_cache(5, 32)
    rows = [3, 1, 0, 4, 2]
    for _ in range(3):
        together = model.extend(beside, rows, ids)
        each = torch.cat([model.extend(alone, [row], [new]) for row, new in zip(rows, ids, strict=True)])
        torch.testing.assert_close(together, each, atol=1e-4, rtol=1e-4)
        assert beside.lengths == alone.lengths


def test_a_row_takes_the_bytes_it_says(theirs: Any) -> None:
    model = wrap(theirs)
    cache = model.new_cache(2, 64)
    assert cache.nbytes == 2 * 64 * model.cache_bytes_per_token
    with pytest.raises(ValueError, match="65 tokens do not fit"):
        model.extend(cache, [0], [[1] * 65])


def test_a_row_of_its_own_takes_the_bytes_it_says() -> None:
    model = OneByOne(made(llama))
    cache = model.new_cache(2)
    model.extend(cache, [0, 1], [[1, 2, 3], [4]])
    layers = cache.caches[0].layers
    assert sum(layer.keys.nbytes + layer.values.nbytes for layer in layers) == 3 * model.cache_bytes_per_token
    cache.cut(0, 1)
    layers = cache.caches[0].layers
    assert sum(layer.keys.untyped_storage().nbytes() for layer in layers) * 2 == model.cache_bytes_per_token


async def test_a_checkpoint_is_served_by_the_local_backend(theirs: Any, tmp_path: Path) -> None:
    """Prompts of unlike lengths, all at once, get what ``generate`` gives each alone."""
    theirs.save_pretrained(tmp_path)
    save_small_tokenizer(tmp_path)
    backend = LocalBackend.load(tmp_path, limits=EngineLimits(max_sequences=4), cache_bytes=2**20)
    assert backend.max_model_len == 256
    prompts = [(5, 6, 7, 8), (9,), tuple(range(20, 60)), (4, 4, 4)]

    async def completed(prompt: tuple[int, ...]) -> list[int]:
        request = CompletionRequest(prompt, max_tokens=12, plain=True)
        actions = [action async for action in backend.open(request, {})]
        assert isinstance(actions[-1], Finished)
        return [token.id for action in actions if isinstance(action, TextDelta) for token in action.tokens]

    await backend.start()
    try:
        answers = await asyncio.gather(*map(completed, prompts))
    finally:
        await backend.stop()
    for prompt, answer in zip(prompts, answers, strict=True):
        made = theirs.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False, pad_token_id=0)
        expected = made[0, len(prompt) :].tolist()
        # The engine emits the end of the text, and stops there; generate pads behind it.
        assert answer == (expected[: expected.index(0) + 1] if 0 in expected else expected)


def test_rows_lack_what_was_never_there() -> None:
    cache = DynamicRows(2)
    with pytest.raises(ValueError, match="cannot copy 1 tokens of row 0, which holds 0"):
        cache.copy(0, 1, 1)
    with pytest.raises(ValueError, match="cannot cut row 1 of 0 tokens to 2"):
        cache.cut(1, 2)


def test_gptj_is_refused_here() -> None:
    config = transformers.GPTJConfig(n_positions=64, n_embd=32, n_layer=1, n_head=2, rotary_dim=8, vocab_size=424)
    with pytest.raises(CheckpointError, match="not through transformers"):
        wrap(transformers.GPTJForCausalLM(config))


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
        OneByOne(transformers.MistralForCausalLM(config))


def test_what_transformers_cannot_load_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(CheckpointError, match="transformers cannot load this gpt2"):
        load_other(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="has no model_type"):
        load_other(tmp_path)


async def test_a_sentencepiece_model_is_served_over_http(tmp_path: Path) -> None:
    made(llama).save_pretrained(tmp_path)
    save_sentencepiece(tmp_path)
    tokenizer = ByteLevelTokenizer.from_pretrained(tmp_path)
    limits = EngineLimits(max_sequences=2)
    backend = LocalBackend.load(tmp_path, limits=limits, cache_bytes=2**20, weights=Weights.FLOAT32)
    async with gateway(make=lambda: backend) as served:
        ids = (await served.http.post("/tokenize", json={"prompt": "Peru is"})).json()["tokens"]
        assert ids == tokenizer.encode_prompt("Peru is")
        assert ids[0] == tokenizer.special_tokens["<s>"]
        plainly = {"prompt": "Peru is", "add_special_tokens": False}
        assert (await served.http.post("/tokenize", json=plainly)).json()["tokens"] == tokenizer.encode("Peru is")
        answer = await served.complete("Peru is", echo=True, max_tokens=4, ignore_eos=True)
        assert answer["usage"]["prompt_tokens"] == len(ids)
        assert answer["choices"][0]["text"].startswith("Peru is")
        again = await served.complete(ids, echo=True, max_tokens=4, ignore_eos=True)
        assert again["choices"][0]["text"] == answer["choices"][0]["text"]
