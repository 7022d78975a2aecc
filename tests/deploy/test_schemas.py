"""Rendered manifests against Kubernetes' own schemas, strictly, for its three newest versions."""

import functools
from typing import Any, Final

import kubernetes_validate
import pytest
from kubernetes_validate import utils

from tests.deploy.manifests import Manifest, folders, render

VERSIONS: Final = sorted(set(utils.all_versions()), key=lambda version: [int(part) for part in version.split(".")])[-3:]
OTHERS: Final = {"ServiceMonitor", "HTTPRoute", "JobSet"}
"""Kinds that operators bring along; Kubernetes has no schema of them, so they are checked by nobody here."""


@pytest.fixture(autouse=True)
def schemas_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "schema_contents", _schema)


@functools.cache
def _schema(file: str, version: str) -> Any:
    return _read_schema(file, version)


_read_schema = utils.schema_contents


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_is_rendered_is_valid(version: str) -> None:
    assert VERSIONS[-1] >= "1.37"
    rendered: dict[str, Manifest] = {str(one): one for folder in folders() for one in render(folder)}
    known = [one for one in rendered.values() if one["kind"] not in OTHERS]
    assert len(known) > 40
    for one in known:
        kubernetes_validate.validate(one, version, strict=True)
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate({**one, "sepc": {}}, version, strict=True)
