"""``fetched.json``: what a part's folder holds, from where, and how it was verified."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
        """What is wrong with a listed file, as far as its size tells; ``None`` if nothing is."""
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
