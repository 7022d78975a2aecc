"""A model's tokenizer: ids, and the exact bytes that each id stands for.

Bytes, not strings, are what a stream of tokens can be cut at: a character may be spread over several tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as HFTokenizer

from language_model.config import CheckpointError
from language_model.sentencepiece import SentencePieces, as_data, piece_bytes, read_model
from toolformer.api_call import SPECIAL_MARKS, CallMarks

_LONG: Final = 4_096
"""Characters that take about a millisecond to encode."""


def byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each of the 256 bytes, as character to byte (Radford et al., 2019)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def learn_byte_level(
    texts: Iterable[str], pieces: str, *, vocab_size: int, special_tokens: Sequence[str]
) -> HFTokenizer:
    """A byte-level BPE learned from ``texts``, which are cut by the regular expression ``pieces`` before merging; the
    same texts give the same one."""
    tokenizer = HFTokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special_tokens),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    return tokenizer


def tokenizer_file(directory: Path | str) -> Path | None:
    """The file in ``directory`` that holds the vocabulary; ``None`` if there is none."""
    paths = (Path(directory) / name for name in ("tokenizer.json", "tokenizer.model"))
    return next((path for path in paths if path.exists()), None)


def read_vocabulary(path: Path) -> HFTokenizer:
    """The vocabulary in ``path``, a ``tokenizer.json`` or a ``tokenizer.model``.

    Raises:
        CheckpointError: if it is unreadable.
    """
    if path.suffix == ".model":
        return read_model(path)
    try:
        found: HFTokenizer = HFTokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for damaged files
        raise CheckpointError(f"{path} cannot be read: {error}") from None
    return found


def _put_before(backend: HFTokenizer) -> list[int]:
    """What the file has put before a text."""
    encoding = backend.encode("a", add_special_tokens=True)
    return encoding.ids[: encoding.special_tokens_mask.index(0)] if 0 in encoding.special_tokens_mask else []


class ByteLevelTokenizer:
    """A vocabulary of which each token stands for bytes: byte-level BPE (GPT-2, GPT-J, Llama 3, the bundled model), or
    SentencePiece with a piece for every byte (LLaMA, Mistral; ``sentencepiece.py``).

    ``marks`` are the special tokens for a call's marks if it has them, else their text."""

    def __init__(self, backend: HFTokenizer) -> None:
        """Wrap ``backend``; special tokens in text are encoded as the ordinary text they are written as.

        Raises:
            CheckpointError: if it is no such vocabulary.
        """
        self._backend = as_data(backend)
        if all(backend.token_to_id(name) is not None for name in SPECIAL_MARKS):
            # Published as ordinary tokens, which text could write.
            backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL_MARKS])
        added = {number: token.content for number, token in backend.get_added_tokens_decoder().items()}
        self._special = {t.content: n for n, t in backend.get_added_tokens_decoder().items() if t.special}
        self.special_ids = frozenset(self._special.values())
        pieces = {number: token for token, number in backend.get_vocab(with_added_tokens=True).items()}
        alphabet = byte_alphabet()
        strange = next((t for n, t in pieces.items() if n not in added and not set(t) <= alphabet.keys()), None)
        self._pieces: SentencePieces | None = None
        if strange is None:
            own = {n: bytes(alphabet[c] for c in token) for n, token in pieces.items() if n not in added}
        elif backend.token_to_id("<0x00>") is None:
            raise CheckpointError(
                f"tokenizer.json: token {strange!r} is not byte-level; GPT-2's and GPT-J's are, and those of "
                "SentencePiece's that have one for every byte"
            )
        else:
            self._pieces = SentencePieces(backend, list(self._special))
            own = {number: piece_bytes(token) for number, token in pieces.items()}
        self._bytes = own | {number: content.encode() for number, content in added.items()}
        self._longest = max(map(len, self._bytes.values()))
        self._begin = [] if self._pieces else _put_before(backend)
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
        """Load ``directory/tokenizer.json`` or, where there is none, ``tokenizer.model``.

        Raises:
            CheckpointError: if both are missing, or the file is unreadable.
        """
        path = tokenizer_file(directory)
        if path is None:
            path = Path(directory) / "tokenizer.json"
            raise CheckpointError(f"{path} is missing: a checkpoint directory must hold its tokenizer.json")
        return cls(read_vocabulary(path))

    @property
    def vocab_size(self) -> int:
        """One more than the largest id (a model's embedding may be larger still)."""
        return max(self._bytes) + 1

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens, as they are written, and their ids."""
        return dict(self._special)

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` that follows other text; nothing is added and special tokens are not recognised in it."""
        if self._pieces is not None:
            return self._pieces.encode(text)
        if len(text) > _LONG:
            # As long as `encode` works, no other thread of Python does; the batched one lets them go on.
            [encoding] = self._backend.encode_batch_fast([text], add_special_tokens=False)
            return encoding.ids
        return self._backend.encode(text, add_special_tokens=False).ids

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of ``text`` at the beginning of a sequence: what the vocabulary's file puts before a text, a token for
        its beginning, is before this one too, and with SentencePiece a space."""
        return [*self._begin, *self.encode(text)] if self._pieces is None else self._pieces.encode_beginning(text)

    def encode_with_special_tokens(self, text: str) -> list[int]:
        """The same with the tokens that the vocabulary's file puts around a text, such as one for its beginning."""
        if self._pieces is not None:
            return self._pieces.encode_beginning(text)
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
        """Text of ``ids``, which begin a sequence, for other software: that reads special tokens by their names, and
        itself puts there what :meth:`encode_prompt` does."""
        return self._decode_beginning(ids, self.name_bytes)

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """Text of ``ids`` that begin a sequence, without what :meth:`encode_prompt` put before it."""
        return self._decode_beginning(ids, self.token_bytes)

    def _decode_beginning(self, ids: Sequence[int], word: Callable[[int], bytes]) -> str:
        if self._pieces is None:
            begun = list(ids[: len(self._begin)]) == self._begin
            own = ids[len(self._begin) :] if begun else ids
            return b"".join(map(word, own)).decode(errors="replace")
        begun = bool(ids) and ids[0] in self.special_ids
        text = b"".join(map(word, ids[1:] if begun else ids)).decode(errors="replace")
        return text.removeprefix(" ") if begun else text

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``; bytes that form no character become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")
