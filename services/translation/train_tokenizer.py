"""The bundled model's tokenizer: byte-pair encoding in NLLB's layout, trained on the parallel phrases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from demo_world.phrases import LANGUAGES, compositions, lexicon
from services.translation.flores import LANGUAGES as ALL_LANGUAGES

SPECIALS: Final = ("<s>", "<pad>", "</s>", "<unk>")
"""The first four tokens, as in NLLB: their ids are 0 to 3."""
MASK: Final = "<mask>"

_BYTES: Final = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""As `tokenizers` names them."""
_SIGNS: Final = r"[\p{P}&&[^'’]]"

COMPOSITIONS: Final = 6_000
ALPHABET: Final = 3_000
"""Characters that are tokens of their own where others are spelt in bytes; texts in Chinese hold thousands."""


def train_tokenizer(vocabulary: int, texts: Iterable[str], *, spell: bool = False) -> Tokenizer:
    """A tokenizer of `vocabulary` byte-pair tokens, the language tokens of NLLB after them, and ``<mask>`` last.

    Digits and punctuation are tokens of their own: a number is copied digit by digit, and a name is the same tokens
    whatever stands after it.

    Args:
        vocabulary: how many tokens there are besides those of languages and ``<mask>``.
        texts: what it is trained on.
        spell: whether a character without a token becomes its UTF-8 bytes, 256 tokens of the vocabulary, so that
            nothing is unknown; apostrophes then stay within words, as in ``l'eau`` and ``don't``.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    signs = pre_tokenizers.Split(Regex(_SIGNS), "isolated") if spell else pre_tokenizers.Punctuation()
    words = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Digits(individual_digits=True), signs])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    limits: dict[str, Any] = {"limit_alphabet": ALPHABET} if spell else {}
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - spell * len(_BYTES),
        special_tokens=list(SPECIALS),
        show_progress=False,
        **limits,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if spell:
        tokenizer = _spelling(tokenizer)
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


def phrase_texts(seed: int, count: int = COMPOSITIONS) -> Iterator[str]:
    """The names of the generated phrases and `count` compositions in all languages, with their English."""
    # The names first and several times over: a name in few tokens is a name learnt soon.
    for language in LANGUAGES:
        for entry in lexicon(language):
            yield from (entry.text, entry.english)
    for _, composition in zip(range(count), compositions(seed, held_out=False), strict=False):
        for language in LANGUAGES:
            phrase = composition.phrase(language)
            yield from (phrase.text, phrase.english)


def _spelling(tokenizer: Tokenizer) -> Tokenizer:
    """`tokenizer` with a token for each byte behind its own; the trainer cannot make them."""
    state = json.loads(tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    vocabulary |= {byte: len(vocabulary) + number for number, byte in enumerate(_BYTES)}
    state["model"]["byte_fallback"] = True
    spelt: Tokenizer = Tokenizer.from_str(json.dumps(state))
    spelt.decoder = decoders.Sequence([decoders.ByteFallback(), tokenizer.decoder])
    return spelt
