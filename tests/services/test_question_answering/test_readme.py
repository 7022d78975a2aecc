"""What the README shows holds, and the registry keeps to the service's limits."""

import re
from pathlib import Path

import pytest

from services.question_answering import build_index, convert, evaluate, train
from services.question_answering.app import INFO
from toolformer.tools import ToolRegistry

README = (Path(train.__file__).parent / "README.md").read_text()
COMMANDS = {"convert": convert.main, "build_index": build_index.main, "train": train.main, "evaluate": evaluate.main}


def test_the_registry_asks_for_no_larger_batch_than_the_service_takes() -> None:
    tool = ToolRegistry.load([], {}).get(INFO.tool)
    assert (tool.quoted, tool.pure) == (True, True)
    assert tool.max_batch <= INFO.max_batch


@pytest.mark.parametrize("name", COMMANDS)
def test_shown_options_exist(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        COMMANDS[name](["--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    shown = re.findall(rf"services\.question_answering\.{name} ((?:.*\\\n)*.*)", README)
    assert shown
    used = {option for command in shown for option in re.findall(r"--[a-z-]+", command)}
    assert used
    assert used <= known
