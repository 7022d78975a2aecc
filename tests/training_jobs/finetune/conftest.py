"""What whole runs of finetuning read."""

import pytest

from tests.training_jobs.finetune.small_run import Inputs, write_inputs


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return write_inputs(tmp_path_factory.mktemp("inputs"))
