"""``python -m services.translation.convert``: a published NLLB-200 checkpoint becomes a model folder of this service.

    python -m services.translation.convert --model facebook/nllb-200-distilled-600M --out nllb-600m

The published distilled 600M needs 2.5 GB of disk for the download and 0.7 GB for the result in int8 (1.3 GB in float16,
2.5 GB in float32), and 8 GB of memory for a few minutes. The result is written beside its final place and moved there
when it has been verified, so a folder that exists is whole.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

import ctranslate2
from tokenizers import Tokenizer

from services.translation.flores import ENGLISH, LANGUAGES
from services.translation.model_folder import TOKENIZER_NAME, WEIGHTS_NAME, ModelManifest
from services.translation.translator import END
from toolformer.model_files.digests import record

logger = logging.getLogger(__name__)

Quantization = Literal["int8", "int8_float16", "float16", "float32"]

NLLB_BEAM: Final = 4
"""The beam that NLLB-200 was published with."""

# The weights of a checkpoint in float32, against its files: the result and CTranslate2's copy on the way.
_MEMORY_FACTOR: Final = 3
_PUBLISHED_FILES: Final = (
    "config.json",
    "generation_config.json",
    "*.safetensors",
    "pytorch_model*.bin*",
    "*token*.json",
)
_WEIGHT_PATTERNS: Final = ("*.safetensors", "pytorch_model*.bin")
_PROBES: Final = {"fra_Latn": "sûreté nucléaire", "deu_Latn": "Heute ist Freitag.", "zho_Hans": "今天是星期五。"}
_PROBE_TOKENS: Final = 24
_COMPARED: Final = 20


class ConversionError(Exception):
    """The checkpoint cannot be converted; the message says why and what to do."""


def convert(
    model: str,
    out: Path,
    *,
    quantization: Quantization = "int8",
    languages: Sequence[str] = tuple(LANGUAGES),
    beam_size: int = NLLB_BEAM,
) -> ModelManifest:
    """Converts a checkpoint, verifies the result, and puts it at `out`.

    Args:
        model: a folder in the published layout, or a name on the Hugging Face hub (which is downloaded).
        out: the folder to make; it must not exist.
        quantization: how the weights are stored; how they are computed with is chosen when the service starts.
        languages: FLORES-200 codes that the model was trained to translate from.
        beam_size: the beam that the service uses where its settings name none.

    Returns:
        The manifest of the folder made.

    Raises:
        ConversionError: the checkpoint is not one of M2M-100's architecture with NLLB's tokens, there is no room, or
            the result does not translate as the checkpoint does.
    """
    if out.exists():
        raise ConversionError(f"{out} exists; remove it or give --out another folder")
    checkpoint = _locate(model)
    weights = _check(checkpoint)
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(out.absolute().parent).free
    if free < weights:
        raise ConversionError(
            f"{out} may take up to {_gb(weights)}, and {_gb(free)} are free; make room or choose another"
        )
    logger.info("converting %s: %s of weights, about %s of memory", model, _gb(weights), _gb(_MEMORY_FACTOR * weights))

    partial = out.with_name(f"{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _write(checkpoint, partial, quantization)
        manifest = ModelManifest(
            checkpoint=Path(model).name,
            quantization=quantization,
            model_bytes=(partial / WEIGHTS_NAME).stat().st_size,
            max_tokens=_verify(checkpoint, partial, exactly=quantization == "float32"),
            beam_size=beam_size,
            source_languages=tuple(languages),
        )
        manifest.write(partial)
        record(partial)
        partial.replace(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def _locate(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    if not _looks_like_a_hub_name(model):
        raise ConversionError(
            f"there is no folder {model}; name one, or a checkpoint such as facebook/nllb-200-distilled-600M"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=list(_PUBLISHED_FILES)))
    except (RepositoryNotFoundError, LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise ConversionError(f"{model} cannot be downloaded ({error}); give --model a folder that holds it") from error


def _looks_like_a_hub_name(model: str) -> bool:
    return model.count("/") == 1 and not model.startswith((".", "/"))


def _check(checkpoint: Path) -> int:
    """Size of the weights in bytes, once all that is needed is there."""
    for name in ("config.json", TOKENIZER_NAME):
        if not (checkpoint / name).is_file():
            raise ConversionError(f"{checkpoint} lacks {name}; it must be a checkpoint in the published layout")
    # Both forms of the weights may be in one folder; transformers reads the first.
    for pattern in _WEIGHT_PATTERNS:
        if weights := sum(path.stat().st_size for path in checkpoint.glob(pattern)):
            return weights
    raise ConversionError(f"{checkpoint} holds no weights (*.safetensors or pytorch_model.bin)")


def _write(checkpoint: Path, folder: Path, quantization: Quantization) -> None:
    converter = ctranslate2.converters.TransformersConverter(str(checkpoint), low_cpu_mem_usage=True)
    try:
        converter.convert(str(folder), quantization=quantization)
    except (ValueError, OSError, KeyError, RuntimeError) as error:
        raise ConversionError(f"CTranslate2 cannot convert {checkpoint}: {error}") from error
    shutil.copyfile(checkpoint / TOKENIZER_NAME, folder / TOKENIZER_NAME)


def _verify(checkpoint: Path, folder: Path, *, exactly: bool) -> int:
    """Holds the result to the checkpoint on a few greedy translations; the tokens it can read at a time.

    Quantised weights may choose another word now and then, float32 may not (`exactly`).
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_NAME))
    english, end = (_id(tokenizer, token) for token in (ENGLISH, END))
    original = AutoModelForSeq2SeqLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    converted = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32" if exactly else "default")
    same = total = 0
    for language, text in _PROBES.items():
        ids = [_id(tokenizer, language), *tokenizer.encode(text, add_special_tokens=False).ids, end]
        [result] = converted.translate_batch(
            [[tokenizer.id_to_token(one) or "<unk>" for one in ids]],
            target_prefix=[[ENGLISH]],
            beam_size=1,
            max_decoding_length=_PROBE_TOKENS,
        )
        got = [tokenizer.token_to_id(token) for token in result.hypotheses[0]][1:_COMPARED]
        wanted = _greedy(original, ids, english, end)[: _COMPARED - 1]
        same += sum(one == other for one, other in zip(wanted, got, strict=False))
        total += max(len(wanted), len(got))
    logger.info("verified: %d of %d tokens of %d translations are the checkpoint's", same, total, len(_PROBES))
    if exactly and same != total:
        raise ConversionError(
            f"only {same} of {total} tokens are the checkpoint's; this CTranslate2 converts it wrongly"
        )
    return min(512, int(original.config.max_position_embeddings))


def _greedy(model: Any, ids: list[int], english: int, end: int) -> list[int]:
    """What the checkpoint itself makes of `ids`, without the language token and the end."""
    import torch

    made: list[int] = model.generate(
        torch.tensor([ids]), forced_bos_token_id=english, num_beams=1, do_sample=False, max_length=_PROBE_TOKENS
    )[0].tolist()
    body = made[2:]  # the decoder's start token and the language come first
    return body[: body.index(end)] if end in body else body


def _id(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    if found is None:
        raise ConversionError(f"{TOKENIZER_NAME} has no token {token!r}: this is not a checkpoint of NLLB's kind")
    return found


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; exits with 1 and one line where the checkpoint cannot be converted."""
    parser = argparse.ArgumentParser(
        prog="python -m services.translation.convert",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True, help="a folder in the published layout, or a name on the hub")
    parser.add_argument("--out", type=Path, required=True, help="the folder to make")
    parser.add_argument("--quantization", choices=get_args(Quantization), default="int8", help="default: %(default)s")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        manifest = convert(options.model, options.out, quantization=options.quantization)
    except ConversionError as error:
        sys.exit(f"convert: {error}")
    logger.info(
        "%s: %s, %d languages; serve it with TOOLFORMER_TRANSLATION_MODEL=%s",
        options.out, _gb(manifest.model_bytes), len(manifest.source_languages), options.out,
    )  # fmt: skip


if __name__ == "__main__":
    main()
