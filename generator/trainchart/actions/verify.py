"""Verify a chart: that its model spec gives the very same bytes, that its signature holds, and what is attached to it
in a registry says the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from trainchart import __version__
from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.image_check import ImageAnswer, ask_for_images, require_known
from trainchart.actions.support.project import Project, find_project, name_model
from trainchart.actions.support.published_chart import RegistryChart, fetch_published, is_reference
from trainchart.actions.support.rendered_version import require_rendering
from trainchart.actions.support.repository_access import ImageAccess
from trainchart.actions.support.signature import find_signature_problem
from trainchart.actions.support.specs import load_spec, render_spec
from trainchart.archive.attestation import origin_annotations
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
from trainchart.archive.lock import LOCK_FILE, WAIVER_FILE, DriftKind, Lock, find_drift, parse_lock
from trainchart.archive.provenance import PROVENANCE_LIMIT
from trainchart.archive.read import parse_packed_chart
from trainchart.errors import ChecksFailed, Problem, ToolError
from trainchart.host.files import read_bytes
from trainchart.kubernetes_yaml import dump_mapping


@dataclass(frozen=True)
class Verified:
    """A chart that is what it says, and what was looked at."""

    name: str
    version: str
    identity: str
    spec: Path
    is_signed: bool
    has_provenance: bool = False
    """A statement of ours is attached to it in its registry."""
    images: tuple[ImageAnswer, ...] = ()
    """Those that the chart names, all as it says; nothing where they were not asked for."""
    pinned: str = ""
    """What installs this very chart of a registry, whatever its tag stands for by then; empty for a file."""


@dataclass(frozen=True)
class VerifyOptions:
    """What to compare with, and what else to look at."""

    spec: Path | None = None
    keyring: Path | None = None
    """Where it is named, there must be a signature by one of its keys; else one is looked at if it is there."""
    images: ImageAccess | None = None
    """How image registries are asked; None: they are not."""
    engine: str = "auto"
    plain_http: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Given:
    """The chart to verify, from wherever it is."""

    called: str
    files: Mapping[str, bytes]
    archive: bytes | None = None
    """None: it is a folder."""
    signature: bytes | None = None
    path: Path | None = None
    """None: it is in a registry."""
    published: RegistryChart | None = None


def verify_chart(chart: str, options: VerifyOptions) -> Verified:
    """Compare a chart with what its model spec gives, byte by byte, and check its signature.

    The chart is a folder, an archive with the .prov file beside it, or one of a registry as fetch_published names it,
    whose provenance is compared with the chart too.

    Raises ChecksFailed with everything that does not hold, ToolError where the spec or gpg is missing, and a
    PublishError of the kind that fits where all else holds, but nothing could be known of an image.
    """
    given = _read(chart, options)
    files = given.files
    found = parse_chart_file(files)
    lock = parse_lock(files[LOCK_FILE].decode(errors="replace")) if LOCK_FILE in files else None
    source = options.spec or _find_spec(given, found.name, lock)
    problems = list(_lock_problems(lock, files)) if lock is not None else list(_identity_problems(found, files))
    problems += _regeneration_problems(found, files, source, lock)
    problems += _signature_problems(given, found, options.keyring)
    if given.published is not None:
        problems += _provenance_problems(given.published, found)
    images = _ask_for_images(files, options)
    if problems or any(image.is_wrong for image in images):
        hint = _advise(given, lock, source) if problems else "push the image, or name another one in the model spec"
        problems += [image.problem for image in images if image.problem]
        raise ChecksFailed(
            f"{chart} does not verify",
            hint=hint,
            problems=tuple(problems),
        )
    require_known(images, "log in, or run it again: everything else is valid")
    return Verified(
        found.name,
        found.version,
        compute_identity(files),
        source,
        given.signature is not None,
        _has_provenance(given),
        images,
        given.published.pinned if given.published is not None else "",
    )


def _advise(given: _Given, lock: Lock | None, spec: Path) -> str:
    """Return what to do about a chart that is not what its spec gives."""
    if given.archive is not None:
        return "package or release it again from its spec, with the trainchart version that generated it"
    again, name = f"trainchart generate {name_model(spec)}", parse_chart_file(given.files).name
    if (made := load_spec(spec).name) != name:
        return f"{again} makes {made}; remove {given.called}, or give the spec the name {name} again"
    if lock is not None and all(drift.kind is DriftKind.missing for drift in find_drift(lock, given.files)):
        return f"bring the chart up to date: {again}"
    overwrite = f"{again} --overwrite, with the trainchart version that generated the chart"
    return f"move manual changes into {spec}, then run {overwrite}"


def _ask_for_images(files: Mapping[str, bytes], options: VerifyOptions) -> tuple[ImageAnswer, ...]:
    if options.images is None:
        return ()
    return ask_for_images(files, require_rendering(files, options.engine, with_install=True), options.images)


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
    located = load_spec(spec)
    if located.name != chart.name:
        yield Problem(f"the spec now describes the chart {located.name}, not {chart.name}", where=str(spec))
        return
    expected = dict(render_spec(located).files)
    if lock is None:
        expected = _as_released(expected, chart, files)
    before, after = drop_ignored(files), drop_ignored(expected)
    every = {*before, *after} - {WAIVER_FILE}
    changed = sorted(path for path in every if before.get(path) != after.get(path))
    if lock is not None and not _is_same_lock(lock, parse_lock(expected[LOCK_FILE].decode())):
        changed.append(LOCK_FILE)
    made_by = lock.generator if lock is not None else chart.annotations.get(GENERATOR_ANNOTATION, "")
    made_from = lock.spec.sha256 if lock is not None else chart.annotations.get(SPEC_ANNOTATION, "")
    if changed and made_by and made_by != __version__:
        yield Problem(f"trainchart {made_by} generated it, but this is {__version__}")
    if changed and made_from and made_from != hashlib.sha256(located.text.encode()).hexdigest():
        yield Problem("the spec is not the one it was generated from", where=str(spec))
    yield from (Problem("differs from what the model spec gives", where=path) for path in changed)


def _is_same_lock(lock: Lock, made: Lock) -> bool:
    """Tell whether a lock says of its chart what this trainchart would; what another one says is its own."""
    return lock.generator != __version__ or lock == replace(made, spec=replace(made.spec, name=lock.spec.name))


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


def _signature_problems(given: _Given, found: ChartFile, keyring: Path | None) -> Iterator[Problem]:
    name = f"{found.name}-{found.version}.tgz"
    if keyring is not None and not keyring.is_file():
        raise ToolError(f"there is no keyring at {keyring}", hint="gpg --export KEY > FILE writes one")
    if given.archive is None or given.signature is None:
        if keyring is not None:  # who names keys wants a signature: leaving it out must not help
            yield Problem("it is missing, so no key of the keyring has signed the archive", where=f"{name}.prov")
        return
    problem = find_signature_problem(given.archive, name, given.signature, keyring)
    if problem:
        yield Problem(problem, where=f"{name}.prov")


def _provenance_problems(published: RegistryChart, found: ChartFile) -> Iterator[Problem]:
    """Yield where what is attached to a chart in its registry contradicts the chart."""
    if (found.name, found.version) != (published.name, published.version or found.version):
        yield Problem(f"it holds {found.name} {found.version}", where=published.reference)
    annotations = origin_annotations(found.annotations)
    for origin in published.origins:
        if published.digest.removeprefix("sha256:") not in origin.subjects:
            yield Problem("the provenance is about another chart", where=published.reference)
            continue
        for key in sorted({*annotations, *origin.annotations}):
            said, is_so = origin.annotations.get(key, "nothing"), annotations.get(key, "nothing")
            if said != is_so:
                yield Problem(f"the provenance says {said}, but the chart says {is_so}", where=key)


def _has_provenance(given: _Given) -> bool:
    return given.published is not None and bool(given.published.origins)


def _read(chart: str, options: VerifyOptions) -> _Given:
    if is_reference(chart):
        published = fetch_published(chart, plain_http=options.plain_http, environment=options.environment)
        files = parse_packed_chart(published.archive).files
        return _Given(chart, files, published.archive, published.signature, published=published)
    path = Path(chart)
    files = read_chart_files(path, is_compared=True)
    if path.is_dir():
        return _Given(chart, files, path=path)
    signature = path.with_name(f"{path.name}.prov")
    provenance = read_bytes(signature, limit=PROVENANCE_LIMIT) if signature.is_file() else None
    return _Given(chart, files, read_bytes(path), provenance, path)


def _find_spec(given: _Given, name: str, lock: Lock | None) -> Path:
    """Return the spec that a chart was made from: that of its lock, else of its name, in the project of this folder.

    Where the chart lies does not matter, and a spec outside of models/ may not lie in the same folder of the project:
    it may be as foreign as the chart itself.
    """
    project = find_project()
    spec = project.models / f"{name}.yaml" if lock is None else _find_locked(project, PurePosixPath(lock.spec.name))
    hint = "change into the folder of the chart's project, or name the model spec with --spec"
    if spec.parent != project.models and given.path is not None and _is_below_same(project, spec, given.path):
        raise ToolError(f"{spec}, which the lock names, is in the same folder as {given.called}", hint=hint)
    if not os.path.isfile(spec):  # noqa: PTH113  # a lock may hold any name
        raise ToolError(f"there is no spec {spec} to generate {given.called} from", hint=hint)
    return spec


def _find_locked(project: Project, wanted: PurePosixPath) -> Path:
    """Return the path in a project of a spec that a lock names by its file and the folder that it lies in."""
    for folder in (project.models, project.folder):
        if os.path.basename(os.path.abspath(folder)) == str(wanted.parent):  # noqa: PTH100, PTH119  # may be a link
            return folder / wanted.name
    return project.folder / wanted


def _is_below_same(project: Project, spec: Path, chart: Path) -> bool:
    """Return whether a spec and a chart lie below the same folder of the project."""
    folder = project.folder.resolve()
    places = [Path(os.path.realpath(each)) for each in (spec, chart)]
    tops = [each.relative_to(folder).parts[:1] for each in places if each.is_relative_to(folder)]
    return len(tops) == 2 and tops[0] == tops[1]
