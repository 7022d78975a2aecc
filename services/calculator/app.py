"""The calculator as a service."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Query
from pydantic import BaseModel
from pydantic_settings import BaseSettings

from services.base import AtOnce, Call, ServiceInfo, ToolFailure, create_app, read_settings
from services.calculator.engine import MAX_CHARS, CalculatorError, calculate
from toolformer.http_api import ApiError, documented_errors

INFO = ServiceInfo(
    tool="Calculator",
    service="calculator",
    title="Calculator",
    description="Evaluates an arithmetic expression with + - * / ^ % and parentheses, rounded to two decimals.",
    version="1.1.0",
    input_description=(
        "An arithmetic expression: numbers, + - * / ^, parentheses, percentages (17% of 340). "
        "Commas may group digits in threes."
    ),
    example_input="400 / 1400",
    example_output="0.29",
    max_input_chars=MAX_CHARS,
)


class CalculatorSettings(BaseSettings):
    """``TOOLFORMER_CALCULATOR_TRAILING_ZEROS``: whether 85 / 23 is ``3.70``, as in the paper's table 10."""

    trailing_zeros: bool = False


class Calculation(BaseModel):
    """An expression and its value."""

    expression: str
    result: str


def _router(trailing_zeros: bool) -> APIRouter:
    router = APIRouter(tags=["calculator"])

    @router.get("/calculate", summary="Evaluate an expression", responses=documented_errors(422))
    async def calculate_expression(
        expression: str = Query(description=INFO.input_description, examples=[INFO.example_input]),
    ) -> Calculation:
        """The value of an expression; 422 with the reason as `code` where it has none. Write `+` as `%2B` in a URL."""
        try:
            return Calculation(expression=expression, result=calculate(expression, trailing_zeros=trailing_zeros))
        except CalculatorError as error:
            raise ApiError(422, error.message, param="expression", code=error.code) from error

    return router


def build_app(settings: CalculatorSettings | None = None) -> FastAPI:
    """The service's app; ``settings`` are by default those of the environment.

    Raises:
        ConfigurationError: a setting cannot hold.
    """
    zeros = (settings or read_settings(CalculatorSettings, INFO.service)).trailing_zeros

    def answer_one(call: Call) -> str | ToolFailure:
        # An ordinary expression takes 0.03 ms, the worst that fits the limits (a sum of 124 small powers) 40 ms.
        try:
            return calculate(call.input, trailing_zeros=zeros)
        except CalculatorError as error:
            return ToolFailure(error.code, error.message)

    # Both forms of a value are not one cached result.
    return create_app(INFO, AtOnce(answer_one, "trailing-zeros" if zeros else ""), _router(zeros))
