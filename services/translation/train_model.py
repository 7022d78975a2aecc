"""The bundled translation model: transformers' M2M-100, small, trained on the parallel phrases."""

from __future__ import annotations

import itertools
import json
import logging
import math
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration

from demo_world.phrases import LANGUAGES, Phrase, compositions, lexicon
from services.translation.flores import ENGLISH

logger = logging.getLogger(__name__)

BOS: Final = 0
PAD: Final = 1
EOS: Final = 2

_STATE: Final = "state.pt"
_NOT_A_LABEL: Final = -100
_POOL_BATCHES: Final = 8
"""Batches drawn together and sorted by length, so that little is spent on padding."""


@dataclass(frozen=True)
class Recipe:
    """Everything the model follows from."""

    seed: int = 0
    vocabulary: int = 5_000
    width: int = 192
    feed_forward: int = 512
    heads: int = 4
    encoder_layers: int = 2
    decoder_layers: int = 2
    positions: int = 256
    """Longest source and target in tokens."""
    steps: int = 2_000
    batch_phrases: int = 96
    lexicon_share: float = 0.3
    rate: float = 2e-3
    warmup_steps: int = 150
    clip: float = 1.0
    checkpoint_every: int = 200

    def rate_at(self, step: int) -> float:
        """The learning rate: a linear rise, then half a cosine down to nothing."""
        if step < self.warmup_steps:
            return self.rate * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        return self.rate * 0.5 * (1 + math.cos(math.pi * done))


def new_model(recipe: Recipe, tokenizer: Tokenizer) -> M2M100ForConditionalGeneration:
    """A model with random weights from the recipe's seed."""
    torch.manual_seed(recipe.seed)
    config = M2M100Config(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=recipe.width,
        encoder_layers=recipe.encoder_layers,
        decoder_layers=recipe.decoder_layers,
        encoder_attention_heads=recipe.heads,
        decoder_attention_heads=recipe.heads,
        encoder_ffn_dim=recipe.feed_forward,
        decoder_ffn_dim=recipe.feed_forward,
        max_position_embeddings=recipe.positions,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        scale_embedding=True,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=EOS,
    )
    return M2M100ForConditionalGeneration(config)


def train_model(
    recipe: Recipe, tokenizer: Tokenizer, run: Path, *, stop_after: int | None = None
) -> M2M100ForConditionalGeneration:
    """Trains a model; killed and called again with the same arguments, it goes on from the last checkpoint in `run`
    and sees the same batches in the same order. `stop_after` ends the run early, after that many of its steps.

    Raises:
        ValueError: `run` holds a checkpoint of another recipe.
    """
    model = new_model(recipe, tokenizer).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, betas=(0.9, 0.98), weight_decay=0.01)
    first = _resume(run, recipe, model, optimizer)
    last = recipe.steps if stop_after is None else min(stop_after, recipe.steps)
    began, tokens, losses = time.perf_counter(), 0, 0.0
    for step, batch in zip(range(first, last), _batches(recipe, tokenizer, first), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(step)
        loss: Tensor = model(**batch).loss
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tokens += int((batch["input_ids"] != PAD).sum() + (batch["labels"] != _NOT_A_LABEL).sum())
        losses += loss.item()
        if (step + 1) % 50 == 0:
            speed = tokens / (time.perf_counter() - began)
            logger.info("step %d of %d: loss %.4f, %.0f tokens/s", step + 1, recipe.steps, losses / 50, speed)
            losses = 0.0
        if (step + 1) % recipe.checkpoint_every == 0 or step + 1 == last:
            _save_state(run, recipe, model, optimizer, step + 1)
    return model.eval()


def save_checkpoint(model: M2M100ForConditionalGeneration, folder: Path) -> None:
    """Writes `model` as a Hugging Face checkpoint whose defaults translate into English, as NLLB's do."""
    model.generation_config = GenerationConfig(
        bos_token_id=BOS, pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=EOS
    )
    model.save_pretrained(folder)


def encode(tokenizer: Tokenizer, language: str, text: str) -> list[int]:
    """`text` in NLLB's form: the language's token, the text's, and ``</s>``.

    Raises:
        ValueError: the tokenizer does not know the language.
    """
    token = tokenizer.token_to_id(language)
    if token is None:
        raise ValueError(f"the tokenizer has no token for {language}")
    return [token, *tokenizer.encode(text, add_special_tokens=False).ids, EOS]


def _batches(recipe: Recipe, tokenizer: Tokenizer, first: int) -> Iterator[dict[str, Tensor]]:
    """The batches from step `first` on; each pool of batches follows from the seed and its own number alone."""
    entries = {language: list(lexicon(language)) for language in LANGUAGES}
    for pool in itertools.count(first // _POOL_BATCHES):
        rng = random.Random(f"{recipe.seed}/{pool}")
        drawn = compositions(rng.randrange(1 << 62), held_out=False)
        phrases = [_draw(rng, recipe, drawn, entries) for _ in range(_POOL_BATCHES * recipe.batch_phrases)]
        phrases.sort(key=lambda phrase: len(phrase.text) + len(phrase.english))
        size = recipe.batch_phrases
        batches = [phrases[start : start + size] for start in range(0, len(phrases), size)]
        rng.shuffle(batches)
        for number, batch in enumerate(batches):
            if pool * _POOL_BATCHES + number >= first:
                yield _tensors(tokenizer, batch)


def _draw(rng: random.Random, recipe: Recipe, drawn: Iterator[Any], entries: dict[str, list[Phrase]]) -> Phrase:
    language = rng.choice(LANGUAGES)
    if rng.random() < recipe.lexicon_share:
        return rng.choice(entries[language])
    phrase: Phrase = next(drawn).phrase(language)
    return phrase


def _tensors(tokenizer: Tokenizer, phrases: list[Phrase]) -> dict[str, Tensor]:
    sources = [encode(tokenizer, phrase.language, phrase.text) for phrase in phrases]
    targets = [encode(tokenizer, ENGLISH, phrase.english) for phrase in phrases]
    inputs = _padded(sources, PAD)
    return {"input_ids": inputs, "attention_mask": (inputs != PAD).long(), "labels": _padded(targets, _NOT_A_LABEL)}


def _padded(rows: list[list[int]], filler: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


def _save_state(run: Path, recipe: Recipe, model: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    partial = run / f"{_STATE}.partial"
    torch.save(
        {"recipe": asdict(recipe), "model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
        partial,
    )
    partial.replace(run / _STATE)  # atomic: a kill leaves the old checkpoint or the new one


def _resume(run: Path, recipe: Recipe, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    if not (run / _STATE).exists():
        return 0
    state = torch.load(run / _STATE, weights_only=True)
    if state["recipe"] != asdict(recipe):
        held = json.dumps(state["recipe"])
        raise ValueError(f"{run} holds a run of another recipe ({held}); give it another --out or remove it")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step: int = state["step"]
    return step
