"""What a model in training is worth on the exam: sentences that it is never trained on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from sacrebleu.metrics.bleu import BLEU
from tokenizers import Tokenizer
from transformers import M2M100ForConditionalGeneration

from services.translation.flores import ENGLISH
from services.translation.train_model import EOS, PAD, encode, padded
from services.translation.train_sources import Pair

_BATCH = 64
_MOST_TOKENS = 64


class Exam:
    """Greedy BLEU of ``pairs``, in all and of each language."""

    def __init__(self, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> None:
        self._tokenizer = tokenizer
        self._pairs = pairs

    def __call__(self, model: M2M100ForConditionalGeneration) -> str:
        """One line: BLEU on all languages and on each."""
        made = dict(zip(self._pairs, self.translate(model, self._pairs), strict=True))
        by_language: defaultdict[str, list[Pair]] = defaultdict(list)
        for pair in self._pairs:
            by_language[pair.language[:3]].append(pair)

        def bleu(own: Sequence[Pair]) -> str:
            score = BLEU().corpus_score([made[pair] for pair in own], [[pair.english for pair in own]])
            return f"{score.score:.1f}"

        each = ", ".join(f"{name} {bleu(own)}" for name, own in by_language.items())
        return f"BLEU {bleu(self._pairs)} ({each})"

    @torch.inference_mode()
    def translate(self, model: M2M100ForConditionalGeneration, pairs: Sequence[Pair]) -> list[str]:
        """The English of each pair's text, greedily."""
        texts: list[str] = []
        for start in range(0, len(pairs), _BATCH):
            rows = [encode(self._tokenizer, pair.language, pair.text) for pair in pairs[start : start + _BATCH]]
            inputs = padded(rows, PAD).to(model.device)
            made = model.generate(
                inputs,
                attention_mask=(inputs != PAD).long(),
                forced_bos_token_id=self._tokenizer.token_to_id(ENGLISH),
                eos_token_id=EOS,
                pad_token_id=PAD,
                decoder_start_token_id=EOS,
                max_new_tokens=_MOST_TOKENS,
                num_beams=1,
                do_sample=False,
            )
            texts += self._tokenizer.decode_batch(made.tolist(), skip_special_tokens=True)
        return [text.strip() for text in texts]
