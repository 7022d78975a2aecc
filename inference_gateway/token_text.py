"""From tokens to text, and from shown text back to the tokens it is made of.

Text is shown later than its tokens come, if at all: it may be held back, taken back with a call, hidden, or cut by a
stop string in the middle of a token; and a character may be spread over several tokens. So each token waits, with the
characters that it covers, until the last of them has been shown."""

from __future__ import annotations

import codecs
from collections import deque
from dataclasses import dataclass

from inference_gateway.core import TokenLogprob


@dataclass(frozen=True, slots=True)
class TextState:
    """What must be known to continue as if later tokens had never come."""

    utf8: tuple[bytes, int]
    decoded: int


class TokenText:
    """The text of one completion, token by token. Offsets are characters of the text, held-back ones included."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoded = 0
        self._shown = 0
        self._waiting: deque[tuple[TokenLogprob, int]] = deque()
        """Tokens that are not shown to their end, and the offset of that end."""

    @property
    def state(self) -> TextState:
        return TextState(self._utf8.getstate(), self._decoded)

    @property
    def incomplete(self) -> bool:
        """Whether the last token ended inside a character."""
        return bool(self._utf8.getstate()[0])

    @property
    def waiting(self) -> tuple[TokenLogprob, ...]:
        """The tokens that are not shown to their end."""
        return tuple(token for token, _ in self._waiting)

    def read(
        self, token: int, data: bytes, logprob: float | None = None, top: tuple[tuple[int, float], ...] = ()
    ) -> str:
        """The characters that are complete with ``token``, whose bytes are ``data``; bytes that form no character
        become U+FFFD."""
        start = self._decoded
        if data and self.incomplete and data[0] & 0xC0 != 0x80:
            start += 1  # it does not continue the character before it, which ends as U+FFFD
        text = self._utf8.decode(data)
        self._decoded += len(text)
        end = self._decoded + self.incomplete
        self._waiting.append((TokenLogprob(token, logprob, top, start), end))
        return text

    def forget(self, tokens: int, state: TextState) -> None:
        """Drop the last ``tokens`` tokens, of which nothing was shown to its end; ``state`` was before them."""
        for _ in range(tokens):
            self._waiting.pop()
        self._utf8.setstate(state.utf8)
        self._decoded = state.decoded

    def hide(self, offset: int) -> None:
        """What begins at ``offset`` will never be shown; what comes next is there."""
        while self._waiting and self._waiting[-1][0].offset >= offset:
            self._waiting.pop()
        if self._waiting and self._waiting[-1][1] > offset:
            self._waiting[-1] = (self._waiting[-1][0], offset)
        self._decoded = offset

    def show(self, characters: int) -> tuple[TokenLogprob, ...]:
        """That many more characters are shown: the tokens that are now shown to their end."""
        self._shown += characters
        taken = []
        while self._waiting and self._waiting[0][1] <= self._shown:
            taken.append(self._waiting.popleft()[0])
        return tuple(taken)

    def cut(self, *, everything: bool = False) -> tuple[TokenLogprob, ...]:
        """No more is shown: the tokens of which only a part was or, with ``everything``, nothing."""
        return tuple(token for token, _ in self._waiting if everything or token.offset < self._shown)
