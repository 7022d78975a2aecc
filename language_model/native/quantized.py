"""Quantized weights in files of their own, made once from a checkpoint, a layer at a time, and mapped into memory.

They stand in ``int8/`` or ``int4/`` beside the checkpoint: ``weights.json`` says of what they were made, and a file for
each layer holds its matrices in the order in which the compiled step reads them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from language_model.block import Block
from language_model.checkpoint import Published, require_recorded, weight_files
from language_model.config import CheckpointError, GPTJConfig
from language_model.native.packing import GROUP, Matrix, PackedLayer, PackedModel, Weights, pack_block, pack_head
from toolformer.model_files.digests import record

_ABOUT: Final = "weights.json"
_FORMAT: Final = 1
_HEAD: Final = "head.safetensors"

Progress = Callable[[int, int], None]
"""Takes how many files are written, and of how many."""


def folder_of(directory: Path, weights: Weights) -> Path:
    """Where the quantized weights of the checkpoint in ``directory`` stand."""
    return directory / weights.name.lower()


def pack_checkpoint(directory: Path, weights: Weights) -> PackedModel:
    """The checkpoint's weights, packed in memory, a layer at a time.

    Raises:
        CheckpointError: it cannot be used.
    """
    published = Published(directory)
    layers = [_packed_block(published, number, weights) for number in range(published.config.n_layer)]
    embedding, head = _packed_ends(published, weights)
    return PackedModel(published.config, embedding, layers, head)


def quantize(
    directory: Path,
    weights: Weights,
    target: Path | None = None,
    report: Progress | None = None,
    *,
    again: bool = True,
) -> Path:
    """Write the quantized weights of the checkpoint in ``directory`` to ``target``, a folder that is there whole or not
    at all; by default to :func:`folder_of`. No more than a layer is in memory. Another process that writes them is
    waited for; without ``again``, what it wrote is left as it is.

    Raises:
        CheckpointError: the checkpoint cannot be used, or the files cannot be written.
    """
    target = target or folder_of(directory, weights)
    try:
        with _held(target):
            if again or not target.exists():
                _write(directory, weights, target, report)
    except OSError as error:
        remedy = "make room or correct the rights, or write them elsewhere: toolformer quantize MODEL --out FOLDER"
        raise CheckpointError(f"quantized weights cannot be written to {target}: {error}; {remedy}") from error
    return target


@contextlib.contextmanager
def _held(target: Path) -> Iterator[None]:
    """Hold ``target`` against other processes that write it; waits for its turn. A killed process holds nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(directory: Path, weights: Weights, target: Path, report: Progress | None) -> None:
    partial = target.with_name(f"{target.name}.partial")
    published = Published(directory)
    files = published.config.n_layer + 1
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for number in range(published.config.n_layer):
            _save(_tensors(_packed_block(published, number, weights)), partial / _name(number), directory)
            if report is not None:
                report(number + 1, files)
        embedding, head = _packed_ends(published, weights)
        _save({"embedding": embedding} | _tensors(head), partial / _HEAD, directory)
        about = {"format": _FORMAT, "weights": weights.name.lower(), "group": GROUP, "made_of": _made_of(directory)}
        (partial / _ABOUT).write_text(json.dumps(about, indent=2) + "\n")
        record(partial)
        shutil.rmtree(target, ignore_errors=True)
        partial.replace(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if report is not None:
        report(files, files)


def load_quantized(directory: Path, weights: Weights) -> PackedModel:
    """The quantized weights beside ``config.json`` in ``directory``, mapped into memory; made now if there are none.

    Raises:
        CheckpointError: they are damaged, or were made of other weights or by another version; or there are none, and
        they cannot be made.
    """
    folder, config = folder_of(directory, weights), GPTJConfig.load(directory)
    if not folder.exists():
        quantize(directory, weights, again=False)
    about = _read_about(folder)
    again = f"make them again: toolformer quantize {directory} --to {weights.name.lower()}"
    if (about.get("format"), about.get("group"), about.get("weights")) != (_FORMAT, GROUP, weights.name.lower()):
        raise CheckpointError(f"{folder} was made by another version of this program; {again}")
    made_of = _made_of(directory)
    if made_of and made_of != about.get("made_of"):
        raise CheckpointError(f"{folder} was made of other weights than those beside it; {again}")
    layers = [_load_layer(folder / _name(number), config, weights, last=False) for number in range(config.n_layer)]
    head = _load_layer(folder / _HEAD, config, weights, last=True)
    embedding = _mapped(folder / _HEAD)["embedding"]
    return PackedModel(config, embedding, layers, head)


def _name(layer: int) -> str:
    return f"layer-{layer:03}.safetensors"


def _made_of(directory: Path) -> dict[str, int]:
    """The checkpoint's files of weights with their sizes; empty if only the quantized ones were brought here."""
    try:
        return {path.name: path.stat().st_size for path in weight_files(directory)}
    except CheckpointError:
        return {}


def _read_about(folder: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((folder / _ABOUT).read_text())
    except (OSError, ValueError) as error:
        remedy = "remove the folder, and it is made again"
        raise CheckpointError(f"{folder / _ABOUT} cannot be read ({error}): {remedy}") from None
    return about


def _packed_block(published: Published, number: int, weights: Weights) -> PackedLayer:
    with torch.device("meta"):
        block = Block(published.config)
    block.load_state_dict(published.take_layer(number), assign=True)
    return pack_block(block, weights)


def _packed_ends(published: Published, weights: Weights) -> tuple[Tensor, PackedLayer]:
    """The embedding, and the head."""
    embedding = published["wte.weight"].to(torch.float32 if weights == Weights.FLOAT32 else torch.bfloat16)
    config = published.config
    with torch.device("meta"):
        norm, head = nn.LayerNorm(config.n_embd), nn.Linear(config.n_embd, config.vocab_size)
    for module, name in ((norm, "ln_f"), (head, "lm_head")):
        module.load_state_dict({part: published[f"{name}.{part}"] for part in ("weight", "bias")}, assign=True)
    return embedding, pack_head(norm, head, weights)


def _tensors(layer: PackedLayer) -> dict[str, Tensor]:
    assert layer.norm is not None
    tensors = {"norm.scale": layer.norm[0], "norm.shift": layer.norm[1]}
    for name, matrix in (("into", layer.into), ("out", layer.out)):
        if matrix is not None:
            tensors |= {f"{name}.{part}": getattr(matrix, part) for part in ("panels", "scales", "bias")}
    return tensors


def _save(tensors: dict[str, Tensor], path: Path, directory: Path) -> None:
    save_file(tensors, path)
    shutil.copymode(directory / "config.json", path)  # safetensors lets nobody but the owner read: no server may


def _mapped(path: Path) -> dict[str, Tensor]:
    require_recorded(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except Exception as error:  # the library may end in any error
        raise CheckpointError(f"{path} is damaged ({error}): remove its folder, and it is made again") from None


def _load_layer(path: Path, config: GPTJConfig, weights: Weights, *, last: bool) -> PackedLayer:
    tensors = _mapped(path)
    width, inner = config.n_embd, -(-config.inner_dim // 32) * 32
    sizes = {"into": (config.vocab_size if last else 3 * width + inner, width)}
    if not last:
        sizes["out"] = (width, width + inner)
    matrices: dict[str, Matrix] = {}
    try:
        for name, (out, taken) in sizes.items():
            parts = (tensors[f"{name}.{part}"] for part in ("panels", "scales", "bias"))
            matrices[name] = Matrix(weights, out, taken, *parts)
        norm = tensors["norm.scale"], tensors["norm.shift"]
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path} does not fit ({error}): remove its folder, and it is made again") from None
    return PackedLayer(norm, matrices["into"], matrices.get("out"))
