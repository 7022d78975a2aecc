"""Working for a client only while it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.types import Receive

T = TypeVar("T")


class ClientLeft(Exception):  # noqa: N818 - reads as what happened
    """The client closed its connection before it had its answer."""


async def while_connected(receive: Receive, work: Coroutine[None, None, T]) -> T:
    """The result of ``work``, which is cancelled as soon as the client leaves or this call itself is cancelled.

    ``work`` has ended, cleaning up included, when this returns. The request's body must have been read before.

    Raises:
        ClientLeft: if the client left first.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientLeft
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
