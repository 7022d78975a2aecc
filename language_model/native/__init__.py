"""A step of a small GPT-J as one call of compiled code, where a C compiler is at hand.

``step.c`` is the arithmetic, ``library.py`` compiles and loads it, ``step.py`` packs a model's weights for it.
Nothing needs it: without it the same model runs on torch, and that is the oracle of its tests."""
