"""Decoding by a model of Llama's shape, with 100 million random weights; ``decode.py --llama`` runs it.

The local engine takes all streams through transformers' modules at once, with the products in compiled code or in
torch; `one by one` is what it does with models that cannot be taken so. transformers gets all prompts as one batch.
Where vLLM is installed (`make test-vllm` makes such an environment) only the gateway's backend that is vLLM is
measured. Peers take turns, and the best round of each counts."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks.peers import (
    SCALES,
    Peer,
    batch_of,
    quiet_transformers,
    reading_speed,
    show,
    streams_of,
    take_turns,
    vllm_of,
)
from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from language_model.native.packing import Weights
from language_model.other_models.base import OtherCausalLM
from language_model.other_models.from_transformers import load_other
from language_model.other_models.one_by_one import OneByOne
from language_model.other_models.together import Together
from language_model.tokenizer import ByteLevelTokenizer

SIZES: Final = {
    "vocab_size": 16_384, "hidden_size": 768, "intermediate_size": 2_048, "num_hidden_layers": 12,
    "num_attention_heads": 12, "num_key_value_heads": 4, "max_position_embeddings": 2_048,
    "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The table of ``options.streams`` and ``options.tokens``."""
    torch.set_num_threads(max(options.threads))
    with tempfile.TemporaryDirectory(dir=options.scratch) as directory:
        folder = Path(directory)
        read = random_checkpoint(folder, options.model)
        if find_spec("vllm"):
            peers = [Peer("vLLM", await vllm_of(folder, "float32"), 4.0 * read)]
        else:
            peers = await in_this_process(folder, read)
        await take_turns(peers, options)
        reading = reading_speed(4 * read)
    show(peers, reading)
    return {"reading_bytes_per_s": reading, "rows": [{"peer": peer.name} | peer.best for peer in peers]}


def random_checkpoint(folder: Path, model: Path) -> int:
    """Write such a checkpoint with ``model``'s vocabulary; how many weights a step reads."""
    import transformers

    quiet_transformers()
    made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    made.save_pretrained(folder)
    shutil.copy(model / "tokenizer.json", folder)
    read: int = made.num_parameters() - made.model.embed_tokens.weight.numel()
    return read


async def in_this_process(folder: Path, read: int) -> list[Peer]:
    """The local engine in its ways, and transformers."""
    import transformers

    theirs = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = ByteLevelTokenizer.from_pretrained(folder)
    limits = EngineLimits(max_sequences=32, max_model_len=1_024, reuse_prefixes=False, prefill_tokens=512)
    peers = [Peer("transformers", batch_of(theirs), 4.0 * read)]
    ways: dict[str, OtherCausalLM[Any]] = {"one by one": OneByOne(theirs), "engine, torch": load_other(folder)}
    for kind in (Weights.FLOAT32, Weights.INT8):
        ways[f"engine, {kind.name.lower()}"] = model = load_other(folder)
        assert isinstance(model, Together)
        model.pack(kind)
    for name, model in ways.items():
        backend = LocalBackend(model, tokenizer, "bench", limits)
        await backend.start()
        peers.append(Peer(name, streams_of(backend), (SCALES if "int8" in name else 4.0) * read))
    return peers
