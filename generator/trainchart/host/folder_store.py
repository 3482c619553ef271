"""A folder of this machine as a place to publish charts to, which may be synchronized or served by others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from trainchart.errors import PublishError, RepositoryForbidden, ToolError
from trainchart.host.files import locked, read_bytes, write_file

_INDEX_LIMIT = 256 * 1024 * 1024


class FolderStore:
    """The files in one folder; it is made when something is written."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.rstrip("/")
        self._folder = folder

    def read(self, reference: str) -> bytes | None:
        path = PurePosixPath(reference)
        if "://" in reference or path.is_absolute() or ".." in path.parts:
            raise PublishError(
                f"{self.url}: {reference} is outside the folder", hint="read it from where it is served: https://…"
            )
        place = self._folder / path
        try:
            if not place.exists() and not place.is_symlink():
                return None
            return read_bytes(place, limit=_INDEX_LIMIT)
        except ToolError as error:
            raise _converted(error) from error
        except OSError as error:
            raise _refusal(f"cannot read {place}", error) from error

    def write(self, name: str, content: bytes, *, is_new: bool = False) -> None:
        del is_new  # the lock keeps others out
        try:
            write_file(self._folder / name, content)
        except ToolError as error:
            raise _converted(error) from error

    def list_archives(self) -> tuple[str, ...]:
        try:
            return tuple(sorted(path.name for path in self._folder.glob("*.tgz")))
        except OSError as error:
            raise _refusal(f"cannot list {self._folder}", error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one publisher of this machine at a time in, by a lock that ends with its process."""
        with ExitStack() as stack:
            doing = "make"
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                doing = "lock"
                stack.enter_context(locked(self._folder))
            except OSError as error:
                raise _refusal(f"cannot {doing} {self._folder}", error) from error
            except ToolError as error:
                raise _converted(error) from error
            yield


def _refusal(what: str, error: OSError) -> PublishError:
    kind = RepositoryForbidden if isinstance(error, PermissionError) else PublishError
    return kind(f"{what}: {(error.strerror or str(error)).lower()}", hint="check the path and its permissions")


def _converted(error: ToolError) -> PublishError:
    kind = RepositoryForbidden if isinstance(error.__cause__, PermissionError) else PublishError
    return kind(error.message, hint=error.hint)
