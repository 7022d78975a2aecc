"""What the decoding machine says of a token it took: text to show, a call to make, tokens to drop, the end."""

from __future__ import annotations

from dataclasses import dataclass

from inference_gateway.core import FinishReason, PromptScored, TokenLogprob, Usage
from toolformer.api_call import ApiCall


@dataclass(frozen=True, slots=True)
class Emit:
    """Text that will never be taken back, and the tokens whose text is now shown to its end.

    A token of which only a part is shown (a stop string cut it) comes with the last text."""

    text: str
    tokens: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """The sequence waits at ``->`` for the result of ``call``, which would stand at character ``offset`` of the
    text."""

    call: ApiCall
    offset: int


@dataclass(frozen=True, slots=True)
class CallAhead:
    """The model has written all of ``call`` but ``->``: if that comes next, the call will be made."""

    call: ApiCall


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call that is taken back instead of made: it repeats one, is too long, or ended in its middle. The client sees
    it. ``tool`` and ``input`` are what was written of them; ``tool`` is empty if its name was not whole."""

    tool: str
    input: str
    offset: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Only the first ``tokens`` tokens of the completion stand; ``append`` follows them without being sampled."""

    tokens: int
    append: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The end. Nothing follows."""

    reason: FinishReason
    usage: Usage
    message: str = ""


Action = PromptScored | Emit | CallAhead | Pause | CallRefused | Keep | Done
