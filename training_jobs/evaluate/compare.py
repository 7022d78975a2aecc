"""Put the results of several runs beside each other: one table, one page, and a plot over model size.

python -m training_jobs.evaluate.compare RUN-1M RUN-4M RUN-12M --out report.html
python -m training_jobs.evaluate.compare RUN-1M RUN-4M RUN-12M --markdown results.md --note "one seed"
python -m training_jobs.evaluate.compare RUN-1M RUN-4M RUN-12M --figure figure-4.svg
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from training_jobs.evaluate.answers import Answer, read_records
from training_jobs.evaluate.asking_suites import Answers, answers_path
from training_jobs.evaluate.example import SuiteError
from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.page import write_page
from training_jobs.evaluate.printing import markdown, print_tables
from training_jobs.evaluate.scaling import write_figure
from training_jobs.options import job_parser
from training_jobs.runner.parts import write_whole


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    summary, _, *examples = (__doc__ or "").splitlines()
    parser = job_parser("training_jobs.evaluate.compare", summary, "\n".join(examples))
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the --out of a run; rows come in this order")
    parser.add_argument("--out", type=Path, help="write the page, with examples of the last run, to this file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown to this file")
    parser.add_argument(
        "--figure", type=Path, metavar="FILE", help="draw accuracy over model size to this file (.svg, .png or .pdf)"
    )
    parser.add_argument("--note", default="", help="a line above the tables of page and file")
    options = parser.parse_args(arguments)
    try:
        outcomes = [Outcome.read(run) for run in options.runs]
        labels = [outcome.label for outcome in outcomes]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise SuiteError(f"two runs are called {twice[0]!r}: give each its own --label when it is run")
        print_tables(outcomes, Console())
        if options.out is not None:
            write_page(options.out, outcomes, kept_answers(outcomes[-1]), note=options.note)
        if options.markdown is not None:
            options.markdown.parent.mkdir(parents=True, exist_ok=True)
            write_whole(options.markdown, markdown(outcomes, options.note).encode())
        if options.figure is not None:
            write_figure(options.figure, outcomes)
    except SuiteError as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")
    except OSError as trouble:
        parser.exit(1, f"{parser.prog}: {trouble.filename}: cannot be written ({trouble.strerror})\n")


def kept_answers(outcome: Outcome) -> Answers:
    """The answers behind ``outcome``, of those suites and conditions that it has scores of."""
    assert outcome.folder is not None
    return {
        (score.condition, score.suite): read_records(answers_path(outcome.folder, score.condition, score.suite), Answer)
        for score in outcome.scores
    }


if __name__ == "__main__":
    main()
