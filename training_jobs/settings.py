"""The settings of a job as one frozen dataclass, from which its options are derived.

A field made by `setting` is an option: its name, type and default are written once, in the dataclass.
"""

from __future__ import annotations

import argparse
import math
import types
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from training_jobs.errors import StageError

_HELP: Final = "help"
S = TypeVar("S")


def setting(
    default: Any = MISSING,
    help: str = "",
    *,
    flag: str | None = None,
    kind: Callable[[str], Any] | None = None,
    metavar: str | None = None,
) -> Any:
    """A field of a settings class that is an option as well.

    Args:
        default: its value where the option is not given; a required option has none.
        help: what it says in ``--help``; the default is added, where that is a number or a word.
        flag: its name; by default the field's, with dashes. A truth that is on by default has ``--no-NAME``.
        kind: reads and checks its text; by default the field's type does.
        metavar: what stands for its value in ``--help``.
    """
    return field(default=default, metadata={_HELP: help, "flag": flag, "kind": kind, "metavar": metavar})


def add_settings(parser: argparse._ActionsContainer, cls: type, *, skip: Iterable[str] = ()) -> None:
    """Add an option for each setting of ``cls`` but those named in ``skip``."""
    hints = get_type_hints(cls)
    for one in fields(cls):
        if _HELP in one.metadata and one.name not in skip:
            parser.add_argument(_flag(one), **_option(one, hints[one.name]))


def read_settings(cls: type[S], options: argparse.Namespace, **others: Any) -> S:
    """The settings that ``options`` say; ``others`` are fields that are no options.

    Raises:
        StageError: if ``cls`` refuses a value.
    """
    values = {one.name: _value(one, options) for one in fields(cls) if _HELP in one.metadata}  # type: ignore[arg-type]
    try:
        return cls(**values | others)
    except ValueError as error:
        raise StageError(str(error)) from error


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def finite(text: str) -> float:
    """A finite number."""
    number = float(text)
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number, not {text}")
    return number


def _flag(one: Field[Any]) -> str:
    name = one.name.replace("_", "-")
    return one.metadata["flag"] or (f"--no-{name}" if one.default is True else f"--{name}")


def _option(one: Field[Any], hint: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"help": one.metadata[_HELP], "dest": _dest(one)}
    if hint is bool:
        return {**said, "action": "store_false" if one.default is True else "store_true"}
    if get_origin(hint) is types.UnionType:  # such as int | None: not given by default
        hint = next(part for part in get_args(hint) if part is not types.NoneType)
    if get_origin(hint) is Literal:
        said["choices"] = get_args(hint)
    elif get_origin(hint) is tuple:
        said["nargs"], hint = "+", get_args(hint)[0]
    kind = one.metadata["kind"] or {int: int, float: finite, Path: Path}.get(hint)
    if one.default is MISSING:
        said["required"] = True
    else:
        said["default"] = one.default
        if one.default not in (None, ()):
            values = one.default if isinstance(one.default, tuple) else (one.default,)
            said["help"] += f" ({' '.join(f'{each:,}' if isinstance(each, int) else str(each) for each in values)})"
    return {**said, "type": kind or str, "metavar": one.metadata["metavar"]}


def _dest(one: Field[Any]) -> str:
    return _flag(one).removeprefix("--").replace("-", "_")


def _value(one: Field[Any], options: argparse.Namespace) -> Any:
    value = getattr(options, _dest(one))
    return tuple(value) if isinstance(value, list) else value
