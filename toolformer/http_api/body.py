"""The base of every request's JSON: unknown fields are refused, and no body can ask for errors without end."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class RequestBody(BaseModel):
    """A JSON object whose unknown fields are refused, so that no misspelt one passes in silence.

    pydantic writes an error for each unknown field, and a megabyte holds a hundred thousand of them: of more than this
    object could have, only the first is shown to it. Lists of a body need a greatest length and `pydantic.FailFast`
    for the same reason.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _one_unknown_field_is_enough(cls, value: Any) -> Any:
        if not isinstance(value, dict) or len(value) <= len(cls.model_fields):
            return value
        known = {name: value[name] for name in cls.model_fields if name in value}
        unknown = next(name for name in value if name not in known)
        return {**known, unknown: value[unknown]}
