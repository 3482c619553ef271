"""Reads what Helm itself keeps of a release, in Secrets or ConfigMaps: the chart as installed, and its values. Pure.

With the chart taken from there, a value of a release can be changed where the chart is not at hand.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from trainchart.cluster.snapshot import Object, Objects, items_of, label, listed, name_of, section
from trainchart.helm.rendering import ReleaseTexts, merge_maps, read_release_texts
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, dump_mapping, parse_objects
from trainchart.reports.report import STATEFUL_SET, Report
from trainchart.reports.text import describe_time
from trainchart.secret_masks import MASK
from trainchart.secret_names import hide_logins
from trainchart.yaml_limits import NODE_LIMIT
from trainchart_runtime.contract import FAMILY_ANNOTATION, TRAINING_CONTAINER
from trainchart_runtime.log_text import hide_credentials, shorten
from trainchart_runtime.pod_causes import IMAGE_PULL
from trainchart_runtime.pod_problems import parse_time

_GZIP = b"\x1f\x8b\x08"
_LARGEST = 16 * 1024 * 1024
"""Bytes of an unpacked record; Kubernetes allows 1 MiB packed."""
_DEEPEST = 200
"""Collections within each other: schemas and values of people have some tens."""
_LARGEST_MANIFEST = 1024 * 1024
"""Characters of the objects of a revision that are searched for an image."""
_LONGEST_NAME = 255
"""Bytes of the name of a file or folder."""
_LONGEST = 4096
"""Characters of a name or sentence in a record."""
_REVISIONS_READ = 5
_WORDS_SHOWN = 600
"""Characters of what Helm says of a failure."""
_DIFF = re.compile(r"@@ -\d")
"""Where the API server begins to list what a refused object would change, over many lines."""
DEPLOYED = "deployed"
FAILED = "failed"
PENDING = ("pending-install", "pending-upgrade", "pending-rollback")


class HelmRecordError(ValueError):
    """What is kept is not what Helm 3 and 4 keep."""


@dataclass(frozen=True)
class HelmRelease:
    """One revision of a release."""

    name: str
    revision: int
    chart_name: str
    values: Mapping[str, Any]
    """What the chart's values and the user's come to."""
    given: Mapping[str, Any]
    """The user's alone."""
    dependencies: tuple[str, ...] = ()
    """Charts that it consists of; Helm does not keep them."""
    texts: ReleaseTexts = field(default_factory=ReleaseTexts)
    """Its objects."""
    chart_version: str = ""
    family: str = ""
    """Of its chart; empty for charts of models, and for those of others."""
    status: str = ""
    description: str = ""
    """What Helm, or who upgraded, says of the revision."""
    deployed_at: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Chart.yaml of the chart."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The values of the chart."""
    kept_files: Mapping[str, bytes] = field(default_factory=dict)
    """The other files of the chart by their path in it."""

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The chart's files by their path in it."""
        texts = {"Chart.yaml": self.metadata, "values.yaml": self.defaults}
        # What people read is YAML, which takes long to write: only who installs the chart needs it.
        return {**{name: dump_mapping(each).encode() for name, each in texts.items()}, **self.kept_files}


def choose_record(records: Sequence[Object]) -> Object | None:
    """Return the record of the revision that is installed; None where Helm knows none.

    Raises:
        HelmRecordError: another helm command is changing the release.
    """
    newest = max(records, key=revision_of, default=None)
    if newest is None:
        return None
    status = label(newest, "status")
    if status.startswith("pending-") or status == "uninstalling":
        raise HelmRecordError(f"helm says that it is {status}: another helm command runs, or one was interrupted")
    deployed = [record for record in records if label(record, "status") == DEPLOYED]
    return max(deployed, key=revision_of, default=newest)


def describe_unfinished_upgrade(report: Report, unfinished: Objects, installed: Objects) -> Iterator[str]:
    """Say that Helm is changing the release, was cut off while it did, or has failed, and what to do."""
    newest = max(listed(unfinished), key=revision_of, default=None)
    last = max(map(revision_of, listed(installed)), default=0)
    number = 0 if newest is None else revision_of(newest)
    if newest is None or number < last:
        return
    release, namespace = report.key.release, report.key.namespace
    since = describe_time(parse_time(section(newest, "metadata").get("creationTimestamp")))
    if label(newest, "status") == FAILED:
        yield (
            f"revision {number} of the release failed at {since}, so some of its objects may be missing or "
            f"old: {_describe_failure(newest)}. Correct what Helm names, and run helm upgrade --install again"
        )
        return
    cure = f"helm uninstall {release} -n {namespace}, then install it again"
    if label(newest, "status") != PENDING[0]:
        revision = last or "REVISION"
        cure = f"helm rollback {release} {revision} -n {namespace}, or with another revision of helm history {release}"
    yield (
        f"revision {number} of the release has been {label(newest, 'status')} since {since}: a helm command "
        f"is running, or was interrupted. Until it ends, Helm refuses every upgrade. If none is running: {cure}"
    )


def _describe_failure(record: Object) -> str:
    try:
        words = hide_credentials(hide_logins(_DIFF.split(parse_release(record).description)[0].rstrip(), MASK))
        return shorten(words, _WORDS_SHOWN) or "Helm kept no reason"
    except HelmRecordError as error:
        return str(error)


def describe_earlier_image(report: Report, sets: Iterable[Object], records: Objects) -> Iterator[str]:
    """Say which earlier revision of the release has another image than the one that cannot be pulled."""
    words = {each.subject.rpartition("-")[0]: each.message for each in report.problems if each.cause == IMAGE_PULL.name}
    images = {name_of(each): _find_image(each) for each in sets}
    # The image of an init container may be the one that is meant.
    failing = {name: image for name, image in images.items() if image and image in words.get(name, "")}
    revisions = sorted(listed(records), key=revision_of, reverse=True)[:_REVISIONS_READ]
    if not failing or not revisions:
        return
    name, image = next(iter(failing.items()))
    newest, *earlier = revisions
    if _read_images(newest).get(name) != image:
        # Set by another than Helm, which the changes outside Helm name.
        return
    for record in earlier:
        before = _read_images(record).get(name)
        if before and before != image:
            number, release = (
                revision_of(record),
                f"{report.key.release} {revision_of(record)} -n {report.key.namespace}",
            )
            yield (
                f"revision {number} of the release has the image {before}, and {image} came later: helm rollback "
                f"{release} restores revision {number}, including its other values. Or run helm upgrade with an image "
                "that was pushed"
            )
            return


def _read_images(record: Object) -> dict[str, str]:
    """Return the image of each StatefulSet of a revision; none where its record cannot be read."""
    try:
        manifest = parse_release(record).texts.manifest
        found = [each.value for each in parse_objects(manifest if len(manifest) <= _LARGEST_MANIFEST else "")]
        return {name_of(each): _find_image(each) for each in found if each.get("kind") == STATEFUL_SET}
    except (HelmRecordError, YamlError, AttributeError):
        return {}


def _find_image(each: Object) -> str:
    """Return the image of a StatefulSet's training container; "" where it has none."""
    containers = items_of(section(each, "spec", "template", "spec"), "containers")
    found = (container.get("image") for container in containers if container.get("name") == TRAINING_CONTAINER)
    return str(next(found, "") or "")


def parse_release(record: Object) -> HelmRelease:
    """Parse Helm's record of a release.

    Raises:
        HelmRecordError: `record` is not a Helm release record.
    """
    try:
        document = _parse(_unpack(record))
        chart = document["chart"]
        metadata, info = _mapping(chart["metadata"]), document.get("info") or {}
        defaults, given = _mapping(chart.get("values")), _mapping(document.get("config"))
        return HelmRelease(
            name=_text(document["name"]),
            revision=int(document["version"]),
            chart_name=_text(metadata["name"]),
            values=merge_maps(defaults, given),
            given=given,
            dependencies=tuple(_text(each.get("name")) for each in metadata.get("dependencies") or ()),
            texts=read_release_texts(document),
            chart_version=_text(metadata.get("version")),
            family=_text((metadata.get("annotations") or {}).get(FAMILY_ANNOTATION)),
            status=label(record, "status"),
            description=_text(info.get("description")),
            deployed_at=_text(info.get("last_deployed")),
            metadata=metadata,
            defaults=defaults,
            kept_files=_read_files(chart),
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, zlib.error, EOFError, OSError) as error:
        raise HelmRecordError(f"{name_of(record)} is not what Helm writes: {error!r:.200}") from error


def revision_of(record: Object) -> int:
    """Return the number of the revision that a record is of; 0 where it has none."""
    text = label(record, "version")
    return int(text) if text.isascii() and text.isdigit() else 0


def _unpack(record: Object) -> bytes:
    text = str(section(record, "data").get("release") or "")
    # The API packs a Secret's data once more; a ConfigMap's it does not.
    body = base64.b64decode(text, validate=True)
    if not body.startswith(_GZIP):
        try:
            body = base64.b64decode(body, validate=True)
        except binascii.Error:
            return body
    if not body.startswith(_GZIP):
        return body
    unpacked = zlib.decompressobj(wbits=31).decompress(body, _LARGEST)
    if len(unpacked) == _LARGEST:
        raise HelmRecordError("it is too large")
    return unpacked


def _parse(text: bytes) -> Any:
    """Parse a record, unless it holds more, or is nested deeper, than what reads it can take."""
    if text.count(b",") > NODE_LIMIT:
        raise HelmRecordError(f"it holds more than {NODE_LIMIT} values")
    document = parse_json(text)
    level = [document]
    for _ in range(_DEEPEST):
        level = [below for each in level for below in _children(each)]
        if not level:
            return document
    raise HelmRecordError("it is nested too deeply")


def _children(each: Any) -> Iterable[Any]:
    return each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    if value and not isinstance(value, dict):
        raise HelmRecordError(f"expected a mapping, got {value!r:.100}")
    return value or {}


def _text(value: Any) -> str:
    return str(value or "")[:_LONGEST]


def _read_files(chart: Mapping[str, Any]) -> dict[str, bytes]:
    files = {"values.schema.json": base64.b64decode(chart["schema"])} if chart.get("schema") else {}
    for file in [*(chart.get("templates") or ()), *(chart.get("files") or ())]:
        files[_checked(file["name"])] = base64.b64decode(file.get("data") or "")
    return files


def _checked(name: str) -> str:
    path = PurePosixPath(name)
    is_odd = not name.isprintable() or any(len(part.encode()) > _LONGEST_NAME for part in path.parts)
    if path.is_absolute() or ".." in path.parts or not path.parts or is_odd:
        raise HelmRecordError(f"a file of the chart is called {name!r:.200}")
    return str(path)
