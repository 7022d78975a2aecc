"""Models for the tests: a random NLLB-like checkpoint, converted."""

from pathlib import Path

import pytest

from services.translation.convert import convert
from services.translation.engine import BUNDLED
from services.translation.model_folder import LANGUAGE_ID_NAME
from tests.services.test_translation.nllb_checkpoint import write_checkpoint


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in the published layout."""
    folder = tmp_path_factory.mktemp("published") / "nllb-tiny"
    write_checkpoint(folder)
    return folder


@pytest.fixture(scope="session")
def model_folder(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, converted without quantisation."""
    folder = tmp_path_factory.mktemp("converted") / "nllb-tiny"
    convert(str(checkpoint), folder, quantization="float32")
    return folder


@pytest.fixture(scope="session")
def language_id() -> Path:
    """The bundled classifier."""
    return BUNDLED / LANGUAGE_ID_NAME
