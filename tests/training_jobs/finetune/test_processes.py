"""Two processes, their weights and optimizer sharded, take the steps that one takes."""

import importlib.util
from pathlib import Path

import pytest
import torch

from language_model import checkpoint
from tests.training_jobs.finetune.small_run import Inputs, command, curve, options
from training_jobs.finetune.curves import PERPLEXITY


@pytest.fixture(scope="module")
def alone(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    return finished(inputs, tmp_path_factory.mktemp("alone"), 1)


def finished(inputs: Inputs, out: Path, processes: int, *more: str) -> Path:
    done = command([*options(inputs, out), *more], processes=processes)
    assert done.returncode == 0, done.stderr[-3_000:]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["none", "fsdp2", "zero3"])
def test_two_processes_take_the_steps_of_one(inputs: Inputs, alone: Path, tmp_path: Path, sharding: str) -> None:
    if sharding == "zero3" and importlib.util.find_spec("deepspeed") is None:
        pytest.skip("needs DeepSpeed: training_jobs/finetune/README.md says how to install it")
    out = finished(inputs, tmp_path, 2, "--sharding", sharding)
    assert curve(out) == pytest.approx(curve(alone), abs=1e-4)
    assert curve(out, PERPLEXITY) == pytest.approx(curve(alone, PERPLEXITY), rel=1e-4)
    ours, theirs = (checkpoint.load(run / "model").state_dict() for run in (out, alone))
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-4) for name in theirs)
    # Each process writes its own part of the optimizer, but where the whole is on both.
    parts = {
        "none": "optimizer.pt",
        "fsdp2": "optimizer.bin",
        "zero3": "global_step12/*zero_pp_rank_1_*optim_states.pt",
    }
    assert list((out / "checkpoint-12").glob(parts[sharding])), sorted((out / "checkpoint-12").rglob("*"))
    if sharding != "none":  # stopped after a whole checkpoint, it goes on to the same curve
        for step in (9, 12):
            (out / f"checkpoint-{step}/whole").unlink(missing_ok=True)
        (out / "model").rename(out / "earlier")
        finished(inputs, out, 2, "--sharding", sharding)
        assert curve(out) == pytest.approx(curve(alone), abs=1e-4)
