"""Contriever: one vector for a question or a passage, the mean of BERT's token states; their dot product is the score.

Published checkpoints share one encoder between the two sides, or (after query-side training) have one for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor

from services.question_answering.bert import Bert
from services.question_answering.formats import prompt, retriever_text
from services.question_answering.padding import encoded, padded, text_batches, tokens_per_pass
from services.question_answering.passages import PagePassage


class Retriever:
    """Embeds questions and passages.

    Args:
        query_encoder: embeds questions, and passages where ``passage_encoder`` is None.
        tokenizer: puts BERT's marks around a text.
        max_tokens: tokens of a text that are read, its marks included; the rest is cut off.
        passage_encoder: embeds passages, where it is another than the question's.

    Raises:
        ValueError: ``max_tokens`` is more than the encoder has positions for.
    """

    def __init__(
        self, query_encoder: Bert, tokenizer: Tokenizer, *, max_tokens: int, passage_encoder: Bert | None = None
    ) -> None:
        if max_tokens > query_encoder.config.positions:
            raise ValueError(f"max_tokens is {max_tokens}; the encoder reads at most {query_encoder.config.positions}")
        self._query_encoder = query_encoder
        self._passage_encoder = passage_encoder or query_encoder
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self.width = query_encoder.config.width

    def embed_questions(self, questions: Sequence[str]) -> Tensor:
        """Vectors (questions, width) in float32, on the CPU."""
        return self._embed(self._query_encoder, [prompt(question) for question in questions])

    def embed_passages(self, passages: Sequence[PagePassage]) -> Tensor:
        """Vectors (passages, width) in float32, on the CPU."""
        return self._embed(self._passage_encoder, [retriever_text(passage) for passage in passages])

    @torch.inference_mode()
    def _embed(self, encoder: Bert, texts: Sequence[str]) -> Tensor:
        found = torch.empty(len(texts), self.width)
        ids = encoded(self._tokenizer, texts, self._max_tokens)
        device = encoder.embeddings.word_embeddings.weight.device
        for batch in text_batches(ids, tokens_per_pass(device)):
            batch_ids, mask = padded([ids[number] for number in batch], encoder.config.pad_id, device)
            found[batch] = mean_pooled(encoder(batch_ids, mask), mask).float().cpu()
        return found


def mean_pooled(states: Tensor, mask: Tensor) -> Tensor:
    """The mean (batch, width) of each text's token states."""
    kept = states.masked_fill(~mask[..., None], 0.0)
    return kept.sum(dim=1) / mask.sum(dim=1, keepdim=True)
