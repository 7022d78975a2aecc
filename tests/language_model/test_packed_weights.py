"""Packed weights: each form stands for the weights it was made of, and the compiled step computes with it what torch
computes plainly; the files of quantized ones."""

import copy
import fcntl
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from language_model import checkpoint
from language_model.config import CheckpointError, GPTJConfig
from language_model.gptj import GPTJ
from language_model.kv_cache import KVCache
from language_model.native import library, quantized
from language_model.native.compiled import CompiledGPTJ
from language_model.native.linear import PackedLinear
from language_model.native.packing import GROUP, PANEL, Matrix, Weights, pack, pack_model
from language_model.native.quantize import main as quantize_command
from language_model.native.step import NativeStep
from tests.support.models import random_model

CONFIG = GPTJConfig(97, 192, 128, 2, 4, rotary_dim=16, n_inner=200, bos_token_id=0, eos_token_id=0)
WHOLE = [Weights.INT8, Weights.INT4]


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        library.load()
    except library.Unavailable as why:
        pytest.skip(str(why))


def unpack(matrix: Matrix) -> Tensor:
    """The weights ``[out, in]`` that ``matrix`` stands for, in float32."""
    panels, depth = matrix.panels, matrix.depth
    if matrix.weights == Weights.FLOAT32:
        weight = panels.view(-1, depth, PANEL).transpose(1, 2)
    elif matrix.weights == Weights.BFLOAT16:
        weight = panels.view(-1, depth, PANEL // 2, 2).permute(0, 3, 2, 1)
    elif matrix.weights == Weights.INT8:
        weight = panels.view(-1, depth // 4, PANEL, 4).transpose(1, 2)
    else:
        halves = torch.stack([panels & 15, panels >> 4], dim=-1)
        weight = halves.view(-1, depth // 8, PANEL, 4, 2).permute(0, 2, 1, 4, 3)
    weight = weight.reshape(matrix.width, depth).float()
    if matrix.whole:
        scale = matrix.scales.transpose(1, 2).reshape(matrix.width, -1, 1)
        steps = weight.view(matrix.width, -1, GROUP) - (matrix.weights.largest + 1)
        weight = (steps * scale).view(matrix.width, depth)
    return weight[: matrix.out, : matrix.taken]


def whole_rows(x: Tensor) -> Tensor:
    """What is left of rows as whole numbers between -127 and 127, with a scale for each group."""
    depth = x.shape[-1]
    filled = nn.functional.pad(x, (0, -depth % GROUP))
    groups = filled.view(*x.shape[:-1], -1, GROUP)
    highest = groups.abs().amax(dim=-1, keepdim=True)
    numbers = (groups * torch.where(highest > 0, 127 / highest, 0)).round()
    return (numbers * (highest / 127)).view_as(filled)[..., :depth]


Projected = tuple[Tensor, Tensor, Tensor]


def rounding(project: Callable[[Tensor, Tensor], Projected]) -> Callable[[Tensor, Tensor], Projected]:
    """``Block.project`` with keys and values as a cache of bfloat16 keeps them."""

    def rounded(normed: Tensor, rotations: Tensor) -> Projected:
        queries, keys, values = project(normed, rotations)
        return queries, keys.bfloat16().float(), values.bfloat16().float()

    return rounded


class Plain(nn.Module):
    """A linear layer of what a matrix stands for; of whole numbers it takes rows as whole numbers."""

    def __init__(self, weight: Tensor, bias: Tensor | None, kind: Weights) -> None:
        super().__init__()
        self.given, self.bias_of, self.whole = weight, bias, kind in WHOLE

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(whole_rows(x) if self.whole else x, self.given, self.bias_of)


def plain(model: GPTJ, kind: Weights) -> GPTJ:
    """``model`` on torch, of the weights that ``kind`` leaves of its own, with what its cache leaves of keys and
    values."""
    if kind == Weights.FLOAT32:
        return model
    packed, config = pack_model(model, kind), model.config
    model = copy.deepcopy(model)
    model.wte.weight.copy_(packed.embedding)
    width, inner = config.n_embd, config.inner_dim
    for block, layer in zip(model.layers(), packed.layers, strict=True):
        assert layer.out is not None
        into, out = unpack(layer.into), unpack(layer.out)
        block.project = rounding(block.project)  # type: ignore[method-assign, assignment]
        block.qkv_proj = Plain(into[: 3 * width], None, kind)  # type: ignore[assignment]
        block.fc_in = Plain(into[3 * width : 3 * width + inner], block.fc_in.bias, kind)  # type: ignore[assignment]
        block.out_proj = Plain(out[:, :width], None, kind)  # type: ignore[assignment]
        block.fc_out = Plain(out[:, width : width + inner], block.fc_out.bias, kind)  # type: ignore[assignment]
    model.lm_head = Plain(unpack(packed.head.into), model.lm_head.bias, kind)  # type: ignore[assignment]
    return model


@pytest.mark.parametrize(("kind", "error"), list(zip(Weights, (0, 2**-8, 1 / 254, 1 / 14), strict=True)))
@pytest.mark.parametrize(("out", "taken"), [(32, 128), (33, 1), (97, 200), (1, 513)])
def test_a_matrix_stands_for_the_weights_it_was_made_of(kind: Weights, error: float, out: int, taken: int) -> None:
    weight = torch.randn(out, taken, generator=torch.Generator().manual_seed(0))
    weight[0] = 0
    matrix = pack(weight, torch.arange(out), kind)
    assert matrix.bias[:out].tolist() == list(range(out))
    if kind in WHOLE:  # half a step, and the step is the group's largest weight by 127 or by 7
        groups = nn.functional.pad(weight, (0, -taken % GROUP)).view(out, -1, GROUP)
        allowed = groups.abs().amax(dim=-1, keepdim=True).expand_as(groups).reshape(out, -1)[:, :taken] * error
    else:
        allowed = weight.abs() * error
    assert ((unpack(matrix) - weight).abs() <= allowed * 1.001 + 1e-9).all()


def test_a_matrix_that_is_too_short_is_refused() -> None:
    matrix = pack(torch.randn(40, 130), torch.zeros(40), Weights.INT8)
    for part in ("panels", "scales", "bias"):
        parts = {name: getattr(matrix, name) for name in ("panels", "scales", "bias")}
        parts[part] = parts[part].view(-1)[:-1]
        with pytest.raises(ValueError, match="no packed matrix of 40 x 130"):
            Matrix(Weights.INT8, 40, 130, **parts)


@pytest.mark.parametrize("kind", Weights)
@pytest.mark.parametrize(("out", "taken"), [(32, 128), (33, 1), (97, 200)])
@pytest.mark.parametrize("bias", [None, 2.0])
def test_a_layer_of_others_models_equals_torchs(kind: Weights, out: int, taken: int, bias: float | None) -> None:
    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(taken, out, bias=bias is not None).requires_grad_(False)
    if bias is not None:
        layer.bias.fill_(bias)
    x = torch.randn(2, 75, taken, generator=generator)
    packed = PackedLinear(layer.weight, layer.bias, kind)
    slow = Plain(unpack(pack(layer.weight, torch.zeros(out), kind)), layer.bias, kind)
    got = packed(x)
    torch.testing.assert_close(got, slow(x), atol=2e-3 if kind in WHOLE else 1e-5, rtol=1e-4)
    alone = torch.stack([packed(row) for row in x.flatten(0, 1)])
    assert torch.equal(got.flatten(0, 1), alone)


@pytest.mark.parametrize("kind", Weights)
def test_logits_and_cache_equal_torchs(kind: Weights) -> None:
    model = random_model(CONFIG, spread=0.1)
    fast, slow = CompiledGPTJ(pack_model(model, kind)), plain(model, kind)
    generator = torch.Generator().manual_seed(0)
    rows, lengths = [8, 0, 5, 3, 1, 2, 4, 6, 7], [100, 1, 2, 3, 4, 30, 5, 6, 7]
    ids = [torch.randint(97, (length,), generator=generator).tolist() for length in lengths]
    cache = fast.new_cache(9)
    assert cache.tokens.dtype == (torch.float32 if kind == Weights.FLOAT32 else torch.bfloat16)
    assert fast.cache_bytes_per_token == cache.tokens[:, 0, 0].nbytes
    got = fast.extend(cache, rows, ids)
    for row, text, logits in zip(rows, ids, got, strict=True):
        want = slow.forward(torch.tensor([text]))[0]
        # A number that lies between two whole ones may be rounded either way.
        torch.testing.assert_close(logits, want[-1], atol=0.02 if kind in WHOLE else 1e-4, rtol=0)
        every = fast.extend_every(fast.new_cache(1), 0, text)
        assert torch.equal(every[-1], logits)
        assert (every - want).abs().mean() < (2e-3 if kind in WHOLE else 1e-5)
        assert cache.lengths[row] == len(text)


@pytest.mark.parametrize("kind", Weights)
def test_the_bits_depend_on_nothing_else(kind: Weights) -> None:
    model = CompiledGPTJ(pack_model(random_model(CONFIG, spread=0.1), kind))
    generator = torch.Generator().manual_seed(1)
    text, *others = torch.randint(97, (10, 90), generator=generator).tolist()
    alone = model.extend(model.new_cache(1), [0], [text])[0]
    assert torch.equal(alone, model.extend(model.new_cache(10), range(10), [text, *others])[0])
    pieces = model.new_cache(3)
    model.extend(pieces, [2, 1], [text[:50], others[0]])
    model.extend(pieces, [2], [text[50:70]])
    pieces.cut(2, 60)
    assert torch.equal(alone, model.extend(pieces, [0, 2], [[1], text[60:]])[1])
    pieces.copy(2, 0, 80)
    pieces.swap(0, 1)
    assert torch.equal(alone, model.extend(pieces, [1], [text[80:]])[0])


def test_keys_and_values_are_rounded_to_the_nearest_bfloat16() -> None:
    step = NativeStep(pack_model(random_model(CONFIG, spread=0.1)))
    exact, halves = KVCache(CONFIG, 1, 192), KVCache(CONFIG, 1, 192, dtype=torch.bfloat16)
    text = torch.randint(97, (192,), generator=torch.Generator().manual_seed(2)).tolist()
    for cache in (exact, halves):
        step.extend(cache, [0], [text])
    # the first layer's: those of later layers already come of the rounded ones
    assert torch.equal(halves.tokens[0], exact.tokens[0].bfloat16())
    assert not torch.equal(halves.tokens[0].float(), exact.tokens[0])


def saved(folder: Path, dtype: torch.dtype = torch.float32) -> Path:
    """A checkpoint of random weights."""
    model = copy.deepcopy(random_model(CONFIG, spread=0.1))
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    checkpoint.save(model, folder)
    return folder


def logits_of(model: CompiledGPTJ) -> Tensor:
    return model.extend(model.new_cache(1), [0], [list(range(40))])


@pytest.mark.parametrize("kind", Weights)
def test_a_checkpoint_is_loaded_as_what_is_wanted(kind: Weights, tmp_path: Path) -> None:
    want = logits_of(CompiledGPTJ(pack_model(random_model(CONFIG, spread=0.1), kind)))
    for _ in range(2):  # the second time from the files of the first
        got = logits_of(CompiledGPTJ.load(saved(tmp_path), kind))
        assert torch.allclose(got, want, atol=1e-6)
    assert (tmp_path / kind.name.lower()).exists() == (kind in WHOLE)


@pytest.mark.parametrize("kind", WHOLE)
def test_quantized_weights_need_nothing_of_those_they_were_made_of(kind: Weights, tmp_path: Path) -> None:
    source, alone = saved(tmp_path / "source"), tmp_path / "alone"
    seen: list[tuple[int, int]] = []
    made = quantized.quantize(source, kind, report=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    alone.mkdir()
    shutil.copytree(made, alone / made.name)
    shutil.copy(source / "config.json", alone)
    assert torch.equal(logits_of(CompiledGPTJ.load(alone, kind)), logits_of(CompiledGPTJ.load(source, kind)))
    assert sum(path.stat().st_size for path in made.glob("layer*")) < 2 * CONFIG.n_layer * 128 * 1000


class TestFilesThatDoNotFit:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        quantized.quantize(saved(tmp_path), Weights.INT8)
        return tmp_path / "int8"

    def refused(self, folder: Path, match: str) -> None:
        with pytest.raises(CheckpointError, match=match):
            CompiledGPTJ.load(folder.parent, Weights.INT8)

    def test_a_byte_that_changed(self, folder: Path) -> None:
        path = folder / "layer-001.safetensors"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        self.refused(folder, r"layer-001\.safetensors is damaged")

    def test_a_file_that_is_gone(self, folder: Path) -> None:
        (folder / "head.safetensors").unlink()
        self.refused(folder, r"head\.safetensors")

    def test_a_matrix_of_another_shape(self, folder: Path) -> None:
        path = folder / "layer-000.safetensors"
        tensors = load_file(path)
        tensors["out.panels"] = tensors["out.panels"][:-128].clone()
        (folder / "SHA256SUMS").unlink()
        save_file(tensors, path)
        self.refused(folder, r"layer-000\.safetensors does not fit \(no packed matrix of 128 x 352\)")

    @pytest.mark.parametrize("field", ["format", "group", "weights"])
    def test_another_version(self, folder: Path, field: str) -> None:
        about = json.loads((folder / "weights.json").read_text())
        (folder / "SHA256SUMS").unlink()
        (folder / "weights.json").write_text(json.dumps(about | {field: "other"}))
        self.refused(folder, r"made by another version of this program; make them again: toolformer quantize \S+ --to")

    def test_other_weights_beside_them(self, folder: Path) -> None:
        saved(folder.parent, torch.bfloat16)
        self.refused(folder, "was made of other weights than those beside it; make them again")

    def test_no_place_for_them(self, tmp_path: Path) -> None:
        source = saved(tmp_path)
        (source / "int8.partial").touch()  # where their folder should be, a file
        with pytest.raises(CheckpointError, match=r"quantized weights cannot be written to .*--out FOLDER"):
            quantized.quantize(source, Weights.INT8)


def test_a_folder_cut_short_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "int8.partial").mkdir()
    (tmp_path / "int8.partial" / "layer-000.safetensors").write_bytes(b"half of it")
    CompiledGPTJ.load(saved(tmp_path), Weights.INT8)
    assert not (tmp_path / "int8.partial").exists()


def test_what_another_process_writes_is_waited_for(tmp_path: Path) -> None:
    folder = saved(tmp_path) / "int8"
    with (tmp_path / "int8.lock").open("w") as lock, ThreadPoolExecutor(1) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        loading = pool.submit(CompiledGPTJ.load, tmp_path, Weights.INT8)
        theirs = quantized.quantize(saved(tmp_path / "elsewhere"), Weights.INT8)
        theirs.rename(folder)
        fcntl.flock(lock, fcntl.LOCK_UN)
        made_at = (folder / "weights.json").stat().st_mtime_ns
        assert logits_of(loading.result()).isfinite().all()
    assert (folder / "weights.json").stat().st_mtime_ns == made_at


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, alone = saved(tmp_path / "source"), tmp_path / "alone"
    assert quantize_command([str(source), "--to", "int4", "--out", str(alone)]) == 0
    assert "TOOLFORMER_GATEWAY_DTYPE=int4 toolformer up" in capsys.readouterr().out
    assert sorted(path.name for path in alone.iterdir()) == ["config.json", "int4", "int4.lock"]
    CompiledGPTJ.load(alone, Weights.INT4)
    assert quantize_command([str(alone)]) == 1
    assert "holds neither model.safetensors nor" in capsys.readouterr().err
