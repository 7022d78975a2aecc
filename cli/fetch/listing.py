"""What a part consists of today: each file's address, size and published digest, as the servers report them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from cli.console import CommandError
from cli.fetch.catalogue import HubFiles, Part, WebFile
from cli.fetch.transfer import Digest, Network, RemoteFile, TryAgainError

HUB_SECONDS: Final = 30.0
"""Deadline for an answer of the hub."""
_WORKERS: Final = 8


def files_of(
    part: Part, begun: Mapping[str, str], network: Network, endpoint: str | None
) -> tuple[list[RemoteFile], dict[str, str]]:
    """The files of ``part``, and the commit of each ``repository@revision`` that they are from.

    Args:
        part: what to list.
        begun: commits that an earlier run began with, and which are kept.
        network: how to ask.
        endpoint: the hub's address where it is another (``HF_ENDPOINT``).

    Raises:
        CommandError: a repository or a file in it is not there, or may not be read.
        TransferError: an address does not answer, or there is nothing.
        StoppedError: it was asked to stop.
    """
    files: list[RemoteFile] = []
    revisions: dict[str, str] = {}
    for source in part.hub:
        key = f"{source.repository}@{source.revision}"
        info = _model_info(source, begun.get(key), network, endpoint)
        revisions[key] = info.sha
        files += _of_hub(source, info, endpoint)

    def sized(file: RemoteFile) -> RemoteFile:
        return file if file.published else replace(file, size=network.announced_size(file.url))

    with ThreadPoolExecutor(_WORKERS) as pool:
        files += pool.map(sized, (file for source in part.web for file in _of_web(source)))
    return files, revisions


def _of_web(source: WebFile) -> list[RemoteFile]:
    digest = Digest("sha256", source.sha256) if source.sha256 else Digest("md5", source.md5) if source.md5 else None
    return [RemoteFile(name, url, source.size, source.size is not None, digest) for name, url in source.addresses()]


def _of_hub(source: HubFiles, info: Any, endpoint: str | None) -> list[RemoteFile]:
    from huggingface_hub import get_token, hf_hub_url

    siblings = {one.rfilename: one for one in info.siblings or []}
    if missing := [name for name in source.files if name not in siblings]:
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
        url = hf_hub_url(source.repository, name, revision=info.sha, endpoint=endpoint)
        path = str(PurePosixPath(source.folder) / name)
        files.append(RemoteFile(path, url, sibling.size, sibling.size is not None, digest, headers))
    return files


def _model_info(source: HubFiles, commit: str | None, network: Network, endpoint: str | None) -> Any:
    import httpx2
    from huggingface_hub import HfApi, errors

    name, asked = source.repository, commit or source.revision

    def ask() -> Any:
        try:
            return HfApi(endpoint).model_info(name, revision=asked, files_metadata=True, timeout=HUB_SECONDS)
        except errors.GatedRepoError as error:
            page = f"{endpoint or 'https://huggingface.co'}/{name}"
            raise CommandError(f"{name} wants its licence accepted at {page}, and HF_TOKEN") from error
        except errors.RevisionNotFoundError as error:
            raise CommandError(f"{name} has no revision {asked}") from error
        except errors.RepositoryNotFoundError as error:
            raise CommandError(
                f"there is no {name} on the hub, or it is private: set HF_TOKEN to a token that may read it"
            ) from error
        except (errors.HfHubHTTPError, httpx2.HTTPError, OSError) as error:
            response = getattr(error, "response", None)
            reason = f"status {response.status_code}" if response else str(error).partition("\n")[0] or repr(error)
            if response and response.status_code != 429 and response.status_code < 500:
                raise CommandError(f"the hub refuses to list {name}: {reason}") from error
            raise TryAgainError(reason) from error

    return network.patiently(ask, f"the hub does not answer for {name} (HF_ENDPOINT)")
