"""The models that go through the loop: where each has its files, and what its rows are called."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cli.console import CommandError

_HEAD = 64
"""Width of an attention head, as of the bundled models; half of it is rotated."""
_NARROW = (16, 32, 48)
"""Widths of a single, smaller head."""


@dataclass(frozen=True, slots=True)
class Size:
    """A shape of GPT-J. Written ``256x4``: 256 wide, 4 layers."""

    width: int
    layers: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The size that is written like this.

        Raises:
            CommandError: if it is none.
        """
        found = re.fullmatch(r"(\d{1,5})x(\d{1,3})", text)
        size = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not size.layers or not size.width or (size.width % _HEAD and size.width not in _NARROW):
            raise CommandError(
                f"--sizes: {text!r} is no size: write WIDTHxLAYERS, such as 256x4; the width is a multiple of {_HEAD}, "
                f"or one of {_NARROW}"
            )
        return size

    @property
    def heads(self) -> int:
        """Attention heads."""
        return max(1, self.width // _HEAD)

    @property
    def rotary_dim(self) -> int:
        """Dimensions of a head that are rotated."""
        return min(self.width, _HEAD) // 2

    def __str__(self) -> str:
        return f"{self.width}x{self.layers}"


@dataclass(frozen=True, slots=True)
class LoopModel:
    """One base model and what becomes of it. ``folder`` is the model's in the run; ``size`` is ``None`` for a
    checkpoint that was ``given``, which is where it stays."""

    folder: Path
    size: Size | None = None
    given: Path | None = None

    def step(self, name: str) -> str:
        """What a step with it is called; sizes are distinguished."""
        return f"{name}-{self.size}" if self.size else name

    @property
    def base(self) -> Path:
        """The base model's checkpoint."""
        return self.given or self.folder / "pretrain" / "model"

    def positions(self, wanted: int) -> int:
        """The longest text in tokens that it is trained on: ``wanted``, or fewer if a given model has fewer.

        Raises:
            CommandError: the given folder holds no checkpoint.
        """
        if self.given is None:
            return wanted
        try:
            config = json.loads((self.given / "config.json").read_bytes())
            return min(wanted, int(config.get("n_positions") or config["max_position_embeddings"]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise CommandError(
                f"--base: {self.given} holds no checkpoint ({error!r}): name one, or train one with --sizes 256x4"
            ) from error

    def row(self, row: str) -> str:
        """What a row of tables is called; sizes are distinguished."""
        return f"{row} {self.size}" if self.size else row
