"""``python -m services.translation.train``: makes the bundled models, from nothing but the demo world.

    python -m services.translation.train --run var/translation-run --out models/translation-small

Three steps, each kept in the run's folder and not done again: a tokenizer, an M2M-100 model as a Hugging Face
checkpoint, a fastText classifier. Then the checkpoint goes through the same conversion as a published one. Seeded;
killed at any moment, the same command goes on.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from demo_world.phrases import LANGUAGES
from services.translation.convert import ConversionError, convert
from services.translation.model_folder import LANGUAGE_ID_NAME, TOKENIZER_NAME
from services.translation.train_language_id import train_language_id
from services.translation.train_model import Recipe, save_checkpoint, train_model
from services.translation.train_tokenizer import save_tokenizer, train_tokenizer

logger = logging.getLogger(__name__)

CHECKPOINT = "translation-small"


def train(run: Path, out: Path, recipe: Recipe) -> None:
    """Makes the bundled models.

    Args:
        run: folder for what is made on the way; a run that was broken off goes on from there.
        out: folder of the finished model and classifier; its README, if any, stays.
        recipe: what the model follows from.

    Raises:
        ValueError: `run` was made with another recipe.
        ConversionError: see `convert`.
    """
    run.mkdir(parents=True, exist_ok=True)
    checkpoint = run / CHECKPOINT
    checkpoint.mkdir(exist_ok=True)
    if not (checkpoint / TOKENIZER_NAME).exists():
        logger.info("training the tokenizer")
        save_tokenizer(train_tokenizer(recipe.vocabulary, recipe.seed), checkpoint)
    tokenizer = Tokenizer.from_file(str(checkpoint / TOKENIZER_NAME))

    model = train_model(recipe, tokenizer, run)
    save_checkpoint(model, checkpoint)

    classifier = run / LANGUAGE_ID_NAME
    if not classifier.exists():
        logger.info("training the language classifier")
        train_language_id(classifier, recipe.seed)

    converted = run / "converted"
    shutil.rmtree(converted, ignore_errors=True)
    convert(str(checkpoint), converted, quantization="int8", languages=LANGUAGES, beam_size=1)
    out.mkdir(parents=True, exist_ok=True)
    for file in [*sorted(converted.iterdir()), classifier]:
        shutil.copyfile(file, out / file.name)
    logger.info("%s is ready", out)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; exits with 1 and one line where the run cannot go on."""
    default = Recipe()
    parser = argparse.ArgumentParser(
        prog="python -m services.translation.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--run", type=Path, required=True, help="folder for checkpoints; a broken-off run goes on there"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the finished models")
    parser.add_argument("--steps", type=int, default=default.steps, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=default.seed, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=0, help="cores to use; 0 for all")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if options.threads:
        torch.set_num_threads(options.threads)
    try:
        train(options.run, options.out, replace(default, steps=options.steps, seed=options.seed))
    except (ValueError, ConversionError) as error:
        sys.exit(f"train: {error}")


if __name__ == "__main__":
    main()
