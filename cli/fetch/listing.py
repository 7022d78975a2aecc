"""What a part consists of today: each file's address, size and published digest, as the servers tell."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

import httpx

from cli.console import CommandError
from cli.fetch.catalogue import HubFiles, Part, WebFile
from cli.fetch.digests import Digest
from cli.fetch.transfer import PATIENT, RemoteFile, Retries, TryAgainError, announced_size, patiently

HUB_SECONDS: Final = 30.0
"""Deadline for an answer of the hub."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A part's files, and the commit of each ``repository@revision`` that they are from."""

    files: tuple[RemoteFile, ...]
    revisions: Mapping[str, str]


class Lister:
    """Asks the servers. ``endpoint`` and the token are the hub's (``HF_ENDPOINT``, ``HF_TOKEN``)."""

    def __init__(
        self,
        client: httpx.Client,
        stop: threading.Event,
        *,
        endpoint: str | None = None,
        workers: int = 8,
        retries: Retries = PATIENT,
    ) -> None:
        self._client, self._stop, self._endpoint = client, stop, endpoint or None
        self._workers, self._retries = workers, retries

    def files_of(self, part: Part, begun: Mapping[str, str]) -> Listing:
        """The files of ``part``; ``begun`` holds commits that an earlier run began with, and which are kept.

        Raises:
            CommandError: a repository or a file in it is not there, or may not be read.
            TransferError: an address does not answer, or there is nothing.
            StoppedError: it was told to stop.
        """
        files: list[RemoteFile] = []
        revisions: dict[str, str] = {}
        for source in part.hub:
            key = f"{source.repository}@{source.revision}"
            found, revisions[key] = self._of_hub(source, begun.get(key))
            files += found
        files += self._of_web([one for source in part.web for one in _described(source)])
        return Listing(tuple(files), revisions)

    def _of_web(self, files: list[RemoteFile]) -> list[RemoteFile]:
        """``files``, with the sizes that servers announce where none is published."""

        def sized(file: RemoteFile) -> RemoteFile:
            if file.size is not None:
                return file
            return replace(file, size=announced_size(self._client, file.url, self._stop, self._retries))

        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(sized, files))

    def _of_hub(self, source: HubFiles, commit: str | None) -> tuple[list[RemoteFile], str]:
        from huggingface_hub import get_token, hf_hub_url

        info = self._model_info(source, commit)
        siblings = {one.rfilename: one for one in info.siblings or []}
        missing = [name for name in source.files if name not in siblings]
        if missing:
            raise CommandError(
                f"{source.repository}@{source.revision} holds no {', '.join(missing)}: it has changed; name another "
                "revision in a file for --parts"
            )
        token = get_token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        files = []
        for name in (*source.files, *(name for name in source.optional if name in siblings)):
            sibling = siblings[name]
            digest = Digest("sha256", sibling.lfs.sha256) if sibling.lfs else None
            if digest is None and sibling.blob_id and sibling.size is not None:
                digest = Digest("git-blob", sibling.blob_id)
            url = hf_hub_url(source.repository, name, revision=info.sha, endpoint=self._endpoint)
            path = str(PurePosixPath(source.folder) / name)
            files.append(RemoteFile(path, url, sibling.size, sibling.size is not None, digest, headers))
        return files, info.sha

    def _model_info(self, source: HubFiles, commit: str | None) -> Any:
        import httpx2
        from huggingface_hub import HfApi
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        api, asked = HfApi(endpoint=self._endpoint), commit or source.revision
        name, page = source.repository, f"{self._endpoint or 'https://huggingface.co'}/{source.repository}"

        def ask() -> Any:
            try:
                return api.model_info(name, revision=asked, files_metadata=True, timeout=HUB_SECONDS)
            except GatedRepoError as error:
                raise CommandError(f"{name} wants its licence accepted at {page}, and HF_TOKEN") from error
            except RevisionNotFoundError as error:
                raise CommandError(f"{name} has no revision {asked}") from error
            except RepositoryNotFoundError as error:
                raise CommandError(
                    f"there is no {name} on the hub, or it is private: set HF_TOKEN to a token that may read it"
                ) from error
            except (HfHubHTTPError, httpx2.HTTPError, OSError) as error:
                response = getattr(error, "response", None)
                reason = f"status {response.status_code}" if response else str(error).partition("\n")[0] or repr(error)
                if response and response.status_code != 429 and response.status_code < 500:
                    raise CommandError(f"the hub refuses to list {name}: {reason}") from error
                raise TryAgainError(reason) from error

        return patiently(ask, f"the hub does not answer for {name} (HF_ENDPOINT)", self._stop, self._retries)


def _described(source: WebFile) -> list[RemoteFile]:
    digest = Digest("sha256", source.sha256) if source.sha256 else None
    if digest is None and source.md5:
        digest = Digest("md5", source.md5)
    return [RemoteFile(name, url, source.size, source.size is not None, digest) for name, url in source.addresses()]
