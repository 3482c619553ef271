"""Reads something again and again while someone listens, and hands each reading to all who do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Generic, TypeVar

Reading = TypeVar("Reading")


class Feed(Generic[Reading]):
    """One thing that is read by a call that blocks; one call at a time, however many listen."""

    def __init__(self, read: Callable[[], Reading], pause: Callable[[Reading], float]) -> None:
        self._read = read
        self._pause = pause
        self._latest: Reading | None = None
        self._listeners: set[asyncio.Queue[Reading | Exception]] = set()
        self._task: asyncio.Task[None] | None = None
        self._was_used = False

    @property
    def is_idle(self) -> bool:
        """Whether no one listens any more and nothing is being read."""
        return self._was_used and not self._listeners and self._task is None

    async def listen(self) -> AsyncGenerator[Reading, None]:
        """Yield a reading that is not older than a pause, and then the newest one whenever there is another.

        Raises what reading raises.
        """
        own: asyncio.Queue[Reading | Exception] = asyncio.Queue()
        self._listeners.add(own)
        self._was_used = True
        if self._latest is not None:
            own.put_nowait(self._latest)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        try:
            while True:
                reading = await own.get()
                while not own.empty():
                    reading = own.get_nowait()
                if isinstance(reading, Exception):
                    raise reading
                yield reading
        finally:
            self._listeners.discard(own)

    async def read_once(self) -> Reading:
        """Return the newest reading."""
        async with aclosing(self.listen()) as readings:
            return await anext(readings)

    async def _work(self) -> None:
        try:
            while self._listeners:
                self._latest = await call_in_thread(self._read)
                self._tell(self._latest)
                await asyncio.sleep(self._pause(self._latest))
        except Exception as error:
            self._tell(error)
        finally:
            self._latest, self._task = None, None

    def _tell(self, news: Reading | Exception) -> None:
        for listener in self._listeners:
            listener.put_nowait(news)


async def call_in_thread(call: Callable[[], Reading]) -> Reading:
    """Return what a call returns; its thread does not keep the program, as those of an executor would."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Reading] = loop.create_future()

    def settle(act: Callable[[], None]) -> None:
        if not future.done():
            act()

    def work() -> None:
        act: Callable[[], None]
        try:
            result = call()
        except Exception as error:
            failure = error
            act = lambda: future.set_exception(failure)  # noqa: E731
        else:
            act = lambda: future.set_result(result)  # noqa: E731
        try:
            loop.call_soon_threadsafe(settle, act)
        except RuntimeError:
            return  # the loop was closed meanwhile: the program ends

    threading.Thread(target=work, daemon=True).start()
    return await future
