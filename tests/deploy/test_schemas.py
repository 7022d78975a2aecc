"""Rendered manifests against Kubernetes' own schemas, strictly, for its three newest versions."""

from __future__ import annotations

import functools
import json
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


def all_manifests() -> dict[str, Manifest]:
    """Every rendered manifest once, by kind, name and content."""
    found: dict[str, Manifest] = {}
    for folder in folders():
        for one in render(folder):
            found[f"{one['kind']} {one['metadata']['name']} {json.dumps(one, sort_keys=True)}"] = one
    return found


def test_three_versions_are_there() -> None:
    assert len(VERSIONS) == 3
    assert VERSIONS[-1] >= "1.37"


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_is_rendered_is_valid(version: str) -> None:
    validated = 0
    for name, one in all_manifests().items():
        if one["kind"] in OTHERS:
            continue
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            pytest.fail(f"{name[:80]}: {'.'.join(map(str, error.path))}: {error.message}")
        validated += 1
    assert validated > 40


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broken_copy_of_each_kind_is_refused(version: str) -> None:
    kinds = {one["kind"]: one for one in all_manifests().values() if one["kind"] not in OTHERS}
    assert len(kinds) >= 10
    for kind, one in kinds.items():
        for broken in ({**one, "sepc": {}}, {**one, "metadata": {**one["metadata"], "label": {}}}, _wrong_type(one)):
            assert refused(broken, version), f"a broken {kind} passed: {broken}"


def refused(manifest: Manifest, version: str) -> bool:
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError:
        return True
    return False


def _wrong_type(one: Manifest) -> Manifest:
    """A copy whose main part is a text."""
    part = next(key for key in one if key not in {"apiVersion", "kind", "metadata"}) if len(one) > 3 else "metadata"
    return {**one, part: "text"}
