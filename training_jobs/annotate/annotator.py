"""Positions and sampled calls for documents (section 2 of the paper, "Sampling API Calls")."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from language_model.bulk.interface import Place, SamplingRule, batches_by_length
from language_model.bulk.loading import AnyModel, as_bulk
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import OPEN, opening_id
from toolformer.calls_in_text import call_spans, encode_with_calls
from toolformer.tools import Tool, ToolRegistry
from training_jobs.annotate.given_numbers import is_given
from training_jobs.annotate.prompted import Position, PromptedDocument, begins_word, prompted
from training_jobs.annotate.sampled import REPEATED, SampledCalls
from training_jobs.records import Annotated, Candidate, Document
from training_jobs.settings import positive, setting

NOT_READ = "tokens beyond the model's length"
"""Not a reason to drop a call: how much of the text's end the model had no room for."""
NOT_GIVEN: Final = "input not given"
"""What the call asks with is not in the text before it, and that was required."""


@dataclass(frozen=True, slots=True)
class AnnotateSettings:
    """How a model annotates; what belongs to a tool (its prompt, ``tau_s``, ``k``, ``m``) is in the registry.

    ``batch_tokens`` counts padding; memory grows with it. Llama and others expect ``begin_of_text``, GPT-J does not
    need it. ``before_words`` is for a vocabulary that spells most words and all numbers with several tokens; the paper
    tries every token, which GPT-J's vocabulary makes nearly the same."""

    temperature: float = setting(1.0, "of the samples")
    batch_tokens: int = setting(8_192, "tokens of documents that are annotated together", kind=positive)
    begin_of_text: bool = setting(False, "put the model's begin-of-text token before the prompt")
    before_words: bool = setting(
        False, "calls only where a word begins, for a vocabulary of very short tokens (the bundled models')"
    )
    given_inputs: bool = setting(
        False, "only calls whose numbers and names (MT's: whole inputs) stand in the text before them (`is_given`)"
    )
    most_positions: int | None = setting(None, "sample at fewer positions of a text than the tools' k", kind=positive)
    most_samples: int | None = setting(None, "sample fewer calls at a position than the tools' m", kind=positive)
    seed: int = setting(0, "of the samples; the same seed gives the same bytes")

    def __post_init__(self) -> None:
        if self.batch_tokens < 1:
            raise ValueError(f"--batch-tokens must be 1 or more, not {self.batch_tokens}")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"--temperature must be more than 0 and finite, not {self.temperature:g}")


class Annotator:
    """Asks a model for calls of one tool. The prompt is computed when this is made, for all documents to come."""

    def __init__(
        self,
        model: AnyModel,
        tokenizer: ByteLevelTokenizer,
        tool: Tool,
        settings: AnnotateSettings | None = None,
        earlier_calls: ToolRegistry | None = None,
    ) -> None:
        """Read ``tool``'s prompt with ``model``. ``earlier_calls``: the tools whose calls may be in the texts already,
        from an earlier round; no call is put inside one.

        Raises:
            ValueError: if the vocabulary cannot open a call with one token, the model has no begin-of-text token but
                one is asked for, or the prompt leaves no room in the model's positions.
        """
        self._settings, self._earlier_calls = settings or AnnotateSettings(), earlier_calls
        self._model = as_bulk(model, tokenizer)
        self._tokenizer, self._tool = tokenizer, tool
        self._positions = min(tool.max_positions, self._settings.most_positions or tool.max_positions)
        self._samples = min(tool.max_samples, self._settings.most_samples or tool.max_samples)
        opening = opening_id(tokenizer)
        if opening is None:
            raise ValueError(f"the vocabulary writes {OPEN!r} with several tokens; annotating needs one")
        self._opening = opening
        self._calls = SampledCalls(tool, tokenizer)
        head = encode_with_calls(tool.prompt_head, tokenizer, ToolRegistry([tool]))
        prompt = [*_begin(self._model.begin_id, self._settings.begin_of_text), *head]
        # A sample at the last position must fit as well.
        self._room = self._model.max_positions - len(prompt) - 1 - self._calls.limit
        if prompted(".", tokenizer, room=self._room) is None:
            raise ValueError(
                f"the prompt of {tool.name} takes {len(prompt)} of the model's {self._model.max_positions} positions "
                "and leaves no room for a text: shorten its demonstrations or max_input_tokens"
            )
        self._prompt = self._model.hold(prompt)

    def annotate(self, documents: Sequence[Document], *, seed: int | None = None) -> list[Annotated]:
        """``documents`` in their order, each with the calls that the model proposes.

        A position is kept if a call starts there with a probability above ``tau_s``, at most the ``k`` likeliest of a
        document; of ``m`` samples at each, those that are calls with an input of their own become candidates. Of a
        text too long for the model only the beginning is annotated, and ``dropped`` says how many tokens were not.

        Every sample draws from a random stream of its own, keyed by seed (by default the settings'), document, tool,
        position and number."""
        seed = self._settings.seed if seed is None else seed
        asked = [self._prompted(document.text) for document in documents]
        annotated = [Annotated(document, self._tool.name) for document in documents]
        readable = [index for index, document in enumerate(asked) if document is not None]
        lengths = [len(document.text.ids) for document in asked if document is not None]
        for batch in batches_by_length(lengths, self._settings.batch_tokens):
            chosen = [readable[at] for at in batch]
            pairs = [(documents[index], one) for index in chosen if (one := asked[index]) is not None]
            for index, done in zip(chosen, self._annotate(pairs, seed), strict=True):
                annotated[index] = done
        return annotated

    def _prompted(self, text: str) -> PromptedDocument | None:
        asked = prompted(text, self._tokenizer, room=self._room)
        if asked is None:
            return None
        positions = asked.positions
        if (tools := self._earlier_calls) is not None:
            free = outside(text, tools)
            positions = tuple(position for position in positions if free[position.offset])
        if self._settings.before_words:
            positions = tuple(position for position in positions if begins_word(text, position.offset))
        return replace(asked, positions=positions)

    def _annotate(self, batch: Sequence[tuple[Document, PromptedDocument]], seed: int) -> list[Annotated]:
        reading = self._model.read(self._prompt, [asked.text for _, asked in batch], self._opening)
        likely = [
            self._likeliest(asked.positions, logprobs)
            for (_, asked), logprobs in zip(batch, reading.log_probabilities, strict=True)
        ]
        places = [
            Place(number, asked.text.first + position.place)
            for number, (_, asked) in enumerate(batch)
            for position, _ in likely[number]
        ]
        streams = [
            [self._stream(seed, document, position, number) for number in range(self._samples)]
            for (document, _), positions in zip(batch, likely, strict=True)
            for position, _ in positions
        ]
        rule = SamplingRule(self._calls.limit, self._calls.ended, self._settings.temperature, self._calls.stops)
        written = iter(reading.continuations(places, streams, rule))
        annotated = []
        for (document, asked), positions in zip(batch, likely, strict=True):
            dropped: Counter[str] = Counter({NOT_READ: asked.left_out} if asked.left_out else {})
            wrote: dict[str, str] = {}
            candidates: list[Candidate] = []
            for position, probability in positions:
                for input_ in self._inputs(next(written), document.text[: position.offset], dropped, wrote):
                    candidates.append(Candidate(position.position, position.offset, probability, input_))  # noqa: PERF401
            annotated.append(Annotated(document, self._tool.name, tuple(candidates), dict(dropped), wrote))
        return annotated

    def _likeliest(self, positions: Sequence[Position], logprobs: Sequence[float]) -> list[tuple[Position, float]]:
        """The positions to sample at, in order, each with its ``p_i``."""
        scored = [(position, math.exp(logprobs[position.place])) for position in positions]
        above = [one for one in scored if one[1] > self._tool.sampling_threshold]
        best = sorted(above, key=lambda one: -one[1])[: self._positions]  # of equals the earlier
        return sorted(best, key=lambda one: one[0].place)

    def _inputs(self, samples: Sequence[bytes], before: str, dropped: Counter[str], wrote: dict[str, str]) -> list[str]:
        """The different inputs that were sampled at one position, behind ``before``; what is dropped is counted in
        ``dropped``, and the first of each reason is in ``wrote``."""
        inputs: list[str] = []
        for written in samples:
            input_, reason = self._calls.read(written)
            if input_ is not None and not self._fits(input_, before):
                input_, reason = None, NOT_GIVEN
            if input_ is None:
                dropped[reason] += 1
                wrote.setdefault(reason, written.decode("utf-8", errors="replace"))
            elif input_ in inputs:
                dropped[REPEATED] += 1
            else:
                inputs.append(input_)
        return inputs

    def _fits(self, asked: str, before: str) -> bool:
        return not self._settings.given_inputs or is_given(before, asked, whole=self._tool.input_from_before)

    def _stream(self, seed: int, document: Document, position: Position, number: int) -> random.Random:
        return random.Random(repr((seed, document.id, self._tool.name, position.position, number)))


def _begin(begin_id: int | None, wanted: bool) -> list[int]:
    if not wanted:
        return []
    if begin_id is None:
        raise ValueError("begin_of_text: the model has no such token; switch it off")
    return [begin_id]


def outside(text: str, tools: ToolRegistry) -> list[bool]:
    """For each place before a character of ``text``, and the one at its end: whether it is inside no call."""
    free = [True] * (len(text) + 1)
    for span in call_spans(text, tools):
        for place in span[1:]:
            free[place] = False
    return free
