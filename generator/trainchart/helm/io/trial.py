"""A chart that the helm program installs on a cluster to test it, and removes again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainchart.errors import ToolError
from trainchart.helm.io.upgrade import HelmUpgrade, run_on_cluster, run_upgrade, runs_helm_3
from trainchart.helm.kept_changes import dump_objects
from trainchart.helm.manifests import split_by_source
from trainchart.kubernetes_yaml import parse_objects
from trainchart_runtime.contract import RESOURCE_POLICY_ANNOTATION

_WAIT = ("--wait", "--timeout=240s")


@dataclass(frozen=True)
class Trial:
    """A release of a chart, in a namespace of its own. All methods raise ToolError with helm's output."""

    release: str
    namespace: str
    context: str
    chart: Path

    def install(self) -> None:
        """Install the chart with its own values, and wait until all that it makes is ready."""
        self._run("install", options=(str(self.chart), *_WAIT))

    def upgrade(self, values: str) -> None:
        """Upgrade to other values, in a file of the chart, and wait until all is ready again."""
        given = (str(self.chart), "--reset-values", f"--values={self.chart / values}")
        self._run("upgrade", options=(*given, *_WAIT))

    def test(self) -> None:
        """Run the tests of the chart."""
        self._run("test", options=("--timeout=240s",))

    def uninstall(self, files: Mapping[str, bytes]) -> None:
        """Remove all that the chart has made, including what Helm would keep."""
        try:
            manifest = self._run("get", "manifest")
        except ToolError as error:
            if "not found" in error.message:
                return  # Helm came no further than to say that it does not install the chart.
            raise
        try:
            self._release_kept(manifest, files)
        finally:  # Helm refuses to upgrade what was ended while it was installed.
            self._run("uninstall", options=_WAIT)

    def _release_kept(self, manifest: str, files: Mapping[str, bytes]) -> None:
        """Upgrade to the same objects without the annotation with which Helm keeps them, where there are such."""
        stored = split_by_source(manifest)
        objects = tuple((source, each.value) for source, text in stored.items() for each in parse_objects(text))
        if any(RESOURCE_POLICY_ANNOTATION in _annotations(each) for _, each in objects):
            is_helm_3 = runs_helm_3()
            removable = tuple((source, _without_policy(each)) for source, each in objects)
            texts = dump_objects(removable, marks_sources=not is_helm_3)
            upgrade = HelmUpgrade(self.release, self.namespace, self.context, files, objects=texts)
            run_upgrade(upgrade, is_helm_3=is_helm_3)

    def _run(self, *command: str, options: tuple[str, ...] = ()) -> str:
        context = [f"--kube-context={self.context}"] if self.context else []
        return run_on_cluster([*command, self.release, *options, f"--namespace={self.namespace}", *context], os.environ)


def _annotations(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return (document.get("metadata") or {}).get("annotations") or {}


def _without_policy(document: Mapping[str, Any]) -> Mapping[str, Any]:
    annotations = {key: text for key, text in _annotations(document).items() if key != RESOURCE_POLICY_ANNOTATION}
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}
