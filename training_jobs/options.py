"""The options that the stages' commands share, and how a command ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from toolformer.model_files.whole import is_full
from toolformer.result_cache import CacheConfigError
from toolformer.tools import ToolConfigError, UnknownTool
from training_jobs.errors import NothingKept, StageError
from training_jobs.records import RecordError
from training_jobs.run_folder import RunFolder
from training_jobs.runner.ranks import Shard
from training_jobs.runner.running import Running
from training_jobs.settings import positive


def job_parser(module: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A parser without options; ``examples`` are below them, a command a line."""
    return argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        epilog="examples:\n" + "".join(f"  {line.strip()}\n" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def stage_parser(module: str, description: str, examples: str) -> argparse.ArgumentParser:
    """The same with ``--run`` and ``--tools``."""
    parser = job_parser(module, description, examples)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run, one folder a stage")
    parser.add_argument("--tools", nargs="+", metavar="NAME", help="tools by name; all that are there by default")
    return parser


def add_running(parser: argparse.ArgumentParser, *, chunk: int) -> None:
    """Options that say how a stage is run; but for ``--chunk`` they have no part in its output."""
    group = parser.add_argument_group("how it runs")
    where = "local: here (default); ray: on the Ray of RAY_ADDRESS, or else this machine's own, with a shared folder"
    group.add_argument("--on", choices=("local", "ray"), default="local", help=where)
    workers = "processes (1; on ray as many as have room); the output's bytes are the same"
    group.add_argument("--workers", type=positive, help=workers)
    group.add_argument("--rank", type=int, help="which of several machines this is, from 0; else from the environment")
    group.add_argument("--world-size", type=positive, help="of how many; they share the folder of the run")
    group.add_argument("--chunk", type=positive, default=chunk, help=f"documents done at a time ({chunk})")
    group.add_argument("--restart", action="store_true", help="forget what an earlier run did of this stage")


def running(options: argparse.Namespace) -> Running:
    """What `add_running`'s options say.

    Raises:
        StageError: if they do not fit together.
    """
    shard, on_ray = Shard.read(os.environ, options.rank, options.world_size), options.on == "ray"
    if on_ray and shard.world_size > 1:
        raise StageError("--on ray shares the chunks out itself: give neither --rank nor --world-size (WORLD_SIZE)")
    return Running(options.workers, shard, options.restart, on_ray, Console(stderr=True))


def run_folder(options: argparse.Namespace) -> RunFolder:
    """The folder that ``--run`` names."""
    return RunFolder(options.run)


def run_command(
    parser: argparse.ArgumentParser, do: Callable[[argparse.Namespace], None], arguments: Sequence[str] | None
) -> None:
    """Parse and ``do``; what people must know goes to standard error.

    Raises:
        SystemExit: 1 for trouble, 2 for wrong options, 3 where nothing was kept, 130 after Ctrl-C.
    """
    options = parser.parse_args(arguments)
    try:
        do(options)
    except NothingKept as nothing:
        parser.exit(3, f"{parser.prog}: {nothing}\n")
    except (StageError, RecordError, ToolConfigError, UnknownTool, CacheConfigError) as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")
    except Exception as error:
        if not is_full(error):
            raise
        parser.exit(1, f"{parser.prog}: nothing more can be written ({error}); make room, and run again to go on\n")
    except KeyboardInterrupt:
        print(f"{parser.prog}: stopped; run again to go on", file=sys.stderr)
        raise SystemExit(130) from None
