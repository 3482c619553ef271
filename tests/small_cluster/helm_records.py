"""What Helm keeps of a release, for tests without a cluster: made of a chart as `helm install` would make it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides
from trainchart.kubernetes_yaml import dump_mapping, parse_mapping


def make_helm_record(
    chart: Path, release: str, namespace: str, given: Mapping[str, Any], *, status: str = "deployed", revision: int = 1
) -> dict[str, Any]:
    """Return the Secret of a revision, with the objects that the chart renders to with the values `given`."""
    files = (("given", dump_mapping(dict(given))),) if given else ()
    rendering = find_engine().render(
        chart, release=release, namespace=namespace, overrides=ValueOverrides(files=files), is_upgrade=False
    )
    values = parse_mapping((chart / "values.yaml").read_text())
    document = {
        "name": release,
        "version": revision,
        "config": dict(given),
        "manifest": "\n---\n".join(dump_mapping(dict(each.document)) for each in rendering.manifests),
        "chart": {"metadata": parse_mapping((chart / "Chart.yaml").read_text()), "values": values, "templates": []},
    }
    body = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(document).encode())))
    labels = {"version": str(revision), "status": status, "owner": "helm", "name": release}
    metadata = {"name": f"sh.helm.release.v1.{release}.v{revision}", "namespace": namespace, "labels": labels}
    return {"metadata": metadata, "data": {"release": body.decode()}}


def make_cluster_objects(chart: Path, release: str, namespace: str, given: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the StatefulSets and the record's ConfigMap that installing the chart brings, by plural."""
    files = (("given", dump_mapping(dict(given))),) if given else ()
    rendering = find_engine().render(chart, release=release, namespace=namespace, overrides=ValueOverrides(files=files))
    found: dict[str, list[Any]] = {"statefulsets": [], "configmaps": []}
    for manifest in rendering.manifests:
        document = json.loads(json.dumps(manifest.document))
        document["metadata"].setdefault("namespace", namespace)
        if manifest.kind == "StatefulSet":
            document["spec"].setdefault("replicas", 1)
            found["statefulsets"].append(document)
        elif manifest.kind == "ConfigMap" and manifest.name.endswith("-state"):
            found["configmaps"].append(document)
    return found
