"""Several processes (``torchrun``), with weights and optimizer sharded over them by FSDP2 or DeepSpeed ZeRO-3."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any, Final, Literal

from training_jobs.errors import StageError

Sharding = Literal["none", "fsdp2", "zero3"]

_FILES: Final = {"fsdp2": "fsdp2.json", "zero3": "deepspeed_zero3.json"}
_HOSTED: Final = Path(__file__).parent / "configurations"


def configuration(sharding: Sharding, file: Path | None) -> dict[str, Any] | None:
    """The configuration of ``sharding``: of ``file``, or else the one that is here; none for ``none``.

    Raises:
        StageError: if the file is not JSON, or its library is missing.
    """
    if sharding == "none":
        if file is not None:
            raise StageError("--sharding-file: there is nothing to shard: give --sharding fsdp2 or zero3 with it")
        return None
    if sharding == "zero3":
        _require_deepspeed()
    path = file or _HOSTED / _FILES[sharding]
    try:
        settings = json.loads(path.read_bytes())
    except OSError as error:
        raise StageError(f"--sharding-file: {path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise StageError(f"--sharding-file: {path} is not JSON ({error})") from error
    if not isinstance(settings, dict):
        raise StageError(f"--sharding-file: {path} must hold an object")
    return settings


def processes() -> tuple[int, int]:
    """This process' rank, and how many there are; what ``torchrun`` says."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def join_on_cpu(sharding: Sharding) -> None:
    """Let processes on CPUs find one another over gloo, and accelerate shard there.

    accelerate shards on accelerators only: on CPUs it would say nothing and give each process a whole copy. FSDP2 and
    ZeRO-3 themselves work there, which is how they are tested, so the kind of the processes is set here."""
    from accelerate.state import DistributedType, PartialState

    if sharding == "zero3":
        # Here, where a minute of compiling outlasts the work: small pieces of ZeRO-3 as they are written.
        os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")
        # DeepSpeed calls what torch now has under other names, and says so at each call.
        warnings.filterwarnings("ignore", category=FutureWarning, module="torch.distributed")
        from deepspeed import comm, ops

        ops.__compatible_ops__["deepspeed_shm_comm"] = False  # it would be compiled now; gloo does as well
        comm.init_distributed(dist_backend="gloo", auto_mpi_discovery=False)
    state = PartialState(cpu=True, backend="gloo")
    if sharding == "fsdp2":
        state._shared_state["distributed_type"] = DistributedType.MULTI_XPU
    elif sharding == "zero3":
        state._shared_state["distributed_type"] = DistributedType.DEEPSPEED


def _require_deepspeed() -> None:
    try:
        import deepspeed  # noqa: F401
    except ImportError as error:
        raise StageError(
            f"--sharding zero3: DeepSpeed is not there ({error}); how to install it: training_jobs/finetune/README.md"
        ) from error
