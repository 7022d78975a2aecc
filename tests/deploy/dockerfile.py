"""A Dockerfile as a list of instructions."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    """One instruction, continued lines joined."""

    name: str
    rest: str


def read(path: Path) -> list[Instruction]:
    """The instructions of the file at ``path``, without comments."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [Instruction(*line.split(" ", 1)) for line in joined.splitlines()]


def last_stage(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions that the image is made of: the last stage's, those of stages it stands on before them."""
    stages: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for one in instructions:
        if one.name == "FROM":
            words = one.rest.split()
            current = [*stages.get(words[0], []), one]
            if len(words) == 3:
                stages[words[2]] = current
        else:
            current.append(one)
    return current


def pairs(instructions: list[Instruction], name: str) -> dict[str, str]:
    """``KEY=value`` pairs of all instructions called ``name``."""
    words = [word for one in instructions if one.name == name for word in shlex.split(one.rest)]
    return dict(word.partition("=")[::2] for word in words)


def copied(instructions: list[Instruction]) -> list[str]:
    """What is copied out of the repository."""
    copies = [one.rest.split() for one in instructions if one.name == "COPY"]
    return [source for words in copies if not words[0].startswith("--from") for source in words[:-1]]
