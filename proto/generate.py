"""Writes the Python modules of ``proto/toolformer/v1``: ``python proto/generate.py [FOLDER]`` (by default the
repository's root, whose ``toolformer/v1`` is their home)."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).parent
SERVICES = ("toolformer/v1/completion.proto",)
"""The files with services, which get a module more."""


def generate(folder: Path) -> int:
    """Write messages, services and their types below ``folder``; protoc's exit status."""
    # protoc finds the plugin that writes types beside the interpreter of its virtual environment.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    include = [f"-I{PROTO}", f"-I{files('grpc_tools') / '_proto'}"]
    messages = [str(path.relative_to(PROTO)) for path in sorted(PROTO.glob("toolformer/v1/*.proto"))]
    return protoc.main(
        ["protoc", *include, f"--python_out={folder}", f"--mypy_out=quiet:{folder}", *messages]
    ) or protoc.main(["protoc", *include, f"--grpc_python_out={folder}", f"--mypy_grpc_out=quiet:{folder}", *SERVICES])


if __name__ == "__main__":
    sys.exit(generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PROTO.parent))
