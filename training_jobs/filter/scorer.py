"""The three losses of every executed call, with as few tokens as it takes.

A call is a *prefix* of the text, not put into it (unless ``calls_stand`` is ``inside``), so after another call every
token of the text must be computed again: in all layers but the first its keys and values depend on what is before. What
is saved is all else. Nothing is
computed behind the last token that a loss looks at, nor is more of the last layer, or of the vocabulary head, than that
asks for. ``L_i(empty)`` of all positions, of all tools, comes from one pass over the document. Calls that are equal,
with equal results, are one prefix with one pass for all their positions. Sequences of like length go together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from language_model.bulk.interface import Targets
from language_model.bulk.loading import AnyModel, as_bulk
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall, MalformedCall, call_ids, empty_call_ids
from toolformer.tools import ToolRegistry
from training_jobs.filter.judging import gain
from training_jobs.records import Annotated, CallsStand, Candidate, WithoutResult
from training_jobs.settings import setting

WINDOW: Final = 5
"""Tokens from a position on that its loss looks at: the others' weights are 0."""

_UNSCALED: Final = tuple(max(0.0, 1 - 0.2 * t) for t in range(WINDOW))

WEIGHTS: Final = tuple(weight / sum(_UNSCALED) for weight in _UNSCALED)
"""``w_t`` of ``t = 0, 1, ...``: 1/3, 4/15, 1/5, 2/15, 1/15."""


def window(position: int, tokens: int) -> range:
    """The tokens that the loss of ``position`` looks at in a text of so many tokens: fewer than five at its end."""
    return range(position, min(position + WINDOW, tokens))


def weighted_loss(position: int, tokens: Sequence[int], log_probabilities: Sequence[float]) -> float:
    """``L_i`` in nats: ``tokens`` of the window of ``position`` (those that are scored), and their log probabilities.

    At the end of a text the weights stay as they are, so a loss over fewer tokens is smaller."""
    pairs = zip(tokens, log_probabilities, strict=True)
    return -sum(WEIGHTS[token - position] * value for token, value in pairs)


EMPTY_RESULT: Final = "empty result"
TOO_LONG: Final = "text too long for the model"

_Ids = tuple[int, ...]
_Sequence = tuple[str, _Ids, int]
"""A text, the ids of a call (none, for no call), and the token of the text that the call stands before."""


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How calls are scored. Without the begin-of-text token nothing predicts a text's first token, so it counts in none
    of the losses."""

    begin_of_text: bool = setting(True, "texts do not follow the model's begin-of-text token")
    without_result: WithoutResult = setting(
        "empty",
        "what a result is compared with besides no call at all: empty, the paper's [name(input) -> ], or closed, "
        "[name(input)]",
    )
    calls_stand: CallsStand = setting(
        "first",
        "where a call stands when what follows its place is scored: first, before the whole text, the paper's, or "
        "inside, at its place, for a model that was finetuned on calls",
    )


class Scorer:
    """Computes the losses of candidates."""

    def __init__(
        self,
        model: AnyModel,
        tokenizer: ByteLevelTokenizer,
        tools: ToolRegistry,
        settings: ScoreSettings | None = None,
    ) -> None:
        """Score calls of ``tools`` with ``model``.

        Raises:
            ValueError: if begin-of-text is asked for and the model has no such token.
        """
        self._settings, self._tools = settings or ScoreSettings(), tools
        self._model, self._tokenizer = as_bulk(model, tokenizer), tokenizer
        self._begin: _Ids = ()
        if self._settings.begin_of_text:
            if self._model.begin_id is None:
                raise ValueError("begin_of_text: the model has no such token; switch it off")
            self._begin = (self._model.begin_id,)

    def score(self, annotated: Sequence[Annotated]) -> list[Annotated]:
        """``annotated`` with losses and gains of the candidates that have an output. What cannot be scored gets the
        reason as its verdict: nothing is left of its result, or the text is too long for the model.

        Raises:
            UnknownTool: if a tool is not in the registry.
        """
        ids = {text: tuple(self._tokenizer.encode(text)) for text in {one.document.text for one in annotated}}
        scored = _Sequences(self._begin, ids, self._model.max_positions)
        plans = [[self._plan(one, candidate, scored) for candidate in one.candidates] for one in annotated]
        scored.read(self._model.score(scored.targets()))
        done = []
        for one, of_document in zip(annotated, plans, strict=True):
            pairs = zip(one.candidates, of_document, strict=True)
            candidates = tuple(_with_losses(candidate, plan, scored) for candidate, plan in pairs)
            done.append(dataclasses.replace(one, candidates=candidates))
        return done

    def _plan(self, one: Annotated, candidate: Candidate, scored: _Sequences) -> Sequence[_Sequence] | str | None:
        """The sequences of ``L_i(empty)``, ``L_i(e(c, empty))`` and ``L_i(e(c, r))``, asked for; why not; or ``None``
        where there is nothing to score."""
        if candidate.output is None:
            return None
        tool = self._tools.get(one.tool)
        call = ApiCall(one.tool, candidate.input)
        text = one.document.text
        try:
            with_result = call_ids(
                call,
                self._tokenizer,
                quoted=tool.quoted,
                result=candidate.output,
                max_result_tokens=tool.max_result_tokens,
            )
        except MalformedCall:
            return EMPTY_RESULT
        form = empty_call_ids if self._settings.without_result == "empty" else call_ids
        without = form(call, self._tokenizer, quoted=tool.quoted)
        at = candidate.position if self._settings.calls_stand == "inside" else 0
        sequences: list[_Sequence] = [(text, (), 0), (text, tuple(without), at), (text, tuple(with_result), at)]
        if not all(scored.fits(sequence, candidate.position) for sequence in sequences):
            return TOO_LONG
        for sequence in sequences:
            scored.ask(sequence, candidate.position)
        return sequences


class _Sequences:
    """The sequences to score, each once however many candidates ask for it."""

    def __init__(self, begin: _Ids, ids: dict[str, _Ids], max_positions: int) -> None:
        self._begin, self._ids, self._max_positions = begin, ids, max_positions
        self._tokens: dict[_Sequence, set[int]] = {}
        """Of each sequence, the document's tokens whose probability is wanted."""
        self._found: dict[_Sequence, dict[int, float]] = {}

    def tokens(self, sequence: _Sequence, position: int) -> list[int]:
        """The document's tokens that the loss at ``position`` looks at."""
        first = 0 if self._begin else 1
        return [token for token in window(position, len(self._ids[sequence[0]])) if token >= first]

    def fits(self, sequence: _Sequence, position: int) -> bool:
        last = max(self.tokens(sequence, position), default=0)
        return len(self._begin) + len(sequence[1]) + last <= self._max_positions

    def ask(self, sequence: _Sequence, position: int) -> None:
        if tokens := self.tokens(sequence, position):
            self._tokens.setdefault(sequence, set()).update(tokens)

    def targets(self) -> list[Targets]:
        targets = []
        for (text, call, at), tokens in self._tokens.items():
            ids, more = self._ids[text][: max(tokens) + 1], len(self._begin) + len(call)
            wanted = tuple(more + token for token in sorted(tokens))  # each is behind the call
            targets.append(Targets((*self._begin, *ids[:at], *call, *ids[at:]), wanted))
        return targets

    def read(self, scores: Iterable[Sequence[float]]) -> None:
        for (sequence, tokens), found in zip(self._tokens.items(), scores, strict=True):
            self._found[sequence] = dict(zip(sorted(tokens), found, strict=True))

    def loss(self, sequence: _Sequence, position: int) -> float:
        tokens = self.tokens(sequence, position)
        found = self._found.get(sequence, {})
        return weighted_loss(position, tokens, [found[token] for token in tokens])


def _with_losses(candidate: Candidate, plan: Sequence[_Sequence] | str | None, scored: _Sequences) -> Candidate:
    if plan is None:
        return candidate
    if isinstance(plan, str):
        return dataclasses.replace(candidate, verdict=plan)
    empty, call, result = (scored.loss(sequence, candidate.position) for sequence in plan)
    losses = dataclasses.replace(candidate, loss_empty=empty, loss_call=call, loss_result=result)
    return dataclasses.replace(losses, gain=gain(losses))
