"""The translation model: transformers' M2M-100, small, trained on real pairs."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, Protocol, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration

from language_model.head_loss import head_loss
from language_model.optimizers import Optimizing, optimizers
from language_model.short_rows import attention_for
from language_model.training_run import TrainingRun, ahead

logger = logging.getLogger(__name__)

BOS: Final = 0
PAD: Final = 1
EOS: Final = 2

_NOT_A_LABEL: Final = -100
_LATER: Final = ("steps", "cooldown_steps")
"""What of a recipe may be changed while it runs: how long it is."""
_WARMUP_BY_CLOCK: Final = 0.02
_COOLDOWN_BY_CLOCK: Final = 0.5
"""Shares of the time of a run that ends by the clock in which the rate rises, and falls."""
_AHEAD: Final = 8
"""Batches that are made while a GPU computes."""

Row = tuple[Sequence[int], Sequence[int]]
"""The tokens of a source and of its English, in NLLB's form."""


class Pools(Protocol):
    """Where batches come from. A pool is drawn at once, and follows from the seed and its own number alone."""

    def batches(self, pool: int) -> list[list[Row]]:
        """The batches of one pool, in the order in which they are trained on."""


@dataclass(frozen=True)
class TranslationRecipe:
    """Everything the model follows from, besides its texts: 9.5 million weights, for two hours of one core."""

    seed: int = 0
    vocabulary: int = 10_000
    width: int = 256
    feed_forward: int = 1_024
    heads: int = 4
    encoder_layers: int = 6
    decoder_layers: int = 2
    positions: int = 256
    """Longest source and target in tokens."""
    dropout: float = 0.0
    label_smoothing: float = 0.1
    steps: int = 5_800
    batch_tokens: int = 6_144
    """Tokens of a batch, sources and targets and padding together."""
    lexicon_share: float = 0.12
    """Of what is drawn, the share of single words."""
    short_share: float = 0.0
    """Of what is drawn, the share of short sentences and of frequent words: greetings, and what a sign says."""
    phrasebook_share: float = 0.0
    """Of what is drawn, the share of the phrasebook."""
    phrase_share: float = 0.08
    """Of what is drawn, the share of phrases of the generated world; the others are sentences."""
    temperature: float = 2.0
    """A language with n pairs is drawn in proportion to n ** (1 / temperature)."""
    plain_share: float = 0.1
    """Of the pairs, the share whose source loses capitals and its final mark, as people type it."""
    rate: float = 3e-3
    warmup_steps: int = 150
    cooldown_steps: int = 2_000
    clip: float = 1.0
    optimizer: Optimizing = "muon"
    """Of the layers' matrices."""
    precision: Literal["float32", "bfloat16"] = "bfloat16"
    """Of products: in bfloat16, where a processor has units for it, a step takes half the time."""

    def rate_at(self, step: int) -> float:
        """The learning rate: a linear rise, then always the same until the last steps, in which it falls to nothing in
        a line, so that a run's end may be chosen while it runs."""
        return self.rate * min(1.0, (step + 1) / self.warmup_steps, (self.steps - step) / self.cooldown_steps)

    def rate_by_clock(self, share: float) -> float:
        """The same of a run that ends by the clock, after this ``share`` of its time."""
        return self.rate * max(0.0, min(1.0, share / _WARMUP_BY_CLOCK, (1 - share) / _COOLDOWN_BY_CLOCK))


def new_model(recipe: TranslationRecipe, tokenizer: Tokenizer) -> M2M100ForConditionalGeneration:
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
        dropout=recipe.dropout,
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
    recipe: TranslationRecipe,
    tokenizer: Tokenizer,
    run: Path,
    pools: Pools,
    *,
    start: Path | None = None,
    stop_after: int | None = None,
    seconds: float | None = None,
    device: str = "cpu",
    checkpoint_seconds: float = 300.0,
    examine: Callable[[M2M100ForConditionalGeneration], str] | None = None,
    examine_every: int = 2_000,
) -> M2M100ForConditionalGeneration:
    """Trains a model; killed and called again with the same arguments, it goes on from the last checkpoint in `run`
    and sees the same batches in the same order, with the same dropout.

    Args:
        recipe: what is trained; a run may be gone on with by one that differs in its length alone.
        tokenizer: its vocabulary is the model's.
        run: folder of the checkpoint.
        pools: where batches come from.
        start: the checkpoint of a model with this tokenizer, to be trained further; by default the weights are random.
        stop_after: ends the run early, after that many of its steps.
        seconds: ends the run after this time, in which the rate rises and falls, if its steps are not done before.
        device: where it computes, as torch names it.
        checkpoint_seconds: how long the run goes between two checkpoints.
        examine: what the log says of the model every `examine_every` steps and at the end.
        examine_every: see `examine`.

    Raises:
        ValueError: `run` holds a checkpoint of another recipe, or any and is to end by the clock.
    """
    model = new_model(recipe, tokenizer)
    if start is not None:
        model.load_state_dict(M2M100ForConditionalGeneration.from_pretrained(start).state_dict())
    where = torch.device(device)
    cast(nn.Module, model).to(where).train()
    began = saved = time.perf_counter()

    def share() -> float:
        return (time.perf_counter() - began) / (seconds or math.inf)

    def rate(step: int) -> float:
        return recipe.rate_at(step) if seconds is None else recipe.rate_by_clock(share())

    changing = optimizers(model, recipe.optimizer, betas=(0.9, 0.98), weight_decay=0.01)
    training = TrainingRun(run, model, changing, recipe, rate=rate, clip=recipe.clip, length=_LATER)
    if seconds is not None and training.step:
        raise ValueError(f"a run that ends by the clock is run at one go, and {run} holds one: name another folder")
    last = recipe.steps if stop_after is None else min(stop_after, recipe.steps)
    batches = _from(pools, training.more.get("place", (0, 0)))
    if where.type == "cuda":
        batches = ahead(batches, _AHEAD)
    tokens, losses = 0, list[float]()

    def loss_of(step: int) -> Tensor:
        nonlocal tokens
        torch.manual_seed(hash((recipe.seed, step)))
        training.more["place"], count, batch = next(batches)
        tokens += count
        autocast = torch.autocast(where.type, torch.bfloat16, enabled=recipe.precision == "bfloat16")
        with autocast, attention_for(where, recipe.positions):
            return _loss(model, {name: one.to(where) for name, one in batch.items()}, recipe.label_smoothing)

    for loss in training.steps(last, loss_of):
        step = training.step
        training.log(loss=loss)
        losses.append(loss)
        if step % 50 == 0:
            speed = tokens / (time.perf_counter() - began)
            logger.info("step %d of %d: loss %.4f, %.0f tokens/s", step, recipe.steps, fmean(losses), speed)
            losses.clear()
        done = step == last or share() >= 1
        if done or time.perf_counter() - saved > checkpoint_seconds:
            training.save()
            saved = time.perf_counter()
        if examine is not None and (done or step % examine_every == 0):
            logger.info("step %d: %s", step, examine(model.eval()))
            model.train()
        if done:
            break
    return cast(nn.Module, model).cpu().eval()


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


def _from(pools: Pools, place: tuple[int, int]) -> Iterator[tuple[tuple[int, int], int, dict[str, Tensor]]]:
    """The batches from a pool's n-th on, each with the place behind it and the number of its tokens."""
    first, number = place
    for pool in itertools.count(first):
        batches = pools.batches(pool)
        for index in range(number if pool == first else 0, len(batches)):
            count = sum(len(source) + len(target) for source, target in batches[index])
            yield (pool, index + 1), count, _tensors(batches[index])


def _tensors(batch: Sequence[Row]) -> dict[str, Tensor]:
    inputs = padded([list(source) for source, _ in batch], PAD)
    labels = padded([list(target) for _, target in batch], _NOT_A_LABEL)
    # The decoder reads what it should have written so far, behind its start token.
    started = torch.cat([torch.full((len(batch), 1), EOS), labels[:, :-1]], dim=1).masked_fill_(
        labels == _NOT_A_LABEL, PAD
    )
    return {
        "input_ids": inputs,
        "attention_mask": (inputs != PAD).long(),
        "decoder_input_ids": started,
        "labels": labels,
    }


def _loss(model: M2M100ForConditionalGeneration, tensors: dict[str, Tensor], smoothing: float) -> Tensor:
    """Cross-entropy over the targets' tokens; the padding between them takes no part."""
    labels = tensors.pop("labels")
    hidden = model.model(**tensors, use_cache=False).last_hidden_state
    wanted = labels != _NOT_A_LABEL
    return head_loss(hidden[wanted], model.lm_head.weight, None, labels[wanted], smoothing=smoothing)


def padded(rows: list[list[int]], filler: int) -> Tensor:
    """`rows` as one tensor, the shorter ones followed by `filler`."""
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])
