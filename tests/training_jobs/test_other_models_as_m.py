"""Other models, as transformers loads them, propose and score calls as the plain way does."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from language_model.bulk.interface import PromptedText, Targets
from language_model.bulk.loading import load_bulk
from tests.inference_gateway.test_other_models import gpt2, gpt_neox, llama, mistral
from tests.support.vocabularies import save_small_tokenizer, small_tokenizer

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("make", [gpt2, llama, mistral, gpt_neox])
def test_a_checkpoint_directory_reads_and_scores(make: Callable[[], Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = make().eval()
    theirs.save_pretrained(tmp_path)
    save_small_tokenizer(tmp_path)
    model, tokenizer = load_bulk(tmp_path)
    assert model.begin_id == 0
    prompt, texts = [7, 8, 9], [PromptedText((1, 2, 3, 4), 1), PromptedText((5, 6), 2)]

    def logprob(before: list[int], token: int) -> float:
        with torch.inference_mode():
            return float(theirs(torch.tensor([before])).logits[0, -1].log_softmax(-1)[token])

    reading = model.read(model.hold(prompt), texts, 42)
    for text, found in zip(texts, reading.log_probabilities, strict=True):
        want = [logprob([*prompt, *text.ids[:length]], 42) for length in range(text.first, len(text.ids) + 1)]
        assert found == pytest.approx(want, abs=1e-4)
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    [scores] = model.score([Targets(tuple(ids), (1, 3, 6))])
    assert scores == pytest.approx([logprob(ids[:at], ids[at]) for at in (1, 3, 6)], abs=1e-4)
    # Once 42 cannot come, the others share what it had; where it is wanted itself it keeps its own.
    ids = [3, 1, 42, 1, 5]
    rest = [logprob(ids[:at], ids[at]) - (math.log1p(-math.exp(logprob(ids[:at], 42))) if at != 2 else 0)
            for at in (1, 2, 4)]  # fmt: skip
    [scores] = model.score([Targets(tuple(ids), (1, 2, 4))], without=42)
    assert scores == pytest.approx(rest, abs=1e-4)
    assert tokenizer.encode(" [") == small_tokenizer().encode(" [")
