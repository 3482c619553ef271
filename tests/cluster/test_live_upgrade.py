"""`trainchart upgrade --live` is true: the releases' pods do what it said, when `helm upgrade` is really done.

The releases differ in phase and in their own values, so that one new version of their chart means another thing for
each.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from lightkube.core.client import Client
from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.core_v1 import ResourceQuota

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.releases import IDLE, Release, merge_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY, find_jobs, read_state, training_pods, wait_for_phase
from trainchart.kubernetes_yaml import dump_mapping

pytestmark = pytest.mark.cluster

Made = TypeVar("Made")
SPEC: dict[str, Any] = {
    "apiVersion": "trainchart/v1",
    "kind": "Model",
    "name": "tiny",
    "description": "A model of a fleet.",
    "image": {"repository": f"{REGISTRY_HOST}/ml/digits", "tag": "1.0.0"},
    "code": {"path": ".", "command": IDLE["command"]},
    "strategy": "single",
    "roles": {"worker": TINY},
    "volumes": {"checkpoints": {"storageClass": "shared", "size": "1Gi", "mountPath": "/checkpoints"}},
    "hyperparameters": {
        "epochs": {"type": "integer", "default": 3},
        "batchSize": {"type": "integer", "default": 32},
    },
    "run": {"controller": {"enabled": True, "image": CONTROLLED["run"]["controller"]["image"], "cpu": "10m"}},
}
NEXT: dict[str, Any] = merge_values(
    SPEC,
    {
        # In the pods; a rule of the network; in a claim, which cannot change; and of what is accepted.
        "hyperparameters": {"epochs": {"default": 4}, "batchSize": {"maximum": 100}},
        "networkPolicy": {"statusFrom": [{"podSelector": {}}]},
        "volumes": {"checkpoints": {"storageClass": "other"}},
    },
)
NO_CLAIM = {"volumes": {"checkpoints": {"uri": "gs://bucket/unused"}}}
OWN_EPOCHS = {"hyperparameters": {"epochs": 9}}
OWN_RULE = {"networkPolicy": {"statusFrom": []}}


@dataclass(frozen=True)
class Scenario:
    """A release's own values, the phase that it comes to, and what --live must say of it."""

    values: Mapping[str, Any]
    phase: str
    effect: str
    is_deferred: bool = False
    has_claim: bool = False

    def plan(self, access: Access, namespace: str, name: str, chart: Path) -> Release:
        values = self.values if self.has_claim else merge_values(NO_CLAIM, self.values)
        return Release(access, namespace, name, chart, values)


NONE, APPLIED, LATER = "no effect", "applied in place", "takes effect at the next attempt"
RESTART, REJECTED, REFUSED = "restarts training", "rejected by Kubernetes (immutable)", "values refused by the chart"
SCENARIOS = {
    "own": Scenario(merge_values(OWN_EPOCHS, OWN_RULE), "Running", NONE),
    "rule": Scenario(OWN_EPOCHS, "Running", APPLIED),
    "trains": Scenario({}, "Running", RESTART, is_deferred=True),
    "patient": Scenario({"run": {"onChange": "finish-first"}}, "Running", LATER),
    "held": Scenario({"run": {"desiredState": "suspended"}}, "Suspended", LATER),
    "waits": Scenario({"roles": {"worker": {"nodeSelector": {"kubernetes.io/os": "plan9"}}}}, "Starting", RESTART),
    "done": Scenario({"command": ["python3", "-c", "pass"]}, "Succeeded", APPLIED),
    "broken": Scenario(
        {"command": ["python3", "-c", "raise ValueError"], "run": {"maxRestarts": 0}}, "Failed", APPLIED
    ),
    "stopped": Scenario({"run": {"desiredState": "stopped"}}, "Stopped", APPLIED),
    "alone": Scenario({"run": {"controller": {"enabled": False}}}, "Running", LATER),
    "kept": Scenario({}, "Running", REJECTED, has_claim=True),
    "large": Scenario({"hyperparameters": {"batchSize": 128}}, "Running", REFUSED),
}
RESTARTED = "restarted"
"""One more release, like `trains`, that is upgraded at once all the same."""


@dataclass
class Fleet:
    """Releases of one chart, and the project that it comes from."""

    access: Access
    namespace: str
    folder: Path
    releases: dict[str, tuple[Scenario, Release]] = field(default_factory=dict)

    @property
    def chart(self) -> Path:
        return self.folder / "charts" / "tiny"

    def write_spec(self, spec: Mapping[str, Any]) -> None:
        (self.folder / "tiny.yaml").write_text(dump_mapping(dict(spec)))

    def trainchart(self, *arguments: str) -> str:
        argv = [sys.executable, "-m", "trainchart", *arguments, str(self.folder / "tiny.yaml")]
        return self.access.run([*argv, f"--output={self.chart.parent}"], timeout_seconds=300).stdout

    def install(self, copies: int) -> None:
        """Install every scenario, `copies` times, and one more; wait until each has come to its phase."""
        self.write_spec(SPEC)
        self.trainchart("generate")
        for number in range(copies):
            for name, scenario in SCENARIOS.items():
                self.add(f"{name}-{number}", scenario)
        self.add(RESTARTED, SCENARIOS["trains"])
        at_once(Release.install, (release for _, release in self.releases.values()))
        for scenario, release in self.releases.values():
            if release.name.startswith("alone"):
                release.wait_until_running(1, deadline_seconds=120)
            else:
                wait_for_phase(release, scenario.phase, deadline_seconds=180)

    def add(self, name: str, scenario: Scenario) -> None:
        self.releases[name] = scenario, scenario.plan(self.access, self.namespace, name, self.chart)

    def predict(self) -> dict[str, dict[str, Any]]:
        """Return what --live says by release, having written the next version of the chart."""
        self.write_spec(NEXT)
        context = [f"--context={self.access.context}"] if self.access.context else []
        shown = self.trainchart("upgrade", "--live", "-n", self.namespace, "--format=json", *context)
        return {each["release"]: each for each in json.loads(shown)["releases"]}

    def upgrade(self, found: Mapping[str, dict[str, Any]]) -> dict[str, bool]:
        """Run the command of each release, or helm's plain one where there is none; return which helm refused."""

        def run(release: Release) -> bool:
            told = found[release.name]
            plain = f"helm upgrade {release.name} {self.chart} -n {self.namespace} --reset-then-reuse-values"
            command = plain if release.name == RESTARTED else told["command"] or plain
            return self.access.run(shlex.split(command), check=False).returncode != 0

        releases = [release for _, release in self.releases.values()]
        return dict(zip((release.name for release in releases), at_once(run, releases), strict=True))

    def pods(self) -> dict[str, dict[str, str]]:
        """Return the uids of each release's training pods, by name."""
        client = self.access.client()
        return {name: read_uids(release, client) for name, (_, release) in self.releases.items()}

    def settle(self) -> None:
        """Wait until Kubernetes has seen every change of a set, and a controller follows each release."""
        for name, (scenario, release) in self.releases.items():
            if scenario.effect in (REJECTED, REFUSED):
                continue
            self.access.wait_for(
                lambda client, release=release, scenario=scenario: is_settled(release, scenario, client),
                f"{name} settled after its upgrade",
                namespace=self.namespace,
                deadline_seconds=180,
            )


def at_once(work: Callable[[Release], Made], releases: Iterable[Release]) -> list[Made]:
    """Return what `work` makes of every release: helm mostly waits."""
    with ThreadPoolExecutor(6) as pool:
        return list(pool.map(work, releases))


def read_uids(release: Release, client: Client) -> dict[str, str]:
    return {name: str(pod.metadata.uid) for name, pod in training_pods(release, client).items() if pod.metadata}


def is_settled(release: Release, scenario: Scenario, client: Client) -> bool:
    sets: Any = client.list(StatefulSet, namespace=release.namespace, labels=release.selector)  # type: ignore[arg-type]
    if any(each.status is None or each.status.observedGeneration != each.metadata.generation for each in sets):
        return False
    jobs = list(find_jobs(release, client).values())
    if release.name.startswith("alone"):
        return not jobs
    (job,) = jobs if len(jobs) == 1 else (None,)
    return bool(job and job.status and (job.status.ready or job.status.succeeded or job.status.failed))


def starts_again(told: Mapping[str, Any]) -> bool:
    """Return whether --live said that the release's pods are recreated, by its command or by an upgrade that fails."""
    return told["atMostLost"] is not None and not told["isLeftForNextAttempt"]


def check_fleet(fleet: Fleet, copies: int) -> None:
    fleet.install(copies)
    before = fleet.pods()
    found = fleet.predict()
    expected = {name: (scenario.effect, scenario.is_deferred) for name, (scenario, _) in fleet.releases.items()}
    assert {name: (each["effect"], each["isLeftForNextAttempt"]) for name, each in found.items()} == expected
    assert {name.partition("-")[0] for name, each in found.items() if starts_again(each)} == {"waits", "kept"}
    assert found["trains-0"]["atMostLost"]["seconds"] > 0
    assert found["waits-0"]["atMostLost"]["seconds"] == 0

    refused = fleet.upgrade(found)

    assert {name for name, is_refused in refused.items() if is_refused} == {
        name for name, each in found.items() if each["effect"] in (REJECTED, REFUSED)
    }
    # Those take their time, in which the others would show it if they did the same.
    restarting = {RESTARTED, *(name for name, each in found.items() if name != RESTARTED and starts_again(each))}
    for name in restarting:
        wait_for_phase(fleet.releases[name][1], fleet.releases[name][0].phase, attempt=2, deadline_seconds=180)
    fleet.settle()
    after = fleet.pods()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == restarting
    client = fleet.access.client()
    for name, (scenario, release) in fleet.releases.items():
        state = None if name.startswith("alone") else read_state(release, client)
        if state is not None and name not in changed:
            assert (state["phase"], state["attempt"]) == (scenario.phase, 1), name


@pytest.fixture
def fleet(admin: Access, namespace: str, tmp_path: Path) -> Fleet:
    return Fleet(admin, namespace, tmp_path)


def test_pods_do_what_was_predicted(fleet: Fleet) -> None:
    check_fleet(fleet, copies=1)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_pods_of_forty_releases_do_what_was_predicted(fleet: Fleet) -> None:
    patch = {"spec": {"hard": {"pods": "200", "requests.cpu": "64", "requests.memory": "64Gi"}}}
    fleet.access.client().patch(ResourceQuota, "tests", patch, namespace=fleet.namespace)
    check_fleet(fleet, copies=4)
    # So many at once are more than the namespace's end waits for.
    at_once(Release.uninstall, (release for _, release in fleet.releases.values()))
