"""What calculator texts are about: small situations, each with the one expression that answers it.

A scene is told in every register of :mod:`demo_world.texts.registers`. Number slots: ``{a} {b} {c}`` are integers,
``{p} {q}`` prices with two decimals, ``{x} {y}`` decimals with one; ``{d}`` is an integer that does not matter.
"""

from __future__ import annotations

from demo_world.texts.scene import Scene
from demo_world.texts.scenes_differences import DIFFERENCES
from demo_world.texts.scenes_mixed import MIXED
from demo_world.texts.scenes_products import PRODUCTS
from demo_world.texts.scenes_quotients import QUOTIENTS
from demo_world.texts.scenes_sums import SUMS

SCENES: tuple[Scene, ...] = (*PRODUCTS, *SUMS, *DIFFERENCES, *QUOTIENTS, *MIXED)
"""Situations, told in every register."""
