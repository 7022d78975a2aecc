"""Which calls help to predict what follows: losses, gains and verdicts of section 2 of the paper. No files here."""

from training_jobs.filter.judging import Thresholds, judge
from training_jobs.filter.scorer import Scorer, ScoreSettings

__all__ = ["ScoreSettings", "Scorer", "Thresholds", "judge"]
