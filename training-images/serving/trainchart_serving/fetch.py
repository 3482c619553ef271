"""Copies an export to where a server looks for it, and verifies the copy: python3 -m trainchart_serving.fetch.

What is served can then not be changed any more by a training, and a server that starts later gets the same bytes or
none.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from trainchart_serving.content import check_content
from trainchart_serving.failures import ServingError

USAGE = "usage: python3 -m trainchart_serving.fetch SOURCE TARGET CONTENT_HASH"


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
    if "://" in source:
        _download(source, draft)
    else:
        shutil.copytree(source, draft)
    check_content(draft, content)
    draft.rename(target)


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
        print(f"error: cannot take the export {source}: {error}", file=sys.stderr)
        return 1
    print(f"took the export {source} with the content {content}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
