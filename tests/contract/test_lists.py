"""What counts as a list of objects: the manifests that we look at are those that kubectl, and so Helm, would send."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cluster.testcluster.programs import find_program
from trainchart.kubernetes_yaml import parse_objects

ITEM = "{apiVersion: v1, kind: Pod, metadata: {name: b}}"
OBJECT = "apiVersion: example.com/v1\nkind: %s\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OBJECT % "Thing", ["Thing a"]),
        (OBJECT % "Thing" + f"items: [{ITEM}]\n", ["Pod b"]),
        (OBJECT % "Thing" + "items: []\n", []),
        (OBJECT % "Thing" + "items: [{metadata: {name: b}}]\n", ["Thing b"]),
        (OBJECT % "ThingList" + "items: [{metadata: {name: b}}]\n", ["Thing b"]),
        (OBJECT % "Thing" + f"Items: [{ITEM}]\n", ["Thing a"]),
        (OBJECT % "Thing" + f"spec: {{items: [{ITEM}]}}\n", ["Thing a"]),
        (f"apiVersion: v1\nkind: List\nitems: [{ITEM}]\n", ["Pod b"]),
    ],
)
def test_objects_are_those_that_kubectl_finds(tmp_path: Path, text: str, names: list[str]) -> None:
    ours = [each.value for each in parse_objects(text)]
    assert [f"{each['kind']} {each['metadata']['name']}" for each in ours] == names
    (tmp_path / "objects.yaml").write_text(text)
    kubectl = [find_program("kubernetes"), "kubectl", "label", "--local", "-f", tmp_path / "objects.yaml"]
    done = subprocess.run([*kubectl, "x=y", "-o", "json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    decoder, theirs, rest = json.JSONDecoder(), [], done.stdout.strip()
    while rest:
        found, end = decoder.raw_decode(rest)
        theirs += found["items"] if found["kind"] == "List" else [found]
        rest = rest[end:].strip()
    assert [f"{each['kind']} {each['metadata']['name']}" for each in theirs] == names
