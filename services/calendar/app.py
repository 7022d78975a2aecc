"""The calendar as a service."""

from __future__ import annotations

import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter, FastAPI, Query
from pydantic import BaseModel, BeforeValidator
from pydantic_settings import BaseSettings

from services.base import AtOnce, Call, ServiceInfo, ToolFailure, create_app, read_settings
from services.calendar.engine import Clock, sentence, weekday
from toolformer.http_api import documented_errors
from toolformer.http_api.day import Day

INFO = ServiceInfo(
    tool="Calendar",
    service="calendar",
    title="Calendar",
    description="Says what day it is today: weekday, month, day and year. Takes no input.",
    version="1.0.0",
    input_description="Nothing: the empty text.",
    example_input="",
    example_output="Today is Friday, November 20, 2026.",
    takes_input=False,
    takes_context=True,
)


def _zone(name: Any) -> ZoneInfo:
    try:
        return ZoneInfo(str(name))
    # A name such as "../x" is a ValueError, a folder's name such as "Europe" an OSError.
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name!r}; use an IANA name such as UTC or Europe/Berlin") from error


class CalendarSettings(BaseSettings):
    """``TOOLFORMER_CALENDAR_TIMEZONE``: the IANA name of the zone whose day it is."""

    timezone: Annotated[ZoneInfo, BeforeValidator(_zone)] = ZoneInfo("UTC")


class Today(BaseModel):
    """A day, in parts and in the tool's words."""

    date: datetime.date
    weekday: str
    timezone: str
    text: str


def _router(clock: Clock) -> APIRouter:
    router = APIRouter(tags=["calendar"])

    @router.get("/today", summary="What day it is", responses=documented_errors(422))
    async def today(
        date: Annotated[Day | None, Query(description="The day to take for today, YYYY-MM-DD.")] = None,
    ) -> Today:
        """The current day in the service's time zone, or the given one."""
        day = date or clock.today()
        return Today(date=day, weekday=weekday(day), timezone=clock.zone.key, text=sentence(day))

    return router


def build_app(clock: Clock | None = None) -> FastAPI:
    """The service's app.

    Args:
        clock: by default the machine's clock in the configured time zone.

    Raises:
        ConfigurationError: ``TOOLFORMER_CALENDAR_TIMEZONE`` names no time zone.
    """
    clock = clock or Clock(read_settings(CalendarSettings, INFO.service).timezone)

    def answer_one(call: Call) -> str | ToolFailure:
        if call.input.strip():
            return ToolFailure("unexpected_input", "the calendar takes no input; leave it empty: Calendar()")
        return sentence(call.date or clock.today())

    return create_app(INFO, AtOnce(answer_one), _router(clock))
