"""Weights on disk: safetensors files in Hugging Face's layout, one or several shards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from toolformer.model_files.whole import whole

SINGLE_FILE: Final = "model.safetensors"
SHARD_INDEX: Final = "model.safetensors.index.json"
SHARD_BYTES: Final = 2 << 30

State = dict[str, Tensor]
"""Tensors by name."""

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class WeightsError(ValueError):
    """Weights are missing, broken, or those of another model; the message names the file."""


def shards_of(state: Mapping[str, Tensor], dtype: torch.dtype, shard_bytes: int = SHARD_BYTES) -> list[list[str]]:
    """The names of ``state`` in groups that take at most ``shard_bytes`` each as ``dtype`` (or one tensor)."""
    shards: list[list[str]] = [[]]
    size = 0
    for name, tensor in state.items():
        tensor_bytes = tensor.numel() * dtype.itemsize
        if shards[-1] and size + tensor_bytes > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += tensor_bytes
    return shards


def save_weights(
    folder: Path, state: Mapping[str, Tensor], dtype: torch.dtype, *, shard_bytes: int = SHARD_BYTES
) -> list[Path]:
    """Write ``state`` into ``folder`` and return its files. A shard that is there already is kept: it was written
    whole, under its own name only at the end."""
    shards = shards_of(state, dtype, shard_bytes)
    names = [SINGLE_FILE]
    if len(shards) > 1:
        names = [f"model-{number:05d}-of-{len(shards):05d}.safetensors" for number in range(1, len(shards) + 1)]
    for name, tensors in zip(names, shards, strict=True):
        if (folder / name).exists():
            continue
        # Copies: tensors that share memory (a tied checkpoint's) cannot be written as they are.
        own = {key: state[key].to(dtype).clone(memory_format=torch.contiguous_format) for key in tensors}
        with whole(folder / name) as partial:
            save_file(own, partial)
    written = [folder / name for name in names]
    if len(shards) > 1:
        places = {key: name for name, tensors in zip(names, shards, strict=True) for key in tensors}
        (folder / SHARD_INDEX).write_text(json.dumps({"weight_map": places}, indent=2) + "\n", encoding="utf-8")
        written.append(folder / SHARD_INDEX)
    return written


def load_weights(folder: Path, model: ModuleT, *, dtype: torch.dtype, device: torch.device) -> ModuleT:
    """``model`` (made on the meta device) with the weights in ``folder``, in inference mode.

    Raises:
        WeightsError: a file is missing or broken, a tensor is missing, unknown or of another shape.
    """
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    state: dict[str, Tensor] = {}
    for name, tensor in _tensors(folder, device):
        if name not in expected:
            raise WeightsError(f"{folder} holds a tensor {name!r} that config.json leaves no place for")
        if tensor.shape != expected[name]:
            raise WeightsError(
                f"{folder}: {name} has the shape {tuple(tensor.shape)}, config.json asks for {tuple(expected[name])}"
            )
        if tensor.numel() and not torch.stack(tensor.aminmax()).isfinite().all():
            raise WeightsError(f"{folder}: {name} holds a weight that is no number")
        state[name] = tensor.to(dtype)
    if missing := sorted(expected.keys() - state.keys()):
        raise WeightsError(f"{folder} lacks {len(missing)} tensors, the first of them {missing[0]!r}")
    model.load_state_dict(state, assign=True)
    model.requires_grad_(False)
    return model.eval()


def _tensors(folder: Path, device: torch.device) -> Iterator[tuple[str, Tensor]]:
    for path in _files(folder):
        try:
            with safe_open(path, framework="pt", device=str(device)) as source:
                for name in source.keys():  # noqa: SIM118, not a dictionary
                    yield name, source.get_tensor(name)
        except FileNotFoundError:
            raise WeightsError(f"there is no {path}") from None
        except SafetensorError as error:
            raise WeightsError(f"{path} is broken ({error})") from error


def _files(folder: Path) -> list[Path]:
    index = folder / SHARD_INDEX
    if not index.exists():
        return [folder / SINGLE_FILE]
    try:
        places: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return [folder / Path(name).name for name in sorted(set(places.values()))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{index} is broken: it holds no 'weight_map'") from error
