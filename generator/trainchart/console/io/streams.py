"""Streams of what changes on a page: server-sent events, made from readings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from trainchart.console.pages import Parts

_BEAT_SECONDS = 15.0
"""Between two signs of life of a stream that has nothing to send."""
Item = TypeVar("Item")


async def merge(sources: Sequence[AsyncGenerator[Item, None]]) -> AsyncGenerator[tuple[int, Item], None]:
    """Yield what any of the sources yields, and the source's number. Raises what one of them raises."""
    queue: asyncio.Queue[tuple[int, Item] | Exception] = asyncio.Queue()

    async def drain(number: int, source: AsyncGenerator[Item, None]) -> None:
        try:
            async with aclosing(source):
                async for item in source:
                    queue.put_nowait((number, item))
        except Exception as error:
            queue.put_nowait(error)

    tasks = [asyncio.create_task(drain(number, source)) for number, source in enumerate(sources)]
    try:
        while True:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        for task in tasks:
            task.cancel()


async def send_changes(
    readings: AsyncIterator[Item], make: Callable[[Item], Parts], draw: Callable[[Item], Any]
) -> AsyncGenerator[str, None]:
    """Yield events with the parts of each reading that differ from what was sent, and its curves where they do."""
    sent: Parts = {}
    curves: Any = None
    async for reading in readings:
        parts = make(reading)
        changed = {name: html for name, html in parts.items() if sent.get(name) != html}
        sent |= changed
        if changed:
            yield make_event("parts", changed)
        drawn = draw(reading)
        if drawn != curves:
            curves = drawn
            yield make_event("curves", drawn)


def make_event(name: str, document: object) -> str:
    """Return an event as it is sent."""
    # JSON has no line breaks of its own, so that one line holds it.
    return f"event: {name}\ndata: {json.dumps(document)}\n\n"


async def keep_alive(events: AsyncIterator[str], closing: asyncio.Event) -> AsyncIterator[str]:
    """Yield the events until the server closes, and a comment now and then, by which a lost connection is noticed."""
    closed = asyncio.ensure_future(closing.wait())
    upcoming = asyncio.ensure_future(_next(events))
    try:
        while not closed.done():
            await asyncio.wait([upcoming, closed], timeout=_BEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if upcoming.done():
                yield upcoming.result()
                upcoming = asyncio.ensure_future(_next(events))
            else:
                yield ": still here\n\n"
    finally:
        closed.cancel()
        upcoming.cancel()


async def _next(events: AsyncIterator[str]) -> str:
    return await anext(events)
