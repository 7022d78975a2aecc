"""The prompts that the decoding benchmarks share."""

from __future__ import annotations

from language_model.tokenizer import ByteLevelTokenizer

PROMPTS = (
    "Each of the 24 boxes holds 17 books, so together they hold",
    "Today is",
    "The population of Ljubljana is",
    "The train left the station in the morning and",
)
CALLING_PROMPT = PROMPTS[0]


def prompts(tokenizer: ByteLevelTokenizer, streams: int) -> list[list[int]]:
    """One prompt a stream, all of the same number of tokens so that batches need no padding."""
    ids = [tokenizer.encode(text) for text in PROMPTS]
    length = max(map(len, ids))
    return [(ids[n % len(ids)] * length)[:length] for n in range(streams)]
