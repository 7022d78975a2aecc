"""Writes a GPT-J checkpoint as a GGUF file for llama.cpp, which has no GPT-J: as a Phi-2, which computes the same.

    python gptj_as_phi2.py CHECKPOINT FILE

Both add attention and the feed-forward layer of one normalised input to the residual, and a bias to the logits. GPT-J
rotates neighbouring numbers of a head together, Phi-2 those of its two halves: the rows of queries and keys are put in
that order, which leaves the products of the two as they were."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Weights = NDArray[np.float32]

LAYERS: Final = {
    "wte": "token_embd",
    "ln_1": "attn_norm",
    "attn.q_proj": "attn_q",
    "attn.k_proj": "attn_k",
    "attn.v_proj": "attn_v",
    "attn.out_proj": "attn_output",
    "mlp.fc_in": "ffn_up",
    "mlp.fc_out": "ffn_down",
    "ln_f": "output_norm",
    "lm_head": "output",
}
"""What GPT-J calls a layer, and GGUF."""


def write(checkpoint: Path, file: Path) -> None:
    """Write ``checkpoint``, a folder in the form of transformers, as ``file``, in float32."""
    config = json.loads((checkpoint / "config.json").read_bytes())
    writer = gguf.GGUFWriter(file, "phi2")
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_feed_forward_length(config["n_inner"] or 4 * config["n_embd"])
    writer.add_block_count(config["n_layer"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    writer.add_rope_dimension_count(config["rotary_dim"])
    _add_vocabulary(writer, config, json.loads((checkpoint / "tokenizer.json").read_bytes()))
    for name, weights in _tensors(load_file(checkpoint / "model.safetensors"), config):
        writer.add_tensor(name, np.ascontiguousarray(weights))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: Any, config: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    size = config["vocab_size"]
    names = [f"<unused {token}>" for token in range(size)]
    kinds = [gguf.TokenType.UNUSED] * size
    for name, token in tokenizer["model"]["vocab"].items():
        names[token], kinds[token] = name, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        names[added["id"]], kinds[added["id"]] = added["content"], gguf.TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(names)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)


def _tensors(weights: dict[str, Weights], config: dict[str, Any]) -> Iterator[tuple[str, Weights]]:
    for name, tensor in weights.items():
        found = re.fullmatch(r"(?:transformer\.)?(?:h\.(\d+)\.)?(.+)\.(weight|bias)", name)
        assert found, name
        block, layer, kind = found.groups()
        prefix = "" if block is None else f"blk.{block}."
        turned = layer in ("attn.q_proj", "attn.k_proj")
        yield f"{prefix}{LAYERS[layer]}.{kind}", _halves_rotate(tensor, config) if turned else tensor
        if layer == "attn.out_proj":
            yield f"{prefix}{LAYERS[layer]}.bias", np.zeros(len(tensor), np.float32)


def _halves_rotate(tensor: Weights, config: dict[str, Any]) -> Weights:
    heads, rotated = config["n_head"], config["rotary_dim"]
    rows = np.arange(config["n_embd"] // heads)
    rows = np.concatenate([rows[:rotated:2], rows[1:rotated:2], rows[rotated:]])
    return tensor.reshape(heads, len(rows), -1)[:, rows].reshape(tensor.shape)


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
