"""Files of a commit in another Git repository. Nothing of it is checked out, so that no hook or filter of it runs."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from trainchart.errors import ToolError
from trainchart.host.git import limit_memory, lower_limit

_TIMEOUT_SECONDS = 300.0
_TOO_LARGE = b"File too large"
"""What git says of a file that has reached its limit."""
_FILE_MODES = ("100644", "100755")
_LAST_LINES = 3
_WORDS_LIMIT = 65_536
"""Bytes read of what git says of a failure, which the other side may have said."""
# One file holds all that comes, so that its limit is that of the download.
_FETCH = ("-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
_DOWNLOAD_LIMIT = 256 * 1024 * 1024
"""Bytes of the whole commit, packed: packs of a large repository belong into one of their own."""
_PRINT_LIMIT = 32 * 1024 * 1024
"""Bytes that git prints, of names or of files."""
_FILE_LIMIT = 1000
"""Files of a pack; the largest has a few dozen."""


def fetch_git_files(url: str, ref: str, folder: str, *, limit: int) -> dict[str, bytes]:
    """Return the files of a folder (empty for the top) of the commit that a tag, branch or commit names.

    git uses the credentials that the user has set up for it, and asks for none.

    Raises:
        ToolError: there is no git, no such repository, ref or folder, or a link in it; or it has very many files, or
            more than `limit` bytes.
    """
    with tempfile.TemporaryDirectory(prefix="trainchart-git-") as made:
        place = Path(made)
        _git(place, "init", "--quiet", "--bare", ".")
        try:
            _git(place, *_FETCH, "--", url, ref, url=url)
        except ToolError as error:
            what = f"git cannot fetch {ref} of {url}: {error.message}"
            raise ToolError(what, hint=error.hint or "check the address and ref, and that git has access") from error
        listed = _git(
            place, "ls-tree", "-r", "-l", "-z", "FETCH_HEAD", *(["--", f"{folder.rstrip('/')}/"] if folder else [])
        )
        blobs = _read_listing(listed, url, folder, limit)
        if not blobs:
            raise ToolError(f"{ref} of {url} has no folder {folder or '.'}", hint="check folder")
        contents = _git(place, "cat-file", "--batch", text="".join(f"{blob}\n" for blob in blobs.values()))
        return dict(zip(blobs, _split_contents(contents), strict=True))


def _read_listing(listed: bytes, url: str, folder: str, limit: int) -> dict[str, str]:
    """Return the names of files below `folder`, and the object that each is, from what `git ls-tree -l -z` prints."""
    blobs: dict[str, str] = {}
    total = 0
    for about, _, path in (entry.partition(b"\t") for entry in listed.split(b"\0") if entry):
        mode, _, blob, size = about.decode().split()
        try:
            name = path.decode()
        except UnicodeDecodeError as error:
            raise ToolError(f"{url} has the file {path!r}, whose name is not UTF-8", hint="rename it") from error
        if mode not in _FILE_MODES:
            raise ToolError(f"{url} has {name!r}, which is not a file", hint="packs cannot contain links or submodules")
        total += int(size)
        blobs[name.removeprefix(f"{folder.rstrip('/')}/") if folder else name] = blob
        if total > limit or len(blobs) > _FILE_LIMIT:
            what = f"{folder or url} has more than {_FILE_LIMIT} files or {limit // 2**20} MiB"
            raise ToolError(what, hint="name the folder of the pack")
    return blobs


def _split_contents(printed: bytes) -> Iterator[bytes]:
    """Yield the content of each object from what `git cat-file --batch` prints: a line with its size before each."""
    start = 0
    while start < len(printed):
        end = printed.index(b"\n", start)
        size = int(printed[start:end].split()[2])
        yield printed[end + 1 : end + 1 + size]
        start = end + 1 + size + 1


def _git(place: Path, *arguments: str, url: str = "", text: str = "") -> bytes:
    """Return what git prints in a repository of our own. Raises ToolError with its last lines where it fails.

    It may speak only the protocol of `url`, and none without one.
    """
    # What it prints goes into files: they have a limit, and a hostile repository has a listing without end.
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        code = _run(place, arguments, url, given, printed, said)
        printed.seek(0)
        if code == 0:
            return printed.read()
        said.seek(0)
        words = said.read(_WORDS_LIMIT)
    if _TOO_LARGE in words or code == -signal.SIGXFSZ:
        what = "the commit is" if url else "the list of its files is"
        limit = (_DOWNLOAD_LIMIT if url else _PRINT_LIMIT) // 2**20
        raise ToolError(f"{what} larger than {limit} MiB", hint="keep packs in a repository of their own")
    raise ToolError("; ".join(words.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]))


def _run(
    place: Path, arguments: tuple[str, ...], url: str, given: IO[bytes], printed: IO[bytes], said: IO[bytes]
) -> int:
    """Return the exit status of git. Raises ToolError where there is no git, or it takes too long."""
    # ssh may ask for a passphrase on the terminal; the others leave programs behind that only their group knows.
    has_own_group = url.startswith(("http:", "https:"))
    limit = partial(_limit, _DOWNLOAD_LIMIT, is_told=True) if url else partial(_limit, _PRINT_LIMIT)
    try:
        started = subprocess.Popen(
            ["git", "--git-dir", str(place), *arguments] if arguments[0] != "init" else ["git", *arguments],
            cwd=place,
            env=_environment(os.environ, url),
            stdin=given,
            stdout=printed,
            stderr=said,
            start_new_session=has_own_group,
            preexec_fn=limit,  # noqa: PLW1509  # takes no lock
        )
    except OSError as error:
        raise ToolError("there is no git program on PATH", hint="install git") from error
    try:
        return started.wait(_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"no answer in {_TIMEOUT_SECONDS:.0f} s") from error
    finally:
        if has_own_group:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
        started.kill()
        started.wait()


def _limit(size: int, *, is_told: bool = False) -> None:
    """Bound what a program writes into one file, and its memory.

    One that is told gets an error; another is ended, since git goes on with a list that it cannot write.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN if is_told else signal.SIG_DFL)
    lower_limit(resource.RLIMIT_FSIZE, size)
    limit_memory()


def _environment(environment: Mapping[str, str], url: str) -> dict[str, str]:
    inherited = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    kept = {name: environment[name] for name in ("GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS") if name in environment}
    # A repository cannot lead to another way of transport, such as one without encryption.
    scheme = url.partition("://")[0].lower() if "://" in url else "ssh"
    allowed = scheme if url else "none"
    return {**inherited, **kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": allowed}
