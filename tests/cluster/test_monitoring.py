"""The family monitoring on a cluster that knows the kinds of the Prometheus operator, and on one that does not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.prometheus_kinds import add_prometheus_kinds
from tests.cluster.testcluster.releases import PROJECT, Release

pytestmark = pytest.mark.cluster

SPEC = PROJECT / "chart-templates" / "monitoring" / "tests" / "monitoring.yaml"


def list_objects(admin: Access, namespace: str, kinds: str) -> set[str]:
    listed = admin.kubectl("get", kinds, "-n", namespace, "-l", "app.kubernetes.io/part-of=monitoring", "-o", "name")
    return set(listed.split())


def test_monitoring_uses_the_operator_where_it_is(
    own_cluster: Cluster, admin: Access, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(SPEC, tmp_path / "models" / "monitoring.yaml")
    subprocess.run([sys.executable, "-m", "trainchart", "generate"], cwd=tmp_path, check=True, capture_output=True)
    release = Release(admin, namespace, "watch", tmp_path / "charts" / "monitoring", {})
    dashboards = {"configmap/watch-dashboard-training", "configmap/watch-dashboard-trainings"}

    notes = release.install()
    assert "does not know PodMonitor and PrometheusRule" in notes
    assert list_objects(admin, namespace, "configmaps") == {*dashboards, "configmap/watch-prometheus"}
    with add_prometheus_kinds(admin):
        release.upgrade()
        assert list_objects(admin, namespace, "configmaps") == dashboards
        monitor = json.loads(admin.kubectl("get", "podmonitor/watch-trainings", "-n", namespace, "-o", "json"))
        assert monitor["metadata"]["labels"]["release"] == "kube-prometheus-stack"
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        # The API server drops what the kind does not know.
        assert endpoint.keys() == {"filterRunning", "interval", "port", "relabelings", "metricRelabelings"}
        rules = json.loads(admin.kubectl("get", "prometheusrule/watch-trainings", "-n", namespace, "-o", "json"))
        assert [group["name"] for group in rules["spec"]["groups"]] == ["trainchart-controller-jobs", "trainchart"]
        release.uninstall()
        assert not list_objects(admin, namespace, "configmaps,podmonitors,prometheusrules")
