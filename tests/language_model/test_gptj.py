"""GPT-J here equals transformers' GPT-J, and what the cache gives equals computing everything again."""

import copy
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from language_model import checkpoint
from language_model.block import turned_as_reals
from language_model.config import CheckpointError, GPTJConfig
from language_model.gptj import GPTJ
from language_model.native.library import Unavailable
from tests.support.models import SMALL, compiled_model, random_model, static_model

SHAPES = [
    pytest.param(SMALL, id="small"),
    pytest.param(GPTJConfig(97, 64, 48, 3, 4, rotary_dim=12, bos_token_id=1, eos_token_id=1), id="rotary=head"),
    pytest.param(GPTJConfig(130, 128, 64, 1, 1, rotary_dim=2, n_inner=40), id="one head, odd inner"),
    pytest.param(GPTJConfig(2048, 512, 256, 4, 4, rotary_dim=32), id="bundled"),
]


def tokens(config: GPTJConfig, batch: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(config.vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))


def test_a_gpus_rotation_is_a_processors() -> None:
    pairs, turns = torch.randn(2, 5, 3, 4, 2), torch.polar(torch.ones(1, 5, 1, 4), torch.randn(1, 5, 1, 4))
    turned = torch.view_as_real(torch.view_as_complex(pairs) * turns)
    torch.testing.assert_close(turned_as_reals(pairs, turns), turned)


@pytest.mark.parametrize("config", SHAPES)
def test_logits_equal_transformers(config: GPTJConfig, tmp_path: Path) -> None:
    import transformers

    ours = random_model(config, spread=0.08)
    checkpoint.save(ours, tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "config.json").stat().st_mode
    theirs = transformers.GPTJForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    ids = tokens(config, 3, 50)
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=0)


def test_a_checkpoint_that_transformers_wrote_loads_here(tmp_path: Path) -> None:
    import transformers

    torch.manual_seed(3)
    shape = {"vocab_size": 97, "n_positions": 64, "n_embd": 48, "n_layer": 2, "n_head": 4, "rotary_dim": 8}
    theirs = transformers.GPTJForCausalLM(transformers.GPTJConfig(**shape, bos_token_id=1, eos_token_id=1)).eval()
    theirs.save_pretrained(tmp_path, max_shard_size="40KB")
    assert (tmp_path / "model.safetensors.index.json").exists(), "the test means to read shards"
    ours = checkpoint.load(tmp_path)
    ids = tokens(ours.config, 2, 20)
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("archive", [True, False])
def test_the_published_pytorch_file_loads_with_its_old_buffers(archive: bool, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    model = random_model()
    checkpoint.save(model, tmp_path)
    weights = {name: tensor.half() for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    weights["transformer.h.0.attn.bias"] = torch.ones(1, 1, 8, 8, dtype=torch.bool)
    weights["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e9)
    torch.save(weights, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=archive)
    (tmp_path / "model.safetensors").unlink()
    ids = tokens(SMALL, 1, 9)
    rounded = copy.deepcopy(model).half().float()  # as branch float16 of EleutherAI/gpt-j-6b is
    assert torch.equal(checkpoint.load(tmp_path)(ids), rounded(ids))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_saving_keeps_every_weight(dtype: torch.dtype, tmp_path: Path) -> None:
    checkpoint.save(random_model(), tmp_path)
    first = checkpoint.load(tmp_path, dtype=dtype)
    checkpoint.save(first, tmp_path / "again")
    second = checkpoint.load(tmp_path / "again", dtype=dtype)
    assert first.dtype == dtype
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name


def test_bfloat16_stays_near_float32(tmp_path: Path) -> None:
    model = random_model(spread=0.05)
    checkpoint.save(model, tmp_path)
    half = checkpoint.load(tmp_path, dtype=torch.bfloat16)
    ids = tokens(SMALL, 2, 30)
    full = model(ids)
    assert (half(ids).float() - full).abs().max() < 0.05 * full.abs().max()


@pytest.fixture(scope="module", params=["torch", "static", "compiled"])
def model(request: pytest.FixtureRequest) -> GPTJ:
    """A model that extends its cache with torch, one that has steps of fixed shapes besides, and one with compiled
    code."""
    if request.param == "torch":
        return random_model()
    if request.param == "static":
        return static_model()
    try:
        return compiled_model()
    except Unavailable as why:
        pytest.skip(str(why))


class TestCache:
    def test_decode_cut_splice_resume_equals_full_recomputation(self, model: GPTJ) -> None:
        """What the gateway does around a tool call, step by step, against the oracle."""
        ids = tokens(SMALL, 1, 60)[0].tolist()
        cache = model.new_cache(2)
        model.extend(cache, [1], [ids[:20]])
        for token in ids[20:30]:
            model.extend(cache, [1], [[token]])
        cache.cut(1, 24)
        kept = ids[:24] + ids[40:]
        model.extend(cache, [1], [ids[40:52]])
        logits = model.extend(cache, [1], [ids[52:]])
        torch.testing.assert_close(logits[0], model(torch.tensor([kept]))[0, -1], atol=2e-4, rtol=1e-4)

    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_any_history_of_rows_equals_full_recomputation(self, model: GPTJ, data: st.DataObject) -> None:
        """Ragged batches, cuts and swaps in any order: each row's next logits are those of its own tokens alone."""
        cache = model.new_cache(4, 64)
        texts: list[list[int]] = [[] for _ in range(4)]
        for _ in range(data.draw(st.integers(1, 6))):
            step = data.draw(st.sampled_from(["extend", "extend", "cut", "swap"]))
            if step == "extend":
                rows = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True))
                new = [data.draw(st.lists(st.integers(0, 423), min_size=1, max_size=7)) for _ in rows]
                logits = model.extend(cache, rows, new)
                for row, more, got in zip(rows, new, logits, strict=True):
                    texts[row] += more
                    want = model(torch.tensor([texts[row]]))[0, -1]
                    torch.testing.assert_close(got, want, atol=2e-4, rtol=1e-4)
            elif step == "cut":
                row = data.draw(st.integers(0, 3))
                length = data.draw(st.integers(0, len(texts[row])))
                cache.cut(row, length)
                del texts[row][length:]
            else:
                a, b = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
                cache.swap(a, b)
                texts[a], texts[b] = texts[b], texts[a]
        assert cache.lengths == [len(text) for text in texts]

    def test_a_full_row_is_refused_and_unharmed(self, model: GPTJ) -> None:
        cache = model.new_cache(1, 8)
        model.extend(cache, [0], [[1] * 8])
        with pytest.raises(ValueError, match="9 tokens do not fit a cache of 8"):
            model.extend(cache, [0], [[1]])
        assert cache.lengths == [8]

    def test_a_cut_beyond_the_end_is_refused(self) -> None:
        with pytest.raises(ValueError, match="cannot cut"):
            random_model().new_cache(1).cut(0, 1)

    def test_bytes_per_token(self) -> None:
        cache = random_model().new_cache(3, 10)
        assert (
            random_model().cache_bytes_per_token * 3 * 10
            == cache.nbytes
            == 3 * 10 * 2 * SMALL.n_layer * SMALL.n_embd * 4
        )


class TestDamagedCheckpoints:
    """A wrong checkpoint is a clear error that names the file, never a traceback at the first completion."""

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        checkpoint.save(random_model(), tmp_path)
        return tmp_path

    def test_no_directory(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match=r"config\.json is missing"):
            checkpoint.load(tmp_path / "nowhere")

    def test_no_weights(self, directory: Path) -> None:
        (directory / "model.safetensors").unlink()
        with pytest.raises(CheckpointError, match=r"neither model\.safetensors nor pytorch_model\.bin"):
            checkpoint.load(directory)

    def test_half_a_file(self, directory: Path) -> None:
        path = directory / "model.safetensors"
        path.write_bytes(path.read_bytes()[:1000])
        with pytest.raises(CheckpointError, match="damaged"):
            checkpoint.load(directory)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"model_type": "gpt2"}, "expected 'gptj'"),
            ({"n_layer": 3}, "weights are missing"),
            ({"vocab_size": 500}, "has shape"),
            ({"n_head": 5}, "not a multiple"),
            ({"rotary_dim": 7}, "must be even"),
            ({"activation_function": "relu"}, "gelu_new"),
        ],
    )
    def test_a_config_that_does_not_fit(self, directory: Path, change: dict[str, object], message: str) -> None:
        path = directory / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(directory)

    def test_a_config_that_is_not_json(self, directory: Path) -> None:
        (directory / "config.json").write_text("{")
        with pytest.raises(CheckpointError, match="not JSON"):
            checkpoint.load(directory)
