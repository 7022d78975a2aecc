"""A checkpoint with random weights in the layout in which NLLB-200 is published, small enough for tests."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
TEXTS = [
    "Das Treffen findet am 20. November 2026 statt.",
    "La réunion a lieu le 3 mars 1998.",
    "会议于1991年8月13日举行。",
    "اسم هذا البلد بولندا.",
    "The meeting takes place on November 20, 2026.",
]


def write_checkpoint(folder: Path, seed: int = 0) -> None:
    """Writes config.json, generation_config.json, tokenizer files and pytorch_model.bin.

    Like the published ones, its weights hold a few more rows than there are tokens, and its tokenizer.json gets the
    language tokens from `NllbTokenizer` itself.
    """
    folder.mkdir()
    bpe = Tokenizer(models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = pre_tokenizers.Metaspace()
    bpe.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIALS, show_progress=False))
    bpe.save(str(folder / "bpe.json"))
    model = Tokenizer.from_file(str(folder / "bpe.json")).model
    model.save(str(folder))
    merges = [tuple(line.split(" ")) for line in (folder / "merges.txt").read_text().splitlines()[1:]]
    tokenizer = NllbTokenizer(vocab=bpe.get_vocab(), merges=merges)
    for name in ("bpe.json", "vocab.json", "merges.txt"):
        (folder / name).unlink()
    tokenizer.save_pretrained(folder)

    torch.manual_seed(seed)
    config = M2M100Config(
        vocab_size=len(tokenizer) + 2,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=128,
        decoder_start_token_id=2,
        tie_word_embeddings=True,
        # Wide enough that random weights have opinions: all tokens equally likely would compare rounding errors.
        init_std=0.3,
    )
    config.architectures = ["M2M100ForConditionalGeneration"]
    model = M2M100ForConditionalGeneration(config)
    config.save_pretrained(folder)
    GenerationConfig(decoder_start_token_id=2, eos_token_id=2, pad_token_id=1, max_length=200).save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
