"""The seam between completions and what computes their tokens.

Above it, ``completion.py`` calls tools and speaks to clients. Below it, a backend chooses tokens and drives the
decoding machine. ``local.py`` runs the engine of this process; ``remote.py`` uses a server elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from inference_gateway.actions import Action
from inference_gateway.call_vocabulary import CallForm, CallVocabulary, PromptTokenizer
from inference_gateway.core import CompletionRequest, FinishReason
from inference_gateway.engine.stats import EngineStats, Observer
from toolformer.api_call import SplicedResult


class BackendBusy(Exception):  # noqa: N818 - a state, not a fault
    """No more completions are taken now; try again after ``retry_after`` seconds."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Session(Protocol):
    """One completion being computed.

    Iterating gives the machine's actions, ending after :class:`~inference_gateway.core.Finished`. After
    :class:`~inference_gateway.core.CallStarted` nothing more comes until :meth:`splice` or :meth:`give_up`.
    """

    @property
    def room(self) -> int:
        """Tokens that still fit this sequence. Only meaningful while it is paused."""
        ...

    def __aiter__(self) -> AsyncIterator[Action]: ...

    def splice(self, result: SplicedResult) -> None:
        """Resume with the tool's result."""
        ...

    def give_up(self) -> None:
        """Resume without a result."""
        ...

    def finish(self, reason: FinishReason, message: str = "") -> None:
        """End early; the iterator still gives the terminal action."""
        ...

    def close(self) -> None:
        """Free everything, from any state, at once. Safe to repeat."""
        ...


class Backend(Protocol):
    """Computes completions of one model."""

    @property
    def model_name(self) -> str: ...

    @property
    def tokenizer(self) -> PromptTokenizer: ...

    @property
    def vocabulary(self) -> CallVocabulary: ...

    @property
    def max_model_len(self) -> int:
        """Most tokens of one sequence: prompt, completion and spliced results."""
        ...

    @property
    def scores_prompts(self) -> bool:
        """Whether ``prompt_logprobs`` are available; a request that asks for it elsewhere ends with an error."""
        ...

    @property
    def sampling_fields(self) -> frozenset[str]:
        """Which of `~inference_gateway.core.OPTIONAL_SAMPLING` it takes; a request that uses another is refused."""
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def ready(self) -> bool: ...

    def why_not_ready(self) -> str:
        """What is the matter while :meth:`ready` says no, and what to do about it."""
        ...

    def stats(self) -> EngineStats:
        """Its sequences and its cache now, for the metrics."""
        ...

    def observe(self, observer: Observer) -> None:
        """Report the times of tokens to ``observer`` from now on; to be called before :meth:`start`."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What an operator should know of how this backend differs from what requests may ask for."""
        ...

    def open(self, request: CompletionRequest, tools: Mapping[str, CallForm]) -> Session:
        """Begin a completion. ``tools`` are all that there are, by name; ``request.tools`` says which may be called.

        Raises:
            BackendBusy: if the queue is full.
        """
        ...
