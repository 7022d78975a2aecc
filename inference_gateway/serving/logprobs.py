"""Tokens and their log probabilities, written the way OpenAI's completions write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from inference_gateway.core import TokenLogprob
from inference_gateway.serving.response import Logprobs
from toolformer.api_call import Tokenizer

LEAST: Final = -9999.0
"""Stands for a probability of 0, whose logarithm JSON cannot carry."""


class LogprobsWriter:
    """Writes tokens of ``tokenizer``: as text or, with ``as_ids``, as ``token_id:<id>``."""

    def __init__(self, tokenizer: Tokenizer, *, as_ids: bool) -> None:
        self._tokenizer = tokenizer
        self._as_ids = as_ids

    def write(self, tokens: Iterable[TokenLogprob], *, shift: int = 0) -> Logprobs:
        """``tokens`` as four lists, their offsets moved by ``shift`` characters."""
        written = Logprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for token in tokens:
            name = self._name(token.id)
            written.tokens.append(name)
            written.text_offset.append(token.offset + shift)
            if token.logprob is None:
                written.token_logprobs.append(None)
                written.top_logprobs.append(None)
                continue
            logprob = max(token.logprob, LEAST)
            top: dict[str, float] = {}
            for other, its in token.top:
                top.setdefault(self._name(other), max(its, LEAST))
            top.setdefault(name, logprob)
            written.token_logprobs.append(logprob)
            written.top_logprobs.append(top)
        return written

    def _name(self, token_id: int) -> str:
        if self._as_ids:
            return f"token_id:{token_id}"
        content = self._tokenizer.token_bytes(token_id)
        try:
            return content.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)
