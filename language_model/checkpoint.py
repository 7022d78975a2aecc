"""Reading and writing Hugging Face ``GPTJForCausalLM`` checkpoints.

The published layout keeps queries, keys and values apart; :class:`~language_model.gptj.GPTJ` keeps them in one
matrix. Weights come from ``model.safetensors`` (one file or an index of shards) or, as ``EleutherAI/gpt-j-6b`` was
published, ``pytorch_model.bin``."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from language_model.block import rotation_table
from language_model.config import CheckpointError, GPTJConfig
from language_model.gptj import GPTJ
from toolformer.model_files.digests import DamagedError, check, forget, record

_SPLIT = ("q_proj", "k_proj", "v_proj")


def load(directory: Path, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> GPTJ:
    """Load the model in ``directory``, in evaluation mode and without gradients.

    Raises:
        CheckpointError: if files are missing, damaged or do not fit ``config.json``; the message names the first
        few keys.
    """
    weights = Published(directory)
    with torch.device("meta"):
        model = GPTJ(weights.config)
    model.load_state_dict({name: tensor.to(device, dtype) for name, tensor in weights.whole()}, assign=True)
    model.rotations = rotation_table(weights.config, device)
    return model.eval().requires_grad_(False)


class Published:
    """The weights of a published checkpoint by our names, read from its files when they are asked for."""

    def __init__(self, directory: Path) -> None:
        """Open the files.

        Raises:
            CheckpointError: if one is missing or damaged, or weights are missing.
        """
        self.directory, self.config = directory, GPTJConfig.load(directory)
        self._state = _from_published(_read_weights(directory))
        with torch.device("meta"):
            self._shapes = {name: tensor.shape for name, tensor in GPTJ(self.config).state_dict().items()}
        found = {name.replace("attn.q_proj", "qkv_proj") for name in self._state}
        if missing := sorted(self._shapes.keys() - found):
            raise CheckpointError(f"{directory}: weights are missing: {', '.join(missing[:3])}")

    def whole(self) -> Iterator[tuple[str, Tensor]]:
        """All weights with their names."""
        return ((name, self[name]) for name in self._shapes)

    def take_layer(self, number: int) -> dict[str, Tensor]:
        """The weights of a block, by their names in it. They can be asked for once: what of their file is in memory can
        then be let go."""
        prefix = f"blocks.{number}."
        layer = {name.removeprefix(prefix): self[name] for name in self._shapes if name.startswith(prefix)}
        self._state = {name: tensor for name, tensor in self._state.items() if not name.startswith(prefix)}
        return layer

    def __getitem__(self, name: str) -> Tensor:
        """One of the weights.

        Raises:
            CheckpointError: if its shape is not that of ``config.json``, or it holds what is no number.
        """
        if name.endswith(".qkv_proj.weight"):
            parts = [self._state.get(name.replace("qkv_proj", f"attn.{part}")) for part in _SPLIT]
            if any(part is None for part in parts):
                raise CheckpointError(f"{self.directory}: weights are missing: {name}")
            tensor = torch.cat([part for part in parts if part is not None])
        else:
            tensor = self._state[name]
        require_numbers(self.directory, name, tensor)
        if tensor.shape != self._shapes[name]:
            wanted = tuple(self._shapes[name])
            raise CheckpointError(
                f"{self.directory}: {name} has shape {tuple(tensor.shape)}, config.json asks for {wanted}"
            )
        return tensor


def save(model: GPTJ, directory: Path) -> None:
    """Write ``config.json`` and ``model.safetensors`` in the published layout; a reader never sees half a file."""
    directory.mkdir(parents=True, exist_ok=True)
    model.config.save(directory)
    partial = directory / "model.safetensors.partial"
    try:
        tensors = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in to_published(model).items()
        }
        save_file(tensors, partial, metadata={"format": "pt"})
        shutil.copymode(directory / "config.json", partial)  # safetensors lets nobody but the owner read: no server may
        forget(directory)
        partial.replace(directory / "model.safetensors")
    finally:
        partial.unlink(missing_ok=True)
    record(directory, ["model.safetensors"])


def require_recorded(file: Path) -> None:
    """Compare a file of a checkpoint with the digest that its folder has of it, if any.

    Raises:
        CheckpointError: it differs.
    """
    try:
        check(file.parent, name=file.name)
    except DamagedError as error:
        raise CheckpointError(f"{error}: fetch the checkpoint again, or make it again") from None


def require_numbers(directory: Path, name: str, tensor: Tensor) -> None:
    """Refuse a weight that is no number: it would spread to every token.

    Raises:
        CheckpointError: naming the tensor.
    """
    if tensor.is_floating_point() and tensor.numel() and not torch.stack(tensor.aminmax()).isfinite().all():
        raise CheckpointError(f"{directory}: {name} holds a weight that is no number: fetch the checkpoint again")


def _read_weights(directory: Path) -> dict[str, Tensor]:
    merged: dict[str, Tensor] = {}
    for path in weight_files(directory):
        require_recorded(path)
        try:
            if path.suffix == ".safetensors":
                merged |= load_file(path)
            else:
                # Files older than torch 1.6 are no archives, and cannot be mapped.
                merged |= torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing though the index names it: fetch the checkpoint again") from None
        # A file that is none of these is read as far as it goes, so the library may end in any error.
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise CheckpointError(f"{path} is damaged ({reason}): fetch the checkpoint again") from None
    return merged


def weight_files(directory: Path) -> Iterator[Path]:
    """The files that hold the weights of the checkpoint in ``directory``.

    Raises:
        CheckpointError: there are none.
    """
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (directory / name).exists():
            yield directory / name
            return
        index = directory / f"{name}.index.json"
        if index.exists():
            shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
            if strange := [shard for shard in shards if Path(shard).name != shard]:
                raise CheckpointError(f"{index} names {strange[0]!r}, which is no file of this folder")
            yield from (directory / shard for shard in shards)
            return
    raise CheckpointError(f"{directory} holds neither model.safetensors nor pytorch_model.bin (nor an index of shards)")


def _from_published(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Published names to ours, but for queries, keys and values, which stay apart."""
    state = {}
    for name, tensor in weights.items():
        ours = (
            name.removeprefix("transformer.").replace("h.", "blocks.", 1) if name.startswith("transformer.") else name
        )
        state[ours.replace(".attn.out_proj", ".out_proj").replace(".mlp.", ".")] = tensor
    return state


def to_published(model: GPTJ) -> dict[str, Tensor]:
    """The weights of ``model`` by their published names; queries, keys and values are views of its one matrix."""
    published = {}
    for name, tensor in model.state_dict().items():
        if name.startswith("lm_head."):
            published[name] = tensor
        elif not name.startswith("blocks."):
            published[f"transformer.{name}"] = tensor
        else:
            _, number, part, kind = name.split(".")
            layer = f"transformer.h.{number}"
            if part == "qkv_proj":
                for piece, split in zip(tensor.chunk(3), _SPLIT, strict=True):
                    published[f"{layer}.attn.{split}.weight"] = piece
            elif part == "out_proj":
                published[f"{layer}.attn.{part}.{kind}"] = tensor
            elif part == "ln_1":
                published[f"{layer}.{part}.{kind}"] = tensor
            else:
                published[f"{layer}.mlp.{part}.{kind}"] = tensor
    return published
