"""Filtered files for tests, by hand."""

from pathlib import Path
from typing import Any

from training_jobs.records import KEPT, Annotated, Candidate, Document


def candidate(offset: int, input_: str, output: str | None, gain: float | None) -> Candidate:
    """A candidate whose verdict follows from a threshold of 0.5."""
    fields: dict[str, Any] = {
        "position": offset,
        "offset": offset,
        "start_probability": 0.25,
        "input": input_,
        "output": output,
        "error": None if output is not None else "no_answer",
    }
    if gain is None:
        fields["verdict"] = "no result: no_answer"
    else:
        verdict = KEPT if gain >= 0.5 else "gain below threshold"
        fields |= {"loss_empty": 3.0 + gain, "loss_call": 3.5 + gain, "loss_result": 3.0, "gain": gain}
        fields["verdict"] = verdict
    return Candidate(**fields)


def write(folder: Path, tool: str, texts: dict[str, tuple[str, list[Candidate]]]) -> Path:
    """``folder/<tool>.jsonl`` with these texts, by id."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tool}.jsonl"
    records = (
        Annotated(Document(id_, text, f"https://example.org/{id_}", "2024-02-29"), tool, tuple(candidates))
        for id_, (text, candidates) in texts.items()
    )
    path.write_text("".join(record.to_line() for record in records), encoding="utf-8")
    return path
