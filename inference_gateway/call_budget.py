"""Which calls a completion may still make: by their number, by what they cost, and none twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from inference_gateway.call_vocabulary import CallForm
from inference_gateway.core import CompletionRequest
from toolformer.api_call import ApiCall

_ROUNDING: Final = 1e-9
"""Of a sum of costs: ten calls of 0.1 do not pass a ``max_cost`` of 1."""


class CallBudget:
    """What ``request`` allows of calls of ``tools``, and what is left of it."""

    def __init__(self, request: CompletionRequest, tools: Mapping[str, CallForm]) -> None:
        self._request = request
        self._tools = tools
        self._cost = 0.0
        self.made: set[ApiCall] = set()
        """The calls so far."""
        self.offered = self._affordable(request.tools)
        """The names of the tools that may be called next."""
        self.switched_off = not self.offered or request.api_top_k == 0 or request.max_calls == 0
        """Whether the request wants no calls."""

    @property
    def left(self) -> bool:
        """Whether a call may still be made."""
        return bool(self.offered) and not self.switched_off and len(self.made) < self._request.max_calls

    def spend(self, call: ApiCall) -> None:
        """``call`` is made."""
        self.made.add(call)
        self._cost += self._tools[call.tool].cost
        self.offered = self._affordable(self.offered)

    def _affordable(self, names: Iterable[str]) -> frozenset[str]:
        """Those of ``names`` that there are, and whose call would not pass ``max_cost``."""
        left = self._request.max_cost - self._cost + _ROUNDING
        return frozenset(name for name in names if name in self._tools and self._tools[name].cost <= left)
