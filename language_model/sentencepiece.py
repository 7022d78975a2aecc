"""SentencePiece vocabularies (LLaMA, Mistral) as this project encodes with them.

A piece writes a space as ``▁``. A character that no piece has is written byte by byte, with pieces such as ``<0xE2>``.
So every piece stands for bytes, as in a byte-level vocabulary. What differs is the beginning of a text: these
vocabularies put a space before it that is not there. A call's segments and a tool's result are no beginnings, so they
are encoded without it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tokenizers import AddedToken, normalizers, processors
from tokenizers import Tokenizer as HFTokenizer
from tokenizers.models import BPE, Unigram

from language_model.config import CheckpointError

_SPACE: Final = "▁"
_BYTE: Final = re.compile("<0x([0-9A-F]{2})>")

_PROBE: Final = "  two  spaces\n\ta line, ﬁne é, 漢字, \u200b 😀 "
"""A text that vocabularies which normalise texts do not give back as it is."""

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4
"""Kinds of pieces in a ``tokenizer.model``."""
_BPE: Final = 2
"""The kind of model there; the other one with a score for each piece is 1."""


def piece_bytes(piece: str) -> bytes:
    """What ``piece`` stands for."""
    byte = _BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace(_SPACE, " ").encode()


class SentencePieces:
    """Encodes texts with such a vocabulary, so that the pieces' bytes are the text's."""

    def __init__(self, backend: HFTokenizer, special: Sequence[str]) -> None:
        """Take a vocabulary as it was published, with the names of its special tokens.

        Raises:
            CheckpointError: if texts do not come back as they were.
        """
        spec = json.loads(backend.to_str())
        spec["normalizer"] = _without_prefix(spec["normalizer"], "normalizers")
        spec["pre_tokenizer"] = _without_prefix(spec["pre_tokenizer"], "pretokenizers")
        self._beginning, self._following = backend, as_data(HFTokenizer.from_str(json.dumps(spec)))
        self._lookalike = _lookalike(special)
        self._sign = [backend.get_vocab()[f"<0x{byte:02X}>"] for byte in _SPACE.encode()]
        written = (backend.id_to_token(token) or "" for token in self.encode(_PROBE))
        if b"".join(map(piece_bytes, written)) != _PROBE.encode():
            raise CheckpointError("tokenizer.json: it normalises texts, which then do not come back as they were")

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` that follows other text."""
        return self._encode(text, None)

    def encode_beginning(self, text: str) -> list[int]:
        """Ids of ``text`` at the beginning of a sequence, with what the vocabulary puts there: a token that says so,
        and a space."""
        return self._encode(text, self._beginning)

    def _encode(self, text: str, first: HFTokenizer | None) -> list[int]:
        """The ids, those of the first part by ``first`` if there is one."""
        ids: list[int] = []
        for number, between in enumerate(text.split(_SPACE)):
            ids += self._sign if number else []
            for part in self._lookalike.split(between):
                # The batched call lets other threads go on.
                if first is not None:
                    ids += first.encode_batch_fast([part], add_special_tokens=True)[0].ids
                elif part:
                    ids += self._following.encode_batch_fast([part], add_special_tokens=False)[0].ids
                first = None
        return ids


def as_data(backend: HFTokenizer) -> HFTokenizer:
    """``backend``, which now encodes whole texts, and special tokens in them as the text they are written as: text
    comes from users and tools, and ``<|endoftext|>`` in it is data, never the mark itself."""
    backend.encode_special_tokens = True
    backend.no_truncation()
    backend.no_padding()
    return backend


def _without_prefix(part: dict[str, Any] | None, members: str) -> dict[str, Any] | None:
    """A normalizer or pre-tokenizer of a ``tokenizer.json``, of which sequences list their ``members``."""
    if part is None or part["type"] == "Prepend":
        return None
    if part["type"] == "Sequence":
        return part | {members: [one for one in (_without_prefix(one, members) for one in part[members]) if one]}
    return part | {"prepend_scheme": "never"} if part["type"] == "Metaspace" else part


def _lookalike(special: Sequence[str]) -> re.Pattern[str]:
    """Finds the places in a text where the name of a byte or of one of the ``special`` tokens would be taken for the
    token, were the text not cut there: behind the name's first character."""
    names = [name for name in special if len(name) > 1]
    firsts = "".join(re.escape(name) for name in sorted({"<", *(name[0] for name in names)}))
    return re.compile(rf"(?<=[{firsts}])(?={'|'.join(['0x[0-9A-F]{2}>', *(re.escape(name[1:]) for name in names)])})")


def read_model(path: Path) -> HFTokenizer:
    """The vocabulary of a ``tokenizer.model``, which SentencePiece wrote.

    Raises:
        CheckpointError: if it cannot be read, or not without changing texts.
    """
    try:
        from transformers.convert_slow_tokenizer import generate_merges, import_protobuf
    except ImportError:
        raise CheckpointError(
            f"{path} needs transformers to be read: pip install transformers, or put the tokenizer.json beside it"
        ) from None
    model = import_protobuf().ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except Exception:  # the library's own kind, of whichever of its implementations there is
        model.Clear()
    trained, pieces = model.trainer_spec, model.pieces
    if not pieces:
        raise CheckpointError(f"{path} is no SentencePiece model: put the tokenizer.json beside it")
    if not trained.byte_fallback:
        raise CheckpointError(f"{path}: not every byte has a piece, so it cannot write every text")
    if model.normalizer_spec.precompiled_charsmap or model.normalizer_spec.remove_extra_whitespaces:
        raise CheckpointError(f"{path}: it normalises texts, which then do not come back as they were")
    unknown = pieces[trained.unk_id].piece
    if trained.model_type == _BPE:
        vocabulary = {piece.piece: number for number, piece in enumerate(pieces)}
        unmade = [piece.piece for piece in pieces if piece.type not in (_NORMAL, _USER_DEFINED)]
        merges = generate_merges(vocabulary, {piece.piece: piece.score for piece in pieces}, skip_tokens=unmade)
        backend = HFTokenizer(BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    else:
        backend = HFTokenizer(
            Unigram([(piece.piece, piece.score) for piece in pieces], trained.unk_id, byte_fallback=True)
        )
    spaces = normalizers.Replace(" ", _SPACE)
    prefix = [normalizers.Prepend(_SPACE)] if model.normalizer_spec.add_dummy_prefix else []
    backend.normalizer = normalizers.Sequence([*prefix, spaces])
    special = [piece.piece for piece in pieces if piece.type in (_UNKNOWN, _CONTROL)]
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    own = [piece.piece for piece in pieces if piece.type == _USER_DEFINED]
    backend.add_tokens([AddedToken(name, normalized=False) for name in own])
    if trained.bos_id >= 0 and _adds_begin(path.parent):
        begin = pieces[trained.bos_id].piece
        backend.post_processor = processors.TemplateProcessing(
            single=[begin, "$A"], special_tokens=[(begin, trained.bos_id)]
        )
    return backend


def _adds_begin(directory: Path) -> bool:
    """Whether the token for a text's beginning is put before one, which Llama's vocabularies do by default."""
    try:
        settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True
    return not isinstance(settings, dict) or settings.get("add_bos_token") is not False
