"""``fetched.json``: what a part's folder holds, from where, and how it was verified; whether all of it is whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.filesize import decimal

from cli.fetch.catalogue import Part
from toolformer.model_files.digests import file_digest
from toolformer.model_files.whole import write_whole

MANIFEST: Final = "fetched.json"

Verified = Literal["published digest", "published size", "announced size", "nothing to compare with"]
"""What a file was compared with when it came, the strongest that there was."""


class FetchedFile(BaseModel):
    """A whole file. ``sha256`` is of the bytes that came."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    size: int
    sha256: str
    verified: Verified


class Manifest(BaseModel):
    """The whole files that a part's folder holds; ``whole`` once all have come. ``revisions`` is the commit of each
    ``repository@revision``: what a killed run began with is what the next one goes on with."""

    model_config = ConfigDict(extra="forbid")

    part: str
    licence: str
    whole: bool = False
    revisions: dict[str, str] = Field(default_factory=dict)
    files: dict[str, FetchedFile] = Field(default_factory=dict)

    def amiss(self, folder: Path, name: str) -> str | None:
        """What is wrong with a listed file, as far as its size shows; ``None`` if nothing is."""
        try:
            size = (folder / name).stat().st_size
        except OSError:
            return "missing"
        wanted = self.files[name].size
        return None if size == wanted else f"{size:,} bytes instead of {wanted:,}"

    def write(self, folder: Path) -> None:
        """Write it; a reader never sees half of it."""
        write_whole(folder / MANIFEST, self.model_dump_json(indent=2) + "\n")


class ManifestError(Exception):
    """A manifest cannot be read; the message names it."""


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in ``folder``, or ``None`` where there is none.

    Raises:
        ManifestError: it is no manifest.
    """
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ManifestError(f"{path} cannot be read; remove it, and fetch again to have the files verified") from error


def torn_file(folder: Path) -> str | None:
    """What is wrong with the first file of a fetched folder that is not as long as when it came; ``None`` where all
    are, or where the folder was not fetched.

    Raises:
        ManifestError: its manifest cannot be read.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    if not manifest.whole:
        return "its download was not finished"
    return next((f"{name}: {wrong}" for name in manifest.files if (wrong := manifest.amiss(folder, name))), None)


State = Literal["whole", "damaged", "missing", "unfinished", "absent"]


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
        return self.state not in ("whole", "absent")


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
        if reason is None and digests and file_digest(folder / name) != manifest.files[name].sha256:
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
