"""Where a call may be in a text, and which one: positions and samples of section 2 of the paper. No files here."""

from training_jobs.annotate.annotator import AnnotateSettings, Annotator

__all__ = ["AnnotateSettings", "Annotator"]
