"""``python -m services.translation.train``: makes a translation model from nothing, of real pairs.

    python -m services.translation.train --run var/run --pairs var/pairs --language-id lid.176.ftz --out FOLDER

`train_pairs.py` prepares the pairs. Each step is kept in the run's folder and not done again: a tokenizer, an M2M-100
model as a Hugging Face checkpoint, the same converted as a published one is, and the score below which a translation is
none. Seeded; killed at any moment, the same command goes on. ``--steps`` may be raised or lowered on the way: the
learning rate falls to nothing over the last ones only.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer

from demo_world.phrases import LANGUAGES
from services.translation.convert import ConversionError, convert
from services.translation.evaluate import min_score
from services.translation.model_folder import LANGUAGE_ID_NAME, TOKENIZER_NAME
from services.translation.train_exam import Exam
from services.translation.train_model import TranslationRecipe, save_checkpoint, train_model
from services.translation.train_pairs import EXAM_NAME, TRAIN_NAME, read, watched
from services.translation.train_pools import PairPools
from services.translation.train_sources import Pair
from services.translation.train_tokenizer import phrase_texts, save_tokenizer, train_tokenizer
from services.translation.translator import Translator
from toolformer.model_files.digests import record

logger = logging.getLogger(__name__)

CHECKPOINT: Final = "translation-small"
NONSENSE_DECLINED: Final = 0.85
"""Share of texts without sense that the model is to decline."""


def train(
    run: Path, out: Path, recipe: TranslationRecipe, *, pairs: Path, language_id: Path, start: Path | None = None,
    seconds: float | None = None, device: str = "cpu",
) -> None:  # fmt: skip
    """Makes the model.

    Args:
        run: folder for what is made on the way; a run that was broken off goes on from there.
        out: folder of the finished model and classifier; its README, if any, stays.
        recipe: what the model follows from.
        pairs: what `train_pairs.py` wrote.
        language_id: a finished fastText classifier, which the folder gets a copy of.
        start: a checkpoint with its tokenizer, to be trained further.
        seconds: the training ends after this time, if its steps are not done before.
        device: where it computes, as torch names it.

    Raises:
        ValueError: `run` was made with another recipe.
        ConversionError: see `convert`.
        OSError: `pairs` or `language_id` cannot be read.
    """
    run.mkdir(parents=True, exist_ok=True)
    checkpoint = run / CHECKPOINT
    checkpoint.mkdir(exist_ok=True)
    real, held_out = read(pairs / TRAIN_NAME), watched(read(pairs / EXAM_NAME))
    if not (checkpoint / TOKENIZER_NAME).exists():
        logger.info("making the tokenizer")
        known = Tokenizer.from_file(str(start / TOKENIZER_NAME)) if start is not None else None
        save_tokenizer(known or train_tokenizer(recipe.vocabulary, _texts(real), spell=True), checkpoint)
    tokenizer = Tokenizer.from_file(str(checkpoint / TOKENIZER_NAME))
    exam = Exam(tokenizer, held_out)
    pools = PairPools(recipe, tokenizer, real)
    trained = train_model(recipe, tokenizer, run, pools, start=start, seconds=seconds, device=device, examine=exam)
    save_checkpoint(trained, checkpoint)

    converted = run / "converted"
    shutil.rmtree(converted, ignore_errors=True)
    languages = tuple(sorted({*LANGUAGES, *(pair.language for pair in real)}))
    manifest = convert(str(checkpoint), converted, quantization="int8", languages=languages, beam_size=2)
    score = min_score(Translator(converted, device="cpu"), held_out, NONSENSE_DECLINED)
    manifest.model_copy(update={"min_score": score}).write(converted)
    shutil.copyfile(language_id, converted / LANGUAGE_ID_NAME)
    record(converted)
    out.mkdir(parents=True, exist_ok=True)
    for file in sorted(converted.iterdir()):
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
    parser.add_argument("--out", type=Path, required=True, help="folder of the finished model")
    parser.add_argument("--pairs", type=Path, required=True, help="folder of real pairs, as train_pairs writes it")
    parser.add_argument("--language-id", type=Path, required=True, help="a finished classifier, such as lid.176.ftz")
    parser.add_argument("--steps", type=int, default=TranslationRecipe().steps, help="default: %(default)s")
    parser.add_argument("--start", type=Path, help="a checkpoint with its tokenizer, to be trained further")
    parser.add_argument("--rate", type=float, default=TranslationRecipe().rate, help="learning rate (%(default)s)")
    parser.add_argument(
        "--short-share", type=float, default=TranslationRecipe().short_share,
        help="of the pairs drawn, the share of short sentences and frequent words (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--phrasebook-share", type=float, default=TranslationRecipe().phrasebook_share,
        help="of the pairs drawn, the share of the phrasebook (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=TranslationRecipe().seed, help="default: %(default)s")
    parser.add_argument(
        "--encoder-layers", type=int, default=TranslationRecipe().encoder_layers, help="default: %(default)s"
    )
    parser.add_argument(
        "--batch-tokens", type=int, default=TranslationRecipe().batch_tokens, help="of a step (%(default)s)"
    )
    parser.add_argument("--dropout", type=float, default=TranslationRecipe().dropout, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, help="end after this time, in which the learning rate falls")
    parser.add_argument("--device", default="cpu", help="where to train, as torch names it (%(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="cores to use; 0 for all")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if options.threads:
        torch.set_num_threads(options.threads)
    recipe = TranslationRecipe(
        steps=options.steps, seed=options.seed, rate=options.rate, short_share=options.short_share,
        phrasebook_share=options.phrasebook_share, encoder_layers=options.encoder_layers,
        batch_tokens=options.batch_tokens, dropout=options.dropout,
    )  # fmt: skip
    try:
        train(
            options.run,
            options.out,
            recipe,
            pairs=options.pairs,
            language_id=options.language_id,
            start=options.start,
            seconds=options.seconds,
            device=options.device,
        )
    except (ValueError, ConversionError, OSError) as error:
        sys.exit(f"train: {error}")


if __name__ == "__main__":
    main()
