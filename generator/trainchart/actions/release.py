"""Release a model: decide its next version from what changed, say so in the chart, pack, sign and publish it.

Everything follows from the spec and the repository, so that nothing has to be committed for the next release.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainchart.actions.diff import compare_files, fetch_last, fetch_last_archive, nothing_published
from trainchart.actions.package import read_build_info, read_source_date, require_no_secrets, sign_archive
from trainchart.actions.publish import utc_now
from trainchart.actions.support.image_check import require_images
from trainchart.actions.support.owners import put_owners, read_owners
from trainchart.actions.support.project import locate_specs
from trainchart.actions.support.rendered_version import require_rendering, values_sets
from trainchart.actions.support.repository_access import Address, ImageAccess, open_repository
from trainchart.actions.support.signature import find_signature_problem
from trainchart.actions.support.specs import load_spec, render_with_waivers
from trainchart.archive.chart_file import (
    BUILD_ANNOTATIONS,
    CHART_FILE,
    IDENTITY_ANNOTATION,
    ChartFile,
    parse_chart_file,
)
from trainchart.archive.identity import CHANGELOG_FILE, CHANGES_ANNOTATION
from trainchart.archive.pack import BuildInfo, ChartArchive, pack_chart
from trainchart.chart_version import is_pre_release, version_key
from trainchart.check.rules.training import list_token_images
from trainchart.compare.changelog import add_to_changelog, build_entry, dump_changes, list_changes
from trainchart.compare.chart import ChartChanges
from trainchart.compare.version import Bump, next_version, with_pre_release
from trainchart.errors import PlanError, PublishError
from trainchart.helm.rendering import Rendering
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.publish.repository import FetchedArchive, Publication, Repository, prepare_upload, publish_upload


@dataclass(frozen=True)
class ReleaseOptions:
    """How to release: at least how large a step, as what pre-release, signed with which key, and whether at all."""

    images: ImageAccess | None
    """How images are looked for; None: they are not looked for."""
    at_least: Bump = Bump.none
    pre_release: str = ""
    sign: str = ""
    engine: str = "auto"
    is_dry_run: bool = False
    owners: Path | None = None
    """A file that says to Artifact Hub whose the chart is."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Released:
    """What was released, or would be; nothing was where the last version is the same."""

    name: str
    last: str
    """The last published version; empty where this is the first."""
    version: str
    entry: str
    """What the changelog says of it."""
    archive: ChartArchive | None = None
    publication: Publication | None = None
    changes: ChartChanges | None = None
    """What differs from the last version; None where there is none."""
    warnings: tuple[str, ...] = ()
    """What users of the version should know."""


@dataclass(frozen=True)
class _Decided:
    """A chart that is to be published: its files, and what the release adds to them."""

    released: Released
    files: Mapping[str, bytes]
    changelog: str
    """As it was before."""
    listed: str
    """The list of changes for Artifact Hub."""
    build: BuildInfo


def release_model(model: str, to: Address, options: ReleaseOptions) -> Released:
    """Publish the next version of a model's chart, or nothing where its content is published already.

    Raises UsageError for a pre-release that no version can have, VersionConflict where someone has published that
    version meanwhile, and what rendering, looking for the images, signing and publishing raise. Then nothing is
    published.
    """
    with_pre_release("0.0.0", options.pre_release)  # refused also where nothing is released
    (spec,) = locate_specs((model,))
    chart = render_with_waivers(load_spec(spec))
    require_no_secrets(chart.files)
    rendering = require_rendering(chart.files, options.engine, with_install=options.images is not None)
    build = read_build_info(spec.parent, chart.files, options.environment)
    owners = read_owners(options.owners)
    with open_repository(to, options.environment) as repository:
        if not options.is_dry_run:
            put_owners(repository, chart.name, owners)
        last = fetch_last(repository, chart.name)
        if last is None:
            version = with_pre_release(chart.version, options.pre_release)
            released = Released(chart.name, "", version, build_entry(version, None, _date(build)))
            build = _with_images(build, chart.files, rendering, options)
            decided = _Decided(released, chart.files, "", list_changes(None), build)
            return replace(_publish(repository, decided, options), warnings=list_token_images(rendering))
        changes = compare_files(last[1], chart.files, values_sets(last[1]), engine=options.engine)
        # What was tried as a pre-release is released as it is, once it is the time for that.
        is_due = is_pre_release(last[0]) and not options.pre_release
        if changes.bump is Bump.none and not is_due:
            return Released(chart.name, last[0], last[0], "")
        _require_living(chart.name, last, options)
        version = _decide_version(last[0], chart.version, changes, options)
        said = changes if changes.reasons else None
        released = Released(chart.name, last[0], version, build_entry(version, said, _date(build)), changes=changes)
        build = _with_images(build, chart.files, rendering, options)
        decided = _Decided(released, chart.files, _changelog(last[1]), list_changes(said), build)
        return replace(_publish(repository, decided, options), warnings=list_token_images(rendering))


def deprecate_chart(name: str, reason: str, to: Address, options: ReleaseOptions) -> Released:
    """Publish a version of a chart that says it is deprecated: the last one, with nothing else changed.

    Its images are not asked for: they may be gone, which can be the very reason.
    Raises RepositoryNotFound where nothing is published, and PublishError where it is to be signed, but has no valid
    signature; does nothing where the last version says so already.
    """
    reason = " ".join(reason.split())  # an item of a list in the changelog
    with open_repository(to, options.environment) as repository:
        last = fetch_last_archive(repository, name)
        if last is None:
            raise nothing_published(repository, name)
        before, archive, there = last
        chart = parse_chart_file(there)
        if chart.data.get("deprecated") is True:
            return Released(name, before, before, "")
        if options.sign:
            _require_signed(f"{name}-{before}.tgz", archive)
        version = next_version(before, Bump.patch)
        released = Released(name, before, version, f"## {version}\n\n### Deprecated\n\n- {reason}\n")
        files = {**there, CHART_FILE: dump_mapping({**chart.plain_data, "deprecated": True}).encode()}
        listed = dump_changes([("deprecated", reason)])
        decided = _Decided(released, files, _changelog(there), listed, _build_of(chart, options.environment))
        return _publish(repository, decided, options)


def _require_signed(filename: str, archive: FetchedArchive) -> None:
    """Refuse to sign what a repository holds, which is no work of ours, unless one of our keys has signed it before."""
    problem = "it has no signature"
    if archive.provenance is not None:
        problem = find_signature_problem(archive.data, filename, archive.provenance)
    if problem:
        raise PublishError(
            f"{filename} of the repository may not be yours, so it is not signed again: {problem}",
            hint="leave out --sign, or publish a signed version first: trainchart release --sign KEY",
        )


def _build_of(chart: ChartFile, environment: Mapping[str, str]) -> BuildInfo:
    """Return what is to be said of a chart that is published as it was: made from the same, but now."""
    kept = {key: value for key, value in chart.annotations.items() if key in BUILD_ANNOTATIONS - {IDENTITY_ANNOTATION}}
    epoch = read_source_date(environment)
    return BuildInfo(created_epoch=int(time.time()) if epoch is None else epoch, earlier=kept)


def _with_images(
    build: BuildInfo, files: Mapping[str, bytes], rendering: Rendering, options: ReleaseOptions
) -> BuildInfo:
    """Return what is to be said of the chart, its images' digests included. Raises what require_images raises."""
    if options.images is None:
        return build
    return replace(build, images=require_images(files, rendering, options.images))


def _decide_version(last: str, wanted: str, changes: ChartChanges, options: ReleaseOptions) -> str:
    version = next_version(last, max(changes.bump, Bump.patch), at_least=options.at_least)
    # The author may want more, and says so in the spec.
    core = wanted if version_key(wanted) > version_key(version) else version
    return with_pre_release(core, options.pre_release)


def _publish(repository: Repository, decided: _Decided, options: ReleaseOptions) -> Released:
    """Give the chart its version, changelog and list of changes, and publish it unless this is a dry run."""
    released = decided.released
    changelog = add_to_changelog(decided.changelog, released.entry)
    chart_text = _released_chart_file(decided.files, released.version, decided.listed)
    files = {**decided.files, CHART_FILE: chart_text.encode(), CHANGELOG_FILE: changelog.encode()}
    archive = pack_chart(files, decided.build)
    if options.is_dry_run:
        return replace(released, archive=archive)
    provenance = sign_archive(archive, options.sign, options.environment) if options.sign else None
    publication = publish_upload(repository, prepare_upload(archive.data, created=utc_now(), provenance=provenance))
    return replace(released, archive=archive, publication=publication)


def _released_chart_file(files: Mapping[str, bytes], version: str, listed: str) -> str:
    chart = parse_chart_file(files)
    data: dict[str, Any] = {**chart.plain_data, "version": version}
    data["annotations"] = {**data.get("annotations", {}), CHANGES_ANNOTATION: listed}
    return dump_mapping(data)


def _changelog(files: Mapping[str, bytes]) -> str:
    return files.get(CHANGELOG_FILE, b"").decode(errors="replace")


def _require_living(name: str, last: tuple[str, Mapping[str, bytes]], options: ReleaseOptions) -> None:
    if parse_chart_file(last[1]).data.get("deprecated") is True and options.at_least is Bump.none:
        raise PlanError(
            f"{name} has been deprecated since {last[0]}",
            hint="to undo that, release it with --bump patch, minor or major",
        )


def _date(build: BuildInfo) -> str:
    if build.created_epoch is None:
        return ""
    return datetime.fromtimestamp(build.created_epoch, UTC).strftime("%Y-%m-%d")
