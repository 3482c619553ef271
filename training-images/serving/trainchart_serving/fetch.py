"""Copies an export to where a server looks for it, and verifies the copy: python3 -m trainchart_serving.fetch.

What is served can then not be changed any more by a training, and a server that starts later gets the same bytes or
none.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from trainchart_serving.content import SUMS_FILE, check_content, check_sums, list_files, parse_sums
from trainchart_serving.failures import Code, ServingError

USAGE = "usage: python3 -m trainchart_serving.fetch SOURCE TARGET CONTENT_HASH"
_LARGEST_LIST = 16 * 1024 * 1024
_SECONDS = 60
"""The longest that a web server may be silent."""


def fetch(source: str, target: Path, content: str) -> None:
    """Copy the export in `source`, a folder or URI, to the new folder `target`; nothing is there unless all is right.

    Raises:
        ServingError: the content hash is not `content`, or the files are not those of the export's list.
        OSError: the export is not there, or there is no space for the copy.
    """
    if target.exists():
        check_content(target, content)
        return
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.startswith(("http://", "https://")):
        _download_listed(source, draft, content)
    elif "://" in source:
        _download(source, draft)
    else:
        _copy(Path(source), draft)
    check_content(draft, content)
    draft.rename(target)


def _copy(source: Path, target: Path) -> None:
    if not source.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
    for name in list_files(source):
        if not (source / name).is_file():
            raise OSError(f"{source / name} is not a file")
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name)


def _download_listed(source: str, target: Path, content: str) -> None:
    """Download what SHA256SUMS lists, since a web server need not list files; nothing where the list is another one."""
    import http.client

    try:
        text = _read_list(source)
        sums = parse_sums(text)
        check_sums(sums, content)
        for name in sums:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise ServingError(Code.DATA_LOSS, f"{SUMS_FILE} names a file outside the export: {name[:80]!r}")
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            with _open(source, name) as answer, (target / name).open("wb") as file:
                shutil.copyfileobj(answer, file)
        (target / SUMS_FILE).write_text(text, "utf-8", "surrogateescape")
    except (http.client.HTTPException, ValueError, TypeError) as error:  # TypeError: of headers that Python cannot read
        raise OSError(f"{type(error).__name__}: {error}") from error


def _read_list(source: str) -> str:
    with _open(source, SUMS_FILE) as answer:
        body: bytes = answer.read(_LARGEST_LIST + 1)
    if len(body) > _LARGEST_LIST:
        raise OSError(f"{SUMS_FILE} has more than {_LARGEST_LIST} bytes")
    return body.decode("utf-8", "surrogateescape")


def _open(source: str, name: str) -> Any:
    """Open a file of an export on a web server; a query of the address, such as a signature, is kept."""
    from urllib.error import HTTPError
    from urllib.parse import quote, urlsplit
    from urllib.request import urlopen

    parts = urlsplit(source)
    path = f"{parts.path.rstrip('/')}/{quote(name, errors='surrogateescape')}"
    try:
        return urlopen(parts._replace(path=path).geturl(), timeout=_SECONDS)
    except HTTPError as error:
        raise OSError(f"{name}: the web server answers {error.code} {error.reason}") from error


def _download(source: str, target: Path) -> None:
    import tensorflow as tf

    try:
        for root, _, names in tf.io.gfile.walk(source):
            folder = target / root.removeprefix(source).strip("/")
            folder.mkdir(parents=True)
            for name in names:
                tf.io.gfile.copy(f"{root.rstrip('/')}/{name}", str(folder / name))
    except tf.errors.OpError as error:
        raise OSError(error.message) from error
    if not target.exists():
        raise FileNotFoundError(f"there is nothing at {source}")


def main(arguments: list[str]) -> int:
    """Return the exit code: 0, 1 for an export that is not there or not right, 2 for wrong arguments."""
    if len(arguments) != 3:
        print(USAGE, file=sys.stderr)
        return 2
    source, target, content = arguments
    try:
        fetch(source, Path(target), content)
    except (ServingError, OSError) as error:
        print(f"error: cannot fetch the export {source.partition('?')[0]}: {error}", file=sys.stderr)
        return 1
    print(f"fetched the export {source.partition('?')[0]} with the content {content}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
