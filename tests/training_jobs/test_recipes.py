"""The recipes of docs/gpt-j.md for figure 4 and appendix G: their commands, on small shapes."""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from demo_world.articles import article
from services.calculator.app import build_app as calculator_app
from services.calendar.app import build_app as calendar_app
from tests.support.vocabularies import save_small_tokenizer
from tests.training_jobs.servers import serve
from training_jobs.evaluate.command_options import parser as evaluate_parser
from training_jobs.finetune.__main__ import main as finetune
from training_jobs.finetune.__main__ import make_parser as finetune_parser
from training_jobs.pipeline import main as stages
from training_jobs.pipeline import make_parser as stages_parser

ROOT = Path(__file__).parents[2]


def commands(heading: str) -> dict[str, list[str]]:
    """The arguments of each `toolformer` command of a section that teaches or asks, by the command's name."""
    section = (ROOT / "docs/gpt-j.md").read_text(encoding="utf-8").split(f"\n## {heading}")[1].split("\n## ")[0]
    lines = [shlex.split(line) for line in re.findall(r"^ {4}toolformer (.*)$", section, re.MULTILINE)]
    return {(" ".join(line[:2]) if line[0] == "jobs" else line[0]): line[1 + (line[0] == "jobs") :] for line in lines}


def filled(arguments: Sequence[str], names: dict[str, Path]) -> list[str]:
    """The arguments with the places of this test in place of the guide's."""
    return [str(names.get(argument, argument)) for argument in arguments]


def gpt_2(folder: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_positions=1_024, n_embd=16, n_layer=1, n_head=2, vocab_size=424, bos_token_id=0, eos_token_id=0
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    save_small_tokenizer(folder)
    return folder


def texts(path: Path, numbers: range) -> Path:
    found = [article(number, seed=1) for number in numbers]
    rows = [{"id": str(one.number), "text": one.text, "date": one.date.isoformat()} for one in found]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("heading", "parsers"),
    [
        ("Figure 4", {"jobs run": stages_parser, "jobs finetune": finetune_parser, "evaluate": evaluate_parser}),
        ("Appendix G", {"jobs run": stages_parser, "jobs finetune": finetune_parser}),
    ],
)
def test_the_guides_commands_are_commands(heading: str, parsers: dict[str, Callable[[], Any]]) -> None:
    found = commands(heading)
    assert found.keys() == parsers.keys()
    for name, arguments in found.items():
        parsers[name]().parse_args(arguments)


@pytest.mark.slow
def test_gpt_2_is_asked_for_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {
        "SHARDS": texts(tmp_path / "texts.jsonl", range(4)),
        "/data/SIZE-run": tmp_path / "run",
        "/data/SIZE": gpt_2(tmp_path / "gpt2"),
    }
    arguments = filled(commands("Figure 4")["jobs run"], names)
    with serve(calculator_app()) as calculator:
        monkeypatch.setenv("TOOLFORMER_TOOL_CALCULATOR_URL", calculator)
        # A model that never learned follows no prompt, which the run says before it annotates, and proposes nothing.
        with pytest.raises(SystemExit, match="3"):
            stages(arguments)
        assert "form QA: nothing was kept" in capsys.readouterr().err
        with pytest.raises(SystemExit, match="3"):
            stages([*arguments, "--unchecked"])
    assert {one.stem for one in (tmp_path / "run/annotate").glob("*.jsonl")} >= {"QA", "Calculator", "WikiSearch"}
    assert "annotate QA: nothing was kept" in capsys.readouterr().err


@pytest.mark.slow
def test_another_model_learns_what_a_strong_one_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "SHARDS": texts(tmp_path / "texts.jsonl", range(24)),
        "/data/strong-run": tmp_path / "run",
        "/data/strong-run/merge/with_calls.jsonl": tmp_path / "run/merge/with_calls.jsonl",
        "/data/STRONG": ROOT / "models/base",
        "/data/LEARNER": gpt_2(tmp_path / "learner"),
        "RUN/corpus/held_out.jsonl": texts(tmp_path / "held-out.jsonl", range(24, 30)),
        "/data/learner-toolformer": tmp_path / "out",
    }
    recipe = commands("Appendix G")
    with serve(calendar_app()) as calendar:
        monkeypatch.setenv("TOOLFORMER_TOOL_CALENDAR_URL", calendar)
        stages([*filled(recipe["jobs run"], names), "--tools", "Calendar", "--tau", "0.1", "--before-words"])
    small = ("--steps", "2", "--batch", "2", "--evaluate-every", "1", "--precision", "float32", "--device", "cpu")
    finetune([*filled(recipe["jobs finetune"], names), *small])
    config = json.loads((tmp_path / "out/model/config.json").read_text())
    assert (config["model_type"], config["n_embd"]) == ("gpt2", 16)
