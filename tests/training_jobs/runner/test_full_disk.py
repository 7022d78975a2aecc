"""A full disk: one line, an exit status, and nothing left behind. Here a limit of a file's size is the full disk."""

import subprocess
import sys
from pathlib import Path

import pytest

_LIMITED = """
import argparse, resource, signal, sys
from pathlib import Path
import torch
from language_model import checkpoint
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from training_jobs.options import run_command
from training_jobs.runner.parts import Parts, write_whole

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
folder = Path(sys.argv[2])

def whole(_):
    write_whole(folder / "part.jsonl", b"x" * 50_000)

def join(_):
    parts = Parts(folder / "out.jsonl", {}, 3)
    with parts.held(0):
        for number in range(3):
            parts.write(number, b"x" * 15_000)
        parts.join()

def weights(_):
    torch.manual_seed(0)
    config = GPTJConfig(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2, rotary_dim=8)
    checkpoint.save(GPTJ(config), folder / "model")

run_command(argparse.ArgumentParser(prog="stage"), lambda _: globals()[what](_), []) if (what := sys.argv[1]) else None
"""


@pytest.mark.parametrize("what", ["whole", "join", "weights"])
def test_a_full_disk_is_a_line_and_leaves_no_partial_file(tmp_path: Path, what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, what, str(tmp_path)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("stage: ")
    assert "make room, and run again to go on" in line
    assert not list(tmp_path.rglob("*.partial"))
