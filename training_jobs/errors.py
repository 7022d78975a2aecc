"""The errors of stages that are shown to people as they are."""

from __future__ import annotations


class StageError(Exception):
    """A stage cannot go on. The message is for people: what is wrong where, and what to do. What is done stays done."""


class NothingKept(StageError):  # noqa: N818 - reads as what happened
    """A stage did its work and has nothing for the next. The message says why, with examples, and what to try."""
