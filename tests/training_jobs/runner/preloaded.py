"""What takes long to import, imported once, in the process that `forked` forks from."""

import language_model.bulk.loading
import training_jobs.pipeline

__all__ = ["language_model", "training_jobs"]
