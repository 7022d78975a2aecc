"""The one error of stages that is told to people as it is."""

from __future__ import annotations


class StageError(Exception):
    """A stage cannot go on. The message is for people: what is wrong where, and what to do. What is done stays done."""
