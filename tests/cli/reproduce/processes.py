"""The processes of a run."""

from pathlib import Path


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and theirs."""
    children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(one for child in children for one in descendants(child))]
