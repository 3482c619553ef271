"""Read what is to be checked where it is no chart: YAML files, folders of them, standard input, a shell's <(…)."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path, PurePosixPath

from trainchart.actions.support.project import name_model
from trainchart.archive.lock import LOCK_FILE
from trainchart.check.finding import Case, CheckInput
from trainchart.check.manifests import parse_plain_manifests
from trainchart.check.waivers import is_waiver_file
from trainchart.errors import ToolError
from trainchart.helm.rendering import Rendering
from trainchart.host.files import read_bytes, read_tree, refuse_pipe

STANDARD_INPUT = Path("-")
_MANIFEST_ENDINGS = (".yaml", ".yml", ".json")
_CHARTS_SHOWN = 5
_SPEC = re.compile(rb"(?m)^apiVersion:\s*['\"]?trainchart/")
_GZIP_MAGIC = b"\x1f\x8b"


def read_manifests(path: Path) -> CheckInput | None:
    """Return the plain manifests at `path`, None where that must be a chart.

    Raises ToolError where they cannot be read, or `path` is a pipe that may never be written to.
    """
    refuse_pipe(path)
    if path.is_dir():
        # One whose Chart.yaml is gone is still told from manifests.
        is_broken_chart = (path / "templates").is_dir() and (path / "values.yaml").is_file()
        is_chart = (path / "Chart.yaml").is_file() or (path / LOCK_FILE).is_file() or is_broken_chart
        if is_chart or not any(file.suffix in _MANIFEST_ENDINGS for file in path.rglob("*")):
            return None
        shown = {name: content for name, content in read_tree(path).items() if not _is_hidden(name)}
        charts = sorted({str(PurePosixPath(name).parent) for name in shown if PurePosixPath(name).name == "Chart.yaml"})
        if charts:
            folder = shlex.quote(str(path / PurePosixPath(charts[0]).parent))
            raise ToolError(
                f"{path} holds charts, not manifests: {', '.join(charts[:_CHARTS_SHOWN])}",
                hint=f"check the charts: trainchart check {folder}/*/",
            )
        files = {name: content for name, content in shown.items() if _is_manifest(name)}
        # Model specs beside manifests are left out; where there is nothing else, the message is about them.
        return _parse(path, {name: each for name, each in files.items() if not _SPEC.search(each)} or files)
    if path == STANDARD_INPUT:
        return _parse(path, {"": sys.stdin.buffer.read()})
    if not path.exists():
        return None
    content = read_bytes(path)
    if content.startswith(_GZIP_MAGIC):
        return None
    if path.suffix in _MANIFEST_ENDINGS or path.is_fifo():
        return _parse(path, {"": content})
    try:
        found = _parse(path, {"": content})
    except ToolError:
        return None
    # No name says what it should be, so it must say so itself.
    return found if any(manifest.kind for manifest in found.objects()) else None


def _parse(path: Path, files: dict[str, bytes]) -> CheckInput:
    texts = {name: content.decode("utf-8-sig", errors="replace") for name, content in files.items()}
    objects = {name: text for name, text in texts.items() if not is_waiver_file(name)}
    manifests = parse_plain_manifests(objects, "stdin" if path == STANDARD_INPUT else str(path))
    for manifest in manifests:
        if str(manifest.document.get("apiVersion")).startswith("trainchart/"):
            name = manifest.document.get("name") or "NAME"
            model = name_model(path) if path.is_file() else shlex.quote(str(name))
            raise ToolError(
                f"{path} holds the spec of a model, not manifests",
                hint=f"trainchart generate {model}, then trainchart check {shlex.quote(f'charts/{name}')}",
            )
    rendering = Rendering(release="", namespace="default", manifests=manifests, texts=objects)
    return CheckInput(files=files, cases=(Case("", rendering),))


def _is_hidden(path: str) -> bool:
    """Tell whether a file lies in a hidden folder: .git, .venv, or the runs in .trainchart."""
    return any(part.startswith(".") for part in PurePosixPath(path).parts[:-1])


def _is_manifest(path: str) -> bool:
    name = PurePosixPath(path).name
    return (path.endswith(_MANIFEST_ENDINGS) and not name.startswith(".")) or is_waiver_file(path)
