"""A decoding machine that is fed a script of tokens, and what came out of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inference_gateway.actions import Action, Keep
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CallFinished, CallStarted, CompletionRequest, Finished, TextDelta, TokenLogprob
from inference_gateway.decoding import DecodingMachine
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import SPECIAL_MARKS, CallMarks, splice_result

END = 0


@dataclass(frozen=True)
class Form:
    quoted: bool = False
    max_input_tokens: int = 64
    cost: float = 1.0


TOOLS = {"Calculator": Form(), "QA": Form(quoted=True, cost=5.0), "Calendar": Form()}


class ChunkTokenizer:
    """A vocabulary of the 256 bytes (ids 1 to 256) and any chunks a test likes: every BPE there could be."""

    def __init__(self, chunks: Sequence[bytes] = (), *, special: bool = False) -> None:
        """``special``: the last three tokens are special ones for a call's marks."""
        self._bytes = [b"", *(bytes([byte]) for byte in range(256)), *chunks]
        self.script = list(range(257, 257 + len(chunks)))
        self.marks = CallMarks.in_text(self.encode)
        if special:
            opening, arrow, closing = range(len(self._bytes), len(self._bytes) + 3)
            self.marks = CallMarks((opening,), (arrow,), (closing,), special=True)
            self._bytes += [text.encode() for text in SPECIAL_MARKS.values()]

    @property
    def vocab_size(self) -> int:
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        return [1 + byte for byte in text.encode()]

    def token_bytes(self, token_id: int) -> bytes:
        return self._bytes[token_id]


@dataclass
class Transcript:
    """What came out of a machine that was fed a script."""

    text: str = ""
    tokens: list[TokenLogprob] = field(default_factory=list)
    calls: list[tuple[str, str, str | None, int]] = field(default_factory=list)
    """(tool, input, output or None, offset)"""
    refusals: list[tuple[str, str, str]] = field(default_factory=list)
    """(code, tool, input)"""
    done: list[Finished] = field(default_factory=list)


def run(
    tokenizer: ChunkTokenizer | ByteLevelTokenizer,
    script: Sequence[int],
    answers: Sequence[str | None] = (),
    *,
    forced: Sequence[int] = (),
    **request: Any,
) -> tuple[Transcript, DecodingMachine]:
    """Feed ``script`` (``forced``: indices of tokens taken as API starts); each call gets the next of ``answers``."""
    wanted = replace(
        CompletionRequest(prompt_ids=(1, 2), tools=tuple(TOOLS), max_tokens=10_000, max_calls=10), **request
    )
    vocabulary = CallVocabulary.of(tokenizer, [END])
    machine = DecodingMachine(wanted, vocabulary, {name: TOOLS[name] for name in wanted.tools})
    seen, left = Transcript(), list(answers)

    def follow(actions: list[Action]) -> None:
        for action in actions:
            assert not seen.done, "nothing may follow the end"
            match action:
                case TextDelta(text, tokens):
                    assert text or tokens, "no empty deltas"
                    seen.text += text
                    seen.tokens += tokens
                case CallStarted(call, offset):
                    output = left.pop(0)
                    spliced = splice_result(output, tokenizer, max_tokens=40) if output is not None else None
                    seen.calls.append((call.tool, call.input, spliced.text if spliced else None, offset))
                    follow(machine.splice(spliced) if spliced else machine.give_up())
                case CallFinished(refused):
                    seen.refusals.append((str(refused.error).partition(":")[0], refused.tool, refused.input))
                case Finished():
                    seen.done.append(action)
                case Keep(tokens, append):
                    assert len(machine.ids) == tokens + len(append)

    for index, token in enumerate(script):
        if machine.done:
            break
        score = -float(token)
        follow(machine.accept(token, forced=index in forced, logprob=score, top=((token, score),)))
    if not machine.done:
        follow(machine.accept(END))
        if not machine.done:  # the first end only closed a call
            follow(machine.accept(END))
    assert len(seen.done) == 1
    return seen, machine
