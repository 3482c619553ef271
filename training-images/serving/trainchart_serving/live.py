"""A model as it is served: its versions by state, which of them takes a request, and how a new one takes over.

A version is loaded and warmed up in a thread while the others go on, then serves from one moment to the next, and is
unloaded when its last request has ended. All else here belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from trainchart_serving.content import Stamp, read_stamp
from trainchart_serving.failures import Code, ServingError
from trainchart_serving.model import Model, load_model, settle_memory
from trainchart_serving.versions import VersionPolicy, choose_next, choose_retired, list_versions
from trainchart_serving.warmup import warm_up

log = logging.getLogger(__name__)

TRIES = 5
RETRY_SECONDS = 60.0
_MOST_ENDED = 20
"""Versions that were unloaded are still listed, the last ones."""


class State(Enum):
    """A state of a version, with its number in TensorFlow Serving's API."""

    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclass(frozen=True)
class VersionStatus:
    """What the API says of a version."""

    version: int
    state: State
    code: Code = Code.OK
    message: str = ""
    content: str = ""


@dataclass
class _Served:
    model: Model
    requests: int = 0
    is_retired: bool = False
    idle: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class _Broken:
    stamp: Stamp
    tries: int
    retry_at: float


Prepare = Callable[[Path, int, str | None, int], Model]


def prepare_model(folder: Path, version: int, expected: str | None, batch_examples: int) -> Model:
    """Return the version, loaded and warmed up. Raises ServingError."""
    model = load_model(folder, version, expected)
    warm_up(model, folder, batch_examples)
    settle_memory()
    return model


class LiveModel:
    """The versions of one model. `base` holds a folder for each, named by its number."""

    def __init__(
        self,
        name: str,
        base: Path,
        policy: VersionPolicy,
        batch_examples: int = 1,
        prepare: Prepare = prepare_model,
    ) -> None:
        self.name = name
        self.problem = ""
        """Why no versions could be looked for, or ""."""
        self.loads: dict[str, int] = {"success": 0, "failure": 0}
        self._base = base
        self._policy = policy
        self._batch_examples = batch_examples
        self._prepare = prepare
        self._served: dict[int, _Served] = {}
        self._broken: dict[int, _Broken] = {}
        self._status: dict[int, VersionStatus] = {}
        self._unloading: set[asyncio.Task[None]] = set()
        # Of its own: loading takes seconds, and must not wait behind requests.
        self._loader = ThreadPoolExecutor(1, "load")

    @property
    def available(self) -> list[int]:
        """The versions that take requests, newest first."""
        return sorted(self._served, reverse=True)

    def list_known(self) -> list[VersionStatus]:
        """Return the status of all versions, newest first."""
        return [self._status[number] for number in sorted(self._status, reverse=True)]

    def list_status(self, version: int | None = None) -> list[VersionStatus]:
        """Return the status of all versions, newest first, or of one.

        Raises:
            ServingError: NOT_FOUND.
        """
        found = [status for status in self.list_known() if version in (None, status.version)]
        if not found:
            which = f"version {version}" if version is not None else "any versions"
            reason = f": {self.problem}" if self.problem else ""
            raise ServingError(Code.NOT_FOUND, f"Could not find {which} of model {self.name}{reason}")
        return found

    @contextlib.contextmanager
    def lease(self, version: int | None = None) -> Iterator[Model]:
        """Give a request the newest version, or the named one; it stays loaded until the request has ended.

        Raises:
            ServingError: NOT_FOUND.
        """
        number = version if version is not None else max(self._served, default=None)
        served = self._served.get(number) if number is not None else None
        if served is None:
            which = f"Latest({self.name})" if version is None else f"Specific({self.name}, {version})"
            raise ServingError(Code.NOT_FOUND, f"Servable not found for request: {which}")
        served.requests += 1
        try:
            yield served.model
        finally:
            served.requests -= 1
            if served.is_retired and not served.requests:
                served.idle.set()

    async def watch(self, seconds: float) -> None:
        """Look for new versions forever."""
        while True:
            try:
                await self.refresh()
            except Exception:
                log.exception("cannot look for versions of %s; trying again", self.name)
            await asyncio.sleep(seconds)

    async def refresh(self) -> None:
        """Look once: load what is to be served and is not, then let go what it replaces."""
        found = await asyncio.to_thread(self._find_versions)
        broken = await self._list_broken(found)
        while (version := choose_next(found, self._served, broken, self._policy)) is not None:
            if not await self._load(version, self._base / found[version]):
                broken.add(version)
        for version in choose_retired(found, self._served, broken, self._policy):
            self._retire(version)

    async def close(self) -> None:
        """Unload everything, once the requests under way have ended."""
        for version in self.available:
            self._retire(version)
        await asyncio.gather(*self._unloading)
        self._loader.shutdown(wait=False, cancel_futures=True)

    def _find_versions(self) -> dict[int, str]:
        try:
            found = list_versions(path.name for path in self._base.iterdir() if path.is_dir())
        except OSError as error:
            self._say(f"cannot read {self._base}: {error.strerror or error}")
            return {}
        hint = f"{self._base} has no folder named after a version, such as {self._base}/1"
        missing = sorted(set(self._policy.pinned) - found.keys())
        self._say(
            hint if not found else f"version {', '.join(map(str, missing))} is not in {self._base}" if missing else ""
        )
        return found

    def _say(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem

    async def _list_broken(self, found: dict[int, str]) -> set[int]:
        """Return the versions not to be tried: neither changed since they failed, nor waited long enough."""
        now = asyncio.get_running_loop().time()
        waiting = set()
        for version, broken in list(self._broken.items()):
            if version not in found:
                del self._broken[version], self._status[version]
                continue
            is_waiting = broken.tries >= TRIES or now < broken.retry_at
            if is_waiting and await asyncio.to_thread(_read_stamp, self._base / found[version]) == broken.stamp:
                waiting.add(version)
        return waiting

    async def _load(self, version: int, folder: Path) -> bool:
        """Load a version, and say whether it serves now."""
        loop = asyncio.get_running_loop()
        stamp = await asyncio.to_thread(_read_stamp, folder)
        self._status[version] = VersionStatus(version, State.LOADING)
        log.info("loading version %d of %s from %s", version, self.name, folder)
        expected = self._policy.content.get(version)
        try:
            model = await loop.run_in_executor(
                self._loader, self._prepare, folder, version, expected, self._batch_examples
            )
        except ServingError as error:
            self._refuse(version, stamp, error)
            return False
        except Exception as error:
            # Whatever TensorFlow raises for this version, the others go on.
            log.exception("cannot load version %d of %s", version, self.name)
            self._refuse(version, stamp, ServingError(Code.INTERNAL, f"{type(error).__name__}: {error}"))
            return False
        self.loads["success"] += 1
        self._broken.pop(version, None)
        self._served[version] = _Served(model)
        self._status[version] = VersionStatus(version, State.AVAILABLE, content=model.content)
        log.info("version %d of %s serves, content %s", version, self.name, model.content)
        return True

    def _refuse(self, version: int, stamp: Stamp, error: ServingError) -> None:
        self.loads["failure"] += 1
        last = self._broken.get(version)
        tries = last.tries + 1 if last is not None and last.stamp == stamp else 1
        self._broken[version] = _Broken(stamp, tries, asyncio.get_running_loop().time() + RETRY_SECONDS)
        self._status[version] = VersionStatus(version, State.END, error.code, error.message)
        log.error("version %d of %s is broken and takes no requests: %s", version, self.name, error)

    def _retire(self, version: int) -> None:
        served = self._served.pop(version)
        served.is_retired = True
        if not served.requests:
            served.idle.set()
        self._status[version] = VersionStatus(version, State.UNLOADING, content=served.model.content)
        task = asyncio.create_task(self._unload(version, served))
        self._unloading.add(task)
        task.add_done_callback(self._unloading.discard)

    async def _unload(self, version: int, served: _Served) -> None:
        await served.idle.wait()
        content = served.model.content
        del served.model
        if version not in self._served:
            self._status[version] = VersionStatus(version, State.END, content=content)
        ended = [number for number, each in sorted(self._status.items()) if each.state is State.END]
        for number in [number for number in ended if number not in self._broken][:-_MOST_ENDED]:
            del self._status[number]
        await asyncio.to_thread(settle_memory)
        log.info("unloaded version %d of %s", version, self.name)


def _read_stamp(folder: Path) -> Stamp:
    try:
        return read_stamp(folder)
    except OSError:
        return ()  # a file vanished meanwhile; the next look differs
