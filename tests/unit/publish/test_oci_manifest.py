"""The manifest of a chart: only what every reader understands alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainchart.errors import PublishError
from trainchart.publish.oci_manifest import CHART_TYPE, CONFIG_TYPE, PROVENANCE_TYPE, parse_manifest

LEGACY = "application/tar+gzip"


def manifest(*layers: tuple[str, str], **further: Any) -> bytes:
    listed = [{"mediaType": kind, "digest": digest, "size": 7} for kind, digest in layers]
    config = {"mediaType": CONFIG_TYPE, "digest": "c", "size": 2}
    return json.dumps({"config": config, "layers": listed, **further}).encode()


def test_a_manifest_with_one_chart() -> None:
    found = parse_manifest(manifest((CHART_TYPE, "a"), (PROVENANCE_TYPE, "p")), "r")
    assert (found.config, found.chart, found.provenance) == ("c", "a", "p")
    assert found.sizes == {"c": 2, "a": 7, "p": 7}


IMAGE = "application/vnd.oci.image.manifest.v1+json"
AMBIGUOUS = {
    "a chart as subject": manifest((CHART_TYPE, "a"), subject={"mediaType": CHART_TYPE, "digest": "evil"}),
    "another manifest as subject": manifest((CHART_TYPE, "a"), subject={"mediaType": IMAGE, "digest": "evil"}),
    "an index too": manifest((CHART_TYPE, "a"), manifests=[{"mediaType": IMAGE, "digest": "evil"}]),
    "an index too, in capitals": manifest((CHART_TYPE, "a"), Manifests=[{"mediaType": IMAGE, "digest": "evil"}]),
    "a list of blobs": manifest((CHART_TYPE, "a"), blobs=[{"mediaType": IMAGE, "digest": "evil"}]),
    "another manifest as layer": manifest((CHART_TYPE, "a"), (IMAGE, "evil")),
    "an unknown layer": manifest((CHART_TYPE, "a"), ("text/plain", "t")),
    "two": manifest((CHART_TYPE, "evil"), (CHART_TYPE, "honest")),
    "an old one first": manifest((LEGACY, "evil"), (CHART_TYPE, "honest")),
    "an old one last": manifest((CHART_TYPE, "honest"), (LEGACY, "evil")),
    "two signatures": manifest((CHART_TYPE, "a"), (PROVENANCE_TYPE, "p"), (PROVENANCE_TYPE, "q")),
    "a capital": manifest((CHART_TYPE, "a"), Layers=[]),
    "a capital below": manifest((CHART_TYPE, "a"), layers=[{"mediaType": CHART_TYPE, "digest": "a", "Digest": "b"}]),
    "a number that is none": manifest((CHART_TYPE, "a"), annotations={"x": float("nan")}),
    "a mark of the byte order": b"\xef\xbb\xbf" + manifest((CHART_TYPE, "a")),
    "another encoding": manifest((CHART_TYPE, "a")).decode().encode("utf-16"),
    "a key twice": manifest((CHART_TYPE, "a"))[:-1] + b', "layers": [{"mediaType": "%s"}]}' % CHART_TYPE.encode(),
}


@pytest.mark.parametrize("text", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_readers_understand_differently_is_refused(text: bytes) -> None:
    with pytest.raises(PublishError, match="is not a Helm chart"):
        parse_manifest(text, "registry/charts/a:1.0.0")
