"""What ``toolformer fetch`` does with its options, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from cli.console import CommandError, show_finding
from cli.fetch.catalogue import BUNDLED, Part, choose, load_parts
from cli.fetch.part_manifest import PartFinding, check_parts

_PLAIN_WIDTH: Final = 160
_STYLES: Final = {"whole": "green", "absent": "", "unfinished": "yellow", "missing": "bold red", "damaged": "bold red"}


def run_fetch(
    names: Sequence[str],
    *,
    to: Path | None,
    check: bool,
    digests: bool,
    as_json: bool,
    parts_file: Path | None,
    connections: int,
    environ: Mapping[str, str],
) -> int:
    """List, fetch or check; the exit status.

    Raises:
        CommandError: the options do not fit together, or what was asked for cannot be done.
    """
    if digests and not check:
        raise CommandError("--digests goes with --check: it hashes again what was fetched")
    if as_json and to is not None and not check:
        raise CommandError("--json is for the list and for --check: leave it out to fetch")
    if to is None and (check or (names and not as_json)):
        raise CommandError("name the folder in --to, such as --to /data")
    if to is not None and not check and not names:
        raise CommandError("name what to fetch, such as `toolformer fetch gpt-j --to DIR`; without --to it lists all")
    parts = load_parts(parts_file or BUNDLED)
    chosen = choose(parts, names) if names else list(parts.values())
    if to is None:
        show_parts(chosen, as_json=as_json)
        return 0
    if check:
        if not to.is_dir():
            raise CommandError(f"there is no folder {to}: name the one that was fetched into")
        findings = list(check_parts(chosen, to, named=bool(names), digests=digests))
        show_findings(findings, as_json=as_json)
        return int(any(found.amiss for found in findings) or all(found.state == "absent" for found in findings))
    from cli.fetch.fetching import fetch

    endpoint = environ.get("HF_ENDPOINT") or None
    fetch(chosen, to, Console(stderr=True), connections=connections, endpoint=endpoint)
    return 0


def show_parts(parts: Sequence[Part], *, as_json: bool) -> None:
    """Print what there is to fetch."""
    if as_json:
        shown = [part.model_dump(mode="json") | {"from": part.origins()} for part in parts]
        print(json.dumps({"parts": shown}, indent=2))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("part", "what for", "download", "disk in all", "memory", "licence"):
        table.add_column(heading, justify="right" if heading in ("download", "disk in all") else "left")
    for part in parts:
        size = ("" if part.size_is == "published" else "about ") + decimal(part.size)
        table.add_row(part.name, Text(part.purpose), size, decimal(part.disk), Text(part.memory), Text(part.licence))
    console.print(table)
    for part in parts:
        lines = [("from", origin) for origin in part.origins()] + [("then", line) for line in part.next_commands("DIR")]
        console.print(part.name, style="bold")
        for kind, line in lines:
            console.print(f"    {kind}  {line}", markup=False, soft_wrap=True)
    console.print(
        "\nFetch with `toolformer fetch PART... --to DIR`, look after it with `toolformer fetch --check --to DIR`.\n"
        "Sizes were read from public listings, those with `about` worked out; servers are asked first.\n"
        "From nothing to the paper's tables: docs/gpt-j.md",
        markup=False,
        soft_wrap=True,
    )


def show_findings(findings: Sequence[PartFinding], *, as_json: bool) -> None:
    """Print what a check found, one line each."""
    if as_json:
        whole = not any(finding.amiss for finding in findings)
        print(json.dumps({"ok": whole, "findings": [asdict(finding) for finding in findings]}, indent=2))
        return
    console = Console(highlight=False)
    for finding in findings:
        name = f"{finding.part}/{finding.file}" if finding.file else finding.part
        remedy = finding.remedy if finding.state != "whole" else ""
        show_finding(console, f"{finding.state:<10}", _STYLES[finding.state], f"{name}: {finding.detail}", remedy)
