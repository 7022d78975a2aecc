"""The one split into trained-on and held-out."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_world.splits import is_held_out, stable_hash


def test_a_tenth_is_held_out_of_every_family() -> None:
    for kind in ("city", "integer", "phrasing"):
        share = sum(is_held_out(kind, number) for number in range(20_000)) / 20_000
        assert 0.09 < share < 0.11


def test_families_are_split_apart() -> None:
    def held_out(kind: str) -> set[int]:
        return {number for number in range(2_000) if is_held_out(kind, number)}

    assert held_out("city") != held_out("integer")


def test_every_process_agrees() -> None:
    keys = [f"key {number}" for number in range(50)]
    program = f"from demo_world.splits import is_held_out; print([is_held_out('city', key) for key in {keys}])"
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)}
    other = subprocess.run(  # a fresh process has another hash seed of Python's own
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, timeout=250
    )
    assert other.stdout.strip() == str([is_held_out("city", key) for key in keys])


@given(st.integers())
def test_an_integer_is_its_decimal_text(number: int) -> None:
    assert is_held_out("integer", number) == is_held_out("integer", str(number))


@given(st.text(min_size=1), st.text(), st.floats(0, 100), st.floats(0, 100))
def test_a_larger_share_holds_out_at_least_as_much(kind: str, key: str, one: float, other: float) -> None:
    smaller, larger = sorted((one, other))
    assert is_held_out(kind, key, percent=smaller) <= is_held_out(kind, key, percent=larger)


def test_the_ends_of_the_range() -> None:
    assert not any(is_held_out("city", number, percent=0) for number in range(100))
    assert all(is_held_out("city", number, percent=100) for number in range(100))


@pytest.mark.parametrize("percent", [-1.0, 100.5, float("nan")])
def test_a_share_outside_the_range_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="percent"):
        is_held_out("city", "Oslo", percent=percent)


def test_an_empty_family_is_refused() -> None:
    with pytest.raises(ValueError, match="kind"):
        is_held_out("", "Oslo")


def test_the_order_of_parts_matters() -> None:
    assert stable_hash("a", "b") != stable_hash("b", "a")
    assert stable_hash("ab") != stable_hash("a", "b")
