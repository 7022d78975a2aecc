"""``toolformer up`` with the gateway: a model that knows one word, and the bundled one."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest
import torch

from cli.up import SAMPLE_PROMPT
from language_model.checkpoint import save as save_model
from language_model.gptj import GPTJ
from tests.cli.command import gone, is_listening, kill, run, toolformer
from tests.support.models import SMALL
from training_jobs.pretrain.tokenizer import save_tokenizer, train_tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A GPT-J checkpoint whose every token is ``x``."""
    tokenizer = train_tokenizer(["Today is Friday."], vocab_size=SMALL.vocab_size)
    save_tokenizer(tokenizer, tmp_path)
    model = GPTJ.from_config(SMALL)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.bias[tokenizer.encode("x").ids[0]] = 100.0
    save_model(model, tmp_path)
    return tmp_path


async def test_a_completion_end_to_end_and_a_gateway_that_comes_back(checkpoint: Path) -> None:
    arguments = ("up", "--tools", "calculator", "--port", "0", "--model", str(checkpoint))
    async with toolformer(*arguments, env=ONE_THREAD) as up:
        pids = dict[str, int]()
        while len(pids) < 2:
            found = await up.line_with(r"^(\w+) +\| started as process (\d+)")
            pids[found[1]] = int(found[2])
        url = (await up.line_with("^ready: (http://.*)$", "out"))[1]
        status, out, log = await run("complete", "Today is", "--max-tokens", "8", "--no-tools", "--url", url)
        assert (status, out, log) == (0, "xxxxxxxx\n", "cut off: --max-tokens allows no more\n")

        status, _, log = await run("complete", "Today is", "--tools", "Abacus", "--url", url)
        assert status == 1
        assert "Abacus" in log

        kill(pids["gateway"])
        await up.line_with("gateway was killed by SIGKILL; starting it again")
        await up.line_with("gateway is ready")
        assert (await run("complete", "Today is", "--max-tokens", "2", "--no-tools", "--url", url))[0] == 0
        os.kill(pids["calculator"], 0)  # raises if it is gone

        up.process.send_signal(signal.SIGINT)
        assert await up.ended() == 0
        await asyncio.gather(*map(gone, pids.values()))
        assert not is_listening(int(url.rpartition(":")[2]))


async def test_a_checkpoint_that_is_none_is_reported_at_start(tmp_path: Path) -> None:
    status, out, log = await run("up", "--tools", "", "--port", "0", "--model", str(tmp_path))
    assert (status, out) == (1, "")
    assert "gateway exited with status 2 before it was ready" in log
    assert str(tmp_path) in log


async def test_the_sample_calls_the_calculator() -> None:
    arguments = ("up", "--tools", "calculator,calendar", "--port", "0", "--sample")
    async with toolformer(*arguments, env=ONE_THREAD) as up:
        url = (await up.line_with("^ready: (http://.*)$", "out"))[1]
        sample = await up.line_with("^" + re.escape(SAMPLE_PROMPT) + r" \[Calculator\(24 \* 17\) -> 408\](.*)$", "out")
        assert "408" in sample[1]
        await up.line_with(f"browser: {url}/", "out")
        up.process.send_signal(signal.SIGINT)
        assert await up.ended() == 0
