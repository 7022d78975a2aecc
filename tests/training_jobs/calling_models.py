"""Small models of random weights that like to write calls, and short tools to ask them for."""

import copy
import functools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.models import random_model
from toolformer.tools import Demonstration, Tool

CALLS = Tool(
    name="A",
    url="http://127.0.0.1:1",
    description="A tool.",
    task='Put calls, "[A(1)]", into a text.',
    demonstrations=(Demonstration(input="One is 1.", output="One is [A(1)] 1."),),
    sampling_threshold=0.001,
    max_positions=4,
    max_samples=12,
    max_input_tokens=4,
    max_result_tokens=6,
)
QUOTED = CALLS.model_copy(
    update={"quoted": True, "demonstrations": (Demonstration(input="One is 1.", output='One is [A("1")] 1.'),)}
)
WITHOUT_INPUT = CALLS.model_copy(update={"takes_input": False})

FOLLOWS = [
    *(("]", text, 1.0) for text in ("A", " [")),
    *((" [", "A", 7.0), ("A", "(", 7.0), ("(", "1", 6.0), ("(", '"', 6.0), ("(", ")", 5.0), ('"', "1", 5.0)),
    *(("1", "1", 3.0), ("1", ")", 6.0), ("1", '"', 5.0), ('"', ")", 6.0), (")", "]", 7.0), (")", " ->", 5.0)),
]
"""What likes to follow what, so that calls get written, and by how much (nats)."""


@functools.cache
def calling_model(tokenizer: ByteLevelTokenizer, seed: int, *, tool: str = "A", positions: int = 384) -> GPTJ:
    """A GPT-J that likes to write what calls of the ``tool`` (whose name is one token) are written with, and otherwise
    anything."""
    size = -(-tokenizer.vocab_size // 8) * 8
    config = GPTJConfig(size, positions, 32, 2, 2, rotary_dim=8, bos_token_id=0, eos_token_id=0)
    model = copy.deepcopy(random_model(config, seed=1_000 + seed, spread=0.2))  # others share it
    model.wte.weight *= 10  # what a token is outweighs what the layers add to it
    model.ln_f.weight.fill_(1.0)
    against = 1.7 * math.log(size / 408)  # there are as many other tokens
    marks = tokenizer.marks
    written = {"A": tokenizer.encode(tool), " [": marks.opening, " ->": marks.arrow, "]": marks.closing}
    for before, after, nats in FOLLOWS:
        [first], [second] = (written.get(text) or tokenizer.encode(text) for text in (before, after))
        model.lm_head.weight[second] += 1.6 * (nats + against) * model.wte.weight[first] / (2 * config.n_embd)
    [opening] = marks.opening
    model.lm_head.bias[opening] += 3 + against
    return model


def logits_of(model: GPTJ) -> Callable[[Sequence[int]], Tensor]:
    """The model as the plain way sees it: logits behind some ids, everything computed again (but not twice for the same
    ids)."""

    @functools.lru_cache(maxsize=500)
    def known(ids: tuple[int, ...]) -> Tensor:
        with torch.inference_mode():
            last: Tensor = model.lm_head(model.hidden(torch.tensor([ids]))[0, -1])
        return last

    return lambda ids: known(tuple(ids))
