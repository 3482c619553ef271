"""What the chart of a model would change for those who have an earlier version of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.installed import read_installed
from trainchart.actions.support.project import locate_specs
from trainchart.actions.support.rendered_version import render_version, values_sets
from trainchart.actions.support.repository_access import Address, open_repository, versions_command
from trainchart.actions.support.specs import load_spec, render_spec
from trainchart.archive.chart_file import parse_chart_file
from trainchart.archive.lock import WAIVER_FILE
from trainchart.archive.read import parse_packed_chart
from trainchart.archive.values_file import require_one_document
from trainchart.chart_version import is_chart_version
from trainchart.check.sources import VALUES_FILE
from trainchart.cluster.io.kubeconfig import is_configured
from trainchart.compare.chart import ChartChanges, compare_versions
from trainchart.compare.version import last_version, next_version
from trainchart.errors import NotFound, PublishError, RepositoryNotFound, ToolError, UsageError
from trainchart.helm.io.choose import find_engine
from trainchart.kubernetes_yaml import YamlError, dump_mapping, parse_mapping
from trainchart.publish.index import INDEX_FILE
from trainchart.publish.index_folder import IndexRepository
from trainchart.publish.repository import FetchedArchive, Repository


@dataclass(frozen=True)
class Against:
    """What to compare with: a version in a repository (its newest where none is named), a path, or a release."""

    text: str = ""
    repository: Address | None = None
    place: Place = field(default_factory=Place)


@dataclass(frozen=True)
class Difference:
    """What changed since something, and the version that this asks for."""

    name: str
    against: str
    """What was compared with, in words."""
    changes: ChartChanges
    next_version: str
    is_deprecated: bool = False
    """What was compared with says that the chart is deprecated."""


@dataclass(frozen=True)
class _Old:
    said: str
    files: Mapping[str, bytes]
    values: Mapping[str, str]


def diff_model(model: str, against: Against, *, engine: str, environment: Mapping[str, str]) -> Difference:
    """Compare the chart that the model's spec gives now with what `against` names.

    Raises RepositoryNotFound where no such version is published, and what reading a model, a chart, a repository or a
    cluster raises.
    """
    (spec,) = locate_specs((model,))
    chart = render_spec(load_spec(spec))
    old = _read_old(chart.name, against, environment)
    changes = compare_files(old.files, chart.files, old.values, engine=engine)
    is_deprecated = parse_chart_file(old.files).data.get("deprecated") is True
    return Difference(chart.name, old.said, changes, next_version(changes.old_version, changes.bump), is_deprecated)


def compare_files(
    old: Mapping[str, bytes],
    new: Mapping[str, bytes],
    values: Mapping[str, str],
    *,
    engine: str,
    validate: bool = True,
) -> ChartChanges:
    """Compare two charts, both rendered with each of `values`; `validate` as in render_version."""
    helm = find_engine(engine)
    # Waivers are about the chart, and change nothing of it.
    old, new = ({path: content for path, content in each.items() if path != WAIVER_FILE} for each in (old, new))
    _require_values(old)
    before, after = (render_version(helm, files, values, validate=validate) for files in (old, new))
    return compare_versions(before, after)


def _require_values(files: Mapping[str, bytes]) -> None:
    """Refuse a chart whose default values cannot be read: each would seem to be new. Raises ToolError."""
    content, called = files.get(VALUES_FILE, b""), f"{VALUES_FILE} of the other chart"
    try:
        require_one_document(content, called)
        parse_mapping(content.decode(errors="replace"))
    except (ToolError, YamlError) as error:
        what = error.message if isinstance(error, ToolError) else f"{called} cannot be read: {error}"
        raise ToolError(what, hint="fix it, or generate it again") from error


def fetch_last(repository: Repository, name: str) -> tuple[str, Mapping[str, bytes]] | None:
    """Return the last published version of a chart and its files; None where there is none."""
    found = fetch_last_archive(repository, name)
    return None if found is None else (found[0], found[2])


def fetch_last_archive(repository: Repository, name: str) -> tuple[str, FetchedArchive, Mapping[str, bytes]] | None:
    """Return the last published version of a chart, its archive and the files in it; None where there is none."""
    version = last_version(repository.find_versions(name))
    return (version, *_fetch(repository, name, version)) if version else None


def fetch_files(repository: Repository, name: str, version: str, hint: str = "") -> Mapping[str, bytes]:
    """Return the files of a published version. Raises RepositoryNotFound with `hint` where it is not there.

    Raises another PublishError where what is there calls itself otherwise.
    """
    return _fetch(repository, name, version, hint)[1]


def _fetch(
    repository: Repository, name: str, version: str, hint: str = ""
) -> tuple[FetchedArchive, Mapping[str, bytes]]:
    fetched = repository.fetch(name, version)
    if fetched is None:
        raise RepositoryNotFound(f"{repository.url} has no {name} {version}", hint=hint)
    files = parse_packed_chart(fetched.data).files
    chart = parse_chart_file(files)
    if (chart.name, chart.version) != (name, version):
        raise PublishError(
            f"{repository.reference(name, version)} holds {chart.name} {chart.version}",
            hint=f"correct what the repository lists as {name} {version}",
        )
    return fetched, files


def nothing_published(repository: Repository, name: str) -> RepositoryNotFound:
    """Return the error for a chart of which there is no version."""
    if isinstance(repository, IndexRepository) and not repository.has_index:
        return RepositoryNotFound(
            f"{repository.url} has no {INDEX_FILE}, so it lists no version of {name}",
            hint="publish it there first, restore the index if it was deleted, or check the address",
        )
    return RepositoryNotFound(
        f"{repository.url} has no version of {name}", hint="publish it there first, or check the name and the address"
    )


def _read_old(name: str, against: Against, environment: Mapping[str, str]) -> _Old:
    if against.repository is not None and against.text and not is_chart_version(against.text):
        raise UsageError(
            f"--from names a repository, and --against {against.text} is not a version in it",
            hint="compare with one of them: use --from and a version such as 1.4.0, or --against alone",
        )
    if against.repository is None and against.text and Path(against.text).exists():
        files = read_chart_files(Path(against.text), is_compared=True)
        return _Old(against.text, files, values_sets(files))
    if not against.text or is_chart_version(against.text):
        return _read_published(name, against, environment)
    if not is_configured(environment) and not against.place.context:
        raise ToolError(
            f"there is no chart at {against.text}, and no kubeconfig names a cluster with such a release",
            hint="give the path of a chart, or a version with --from REPOSITORY; local runs cannot be compared",
        )
    api, namespace = open_cluster(against.place)
    try:
        installed = read_installed(api, against.text, namespace)
    except NotFound as error:
        raise NotFound(
            f"there is no release {against.text} in namespace {namespace}, and no chart at such a path",
            hint="see: trainchart list; a version has three numbers, such as 1.4.0",
        ) from error
    if installed.chart_name != name:
        raise ToolError(
            f"the release {against.text} is of the chart {installed.chart_name}, not of {name}",
            hint="name a release of this model",
        )
    # With the release's own values: what happens to this one.
    values = {"": dump_mapping(installed.given) if installed.given else ""}
    return _Old(f"release {against.text} in namespace {namespace}", installed.files, values)


def _read_published(name: str, against: Against, environment: Mapping[str, str]) -> _Old:
    if against.repository is None:
        raise ToolError(
            "there is nothing to compare with",
            hint="name a repository with --from, or a chart folder, archive or release with --against",
        )
    with open_repository(against.repository, environment) as repository:
        if against.text:
            hint = f"see: {versions_command(name, against.repository)}"
            files = fetch_files(repository, name, against.text, hint)
            return _Old(f"{repository.reference(name, against.text)}", files, values_sets(files))
        last = fetch_last(repository, name)
        if last is None:
            raise nothing_published(repository, name)
        return _Old(repository.reference(name, last[0]), last[1], values_sets(last[1]))
