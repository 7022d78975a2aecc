"""An option of the command for each number of a setting."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from cli.checkout import CHECKOUT
from cli.reproduce.settings import SETTINGS, Setting

_SHOWN = {int: "N", float: "X", Path: "DIR", str: "TEXT"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """An option for each field of `Setting`; one that is not given stays as the setting has it."""
    group = parser.add_argument_group("the setting's numbers, one by one")
    hints = get_type_hints(Setting, include_extras=True)
    for one in dataclasses.fields(Setting):
        kind, meaning = get_args(hints[one.name])
        several = get_origin(kind) is tuple
        if several or isinstance(kind, UnionType):
            kind = get_args(kind)[0]
        name = f"--{one.name.replace('_', '-')}"
        values = ", ".join(f"{name} {_told(getattr(setting, one.name))}" for name, setting in SETTINGS.items())
        told: dict[str, Any] = {"default": argparse.SUPPRESS, "help": f"{meaning} ({values})"}
        if kind is bool:
            group.add_argument(name, action=argparse.BooleanOptionalAction, **told)
        else:
            group.add_argument(name, type=kind, nargs="+" if several else None, metavar=_SHOWN[kind], **told)


def chosen(name: str, options: argparse.Namespace) -> Setting:
    """The setting ``name``, with what ``options`` say otherwise.

    Raises:
        CommandError: if a number cannot hold.
    """
    given = {one.name: getattr(options, one.name) for one in dataclasses.fields(Setting) if hasattr(options, one.name)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    # Where the models come from is one choice with two names.
    if "sizes" in given:
        given.setdefault("base", None)
    elif "base" in given:
        given["sizes"] = ()
    if given.get("base") is not None:
        given["base"] = given["base"].absolute()
    return dataclasses.replace(SETTINGS[name], **given)


def _told(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, Path):
        return value.relative_to(CHECKOUT).as_posix()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
