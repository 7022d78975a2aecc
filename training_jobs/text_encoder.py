"""Ids of a text with calls, made segment by segment as at inference (section 3 of the paper's method; design: ids are
the truth).

A call's ids are those that the gateway has in its sequence after the same call: `toolformer.api_call` makes both. Plain
text of C* keeps the ids that it has without calls, for a call is proposed between two tokens of the plain text; only
where a call is inside a token (in texts of a later round) the text is divided there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall, call_ids, splice_result
from toolformer.tools import ToolRegistry
from training_jobs.records import CallSegment


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids of a text. ``learned`` says of each whether the loss counts it; ``calls`` are the spans (first id, behind the
    last id) of its calls, in order; ``as_before``: the model is to stay as it was on this text."""

    ids: tuple[int, ...]
    learned: tuple[bool, ...]
    calls: tuple[tuple[int, int], ...] = ()
    as_before: bool = False

    def cut(self, length: int) -> Encoded:
        """The first ``length`` ids; a call that does not fit whole is left out with all that follows it."""
        if len(self.ids) <= length:
            return self
        kept = tuple(span for span in self.calls if span[1] <= length)
        end = min([length, *(start for start, stop in self.calls if start < length < stop)])
        return Encoded(self.ids[:end], self.learned[:end], kept)


class TextEncoder:
    """Encodes texts for one vocabulary and one set of tools."""

    def __init__(
        self,
        tokenizer: ByteLevelTokenizer,
        registry: ToolRegistry,
        *,
        end_id: int,
        mask_results: bool = False,
        apart: bool = False,
    ) -> None:
        """``end_id`` closes a text, and begins it where that is wanted; with ``mask_results`` the loss leaves out what
        a tool's answer splices in, which no model ever samples; ``apart`` encodes the text between two calls by
        itself, as a model does that has written the first of them."""
        self._tokenizer = tokenizer
        self._registry = registry
        self._end_id = end_id
        self._mask_results = mask_results
        self._apart = apart

    def encode(self, segments: Sequence[str | CallSegment], *, begin: bool = False) -> Encoded:
        """Ids of the text that ``segments`` form, closed by the end-of-text mark; ``begin`` puts it before as well.

        Raises:
            UnknownTool: if a call's tool is not in the registry.
            MalformedCall: if nothing is left of a call's result.
        """
        parts = iter(self._plain_parts(segments))
        ids, learned = [self._end_id] * begin, [False] * begin
        calls: list[tuple[int, int]] = []

        def read() -> None:
            part = next(parts)
            ids.extend(part)
            learned.extend([True] * len(part))

        read()
        for segment in segments:
            if isinstance(segment, CallSegment):
                new, spliced = self._call(segment)
                calls.append((len(ids), len(ids) + len(new)))
                ids += new
                learned += [True] * (len(new) - spliced) + [not self._mask_results] * spliced
                read()
        return Encoded((*ids, self._end_id), (*learned, True), tuple(calls))

    def _call(self, segment: CallSegment) -> tuple[list[int], int]:
        """Ids of a call, and how many at their end are spliced in."""
        tool = self._registry.get(segment.tool)
        call, limit = ApiCall(segment.tool, segment.input), tool.max_result_tokens
        ids = call_ids(call, self._tokenizer, quoted=tool.quoted, result=segment.output, max_result_tokens=limit)
        spliced = splice_result(segment.output, self._tokenizer, max_tokens=limit)
        return ids, len(spliced.ids) if spliced else 0

    def _plain_parts(self, segments: Sequence[str | CallSegment]) -> list[list[int]]:
        """The plain text's ids before the first call, between calls, and behind the last; some may be empty."""
        texts = [""]
        for segment in segments:
            if isinstance(segment, str):
                texts[-1] += segment
            else:
                texts.append("")
        if self._apart:
            return [self._tokenizer.encode(text) for text in texts]
        return self._divided("".join(texts), list(accumulate(map(len, texts[:-1]))))

    def _divided(self, text: str, cuts: Sequence[int]) -> list[list[int]]:
        """``len(cuts) + 1`` parts of the ids of ``text``, which ``cuts`` (characters, ascending) divide."""
        ids = self._tokenizer.encode(text)
        widths = (len(self._tokenizer.token_bytes(token)) for token in ids)
        tokens = {border: number for number, border in enumerate(accumulate(widths, initial=0))}
        places = [tokens.get(len(text[:cut].encode())) for cut in cuts]
        for number, (cut, place) in enumerate(zip(cuts, places, strict=True)):
            if place is None:  # inside a token: what is before and behind it are texts of their own
                before = self._divided(text[:cut], cuts[:number])
                return before + self._divided(text[cut:], [later - cut for later in cuts[number + 1 :]])
        borders = [0, *(place for place in places if place is not None), len(ids)]
        return [ids[start:end] for start, end in pairwise(borders)]
