"""What the decoding machine asks of those around it, beside the completion's own events."""

from __future__ import annotations

from dataclasses import dataclass

from inference_gateway.core import Event
from toolformer.api_call import ApiCall


@dataclass(frozen=True, slots=True)
class CallAhead:
    """The model has written all of ``call`` but ``->``: if that comes next, the call will be made."""

    call: ApiCall


@dataclass(frozen=True, slots=True)
class Keep:
    """The cache is to hold the first ``tokens`` tokens of the completion; ``append`` follows them without being
    sampled."""

    tokens: int
    append: tuple[int, ...] = ()


Action = Event | CallAhead | Keep
