"""The alert rules of the family monitoring in a real Prometheus, which scrapes real launchers and run controllers.

Each release of this module is in one kind of trouble, and one is healthy. Only Kubernetes is a stand-in: pods are
found in a list instead of asked for, and what kube-state-metrics says about Jobs is a text from the chart's labels.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controller.fake_api import NAMESPACE, FakeApi, make_pod
from tests.support.free_ports import find_free_port
from trainchart.helm.io.choose import find_engine
from trainchart_runtime import causes
from trainchart_runtime.run.state import RunProgress, RunState, dump_state

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = ROOT / "chart-templates" / "monitoring" / "files"
CRITICAL = {"TrainchartTrainingFailed", "TrainchartControllerMissing"}
MINUTE_MS = 250
"""What a minute of the rules lasts here."""
RULES_WITH_DURATIONS = 12
"""Durations in the rules: fewer found means that some are written in a way that this test does not shorten."""

FIRING = {
    ("TrainchartTrainingFailed", "failed"),
    ("TrainchartPodsStayAfterEnd", "failed"),
    ("TrainchartTrainingFailed", "ended"),
    ("TrainchartWaitsForPods", "waiting"),
    ("TrainchartNoProgress", "stuck"),
    ("TrainchartNoProgress", "stuck-alone"),
    ("TrainchartRestartsInARow", "restarting"),
    ("TrainchartPodsStayAfterEnd", "parked"),
    ("TrainchartControllerMissing", "cut"),
}
"""(alert, release), and nothing else: above all nothing of the releases "good" and "stopped"."""

REPORT = """
import json, os, time
def report(step):
    path = os.environ["TRAINCHART_PROGRESS_FILE"]
    open(path + ".new", "w").write(json.dumps({"step": step, "examples_per_second": 9.5, "metrics": {"loss": 0.5}}))
    os.rename(path + ".new", path)
"""
TRAINS = REPORT + "for step in range(10**9):\n    report(step)\n    time.sleep(0.05)\n"
HANGS = REPORT + "report(100)\ntime.sleep(10**6)\n"
FAILS_LATER = (
    "import os, time\nwhile not os.path.exists('fail'): time.sleep(0.02)\n"
    "raise ValueError(os.environ['TRAINCHART_ATTEMPT'])\n"
)


def shorten(rules: str) -> str:
    """Return the rules with a minute of MINUTE_MS: nothing but durations differs."""
    minutes = {"m": 1, "h": 60, "d": 1440}

    def scale(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) * minutes[found[3]] * MINUTE_MS}ms"

    text, number = re.subn(r"(\bfor: |\[)(\d+)([mhd])\b", scale, rules)
    assert number == RULES_WITH_DURATIONS
    return text


def template_labels(kind: str, component: str) -> Mapping[str, str]:
    """Return the labels that the chart gives to the pods of a role, or to the controller's Job itself."""
    for manifest in find_engine("sdk").render(ROOT / "charts" / "mnist", release="exp").manifests:
        labels: Mapping[str, str] = manifest.document["metadata"].get("labels", {})
        if manifest.kind == kind.partition("/")[0] and labels["app.kubernetes.io/component"] == component:
            return manifest.document["spec"]["template"]["metadata"]["labels"] if kind.endswith("/pods") else labels
    raise AssertionError(f"no {kind} of {component}")


class Targets:
    """The pods of all releases, as Prometheus' discovery would tell them: addresses and __meta_ labels."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._labels = {
            "controller": template_labels("Job/pods", "controller"),
            "worker": template_labels("StatefulSet/pods", "worker"),
        }

    def add(self, release: str, component: str, port: int, port_name: str = "status", phase: str = "Running") -> None:
        labels = {
            "__meta_kubernetes_namespace": NAMESPACE,
            "__meta_kubernetes_pod_name": f"{release}-mnist-{component}-0",
            "__meta_kubernetes_pod_phase": phase,
            "__meta_kubernetes_pod_container_port_name": port_name,
        }
        for name, value in {**self._labels[component], "app.kubernetes.io/instance": release}.items():
            name = re.sub("[^a-zA-Z0-9]", "_", name)
            labels[f"__meta_kubernetes_pod_label_{name}"] = value
            labels[f"__meta_kubernetes_pod_labelpresent_{name}"] = "true"
        self.found.append({"targets": [f"127.0.0.1:{port}"], "labels": labels})


def job_metrics() -> str:
    """Return what kube-state-metrics says about the Jobs: one has failed, one was to stop, one has succeeded."""
    common = template_labels("Job", "controller")
    ends = {"ended": ("failed", "running"), "stopped": ("failed", "stopped"), "done": ("complete", "running")}
    lines = []
    for release, (condition, desired) in ends.items():
        labels = {**common, "app.kubernetes.io/instance": release, "trainchart/desired-state": desired}
        job = f'namespace="{NAMESPACE}",job_name="{release}-mnist-controller-1a2b3c4d"'
        shown = "".join(f',label_{re.sub("[^a-zA-Z0-9]", "_", name)}="{value}"' for name, value in labels.items())
        lines += [f"kube_job_labels{{{job}{shown}}} 1", f'kube_job_{condition}{{{job},condition="true"}} 1']
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def kube_state_metrics() -> Iterator[str]:
    """The address of a stand-in for kube-state-metrics: a text that never changes."""
    body = job_metrics().encode()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def make_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a function that makes the objects of a release whose pods all run."""
    with contextlib.ExitStack() as stack:

        def make() -> FakeApi:
            api = FakeApi(tmp_path_factory.mktemp("service-account"))
            api.replicas = {"exp1-mnist-chief": 1, "exp1-mnist-worker": 2, "exp1-mnist-ps": 1}
            for task in ("chief-0", "worker-0", "worker-1", "ps-0"):
                api.put_pod(make_pod(task))
            return stack.enter_context(api.serve())

        yield make


class Scene:
    """Starts the processes of the releases, and notes where Prometheus finds them."""

    def __init__(self, processes: Any) -> None:
        self.targets = Targets()
        self._processes = processes
        self._ports: dict[str, int] = {}

    def control(self, release: str, api: FakeApi) -> Any:
        port = find_free_port()
        self.targets.add(release, "controller", port)
        return self._processes.start_controller(release, port, api)

    def launch(self, release: str, program: str, max_restarts: int = 0) -> Any:
        """Start the launcher of a release; again in the same pod, where it was started before."""
        if release not in self._ports:
            port = self._ports[release] = find_free_port()
            self.targets.add(release, "worker", port)
            # The same pod's other port, which is no place to ask.
            self.targets.add(release, "worker", find_free_port(), port_name="tensorflow")
        return self._processes.start_launcher(release, self._ports[release], program, max_restarts)


def read_routing(folder: Path, inbox: Any) -> str:
    """Return Alertmanager's configuration in docs/monitoring.md, for the namespace of the tests and their inbox."""
    guide = (ROOT / "docs" / "monitoring.md").read_text()
    (shown,) = re.findall(r"```yaml\n# alertmanager.yaml\n(.*?)```", guide, re.DOTALL)
    address = folder / "slack"
    address.write_text(f"{inbox.url}/slack")
    for before, after in (
        ('namespace="vision"', f'namespace="{NAMESPACE}"'),
        ("/etc/alertmanager/slack-vision", str(address)),
        ("http://on-call.example.com/alerts", f"{inbox.url}/on-call"),
        ("group_by:", "group_wait: 100ms\n  group_by:"),
    ):
        assert shown.count(before) == 1
        shown = shown.replace(before, after)
    return shown


def write_configuration(folder: Path, targets: Targets, kube_state_metrics: str, alertmanager: str) -> str:
    """Return the documented configuration with the rules, in short time and with lists in place of discovery."""
    configuration: dict[str, Any] = yaml.safe_load((FILES / "scrape.yaml").read_text())
    (trainings,) = configuration["scrape_configs"]
    del trainings["kubernetes_sd_configs"]
    trainings["static_configs"] = targets.found
    rules = folder / "rules.yaml"
    rules.write_text(shorten((FILES / "rules.yaml").read_text()))
    jobs = {"job_name": "jobs", "honor_labels": True, "static_configs": [{"targets": [kube_state_metrics]}]}
    return json.dumps(
        {
            "global": {"scrape_interval": "300ms", "scrape_timeout": "300ms", "evaluation_interval": "300ms"},
            "rule_files": [str(rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
            "scrape_configs": [trainings, jobs],
        }
    )


@pytest.fixture(scope="module")
def watched(processes, start_prometheus, start_alertmanager, inbox, make_api, kube_state_metrics, tmp_path_factory):
    """A Prometheus that has seen all the trouble there is."""
    scene = Scene(processes)
    scene.control("good", make_api())
    scene.launch("good", TRAINS)

    failing = make_api()
    failing.removes_pods = False
    scene.control("failed", failing)

    waiting = make_api()
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    waiting.put_pod({**make_pod("worker-1"), "status": {"phase": "Pending", "conditions": [unscheduled]}})
    scene.control("waiting", waiting)

    stuck = make_api()
    record = RunState("run-1", "Running", since=1.0, updated=1.0, active_since=1.0)
    stuck.put_state(dump_state(record._replace(progress=RunProgress(at=1.0, attempt=1, step=100))))
    scene.control("stuck", stuck)
    scene.launch("stuck-alone", HANGS)

    cut = scene.control("cut", make_api())
    scene.launch("cut", TRAINS)

    assert scene.launch("parked", "pass").wait(timeout=60) == 0
    scene.launch("parked", "pass")

    scene.launch("restarting", FAILS_LATER, max_restarts=1000)
    # A controller's pod whose run is over.
    scene.targets.add("done", "controller", find_free_port(), phase="Succeeded")
    folder = tmp_path_factory.mktemp("rules")
    alertmanager = start_alertmanager(read_routing(folder, inbox))
    prometheus = start_prometheus(write_configuration(folder, scene.targets, kube_state_metrics, alertmanager))

    failing.wait_for(lambda: failing.state().get("phase") == "Running", "a run")
    failing.put_pod(make_pod("worker-1", causes.MODULE_MISSING, error="no module"))
    prometheus.wait_for_metric('trainchart_failures_total{release="restarting", reason="own"} == 0')
    prometheus.wait_for_metric('trainchart_run_phase{release="cut"}')
    cut.kill()
    # Last: its failures follow each other ever more slowly, and no longer count as a row some time later.
    (processes.folder_of("restarting") / "fail").touch()
    prometheus.wait_until(
        lambda: prometheus.look() >= FIRING, lambda: (FIRING - prometheus.look(), prometheus.ask("alerts"))
    )
    return prometheus


def test_every_kind_of_trouble_is_told_and_nothing_else(watched) -> None:
    assert set(watched.fired) == FIRING


@pytest.mark.parametrize(("alert", "release"), sorted(FIRING))
def test_an_alert_names_release_and_next_command(watched, alert: str, release: str) -> None:
    told = watched.fired[alert, release]
    assert release in told["summary"] and NAMESPACE in told["summary"]
    assert f"trainchart why {release} -n {NAMESPACE}" in told["description"]


@pytest.mark.parametrize(
    ("alert", "release", "words"),
    [
        ("TrainchartTrainingFailed", "failed", "Cause: module-missing."),
        ("TrainchartWaitsForPods", "waiting", "exp1-mnist-worker-1: unschedulable."),
        ("TrainchartRestartsInARow", "restarting", "Cause: program-error."),
    ],
)
def test_an_alert_names_the_cause(watched, alert: str, release: str, words: str) -> None:
    assert words in watched.fired[alert, release]["description"]


def test_alertmanager_tells_those_that_the_guide_names(watched, inbox) -> None:
    def list_told(path: str) -> set[tuple[str, str]]:
        found = [message for to, message in list(inbox.messages) if to == path]
        if path == "/on-call":
            return {(each["commonLabels"]["alertname"], each["commonLabels"]["release"]) for each in found}
        words = [re.search(r"trainchart (?:why|status) (\S+) -n", each["attachments"][0]["text"]) for each in found]
        return {("", word[1]) for word in words if word}

    critical = {(alert, release) for alert, release in FIRING if alert in CRITICAL}
    watched.wait_until(lambda: list_told("/on-call") >= critical, lambda: inbox.messages)
    assert list_told("/on-call") == critical
    releases = {("", release) for _, release in FIRING}
    watched.wait_until(lambda: list_told("/slack") >= releases, lambda: inbox.messages)
    titles = {message["attachments"][0]["title"] for to, message in inbox.messages if to == "/slack"}
    assert f"Training run failed in {NAMESPACE} has failed." in titles


def test_exactly_the_pods_of_unfinished_trainings_are_scraped(watched) -> None:
    active = sorted(
        (target["labels"]["release"], target["labels"]["component"])
        for target in watched.ask("targets")["activeTargets"]
        if target["scrapePool"] == "trainchart"
    )
    controlled = {(release, "controller") for release in ("good", "failed", "waiting", "stuck", "cut")}
    launched = {(release, "worker") for release in ("good", "stuck-alone", "restarting", "parked", "cut")}
    assert active == sorted(controlled | launched)


def test_the_rules_are_well_formed(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", FILES / "rules.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_come_and_go_in_time(promtool: str) -> None:
    done = subprocess.run([promtool, "test", "rules", HERE / "timing.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def list_queries() -> list[Any]:
    """Return the queries of all dashboards, each with the name of its panel."""
    found = []
    for name in ("trainings", "training"):
        for panel in json.loads((FILES / f"{name}.json").read_text())["panels"]:
            query = panel["targets"][0]["expr"].replace("$namespace", NAMESPACE)
            found.append(pytest.param(query, id=f"{name}: {panel['title']}"))
    return found


@pytest.mark.parametrize("query", list_queries())
def test_a_panel_of_a_dashboard_shows_something(watched, query: str) -> None:
    assert "$" not in query.replace("$release", "")
    shown = [
        release
        for release in ("good", "stuck-alone", "restarting", "waiting")
        if (watched.ask("query", query=query.replace("$release", release)) or {}).get("result")
    ]
    assert shown, "no release has numbers for it"


def test_the_variables_of_the_dashboards_have_choices(watched) -> None:
    for name in ("trainings", "training"):
        for variable in json.loads((FILES / f"{name}.json").read_text())["templating"]["list"][1:]:
            metric, label = re.fullmatch(r"label_values\((\w+)(?:{.*})?, (\w+)\)", variable["definition"]).groups()
            assert watched.ask("query", query=f"count by ({label}) ({metric})")["result"]
