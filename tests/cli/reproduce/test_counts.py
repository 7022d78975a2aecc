"""What steps counted, read from what they wrote."""

import json
from pathlib import Path

from cli.reproduce import counts


def test_the_best_checkpoint_of_a_finetuning_is_never_the_base_model(tmp_path: Path) -> None:
    (tmp_path / "with_calls.jsonl").write_text("{}\n" * 3)
    curve = [
        {"step": 0, "eval_perplexity": 3.1}, {"step": 1, "loss": 2.0}, {"step": 2, "eval_perplexity": 3.4},
        {"step": 4, "eval_perplexity": 3.2}, {"step": 5, "loss": 1.0}, {"step": 6, "eval_perplexity": 3.3},
    ]  # fmt: skip
    (tmp_path / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in curve))
    assert counts.finetuning([tmp_path / "with_calls.jsonl"] * 2, tmp_path) == {
        "examples": 6, "steps": 6, "perplexity_before": 3.1, "best_step": 4, "best_perplexity": 3.2,
    }  # fmt: skip
