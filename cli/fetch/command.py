"""What ``toolformer fetch`` does with its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from cli.console import CommandError
from cli.fetch.catalogue import BUNDLED, choose, load_parts


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
        from cli.fetch.showing import show_parts

        show_parts(chosen, as_json=as_json)
        return 0
    if check:
        from cli.fetch.checking import check as look
        from cli.fetch.showing import show_findings

        if not to.is_dir():
            raise CommandError(f"there is no folder {to}: name the one that was fetched into")
        findings = list(look(chosen, to, named=bool(names), digests=digests))
        show_findings(findings, as_json=as_json)
        return int(any(found.amiss for found in findings) or all(found.state == "absent" for found in findings))
    from cli.fetch.fetching import Settings, fetch

    fetch(chosen, to, Console(stderr=True), Settings(environ.get("HF_ENDPOINT"), connections))
    return 0
