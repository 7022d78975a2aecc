"""Readers of the published files, each in the format in which it was published."""
