"""Ids of the base model's rows, call by call as the gateway and the filter make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from tokenizers import Tokenizer as HFTokenizer

from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ApiCall, call_ids
from toolformer.tools import ToolRegistry
from training_jobs.corpora.base.drawing import CorpusText, Heading, Shown
from training_jobs.corpora.base.random_calls import Placed
from training_jobs.pretrain.tokenizer import END_OF_TEXT

Outputs = Callable[[Heading], str | None]
"""What a tool said to a heading's call; ``None`` for a heading without result."""


class RowEncoder:
    """Ids of rows, closed by the end-of-text mark, and which of them a model learns to make."""

    def __init__(self, tokenizer: HFTokenizer, registry: ToolRegistry, outputs: Outputs) -> None:
        self._hf = tokenizer
        self._end_of_text: int = tokenizer.get_vocab(with_added_tokens=True)[END_OF_TEXT]
        self._tokenizer = ByteLevelTokenizer(tokenizer)
        self._registry = registry
        self._outputs = outputs
        # A prompt's demonstrations are hundreds of tokens, the same in every row that shows them.
        self._repeated = lru_cache(256)(lambda text: tuple(tokenizer.encode(text, add_special_tokens=False).ids))

    def encode(self, row: CorpusText, *, begin: bool = False) -> tuple[list[int], list[bool]]:
        """Ids of the row, and whether each is learned; headings and prompts are read, not learned. ``begin`` puts the
        end-of-text mark before it as well, as what scores texts does (GPT-2's way to mark a beginning).

        Raises:
            MalformedCall: if a result is empty.
        """
        ids = [self._end_of_text] * begin
        learned = [False] * begin
        for part in row.parts:
            new = self._heading(part) if isinstance(part, Heading) else self._shown(part)
            ids += new
            learned += [isinstance(part, Shown) and part.learned] * len(new)
        return [*ids, self._end_of_text], [*learned, True]

    def _heading(self, heading: Heading) -> list[int]:
        return self._call(heading.tool, heading.input, self._outputs(heading))

    def _call(self, tool_name: str, asked: str, result: str | None) -> list[int]:
        tool = self._registry.get(tool_name)
        return call_ids(
            ApiCall(tool_name, asked),
            self._tokenizer,
            quoted=tool.quoted,
            result=result,
            max_result_tokens=tool.max_result_tokens,
        )

    def _shown(self, shown: Shown) -> list[int]:
        """The text's ids are those of the plain text; calls are between them (at inference they are not there
        when the text is encoded)."""
        if not (shown.learned or shown.calls):
            return list(self._repeated(shown.text))
        encoding = self._hf.encode(shown.text, add_special_tokens=False)
        ids: list[int] = list(encoding.ids)
        if not shown.calls:
            return ids
        starts = [start for start, _ in encoding.offsets]
        places = sorted(((_position(call, starts), call) for call in shown.calls), key=lambda place: place[0])
        found: list[int] = []
        done = 0
        for position, call in places:
            found += ids[done:position] + self._call(call.tool, call.input, None)
            done = position
        return found + ids[done:]


def _position(call: Placed, starts: Sequence[int]) -> int:
    """The token that the call is before; one that does not begin inside a character."""
    if call.offset is not None:
        return next((i for i, start in enumerate(starts) if start >= call.offset), len(starts))
    position = int(call.at * len(starts))
    while 0 < position < len(starts) and starts[position] == starts[position - 1]:
        position -= 1
    return position


def texts_for_vocabulary(rows: Iterable[CorpusText], registry: ToolRegistry, outputs: Outputs) -> Iterator[str]:
    """What the vocabulary is learned from: everything but the prompts' own demonstrations, which would take room from
    what is written many times."""
    for row in rows:
        for part in row.parts:
            if isinstance(part, Heading):
                quoted = registry.get(part.tool).quoted
                yield ApiCall(part.tool, part.input).text(quoted=quoted, result=outputs(part))
            elif part.learned:
                yield part.text
                yield from (
                    ApiCall(call.tool, call.input).text(quoted=registry.get(call.tool).quoted) for call in part.calls
                )
