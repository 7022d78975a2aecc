"""A tool that doubles a number, in a real service, and its table."""

import contextlib
from collections.abc import Iterator, Sequence

from services.base import Call, ServiceInfo, ToolFailure, create_app
from tests.training_jobs.servers import serve
from toolformer.tools import Tool

TABLE = """
[Double]
url = "http://127.0.0.1:1"
description = "Doubles a number."
pure = true
task = 'Put calls, "[Double(1)]", into a text.'
demonstrations = [
    { input = "Twice 12 is 24. So 24 it is.", output = "Twice 12 is [Double(12)] 24. So 24 it is." },
    { input = "Anna has 345 sheep, Ben 690.", output = "Anna has 345 sheep, Ben [Double(345)] 690." },
]
sampling_threshold = 0.001
max_input_tokens = 8
"""


class _Doubler:
    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        return [
            str(2 * int(call.input)) if call.input.isdecimal() else ToolFailure("no_result", "no number")
            for call in calls
        ]


@contextlib.contextmanager
def doubling() -> Iterator[str]:
    """The address of the running service."""
    info = ServiceInfo(
        tool="Double", service="double", title="Double", description="Doubles a number.", version="1.0.0",
        input_description="A number.", example_input="12", example_output="24",
    )  # fmt: skip
    with serve(create_app(info, _Doubler())) as url:
        yield url


def tool(url: str = "http://127.0.0.1:1", **other: object) -> Tool:
    """The same table, laid out."""
    import tomllib

    return Tool.model_validate({"name": "Double", **tomllib.loads(TABLE)["Double"], "url": url, **other})
