"""``toolformer jobs run``: the whole pipeline of the jobs, or one stage, and where that runs."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli.console import CommandError
from cli.forwarded import main_of
from cli.stack import services_up
from cli.stage_run.programs import STAGES
from toolformer.names import did_you_mean

_UP: Final = "--up"
_ON_RAY: Final = ("annotate", "execute", "filter", "merge")
_ONLY_ON: Final = {"docker": ("compose", "project"), "k8s": ("kustomize", "context", "replace")}

_DESCRIPTION: Final = """\
Start one stage, follow its log, and end with its exit status. Options that are not listed here are the stage's own
(`toolformer jobs STAGE --help` lists them); in a container they take the place of those in docker-compose.yml
or k8s/jobs. Ctrl-C stops the stage; what it finished is kept, and the same command goes on."""

_EXAMPLES: Final = """
examples:
  toolformer jobs run annotate --run RUN --model models/base
  toolformer jobs run merge --on docker
  toolformer jobs run filter --on docker --run /runs/run --tau 0.5
  toolformer jobs run annotate --on ray --run RUN --model models/base
  toolformer jobs run annotate --on k8s --context my-cluster
  toolformer jobs run annotate --on k8s --kustomize k8s/overlays/jobs-gpu --dry-run
"""


def make_parser() -> argparse.ArgumentParser:
    """The options that are not the stage's own."""
    parser = argparse.ArgumentParser(
        prog="toolformer jobs run",
        usage="toolformer jobs run STAGE [--on local|ray|docker|k8s] [--dry-run] [options] [the stage's own options]",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("stage", choices=STAGES, metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument(
        "--on",
        choices=("local", "ray", "docker", "k8s"),
        default="local",
        help="local: a process here (default); ray: workers of a Ray cluster, or of this machine's own Ray; "
        "docker: a container beside the compose stack; k8s: a Job of the cluster",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be started, and start nothing")
    docker = parser.add_argument_group("--on docker")
    docker.add_argument(
        "--compose",
        type=Path,
        action="append",
        metavar="FILE",
        help="compose file, again for more (docker-compose.yml)",
    )
    docker.add_argument("--project", metavar="NAME", help="the stack's name, whose networks and volumes are used")
    k8s = parser.add_argument_group("--on k8s")
    k8s.add_argument("--kustomize", type=Path, metavar="DIR", help="folder with the jobs' manifests (k8s/jobs)")
    k8s.add_argument("--context", metavar="NAME", help="of the kubeconfig; by default the current one")
    k8s.add_argument("--replace", action="store_true", help="stop and delete a job of that name that still runs")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run all stages with ``arguments``, which are those of ``training_jobs.pipeline``; or, where they begin with a
    stage or say where it is to run, that stage.

    Raises:
        CommandError: the services do not start, or the stage cannot be started or was lost from sight.
        SystemExit: wrong options (2), or what the stages end with.
    """
    place = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    place.add_argument("--on")
    options, others = place.parse_known_args(arguments)
    of_a_stage = (others and others[0] in STAGES) or options.on not in (None, "ray")
    return _one_stage(arguments) if of_a_stage else _all_stages(arguments)


def _all_stages(arguments: Sequence[str]) -> int:
    """The whole pipeline, where wanted with the tool services started for it."""
    from training_jobs.pipeline import main as run_stages
    from training_jobs.pipeline import make_parser as make_pipeline_parser

    first = arguments[0] if arguments else ""
    if not first.startswith("-") and not Path(first).exists() and (hint := did_you_mean(first, STAGES)):
        raise CommandError(f"there is no stage and no file {first!r}; {hint}the stages: {', '.join(STAGES)}")
    options = make_pipeline_parser().parse_args(arguments)
    with contextlib.ExitStack() as stack:
        if options.up:
            os.environ.update(stack.enter_context(services_up(options.tools, os.environ)))
        run_stages([argument for argument in arguments if argument != _UP])
    return 0


def _one_stage(arguments: Sequence[str]) -> int:
    """The stage that ``arguments`` name; its exit status, or 130 where it was stopped."""
    parser = make_parser()
    options, own = parser.parse_known_args(arguments)
    for place, names in _ONLY_ON.items():
        for name in names:
            if options.on != place and getattr(options, name):
                parser.error(f"--{name} is for --on {place}")
    module = STAGES[options.stage]
    if options.on == "ray":
        if options.stage not in _ON_RAY:
            parser.error(f"{options.stage} does not run on ray; these do: {', '.join(_ON_RAY)}")
        own += ["--on", "ray"] if options.stage != "merge" else []  # one pass over the files, here
    if options.on in ("local", "ray"):
        if options.dry_run:
            print(shlex.join(["python", "-m", module, *own]))
            return 0
        return main_of(module)(own) or 0
    # SIGTERM to this command ends the stage as well.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.on == "docker":
            from cli.stage_run.on_docker import run_in_docker

            return run_in_docker(options.stage, own, options.compose, options.project, dry_run=options.dry_run)
        from cli.stage_run.on_kubernetes import run_in_kubernetes

        return run_in_kubernetes(
            options.stage, own, options.kustomize, options.context, dry_run=options.dry_run, replace=options.replace
        )
    finally:
        signal.signal(signal.SIGTERM, before)
