"""Settings for every test."""

from hypothesis import settings

# Tests are never timed: a loaded machine must not fail a property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
