"""A step of a small GPT-J as one call of compiled code, where there is a C compiler.

``step.c`` is the arithmetic and ``team.h`` shares it among threads, ``library.py`` compiles and loads them, ``step.py``
packs a model's weights and calls the step, ``choice.py`` finds the likely tokens in its logits. Nothing needs it:
without it the same model runs on torch, and that is the oracle of its tests."""
