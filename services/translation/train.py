"""``python -m services.translation.train``: makes translation models from nothing.

    python -m services.translation.train --run var/translation-run --out models/translation-small
    python -m services.translation.train --run var/real-run --out FOLDER --pairs var/pairs --language-id lid.176.ftz

The first makes the bundled models of the demo world's phrases alone, the second one of real pairs, which
`train_pairs.py` prepares. Each step is kept in the run's folder and not done again: a tokenizer, an M2M-100 model as a
Hugging Face checkpoint, a fastText classifier. Then the checkpoint goes through the same conversion as a published one.
Seeded; killed at any moment, the same command goes on. With pairs, ``--steps`` may be raised or lowered on the way: the
learning rate falls to nothing over the last ones only.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer

from demo_world.phrases import LANGUAGES
from services.translation.convert import ConversionError, convert
from services.translation.model_folder import LANGUAGE_ID_NAME, TOKENIZER_NAME
from services.translation.train_exam import Exam
from services.translation.train_language_id import train_language_id
from services.translation.train_model import TranslationRecipe, save_checkpoint, train_model
from services.translation.train_pairs import EXAM_NAME, TRAIN_NAME, read
from services.translation.train_pools import PairPools, PhrasePools
from services.translation.train_sources import Pair
from services.translation.train_tokenizer import phrase_texts, save_tokenizer, train_tokenizer

logger = logging.getLogger(__name__)

CHECKPOINT = "translation-small"
REAL: Final = TranslationRecipe(
    vocabulary=12_000, width=320, feed_forward=1_280, heads=5, encoder_layers=6, decoder_layers=2,
    dropout=0.1, label_smoothing=0.1, steps=6_000, batch_tokens=8_192, lexicon_share=0.12, phrase_share=0.08,
    temperature=2.0, plain_share=0.1, rate=2e-3, warmup_steps=200, cooldown_steps=2_400, optimizer="muon",
    precision="bfloat16",
)  # fmt: skip
"""What is trained on real pairs: 15 million weights."""
EXAMINED: Final = 20
"""Pairs a language that the log's BLEU is of."""


def train(
    run: Path, out: Path, recipe: TranslationRecipe, *, pairs: Path | None = None, language_id: Path | None = None
) -> None:
    """Makes the models.

    Args:
        run: folder for what is made on the way; a run that was broken off goes on from there.
        out: folder of the finished model and classifier; its README, if any, stays.
        recipe: what the model follows from.
        pairs: what `train_pairs.py` wrote; by default the demo world's phrases are all it is trained on.
        language_id: a finished classifier; by default one is trained on the demo world's texts.

    Raises:
        ValueError: `run` was made with another recipe.
        ConversionError: see `convert`.
        OSError: `pairs` or `language_id` cannot be read.
    """
    run.mkdir(parents=True, exist_ok=True)
    checkpoint = run / CHECKPOINT
    checkpoint.mkdir(exist_ok=True)
    real = [] if pairs is None else read(pairs / TRAIN_NAME)
    if not (checkpoint / TOKENIZER_NAME).exists():
        logger.info("training the tokenizer")
        texts = _texts(real) if real else phrase_texts(recipe.seed)
        save_tokenizer(train_tokenizer(recipe.vocabulary, texts, spell=bool(real)), checkpoint)
    tokenizer = Tokenizer.from_file(str(checkpoint / TOKENIZER_NAME))

    if pairs is None:
        model = train_model(recipe, tokenizer, run, PhrasePools(recipe, tokenizer))
    else:
        exam = Exam(tokenizer, read(pairs / EXAM_NAME), EXAMINED)
        model = train_model(recipe, tokenizer, run, PairPools(recipe, tokenizer, real), examine=exam)
    save_checkpoint(model, checkpoint)

    classifier = run / LANGUAGE_ID_NAME
    if language_id is not None:
        shutil.copyfile(language_id, classifier)
    elif not classifier.exists():
        logger.info("training the language classifier")
        train_language_id(classifier, recipe.seed)

    converted = run / "converted"
    shutil.rmtree(converted, ignore_errors=True)
    languages = tuple(sorted({*LANGUAGES, *(pair.language for pair in real)}))
    convert(str(checkpoint), converted, quantization="int8", languages=languages if real else LANGUAGES, beam_size=1)
    out.mkdir(parents=True, exist_ok=True)
    for file in [*sorted(converted.iterdir()), classifier]:
        shutil.copyfile(file, out / file.name)
    logger.info("%s is ready", out)


def _texts(pairs: Sequence[Pair]) -> Iterator[str]:
    yield from phrase_texts(0, count=500)
    for pair in pairs:
        if pair.kind != "word":
            yield from (pair.text, pair.english)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; exits with 1 and one line where the run cannot go on."""
    parser = argparse.ArgumentParser(
        prog="python -m services.translation.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--run", type=Path, required=True, help="folder for checkpoints; a broken-off run goes on there"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the finished models")
    parser.add_argument("--pairs", type=Path, help="folder of real pairs, as train_pairs writes it")
    parser.add_argument("--language-id", type=Path, help="a finished classifier (default: one is trained)")
    parser.add_argument(
        "--steps", type=int, help=f"default: {TranslationRecipe().steps:,}, or {REAL.steps:,} with --pairs"
    )
    parser.add_argument("--seed", type=int, default=TranslationRecipe().seed, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=0, help="cores to use; 0 for all")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if options.threads:
        torch.set_num_threads(options.threads)
    recipe = TranslationRecipe() if options.pairs is None else REAL
    recipe = replace(recipe, steps=options.steps or recipe.steps, seed=options.seed)
    try:
        train(options.run, options.out, recipe, pairs=options.pairs, language_id=options.language_id)
    except (ValueError, ConversionError, OSError) as error:
        sys.exit(f"train: {error}")


if __name__ == "__main__":
    main()
