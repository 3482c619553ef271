"""Charts of the family monitoring: the same scraping and rules with the Prometheus operator and without it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.family_charts import make_family_chart, render_family_chart

MONITOR = "PodMonitor/watch-trainings"
RULE = "PrometheusRule/watch-trainings"
FILES = "ConfigMap/watch-prometheus"
DASHBOARDS = {"ConfigMap/watch-dashboard-training", "ConfigMap/watch-dashboard-trainings"}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_family_chart("monitoring", tmp_path_factory.mktemp("project"))


def render(chart: Path, **values: Any) -> dict[str, Any]:
    rendering = render_family_chart(chart, "watch", "monitoring", values)
    return {f"{each.kind}/{each.document['metadata']['name']}": each.document for each in rendering.manifests}


def snake(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a relabeling of a PodMonitor as Prometheus' own configuration has it, without what is the default."""
    names = {"sourceLabels": "source_labels", "targetLabel": "target_label"}
    found = {names.get(key, key): value for key, value in rule.items()}
    return {key: value for key, value in found.items() if (key, value) != ("action", "replace")}


def test_the_operator_decides_what_is_made(chart: Path) -> None:
    assert render(chart).keys() == render(chart, prometheusOperator="never").keys() == {FILES, *DASHBOARDS}
    assert render(chart, prometheusOperator="always").keys() == {MONITOR, RULE, *DASHBOARDS}
    assert render(chart, prometheusOperator="always", alerts=False, dashboards=False).keys() == {MONITOR}


def test_both_ways_scrape_the_same_pods_with_the_same_labels(chart: Path) -> None:
    (plain,) = yaml.safe_load(render(chart)[FILES]["data"]["scrape.yaml"])["scrape_configs"]
    monitor = render(chart, prometheusOperator="always")[MONITOR]["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    job, *labels = [snake(rule) for rule in endpoint["relabelings"]]
    assert job == {"target_label": "job", "replacement": plain["job_name"]}
    # By itself the operator keeps pods that are chosen and run, and sets the labels namespace and pod.
    keep, drop, *others = plain["relabel_configs"]
    assert keep["regex"] == f"true;{endpoint['port']}"
    assert drop["action"] == "drop" and endpoint["filterRunning"]
    assert [each for each in others if each["target_label"] not in ("namespace", "pod")] == labels
    assert [snake(rule) for rule in endpoint["metricRelabelings"]] == [
        {"action": each.get("action"), "regex": each["regex"]} for each in plain["metric_relabel_configs"]
    ]
    assert plain["scrape_interval"] == endpoint["interval"] == "15s"


def test_chosen_namespaces_alone_are_scraped(chart: Path) -> None:
    (plain,) = yaml.safe_load(render(chart, namespaces=["vision"])[FILES]["data"]["scrape.yaml"])["scrape_configs"]
    assert plain["kubernetes_sd_configs"] == [{"role": "pod", "namespaces": {"names": ["vision"]}}]
    monitor = render(chart, prometheusOperator="always", namespaces=["vision"])[MONITOR]
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["vision"]}
    assert render(chart, prometheusOperator="always")[MONITOR]["spec"]["namespaceSelector"] == {"any": True}


def test_prometheus_takes_the_files(chart: Path, promtool: str, tmp_path: Path) -> None:
    files = render(chart)[FILES]["data"]
    (tmp_path / "rules.yaml").write_text(files["rules.yaml"])
    configuration = {**yaml.safe_load(files["scrape.yaml"]), "rule_files": ["rules.yaml"]}
    # Debian's build cannot ask Kubernetes, and is too old for scrape_config_files.
    assert configuration["scrape_configs"][0].pop("kubernetes_sd_configs") == [{"role": "pod"}]
    (tmp_path / "prometheus.yaml").write_text(json.dumps(configuration))
    done = subprocess.run([promtool, "check", "config", tmp_path / "prometheus.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert yaml.safe_load(files["rules.yaml"]) == render(chart, prometheusOperator="always")[RULE]["spec"]


def test_dashboards_are_json_that_grafana_finds(chart: Path) -> None:
    found = render(chart, dashboardLabels={"grafana": "yes"})
    for name in DASHBOARDS:
        assert found[name]["metadata"]["labels"]["grafana"] == "yes"
        ((file, text),) = found[name]["data"].items()
        assert file.endswith(".json")
        assert json.loads(text)["uid"].startswith("trainchart-")
