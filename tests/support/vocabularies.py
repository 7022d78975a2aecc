"""Tokenizers for tests: small ones made here, and GPT-2's where the shared data is available."""

import functools
import io
import os
import tempfile
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import SPECIAL_MARKS

SHARED_DATA = Path(os.environ.get("TOOLFORMER_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))

_SENTENCES = [
    "Each of the 24 boxes holds 17 books, so together they hold [Calculator(24 * 17) -> 408] 408 books.",
    'The capital of Peru is [QA("What is the capital of Peru?") -> Lima] Lima.',
    'Peru is [WikiSearch("Peru") -> Peru > a country] a country.',
    "Today is [Calendar() -> Today is Friday, November 20, 2026.] Friday.",
    "Die Gesundheit -> [MT(sûreté nucléaire) -> nuclear safety] “nuclear safety”.",
]


@functools.cache
def small_vocabulary() -> Tokenizer:
    """A byte-level BPE of 420 tokens in GPT-2's form, with an end-of-text mark; id 0."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(_SENTENCES * 3, trainer)
    return backend


@functools.cache
def small_tokenizer() -> ByteLevelTokenizer:
    """The tokenizer of `small_vocabulary`."""
    return ByteLevelTokenizer(small_vocabulary())


@functools.cache
def marked_vocabulary() -> Tokenizer:
    """`small_vocabulary` with special tokens for a call's marks, in the order of the public checkpoints: the end first,
    and none of them declared special."""
    backend = Tokenizer.from_str(small_vocabulary().to_str())
    backend.add_tokens([AddedToken(name, normalized=False) for name in reversed(SPECIAL_MARKS)])
    return backend


@functools.cache
def marked_tokenizer() -> ByteLevelTokenizer:
    """The tokenizer of `marked_vocabulary`."""
    return ByteLevelTokenizer(marked_vocabulary())


def save_small_tokenizer(folder: Path) -> None:
    """Write it beside a checkpoint, as transformers does."""
    small_vocabulary().save(str(folder / "tokenizer.json"))


@functools.cache
def sentencepiece_model(kind: str = "bpe") -> bytes:
    """A ``tokenizer.model`` with LLaMA's settings, trained by SentencePiece itself: ``kind`` is bpe or unigram."""
    sentencepiece = pytest.importorskip("sentencepiece")  # one of the packages that `make setup` installs
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_SENTENCES * 5),
        model_writer=model,
        model_type=kind,
        vocab_size=420,
        hard_vocab_limit=False,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        required_chars='A1[]()->"',
        minloglevel=2,
    )
    return model.getvalue()


@functools.cache
def sentencepiece_tokenizer(kind: str = "bpe") -> ByteLevelTokenizer:
    """The tokenizer of `sentencepiece_model`."""
    with tempfile.TemporaryDirectory() as folder:
        save_sentencepiece(Path(folder), kind)
        return ByteLevelTokenizer.from_pretrained(folder)


def save_sentencepiece(folder: Path, kind: str = "bpe") -> None:
    """Write its ``tokenizer.model`` beside a checkpoint."""
    (folder / "tokenizer.model").write_bytes(sentencepiece_model(kind))


@functools.cache
def gpt2_tokenizer() -> ByteLevelTokenizer:
    """GPT-2's (and so GPT-J's) vocabulary; skips the test where the shared data is absent."""
    directory = SHARED_DATA / "gpt2-tokenizer"
    if not directory.is_dir():
        pytest.skip(f"needs the real GPT-2 vocabulary in {directory}; set TOOLFORMER_SHARED_DATA")
    return ByteLevelTokenizer.from_pretrained(directory)


VOCABULARIES = [
    pytest.param(small_tokenizer, id="small"),
    pytest.param(marked_tokenizer, id="marked"),
    pytest.param(sentencepiece_tokenizer, id="sentencepiece"),
    pytest.param(gpt2_tokenizer, id="gpt2", marks=pytest.mark.shared_data),
]
"""Parameters for tests that run on each vocabulary, and on both forms of a call's marks."""
