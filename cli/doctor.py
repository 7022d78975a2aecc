"""``toolformer doctor``: every check, one line each; the checks themselves are in ``checks.py``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from cli.checkout import CHECKOUT
from cli.checks import CHECKS, Finding
from cli.console import show_finding

_STYLES: Final = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def project_version() -> str:
    """The project's version, installed or not."""
    try:
        return metadata.version("toolformer")
    except metadata.PackageNotFoundError:
        project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
        return str(project["project"]["version"])


def diagnose(environ: Mapping[str, str], checkout: Path = CHECKOUT) -> list[Finding]:
    """What all checks found, in their order. A check that fails itself is a finding too."""
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        try:
            findings += check(environ, checkout)
        except Exception as error:  # The doctor is asked when things are broken: it must get to the end.
            findings.append(Finding(name, "problem", f"{type(error).__name__}: {error}", "mend what it names"))
    return findings


def show_findings(findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print the findings, as lines for people or as JSON for programs."""
    if as_json:
        healthy = all(finding.status != "problem" for finding in findings)
        print(json.dumps({"ok": healthy, "checks": [asdict(finding) for finding in findings]}, indent=2))
        return
    console = Console(highlight=False)
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        what = f"{finding.name:<{width}}  {finding.detail}"
        show_finding(console, f"{finding.status:<7}", _STYLES[finding.status], what, finding.remedy)
    console.print(_verdict(findings), soft_wrap=True)


def _verdict(findings: Sequence[Finding]) -> Text:
    """One line: all is well, or what to do."""
    problems = [finding.name for finding in findings if finding.status == "problem"]
    warnings = [finding.name for finding in findings if finding.status == "warning"]
    if problems:
        return Text(f"Mend what these lines name: {', '.join(problems)}", _STYLES["problem"])
    if warnings:
        return Text(f"It can run; look at what these lines name: {', '.join(warnings)}", _STYLES["warning"])
    return Text("All is well.", _STYLES["ok"])
