"""Small charts to publish, as uploads."""

from __future__ import annotations

from trainchart.archive.lock import Lock, Source
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.publish.repository import Upload, prepare_upload

CREATED = "2026-11-21T12:00:00Z"


def chart_files(version: str, note: str = "", name: str = "demo") -> dict[str, bytes]:
    # Helm takes the numbers for texts here, but not in an index or a registry's config.
    chart = (
        f"apiVersion: v2\nname: {name}\nversion: {version}\ndescription: A demonstration.\nhome: https://a.example\n"
        "appVersion: 1.10\nkeywords: [2026]\nmaintainers: [{name: Ada, team: 1}]\nannotations:\n  reviewed: true\n"
    )
    return {
        "Chart.yaml": chart.encode(),
        "values.yaml": f"note: '{note}'\n".encode(),
        "templates/map.yaml": (
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
            b"data: {note: {{ .Values.note | quote }}}\n"
        ),
    }


def upload(
    version: str, note: str = "", *, name: str = "demo", provenance: bytes | None = None, is_generated: bool = False
) -> Upload:
    """Return the upload of a chart; where it `is_generated`, its annotations say where it comes from."""
    source = Source("models/demo.yaml", "0" * 64)
    lock = Lock("0.1.0", source, source, (), {}) if is_generated else None
    images = (f"registry.example.com/ml/demo:1@sha256:{'1' * 64}",) if is_generated else ()
    archive = pack_chart(
        chart_files(version, note, name), BuildInfo(created_epoch=1767225600, lock=lock, images=images)
    )
    return prepare_upload(archive.data, created=CREATED, provenance=provenance)
