"""A model that writes what a test says."""

from collections.abc import Callable, Sequence

from tests.support.vocabularies import small_tokenizer

END = 0
"""The small tokenizer's end of text."""


class Script:
    """What is written (the second of a pair) where a text ends with the first; the first pair that fits holds, without
    one the text ends."""

    def __init__(self, writes: Sequence[tuple[str, str]]) -> None:
        encode = small_tokenizer().encode
        self._rules = [(cue.encode(), [*encode(reply), END]) for cue, reply in writes]

    def follows(self, ids: Sequence[int], forbids: Callable[[int], bool] = lambda token: False) -> int:
        """The token that comes behind ``ids``, none that the test ``forbids``."""
        token_bytes = small_tokenizer().token_bytes
        text = b"".join(map(token_bytes, ids))
        for cue, reply in self._rules:
            at = text.rfind(cue)
            written = b""
            for token in reply if at >= 0 else ():
                if text[at + len(cue) :] == written and not forbids(token):
                    return token
                written += token_bytes(token)
        return END
