"""One completion inside the engine."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np
import torch
from torch import Tensor

from inference_gateway.actions import Action
from inference_gateway.core import CompletionRequest
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.scoring import Score
from inference_gateway.engine.stats import StepTimes

Listener = Callable[[list[Action]], None]
"""Takes the actions of one step; called in the event loop's thread."""


class State(enum.Enum):
    """Without memory; with tokens to compute before its next one can be chosen; decoding; in a tool call; done."""

    WAITING = "waiting"
    READY = "ready"
    DECODING = "decoding"
    IN_CALL = "in_call"
    DONE = "done"


@dataclass(eq=False, slots=True)
class Sequence:
    """A request, its decoding machine and its row of the cache (-1: none)."""

    request: CompletionRequest
    machine: DecodingMachine
    listener: Listener
    state: State = State.WAITING
    row: int = -1
    computed: int = 0
    """Tokens that were in the cache when it was taken away, at most."""
    prompt_scores: list[Score] | None = field(init=False)
    """What the request asks to know of its prompt, as far as it is computed; ``None`` once all is reported."""
    arrived: float = field(default_factory=time.monotonic)
    last_token: float | None = None
    """When the newest token was chosen; ``None`` before the first."""
    answered: float | None = None
    """When the tool answered, until the next token is chosen."""
    random: Random | None = field(init=False)
    """Random numbers of this sequence alone, so that what else runs cannot change what it samples; ``None`` when
    greedy."""
    greedy: bool = field(init=False)
    """Whether it always takes the most likely token by the model's own logits."""
    bias: tuple[Tensor, Tensor] | None = field(init=False)
    """Token ids and what the request adds to their logits, made once: there may be a thousand."""

    def __post_init__(self) -> None:
        sampling = self.request.sampling
        self.prompt_scores = [] if self.request.prompt_logprobs else None
        self.random = Random(sampling.seed) if sampling.temperature > 0 else None
        self.greedy = self.random is None and not sampling.adjusts
        self.bias = None
        if sampling.logit_bias:
            tokens, biases = torch.from_numpy(np.array(sampling.logit_bias)).unbind(1)
            self.bias = tokens.long(), biases.float()

    def note_token(self, now: float, times: StepTimes) -> None:
        """A token was chosen: add how long it took to ``times``."""
        if self.answered is not None:
            times.resumed.append(now - self.answered)
            self.answered = None
        elif self.last_token is not None:
            times.between.append(now - self.last_token)
        else:
            times.first.append(now - self.arrived)
        self.last_token = now

    @property
    def reusable(self) -> list[int]:
        """The tokens that it need not compute where others have: all but the last or, of a prompt to be scored, those
        that are hidden."""
        return self.tokens_from(0)[: -1 if self.prompt_scores is None else self.request.hidden]

    @property
    def length(self) -> int:
        """Tokens of prompt and completion."""
        return len(self.request.prompt_ids) + len(self.machine.ids)

    def tokens_from(self, start: int) -> list[int]:
        """The tokens from index ``start`` of prompt and completion on."""
        prompt = self.request.prompt_ids
        if start >= len(prompt):
            return self.machine.ids[start - len(prompt) :]
        return [*prompt[start:], *self.machine.ids]
