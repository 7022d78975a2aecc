"""Settings for every test."""

import os

# One thread for torch, here and in the processes that tests start: on cores that others use too, a second thread mostly
# waits for the first, and tests that take seconds take minutes. Must come before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

# Tests are never timed: a loaded machine must not fail a property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
