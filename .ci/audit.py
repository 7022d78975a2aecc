"""Whether the pinned packages have known advisories: ``python .ci/audit.py LOCK``, run by ``make audit``.

pip-audit asks the package index's advisory data about each pin. It counts a package that the index knows nothing of as
skipped and then ends well; here that is an audit that could not be run. Ends with 0 for none known, 1 for some, 2 where
it was not run for every package.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

_SECONDS = 600


def main(file: str) -> int:
    """Audit all pins of ``file``, print what came of it, and return the exit status."""
    try:
        status, lines = verdict(_ask(file))
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        status, lines = 2, [f"audit: NOT RUN: {str(error)[:300]}"]
    sys.stdout.write("\n".join(lines) + "\n")
    return status


def _ask(file: str) -> list[dict[str, Any]]:
    """What pip-audit says of the requirements ``file``, a dictionary for each package."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--format=json"]
    command += ["--progress-spinner=off", "-r", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if not done.stdout:
        raise ValueError((done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1])
    report: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    return report


def verdict(packages: Sequence[dict[str, Any]]) -> tuple[int, list[str]]:
    """The exit status and the lines for ``packages``, the ``dependencies`` of pip-audit's report."""
    known = [
        f"{one['name']} {one['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'no version'}"
        for one in packages
        for found in one.get("vulns", [])
    ]
    skipped = [one["skip_reason"] for one in packages if "skip_reason" in one]
    lines = list(known)
    if skipped:
        lines.append(f"audit: NOT RUN for {len(skipped)} of {len(packages)} packages, the first: {skipped[0]}")
    elif not packages:
        lines.append("audit: NOT RUN: no packages in this file")
    elif not known:
        lines.append(f"audit: no advisory known for {len(packages)} packages")
    return 1 if known else 2 if skipped or not packages else 0, lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
