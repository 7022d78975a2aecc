"""The heuristics on real web text in CCNet's layout: the counts that the README gives."""

import json
from pathlib import Path

import pytest

from tests.support.vocabularies import SHARED_DATA
from training_jobs.corpora.web.__main__ import main

SHARD = SHARED_DATA / "webtext/derived/ccnet_like.json.gz"
CLASSIFIER = SHARED_DATA / "fasttext/lid.176.ftz"


@pytest.mark.slow
@pytest.mark.shared_data
def test_counts_by_reason(tmp_path: Path) -> None:
    if not (SHARD.exists() and CLASSIFIER.exists()):
        pytest.skip(f"needs {SHARD} and {CLASSIFIER}; set TOOLFORMER_SHARED_DATA")
    main(["select", str(SHARD), "--out", str(tmp_path), "--language-id", str(CLASSIFIER)])
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert (counts["read"], counts["judged"], sum(counts["left out"].values())) == (836, 456, 380)
    tools = counts["tools"]
    assert tools["Calculator"]["kept"]["a number follows from two others within 100 tokens"] == 130
    assert tools["Calculator"]["dropped"] == {"fewer than three numbers": 180, "three numbers, not drawn": 141}
    assert tools["Calendar"]["kept"] == {"a date": 37}
    assert tools["MT"]["kept"] == {"another language between English": 17}
    assert tools["QA"]["kept"] == tools["WikiSearch"]["kept"] == {"any text": 456}
    dates = [json.loads(line) for line in (tmp_path / "Calendar.jsonl").read_text().splitlines()]
    assert all(one["date"][:4] in one["url"] for one in dates)
