"""A folder as the public Toolformer checkpoints are published: GPT-2's files, the marks among the added tokens."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from language_model.config import CheckpointError
from language_model.tokenizer import ByteLevelTokenizer
from tests.support.vocabularies import marked_tokenizer, small_tokenizer, small_vocabulary
from toolformer.api_call import SPECIAL_MARKS, CallMarks
from toolformer.tools import ToolRegistry

DOCS = Path(__file__).parents[2] / "docs"
END = small_tokenizer().vocab_size


def section() -> str:
    guide = (DOCS / "gpt-j.md").read_text(encoding="utf-8")
    return guide.split("\n## The public Toolformer checkpoints\n")[1].split("\n## ")[0]


def published(folder: Path) -> Path:
    folder.mkdir()
    small_vocabulary().model.save(str(folder))
    names = reversed(SPECIAL_MARKS)
    (folder / "added_tokens.json").write_text(json.dumps({name: END + n for n, name in enumerate(names)}))
    ends = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    (folder / "special_tokens_map.json").write_text(json.dumps(ends))
    config = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, "model_max_length": 1e20, **ends}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_the_guides_command_makes_a_vocabulary_with_the_published_ids(tmp_path: Path) -> None:
    folder = published(tmp_path / "DIR")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing"):
        ByteLevelTokenizer.from_pretrained(folder)
    [code] = re.findall(r'^    python -c "(.*)"$', section(), re.MULTILINE)
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=offline, check=True, timeout=240)
    tokenizer = ByteLevelTokenizer.from_pretrained(folder)
    assert tokenizer.marks == CallMarks((END + 2,), (END + 1,), (END,), special=True)
    text = "Each of the 24 boxes [holds] 17 books. <TOOLFORMER_API_START>"
    assert tokenizer.encode(text) == small_tokenizer().encode(text)


def test_names_of_marks_in_text_are_text_and_other_software_gets_them() -> None:
    tokenizer = marked_tokenizer()
    assert not set(tokenizer.encode("".join(SPECIAL_MARKS))) & tokenizer.special_ids
    start, response, end = SPECIAL_MARKS
    assert tokenizer.special_tokens == {"<|endoftext|>": 0, end: END, response: END + 1, start: END + 2}
    ids = [*tokenizer.marks.opening, *tokenizer.encode("A(1)"), *tokenizer.marks.arrow, *tokenizer.marks.closing]
    assert tokenizer.decode(ids) == " [A(1) -> ]"
    assert tokenizer.decode_names(ids) == f"{start}A(1){response}{end}"
    assert small_tokenizer().decode_names([1, 2, 3]) == small_tokenizer().decode([1, 2, 3])


def test_their_tools_are_in_the_guides_table() -> None:
    [file] = re.findall(r"TOOLFORMER_TOOLS=docs/(\S+)", section())
    registry = ToolRegistry.load([DOCS / file], environ={})
    assert {"Calculator", "Calendar", "Retrieval"} <= set(registry.names())
    retrieval = registry.get("Retrieval")
    assert (retrieval.url, retrieval.quoted) == (registry.get("WikiSearch").url, False)
