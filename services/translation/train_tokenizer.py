"""The bundled model's tokenizer: byte-pair encoding in NLLB's layout, trained on the parallel phrases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from demo_world.phrases import LANGUAGES, compositions, lexicon
from services.translation.flores import LANGUAGES as ALL_LANGUAGES

SPECIALS: Final = ("<s>", "<pad>", "</s>", "<unk>")
"""The first four tokens, as in NLLB: their ids are 0 to 3."""
MASK: Final = "<mask>"

COMPOSITIONS: Final = 6_000


def train_tokenizer(vocabulary: int, seed: int, *, compositions_: int = COMPOSITIONS) -> Tokenizer:
    """A tokenizer of `vocabulary` byte-pair tokens, the language tokens of NLLB after them, and ``<mask>`` last.

    Digits and punctuation are tokens of their own: a number is copied digit by digit, and a name is the same tokens
    whatever stands after it.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation(),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=list(SPECIALS), show_progress=False)
    tokenizer.train_from_iterator(_texts(seed, compositions_), trainer)
    tokenizer.add_special_tokens([AddedToken(code, normalized=False) for code in (*ALL_LANGUAGES, MASK)])
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes `tokenizer` so that transformers, and by it CTranslate2's converter, load it from `folder`."""
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": MASK,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _texts(seed: int, count: int) -> Iterator[str]:
    # The names first and several times over: a name in few tokens is a name learnt soon.
    for language in LANGUAGES:
        for entry in lexicon(language):
            yield from (entry.text, entry.english)
    for _, composition in zip(range(count), compositions(seed, held_out=False), strict=False):
        for language in LANGUAGES:
            phrase = composition.phrase(language)
            yield from (phrase.text, phrase.english)
