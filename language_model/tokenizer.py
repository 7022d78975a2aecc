"""A byte-level tokenizer such as GPT-J's: ids, and the exact bytes that each id stands for.

Bytes, not strings, are what a stream of tokens can be cut at: a character may be spread over several tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tokenizers import AddedToken
from tokenizers import Tokenizer as HFTokenizer

from language_model.config import CheckpointError
from toolformer.api_call import SPECIAL_MARKS, CallMarks

_LONG: Final = 4_096
"""Characters that take about a millisecond to encode."""


def byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each of the 256 bytes, as character to byte (Radford et al., 2019)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


class ByteLevelTokenizer:
    """The vocabulary of a ``tokenizer.json`` with byte-level BPE (GPT-2, GPT-J, the bundled model).

    ``marks`` are the special tokens for a call's marks if it has them, else their text."""

    def __init__(self, backend: HFTokenizer) -> None:
        """Wrap ``backend``; special tokens in text are encoded as the ordinary text they are written as.

        Raises:
            CheckpointError: if the vocabulary is not byte-level.
        """
        self._backend = backend
        # Text comes from users and tools: `<|endoftext|>` in it is data, never the mark itself.
        backend.encode_special_tokens = True
        backend.no_truncation()
        backend.no_padding()
        if all(backend.token_to_id(name) is not None for name in SPECIAL_MARKS):
            # Published as ordinary tokens, which text could write.
            backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL_MARKS])
        alphabet = byte_alphabet()
        added = {number: token.content for number, token in backend.get_added_tokens_decoder().items()}
        self._bytes: dict[int, bytes] = {}
        for token, number in backend.get_vocab(with_added_tokens=True).items():
            if number in added:
                self._bytes[number] = added[number].encode()
            elif all(character in alphabet for character in token):
                self._bytes[number] = bytes(alphabet[character] for character in token)
            else:
                raise CheckpointError(f"tokenizer.json: token {token!r} is not byte-level; GPT-2's and GPT-J's are")
        self._longest = max(map(len, self._bytes.values()))
        self._special = {t.content: n for n, t in backend.get_added_tokens_decoder().items() if t.special}
        self.special_ids = frozenset(self._special.values())
        self.marks = CallMarks.in_text(self.encode)
        self._names: dict[int, bytes] = {}
        """The names of tokens that read as another text: of special marks."""
        if SPECIAL_MARKS.keys() <= self._special.keys():
            opening, arrow, closing = (self._special[name] for name in SPECIAL_MARKS)
            self.marks = CallMarks((opening,), (arrow,), (closing,), special=True)
            for name, text in SPECIAL_MARKS.items():
                self._names[self._special[name]] = name.encode()
                self._bytes[self._special[name]] = text.encode()

    @classmethod
    def from_pretrained(cls, directory: Path | str) -> ByteLevelTokenizer:
        """Load ``directory/tokenizer.json``.

        Raises:
            CheckpointError: if the file is missing or unreadable.
        """
        path = Path(directory) / "tokenizer.json"
        if not path.exists():
            raise CheckpointError(f"{path} is missing: a checkpoint directory must hold its tokenizer.json")
        try:
            return cls(HFTokenizer.from_file(str(path)))
        except CheckpointError:
            raise
        except Exception as error:  # the library raises bare Exception for damaged files
            raise CheckpointError(f"{path} cannot be read: {error}") from None

    @property
    def vocab_size(self) -> int:
        """One more than the largest id (a model's embedding may be larger still)."""
        return max(self._bytes) + 1

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens, as they are written, and their ids."""
        return dict(self._special)

    def encode(self, text: str) -> list[int]:
        """Ids of ``text``; nothing is added and special tokens are not recognised in it."""
        if len(text) > _LONG:
            # As long as `encode` works, no other thread of Python does; the batched one lets them go on.
            [encoding] = self._backend.encode_batch_fast([text], add_special_tokens=False)
            return encoding.ids
        return self._backend.encode(text, add_special_tokens=False).ids

    def encode_with_special_tokens(self, text: str) -> list[int]:
        """The same with the tokens that ``tokenizer.json`` puts around a text, such as one for its beginning."""
        return self._backend.encode_batch_fast([text], add_special_tokens=True)[0].ids

    def written(self, token_id: int) -> str:
        """The token as ``tokenizer.json`` writes it, a space as ``Ġ``; empty for an id that it lacks."""
        return self._backend.id_to_token(token_id) or ""

    def fewest_tokens(self, text: str) -> int:
        """No encoding of ``text`` has fewer tokens: what would be too long by far need not be encoded to know it."""
        if self._backend.normalizer is not None:
            return 0  # it may leave any part of the text out
        return -(-len(text.encode("utf-8", "surrogatepass")) // self._longest)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one id; of a special mark, those of the text it stands for; empty for an id that only pads the
        model's embedding."""
        return self._bytes.get(token_id, b"")

    def name_bytes(self, token_id: int) -> bytes:
        """The bytes by which other software shows one id: of a special mark, its name."""
        return self._names.get(token_id) or self.token_bytes(token_id)

    def decode_names(self, ids: Sequence[int]) -> str:
        """Text of ``ids`` for other software, which reads special tokens by their names."""
        return b"".join(map(self.name_bytes, ids)).decode("utf-8", errors="replace")

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``; bytes that form no character become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")
