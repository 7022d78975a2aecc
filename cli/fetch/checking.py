"""Whether what was fetched is still whole: by size, or by hashing every byte again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from rich.filesize import decimal

from cli.fetch.catalogue import Part
from cli.fetch.digests import Hashing
from cli.fetch.part_manifest import MANIFEST, Manifest, ManifestError, read_manifest

State = Literal["whole", "damaged", "missing", "unfinished", "absent"]
_AMISS: Final = frozenset({"damaged", "missing", "unfinished"})


@dataclass(frozen=True, slots=True)
class PartFinding:
    """What was found of a part, or of one of its files (``file`` is empty for the part as a whole). ``absent`` is a
    part that was never fetched and was not asked for by name."""

    part: str
    file: str
    state: State
    detail: str
    remedy: str = ""

    @property
    def amiss(self) -> bool:
        """Whether something is to be mended."""
        return self.state in _AMISS

    def as_json(self) -> dict[str, str]:
        """The finding as a JSON object."""
        return asdict(self)


def check_parts(parts: Sequence[Part], to: Path, *, named: bool, digests: bool) -> Iterator[PartFinding]:
    """Look at ``parts`` below ``to``. Parts that are not there are amiss where they were ``named``; ``digests`` hashes
    every file again and compares with what came when it was fetched."""
    for part in parts:
        folder, again = to / part.folder, f"toolformer fetch {part.name} --to {to}"
        try:
            manifest = read_manifest(folder)
        except ManifestError as error:
            yield PartFinding(part.name, MANIFEST, "damaged", str(error), again)
            continue
        if manifest is None:
            begun = folder.is_dir() and any(folder.rglob("*.partial"))
            state: State = "unfinished" if begun else "missing" if named else "absent"
            yield PartFinding(part.name, "", state, f"not in {folder}", again)
            continue
        yield from _check_part(part, folder, manifest, again, digests)


def _check_part(part: Part, folder: Path, manifest: Manifest, again: str, digests: bool) -> Iterator[PartFinding]:
    wrong = False
    for name in sorted(manifest.files.keys() | part.required()):
        if name not in manifest.files:
            if manifest.whole:  # else the last line says it for all of them
                wrong = True
                yield PartFinding(part.name, name, "missing", "not fetched yet", again)
            continue
        reason = manifest.amiss(folder, name)
        remedy = again
        if reason is None and digests and _sha256(folder / name) != manifest.files[name].sha256:
            reason, remedy = "its SHA-256 is not what it was when it came", f"rm {folder / name} && {again}"
        if reason is not None:
            wrong = True
            yield PartFinding(part.name, name, "missing" if reason == "missing" else "damaged", reason, remedy)
    if not manifest.whole:
        came = f"{len(manifest.files)} files have come to {folder}, others not"
        yield PartFinding(part.name, "", "unfinished", came, again)
    elif not wrong:
        size = decimal(sum(file.size for file in manifest.files.values()))
        how = "digests verified" if digests else "sizes verified"
        commits = "".join(f", {source.split('@')[0]} at {commit[:12]}" for source, commit in manifest.revisions.items())
        yield PartFinding(part.name, "", "whole", f"{len(manifest.files)} files, {size}, {how}, in {folder}{commits}")


def _sha256(path: Path) -> str:
    hashing = Hashing(None, None)
    hashing.update_from(path)
    return hashing.sha256
