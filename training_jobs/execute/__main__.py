"""The stage ``execute``: ask the tool services for the result of every proposed call.

    python -m training_jobs.execute --run RUN

Reads ``RUN/annotate/<Tool>.jsonl``, writes ``RUN/execute/<Tool>.jsonl`` and, beside each, what a call took
(``<Tool>.jsonl.log.jsonl``). The services are where the registry says (``TOOLFORMER_TOOL_<NAME>_URL``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from toolformer.cache_settings import CacheSettings
from toolformer.tools import ToolRegistry
from training_jobs.execute.asking import ExecuteSettings
from training_jobs.execute.job import CHUNK, execute_tools
from training_jobs.options import add_running, run_command, run_folder, running, stage_parser
from training_jobs.settings import add_settings, read_settings

_EXAMPLES = """
toolformer jobs execute --run RUN
toolformer jobs execute --run RUN --tools QA WikiSearch --concurrency 8
TOOLFORMER_CACHE_URL=redis://127.0.0.1:6379 toolformer jobs execute --run RUN --workers 4
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this stage."""
    parser = stage_parser(
        "training_jobs.execute",
        "Ask the tool services for the result of every call in RUN/annotate. Each call ends with an output or a named "
        "error; a service that is away is waited for, and none of its documents is lost.",
        _EXAMPLES,
    )
    add_settings(parser, ExecuteSettings)
    add_running(parser, chunk=CHUNK)
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    folder, registry = run_folder(options), ToolRegistry.load()
    execute_tools(
        folder,
        folder.tools("annotate", registry, options.tools),
        running(options),
        read_settings(ExecuteSettings, options),
        CacheSettings.read(os.environ),
        chunk_documents=options.chunk,
    )


if __name__ == "__main__":
    main()
