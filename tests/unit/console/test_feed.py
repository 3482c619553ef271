"""One reading for all who listen, none while no one does, and an error for each."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from trainchart.console.io.feed import Feed


class Counter:
    """Counts its calls; fails at one of them."""

    def __init__(self, failing: int = 0) -> None:
        self.calls, self._failing = 0, failing

    def __call__(self) -> int:
        self.calls += 1
        if self.calls == self._failing:
            raise ValueError("broken")
        return self.calls


def make_feed(read: Counter, pause: float = 0.01) -> Feed[int]:
    return Feed(read, lambda _: pause)


def test_two_listeners_share_the_calls() -> None:
    async def listen_twice() -> int:
        read = Counter()
        feed = make_feed(read, pause=60)
        assert await asyncio.gather(feed.read_once(), feed.read_once()) == [1, 1]
        assert await feed.read_once() == 1
        return read.calls

    assert asyncio.run(listen_twice()) == 1


def test_reading_stops_with_the_last_listener() -> None:
    async def listen() -> None:
        read = Counter()
        feed = make_feed(read)
        async with aclosing(feed.listen()) as readings:
            assert [await anext(readings), await anext(readings)] == [1, 2]
        while not feed.is_idle:
            await asyncio.sleep(0.01)
        stopped = read.calls
        await asyncio.sleep(0.05)
        assert read.calls == stopped
        assert await feed.read_once() == stopped + 1

    asyncio.run(listen())


def test_an_error_reaches_the_listener_and_the_next_starts_over() -> None:
    async def listen() -> None:
        feed = make_feed(Counter(failing=1))
        with pytest.raises(ValueError, match="broken"):
            await feed.read_once()
        assert await feed.read_once() == 2

    asyncio.run(listen())
