"""The decoding machine of one completion, the same in two processes.

The gateway's machine reads the tokens that vLLM makes. What the next token must obey is needed where tokens are
sampled, in vLLM's own process, so a second machine follows there. A machine's state depends on its request, the tokens
and the tools' answers alone: both have the same, and so the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter

from inference_gateway.actions import Action, Keep
from inference_gateway.call_vocabulary import CallForm, CallVocabulary
from inference_gateway.core import CompletionRequest
from inference_gateway.decoding import DecodingMachine, Phase
from toolformer.api_call import SplicedResult


@dataclass(frozen=True, slots=True)
class Form:
    """A tool's call form; see `CallForm`."""

    quoted: bool
    max_input_tokens: int
    cost: float


@dataclass(frozen=True, slots=True)
class History:
    """Everything that a machine's state follows from.

    ``tokens`` are those that the model made, in order, dropped ones too; ``starts`` are the indices in ``tokens`` of
    those that were taken for being among the likeliest (section 4.2 of the paper). ``answers`` has the result of each
    pause, or ``None`` where there was none. ``max_model_len``: tokens of prompt and completion at most."""

    request: CompletionRequest
    forms: dict[str, Form]
    max_model_len: int
    tokens: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    answers: list[SplicedResult | None] = field(default_factory=list)

    @classmethod
    def begin(cls, request: CompletionRequest, tools: Mapping[str, CallForm], max_model_len: int) -> History:
        """Of a completion that has no token yet. ``tools`` are all that there are, by name."""
        forms = {name: Form(tool.quoted, tool.max_input_tokens, tool.cost) for name, tool in tools.items()}
        return cls(request, forms, max_model_len)

    def packed(self) -> dict[str, Any]:
        """As plain values, which `unpacked` reads."""
        packed: dict[str, Any] = _HISTORY.dump_python(self, mode="json")
        return packed

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> History:
        """What `packed` made.

        Raises:
            pydantic.ValidationError: if it did not.
        """
        return _HISTORY.validate_python(packed)


_HISTORY: Final = TypeAdapter(History)


class RecordedMachine:
    """A machine that stands where ``history`` ends, and goes on writing it."""

    def __init__(self, history: History, vocabulary: CallVocabulary) -> None:
        self.machine = DecodingMachine(history.request, vocabulary, history.forms)
        self.history = History(history.request, history.forms, history.max_model_len)
        starts, answers = set(history.starts), iter(history.answers)
        for at, token in enumerate(history.tokens):
            self._answer_pause(answers)
            self.accept(token, forced=at in starts)
        self._answer_pause(answers)

    @property
    def room(self) -> int:
        """Tokens that still fit the sequence."""
        return self.history.max_model_len - len(self.history.request.prompt_ids) - len(self.machine.ids)

    @property
    def paused(self) -> bool:
        """Whether it waits for a tool's answer."""
        return self.machine.phase is Phase.PAUSED

    def accept(
        self, token: int, *, forced: bool, logprob: float | None = None, top: tuple[tuple[int, float], ...] = ()
    ) -> list[Action]:
        """Take the model's next token; see `DecodingMachine.accept`."""
        if forced:
            self.history.starts.append(len(self.history.tokens))
        self.history.tokens.append(token)
        actions = self.machine.accept(token, forced=forced, logprob=logprob, top=top)
        if not self.machine.done and self.room <= 0:
            actions += self.machine.run_out()
        return actions

    def answer(self, result: SplicedResult | None) -> list[Action]:
        """Go on after a pause, with the tool's result or without one."""
        self.history.answers.append(result)
        return self.machine.give_up() if result is None else self.machine.splice(result)

    def leaves_sequence(self, actions: Iterable[Action]) -> bool:
        """Whether vLLM's sequence is of no use as it goes on after the token that gave ``actions``: the completion
        waits or has ended, or that token was dropped with others."""
        return self.paused or self.machine.done or any(isinstance(action, Keep) for action in actions)

    def _answer_pause(self, answers: Iterable[SplicedResult | None]) -> None:
        if self.paused:
            for result in answers:
                self.answer(result)
                return
