"""Section 4.2 of the paper inside vLLM: what the next token of each sequence must obey.

vLLM makes a `CallRules` in each process that samples. It gets a request's `History` with each turn, and reads the
tokens that the turn makes, so that it knows the rule of the next one. A turn that is over for the gateway, since a tool
is to be called, tokens were dropped or the text has ended, is ended by a stop token, which vLLM drops; an arrow that is
one token ends it by itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Many
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from vllm import SamplingParams
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from inference_gateway.backends.vllm.replay import History, RecordedMachine
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.engine.sampling import Sampler, only
from inference_gateway.engine.sequence import Sequence
from language_model.tokenizer import ByteLevelTokenizer

HISTORY: Final = "toolformer_history"
TURN: Final = "toolformer_turn"
END_IDS: Final = "toolformer_end_ids"
"""Names of what requests and the engine's configuration carry."""

_REMEMBERED_TURNS: Final = 1024
"""Turns that are looked for again where vLLM put a sequence aside and takes it up later."""


class FollowedTurn:
    """One turn of one completion, as far as its tokens are known here. ``made`` is vLLM's own list of them."""

    def __init__(self, history: History, vocabulary: CallVocabulary, made: Many[int]) -> None:
        self._recorded = RecordedMachine(history, vocabulary)
        self.sequence = Sequence(history.request, self._recorded.machine, lambda actions: None)
        self.made = made
        self.start: int | None = None
        """The API-start token, where it was all that was left for the token after those that are known."""
        self.over = False
        self._known = 0

    def catch_up(self) -> None:
        """Read the tokens that were made since."""
        for token in self.made[self._known :]:
            self._known += 1
            if not self.over:
                actions = self._recorded.accept(token, forced=token == self.start)
                self.over = self._recorded.leaves_sequence(actions)
            self.start = None


class CallRules(LogitsProcessor):  # type: ignore[misc]  # vLLM need not be installed where types are checked
    """A vLLM logits processor; see the module."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        end_ids = vllm_config.additional_config[END_IDS]
        tokenizer = ByteLevelTokenizer.from_pretrained(Path(vllm_config.model_config.tokenizer))
        self._vocabulary = CallVocabulary.of(tokenizer, end_ids)
        self._sampler = Sampler(self._vocabulary, device)
        self._stop = min(end_ids)
        self._turns: dict[int, FollowedTurn] = {}
        self._remembered: OrderedDict[str, FollowedTurn] = OrderedDict()

    def is_argmax_invariant(self) -> bool:
        """Rules change what is likeliest."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow vLLM's rows: requests come, leave and move."""
        process_dict_updates(self._turns, batch_update, self._follow)

    def apply(self, logits: Tensor) -> Tensor:
        """Leave in ``logits`` ``[requests, vocabulary]`` what may be chosen."""
        for turn in self._turns.values():
            turn.catch_up()
        rows = [row for row, turn in self._turns.items() if not turn.over]
        if rows:
            every = len(rows) == len(logits)
            ordered = sorted(rows)
            part = logits if every else logits[ordered]
            starts = self._sampler.leave(part, [self._turns[row].sequence for row in ordered])
            if not every:
                logits[ordered] = part
            for at, row in enumerate(ordered):
                self._turns[row].start = starts.get(at)
        for row, turn in self._turns.items():
            if turn.over:
                only(logits[row], self._stop)
        return logits

    def _follow(self, params: SamplingParams, _prompt: list[int] | None, made: list[int]) -> FollowedTurn | None:
        """What is known of a request that came into the batch, for the first time or again."""
        extra = params.extra_args or {}
        if HISTORY not in extra:
            return None
        turn = self._remembered.pop(extra[TURN], None)
        if turn is None:
            turn = FollowedTurn(History.unpacked(extra[HISTORY]), self._vocabulary, made)
        turn.made = made
        self._remembered[extra[TURN]] = turn
        if len(self._remembered) > _REMEMBERED_TURNS:
            self._remembered.popitem(last=False)
        return turn
