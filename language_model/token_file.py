"""A corpus' documents as ids, in one file that training maps into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from toolformer.model_files.whole import whole

TOKENS_FILE: Final = "tokens.safetensors"


@dataclass(frozen=True, slots=True)
class Tokens:
    """All documents' ids in one line: ``ids`` and ``learned`` ``[tokens]``, ``starts`` ``[documents + 1]``.

    ``learned`` is false for tokens that no model ever has to make: those a tool's result splices in.
    """

    ids: Tensor
    learned: Tensor
    starts: Tensor

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def counts(self) -> dict[str, int]:
        """What a corpus' manifest says of them."""
        longest = int(self.starts.diff().max()) if self.documents else 0
        learned = int(self.learned.sum())
        return {"documents": self.documents, "tokens": len(self.ids), "learned_tokens": learned,
                "longest_document_tokens": longest}  # fmt: skip

    @classmethod
    def of(cls, documents: Sequence[tuple[Sequence[int], Sequence[bool]]]) -> Tokens:
        """Tokens of documents given as (ids, learned)."""
        lengths = torch.tensor([0, *(len(ids) for ids, _ in documents)])
        return cls(
            torch.tensor([token for ids, _ in documents for token in ids], dtype=torch.int32),
            torch.tensor([flag for _, learned in documents for flag in learned], dtype=torch.bool),
            lengths.cumsum(0),
        )

    def save(self, directory: Path) -> None:
        """Write ``directory/tokens.safetensors``; a reader never sees half a file."""
        with whole(directory / TOKENS_FILE) as partial:
            save_file({"ids": self.ids, "learned": self.learned, "starts": self.starts}, partial)

    @classmethod
    def load(cls, directory: Path) -> Tokens:
        """Read what :meth:`save` wrote.

        Raises:
            FileNotFoundError: with the remedy, if the corpus has not been made.
        """
        path = directory / TOKENS_FILE
        if not path.exists():
            raise FileNotFoundError(
                f"{path} is missing: make the corpus first, such as with "
                f"python -m training_jobs.corpora.demonstrations --out {directory}"
            )
        tensors = load_file(path)
        return cls(tensors["ids"], tensors["learned"], tensors["starts"])
