"""The use case of the console's form: install a release of a chart that was offered, and uninstall a release.

A page can name a chart only by a key that was offered here, so that no request makes helm read another path.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainchart.actions.diff import fetch_last_archive, nothing_published
from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.installed import read_installed
from trainchart.actions.support.project import find_project
from trainchart.actions.support.published_chart import fetch_published, is_reference
from trainchart.actions.support.repository_access import Address, open_repository, without_login
from trainchart.archive.chart_file import CHART_FILE, ChartFile, parse_chart_file
from trainchart.archive.read import parse_archive
from trainchart.cluster.gitops import GitOpsOwner, find_gitops_owner
from trainchart.cluster.io.kubeconfig import read_entry
from trainchart.cluster.io.kubernetes_api import STATEFUL_SETS, KubernetesApi
from trainchart.compare.version import last_version
from trainchart.console.form import make_form, place_problem, read_values
from trainchart.console.installing import (
    NAMESPACE,
    NOWHERE,
    RELEASE,
    ChartOffer,
    ChartOffers,
    Installed,
    OpenChart,
    Problems,
    PublishedChart,
    Removal,
    Review,
    Typed,
)
from trainchart.console.removal import count_kinds, divide, warn_of
from trainchart.console.views import RunRef
from trainchart.errors import (
    ClusterError,
    NotFound,
    PublishError,
    RenderError,
    RepositoryNotFound,
    ToolError,
    TrainchartError,
    UsageError,
)
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.inputs import require_release_name
from trainchart.helm.io.release import HelmInstall, run_install, run_uninstall, uninstall_argv
from trainchart.helm.rendering import Rendering, ValueOverrides
from trainchart.host.files import read_bytes
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, dump_mapping, parse_mapping, parse_objects
from trainchart.publish.oci_manifest import version_tag
from trainchart.reports.report import CLUSTER
from trainchart_runtime.contract import INSTANCE_LABEL, NAME_LABEL, REPLICAS_ANNOTATION

_CHART_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Of a chart in a repository: what begins otherwise is an option of helm, or a path."""
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CHARTS_SHOWN = 200
_FETCHED_KEPT = 8
_FILE_LIMIT = 1024 * 1024
"""Bytes of values.yaml or its schema that a form is made of; those of a generated chart have some 50 kB."""
_TEXT_SHOWN = 100_000
_YOURS = "your values"
_SOME_NAME = "release"
"""Stands for a release name that is not valid, so that all that is wrong is said at once."""
_OUTPUT_SHOWN = 2000


@dataclass(frozen=True)
class _Source:
    """A chart, and how helm is given it."""

    offer: ChartOffer
    chart: tuple[str, ...]
    archive: bytes | None = None
    """Of one that was fetched."""
    path: Path = Path()

    def read_files(self) -> Mapping[str, bytes]:
        return parse_archive(self.archive).files if self.archive is not None else read_chart_files(self.path)

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        if self.archive is None:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="trainchart-chart-") as folder:
            file = Path(folder, f"{self.offer.name}.tgz")
            file.write_bytes(self.archive)
            yield file


@dataclass
class ReleaseInstaller:
    """Installs with the user's helm, kubeconfig and logins."""

    place: Place
    _fetched: dict[str, _Source] = field(default_factory=dict)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def list_charts(self) -> ChartOffers:
        sources, notes = _find_local()
        offers = [source.offer for source in (*sources.values(), *self._fetched.values())]
        return ChartOffers(offers, str(find_project().charts), notes)

    def fetch(self, published: PublishedChart) -> ChartOffer:
        archive, chart = _fetch(published)
        with self._lock:
            self._count += 1
            file = parse_chart_file(parse_archive(archive).files)
            offer = _make_offer(f"fetched/{self._count}", file, shlex.join(chart))
            self._fetched[offer.key] = _Source(offer, chart, archive)
            while len(self._fetched) > _FETCHED_KEPT:
                del self._fetched[next(iter(self._fetched))]
        return offer

    def open_chart(self, key: str) -> OpenChart:
        source = self._find(key)
        files = source.read_files()
        values, schema = (_read_limited(files, name) for name in ("values.yaml", "values.schema.json"))
        try:
            return OpenChart(
                source.offer,
                parse_mapping(values.decode()),
                found if isinstance(found := parse_json(schema or b"{}"), dict) else {},
                _digest(files),
                self.place.namespace or read_entry(self.place.context, self.place.environment).namespace,
                values.decode()[:_TEXT_SHOWN],
            )
        except (YamlError, ValueError) as error:
            raise ToolError(f"{source.offer.where}: its values or their schema cannot be read: {error}") from error

    def check(self, typed: Typed) -> Review | Problems:
        return self._check(typed)[0]

    def _check(self, typed: Typed) -> tuple[Review | Problems, HelmInstall | None]:
        source, chart = self._find(typed.chart), self.open_chart(typed.chart)
        sections = make_form(chart.values, chart.schema)
        read = read_values(sections, chart.values, typed)
        problems = {name: list(texts) for name, texts in read.problems.items()}
        problems |= _check_names(typed)
        if typed.seen and typed.seen != chart.seen:
            problems[NOWHERE] = ["The chart has changed since this form was created. Check the values again."]
        text = dump_mapping(read.changed) if read.changed else ""
        name = _SOME_NAME if RELEASE in problems else typed.release
        try:
            with source.on_disk() as path:
                overrides = ValueOverrides(files=((_YOURS, text),) if text else ())
                rendering = find_engine("binary").render(
                    path,
                    release=name,
                    namespace="default" if NAMESPACE in problems else typed.namespace,
                    overrides=overrides,
                )
        except (RenderError, UsageError) as error:
            found = [(problem.message, problem.hint) for problem in error.problems] or [(error.message, error.hint)]
            for message, hint in found:
                field_name, said = place_problem(message, sections, typed)
                problems.setdefault(field_name, []).append(f"{said} ({hint})" if hint else said)
            return problems, None
        if problems:
            return problems, None
        if source.archive is not None and len(source.chart) > 1:
            _require_no_path(source.chart[0])
        place = self.place
        install = HelmInstall(
            typed.release, typed.namespace, place.context, source.chart, text, kubeconfig=place.kubeconfig
        )
        kinds = count_kinds(manifest.document for manifest in rendering.manifests if not _is_test(manifest.document))
        return Review(install.command, text, kinds, _find_training(rendering)), install

    def install(self, typed: Typed) -> Installed | Problems:
        review, install = self._check(typed)
        if not isinstance(review, Review) or install is None:
            return review if not isinstance(review, Review) else {}
        source = self._find(typed.chart)
        with source.on_disk() as path:
            # A repository may serve another archive by now.
            said = run_install(replace(install, chart=(str(path),)) if source.archive is not None else install)
        run = RunRef(CLUSTER, typed.namespace, typed.release, review.training) if review.training else None
        return Installed(said.strip()[:_OUTPUT_SHOWN], run)

    def plan_removal(self, run: RunRef) -> Removal:
        api, namespace = open_cluster(replace(self.place, namespace=run.namespace))
        owner = _find_owner(api, namespace, run.release)
        installed = read_installed(api, run.release, namespace, owner)
        try:
            placed = parse_objects(installed.texts.manifest)
        except YamlError as error:
            raise ToolError(f"cannot read the objects of {run.release}: {error}") from error
        kept, lost, kinds = divide([each.value for each in placed if isinstance(each.value, dict)])
        argv = uninstall_argv(run.release, run.namespace, self.place.context)
        return Removal(f"helm {shlex.join(argv)}", kept, lost, kinds, warn_of(owner.name, owner.pause) if owner else "")

    def uninstall(self, run: RunRef) -> str:
        place = self.place
        return run_uninstall(run.release, run.namespace, place.context, place.kubeconfig).strip()[:_OUTPUT_SHOWN]

    def _find(self, key: str) -> _Source:
        source = self._fetched.get(key) or _find_local()[0].get(key)
        if source is None:
            raise NotFound(f"{key!r:.120} is not one of the offered charts", hint="choose the chart again")
        return source


def _find_owner(api: KubernetesApi, namespace: str, release: str) -> GitOpsOwner | None:
    """Return the tool that applies a release from git; None where none is known."""
    try:
        return find_gitops_owner(api.list_objects(STATEFUL_SETS, namespace, labels=f"{INSTANCE_LABEL}={release}"))
    except ClusterError:
        return None


def _find_local() -> tuple[dict[str, _Source], list[str]]:
    """Return the charts of the project by key, folders and archives, and what is wrong with others."""
    project = find_project()
    root = project.folder.resolve()
    folders = (
        project.charts.glob(f"*/{CHART_FILE}"),
        *(each.glob("*.tgz") for each in _archive_folders(project.charts)),
    )
    found: dict[str, _Source] = {}
    notes: list[str] = []
    for each in (path for paths in folders for path in sorted(paths)):
        path = each.parent if each.name == CHART_FILE else each
        if len(found) >= _CHARTS_SHOWN:
            notes.append(f"more than {_CHARTS_SHOWN} charts: the others are not shown")
            break
        # A link of the project's charts may lead anywhere.
        if not str(path).isprintable() or not path.resolve().is_relative_to(root):
            notes.append(f"{str(path)!r} is not offered: it leads outside the project")
            continue
        try:
            file = _read_chart_file(path)
        except (TrainchartError, OSError) as error:
            notes.append(f"{path} is not offered: {error}")
            continue
        if file.data.get("type") == "library":
            continue
        where = str(path) if path.is_absolute() or len(path.parts) > 1 else f"./{path}"
        offer = _make_offer(f"local/{path}", file, where)
        found[offer.key] = _Source(offer, (where,), path=path)
    return found, notes


def _archive_folders(charts: Path) -> list[Path]:
    return list(dict.fromkeys((charts, charts.parent, charts.parent / "dist")))


def _read_chart_file(path: Path) -> ChartFile:
    if path.is_dir():
        return parse_chart_file({CHART_FILE: read_bytes(path / CHART_FILE, limit=_FILE_LIMIT)})
    found = path.stat()
    return _read_packed(path, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=_CHARTS_SHOWN)
def _read_packed(path: Path, changed: int, size: int) -> ChartFile:
    """Return the Chart.yaml of an archive, which is unpacked again only where it has changed."""
    del changed, size
    return parse_chart_file(read_chart_files(path))


def _make_offer(key: str, file: ChartFile, where: str) -> ChartOffer:
    about = file.data.get("description")
    return ChartOffer(key, file.name, file.version, about[:300] if isinstance(about, str) else "", where)


def _fetch(published: PublishedChart) -> tuple[bytes, tuple[str, ...]]:
    """Return the archive of a published chart, and how helm is given it."""
    reference, name, version = published.reference.strip(), published.name.strip(), published.version.strip()
    environment = without_login(os.environ)
    plain = ("--plain-http",) if published.plain_http else ()
    if is_reference(reference):
        whole = _complete(reference, name, version, published.plain_http)
        found = fetch_published(whole, plain_http=published.plain_http, environment=environment)
        return found.archive, (found.pinned, *plain)
    if not reference.lower().startswith(("https://", "http://")):
        raise PublishError(
            f"{reference!r:.200} is not the address of a published chart",
            hint="write oci://HOST/PATH/NAME:VERSION, or the https:// address of a repository and the chart's name",
        )
    if not name:
        raise PublishError("the repository needs the name of a chart", hint="such as mnist")
    if not _CHART_NAME.fullmatch(name):
        raise PublishError(
            f"{name!r:.200} is not the name of a chart", hint="use letters, digits, dashes, dots and underscores"
        )
    _require_no_path(name)
    with open_repository(Address(reference, published.plain_http), environment) as repository:
        if version:
            archive = repository.fetch(name, version)
            if archive is None:
                raise RepositoryNotFound(f"{reference} has no {name} {version}")
            data = archive.data
        else:
            last = fetch_last_archive(repository, name)
            if last is None:
                raise nothing_published(repository, name)
            version, data = last[0], last[1].data
    return data, (name, f"--repo={reference}", f"--version={version}")


def _require_no_path(chart: str) -> None:
    """Raise ToolError where helm would take a file or a folder for the chart of a repository, whose name it has."""
    if os.path.lexists(chart):
        raise ToolError(
            f"helm would install {Path.cwd() / chart} instead of the chart of that name in the repository",
            hint="start the console in another folder, or install the chart of the folder",
        )


def _complete(reference: str, name: str, version: str, plain_http: bool) -> str:
    """Return the reference of a chart in a registry with its name and version: the newest where none is given."""
    whole = "/".join(filter(None, [reference.rstrip("/"), name]))
    repository, _, chart = whole.rpartition("/")
    if ":" in chart or "@" in chart:
        return whole
    if not version:
        with open_repository(Address(repository, plain_http), without_login(os.environ)) as found:
            version = last_version(found.find_versions(chart))
            if not version:
                raise nothing_published(found, chart)
    return f"{whole}:{version_tag(version)}"


def _check_names(typed: Typed) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    try:
        require_release_name(typed.release)
    except UsageError as error:
        problems[RELEASE] = [error.hint[:1].upper() + error.hint[1:]] if typed.release else ["A name is needed"]
    if not _NAMESPACE.fullmatch(typed.namespace):
        problems[NAMESPACE] = ["Use at most 63 lower-case letters, digits and dashes"]
    return problems


def _read_limited(files: Mapping[str, bytes], name: str) -> bytes:
    content = files.get(name, b"")
    if len(content) > _FILE_LIMIT:
        raise ToolError(f"{name} of the chart is too large for a form: more than {_FILE_LIMIT // 1024} KiB")
    return content


def _digest(files: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(errors="replace"), files[name]):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _is_test(document: Mapping[str, object]) -> bool:
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    hook = str(annotations.get("helm.sh/hook", "")) if isinstance(annotations, Mapping) else ""
    return {event.strip() for event in hook.split(",")} <= {"test", "test-success"}


def _find_training(rendering: Rendering) -> str:
    """Return the name of the training that a rendering makes; empty where it makes none."""
    for manifest in rendering.manifests:
        metadata = manifest.document.get("metadata")
        if manifest.kind == "StatefulSet" and isinstance(metadata, Mapping):
            annotations, labels = metadata.get("annotations"), metadata.get("labels")
            is_training = isinstance(annotations, Mapping) and REPLICAS_ANNOTATION in annotations
            if is_training and isinstance(labels, Mapping):
                return str(labels.get(NAME_LABEL, ""))
    return ""
