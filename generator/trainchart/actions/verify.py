"""Verify a chart: that its model spec gives the very same bytes, and that its signature holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainchart import __version__
from trainchart.actions.chart_input import read_chart_files
from trainchart.actions.generate import MODELS, load_model, render_model
from trainchart.actions.image_check import ImageAnswer, ask_for_images, require_known
from trainchart.actions.rendered_version import require_rendering
from trainchart.actions.repository_access import ImageAccess
from trainchart.archive.chart_file import (
    CHART_FILE,
    GENERATOR_ANNOTATION,
    IDENTITY_ANNOTATION,
    SPEC_ANNOTATION,
    ChartFile,
    parse_chart_file,
)
from trainchart.archive.identity import CHANGELOG_FILE, CHANGES_ANNOTATION, compute_identity
from trainchart.archive.ignore import drop_ignored
from trainchart.archive.lock import LOCK_FILE, Lock, find_drift, parse_lock
from trainchart.archive.provenance import stated_digest
from trainchart.errors import ChecksFailed, Problem, ToolError
from trainchart.host.files import read_bytes
from trainchart.host.gpg import find_bad_signature
from trainchart.kubernetes_yaml import dump_mapping


@dataclass(frozen=True)
class Verified:
    """A chart that is what it says, and what was looked at."""

    name: str
    version: str
    identity: str
    spec: Path
    is_signed: bool
    images: tuple[ImageAnswer, ...] = ()
    """Those that the chart names, all as it says; nothing where they were not asked for."""


@dataclass(frozen=True)
class VerifyOptions:
    """What to compare with, and what else to look at."""

    spec: Path | None = None
    keyring: Path | None = None
    images: ImageAccess | None = None
    """How image registries are asked; None: they are not."""
    engine: str = "auto"


def verify_chart(chart: Path, options: VerifyOptions) -> Verified:
    """Compare a chart folder or archive with what its model spec gives, byte by byte, and check the .prov beside it.

    Raises ChecksFailed with everything that does not hold, ToolError where the spec or gpg is missing, and a
    PublishError of the kind that fits where all else holds, but nothing could be known of an image.
    """
    files = read_chart_files(chart)
    found = parse_chart_file(files)
    lock = parse_lock(files[LOCK_FILE].decode(errors="replace")) if LOCK_FILE in files else None
    source = options.spec or _find_spec(chart, found.name, lock)
    signature = chart.with_name(f"{chart.name}.prov")
    is_signed = chart.is_file() and signature.is_file()
    problems = list(_lock_problems(lock, files)) if lock is not None else list(_identity_problems(found, files))
    problems += _regeneration_problems(found, files, source, lock)
    if is_signed:
        problems += _signature_problems(chart, found, read_bytes(signature), options.keyring)
    images = _ask_for_images(files, options)
    if problems or any(image.is_wrong for image in images):
        problems += [image.problem for image in images if image.problem]
        raise ChecksFailed(
            f"{chart} is not what it says",
            hint="generate or release it again from its spec, with the trainchart that made it",
            problems=tuple(problems),
        )
    require_known(images, "log in, or run it again: everything else holds")
    return Verified(found.name, found.version, compute_identity(files), source, is_signed, images)


def _ask_for_images(files: Mapping[str, bytes], options: VerifyOptions) -> tuple[ImageAnswer, ...]:
    if options.images is None:
        return ()
    return ask_for_images(files, require_rendering(files, options.engine), options.images)


def _lock_problems(lock: Lock, files: Mapping[str, bytes]) -> Iterator[Problem]:
    for drift in find_drift(lock, files):
        yield Problem(f"{drift.kind.value} since it was generated", where=drift.path)


def _identity_problems(chart: ChartFile, files: Mapping[str, bytes]) -> Iterator[Problem]:
    stated, identity = chart.annotations.get(IDENTITY_ANNOTATION, ""), compute_identity(files)
    if stated and stated != identity:
        yield Problem(f"it says that its identity is sha256:{stated}, but it is sha256:{identity}", where=CHART_FILE)


def _regeneration_problems(
    chart: ChartFile, files: Mapping[str, bytes], spec: Path, lock: Lock | None
) -> Iterator[Problem]:
    model = load_model(spec)
    expected = dict(render_model(model).files)
    if lock is None:
        expected = _as_released(expected, chart, files)
    before, after = drop_ignored(files), drop_ignored(expected)
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    made_by = lock.generator if lock is not None else chart.annotations.get(GENERATOR_ANNOTATION, "")
    made_from = lock.spec.sha256 if lock is not None else chart.annotations.get(SPEC_ANNOTATION, "")
    if changed and made_by and made_by != __version__:
        yield Problem(f"trainchart {made_by} made it, and this is {__version__}")
    if changed and made_from and made_from != hashlib.sha256(model.text.encode()).hexdigest():
        yield Problem("the spec is not the one that it was made from", where=str(spec))
    yield from (Problem("is not what the model spec gives", where=path) for path in changed)


def _as_released(expected: dict[str, bytes], chart: ChartFile, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return generated files with what packing and releasing add, taken from the chart: these follow from no spec."""
    data = parse_chart_file(expected).plain_data | {"version": chart.version}
    if "deprecated" in chart.data:
        data["deprecated"] = chart.data["deprecated"]
    if CHANGES_ANNOTATION in chart.annotations:
        data["annotations"] = {**data.get("annotations", {}), CHANGES_ANNOTATION: chart.annotations[CHANGES_ANNOTATION]}
    added = {CHANGELOG_FILE: files[CHANGELOG_FILE]} if CHANGELOG_FILE in files else {}
    same = chart.plain_data == data
    # Build annotations stand between the generated lines, so that the text is compared by what it says.
    return expected | added | {CHART_FILE: files[CHART_FILE] if same else dump_mapping(data).encode()}


def _signature_problems(chart: Path, found: ChartFile, signed: bytes, keyring: Path | None) -> Iterator[Problem]:
    where = f"{chart.name}.prov"
    reason = find_bad_signature(signed, keyring)
    if reason:
        yield Problem(f"the signature does not hold: {reason}", where=where)
    digest = f"sha256:{hashlib.sha256(read_bytes(chart)).hexdigest()}"
    stated = stated_digest(signed, f"{found.name}-{found.version}.tgz")
    if stated != digest:
        yield Problem(f"it is about {stated or 'no archive of this name'}, and the archive is {digest}", where=where)


def _find_spec(chart: Path, name: str, lock: Lock | None) -> Path:
    """Return the spec that a chart was made from: its lock's in a folder above, else the model of that name here."""
    wanted = PurePosixPath(lock.spec.name) if lock is not None else PurePosixPath(MODELS.name, f"{name}.yaml")
    for folder in (*chart.absolute().parents, Path()):
        if (folder / wanted).is_file():
            return folder / wanted
    raise ToolError(f"there is no {wanted} to make {chart} from", hint="name the model spec with --spec")
