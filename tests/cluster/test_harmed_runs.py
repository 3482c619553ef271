"""What is done to the objects of a run: deleted, suspended by a queue, brought back by an upgrade after the end."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Service

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.releases import Release, merge_values
from tests.cluster.testcluster.runs import (
    find_jobs,
    read_replicas,
    read_state,
    training_pods,
    wait_for_job,
    wait_for_phase,
)
from tests.cluster.testcluster.traced import Traces

pytestmark = pytest.mark.cluster

APART = """
import json, os, time
path = os.environ["TRAINCHART_PROGRESS_FILE"]
for step in range(1000):
    with open(path + ".new", "w") as file:
        json.dump({"step": step}, file)
    os.rename(path + ".new", path)
    time.sleep(1)
"""
"""Makes steps, and connects to nobody: a program without its TF_CONFIG."""
TALKS = "for step in range(500): print('step', step, flush=True)\n"


@pytest.fixture(scope="module")
def traces(admin: Access, module_namespace: str) -> Traces:
    traces = Traces(admin, module_namespace)
    traces.prepare()
    return traces


def ask(release: Release, *command: str) -> dict[str, Any]:
    """Return what the CLI says about a release, as JSON."""
    place = ("-n", release.namespace, "--format", "json")
    command_line = [sys.executable, "-m", "trainchart", *command, release.name, *place]
    found: dict[str, Any] = json.loads(release.access.run(command_line).stdout)
    return found


def test_deleted_record_is_recreated_as_helm_made_it(traces: Traces, helm3: Path) -> None:
    release = traces.plan("forgotten", {}, "digits")
    release.install()
    wait_for_phase(release, "Running")
    client, name = release.access.client(), "forgotten-digits-state"
    before = client.get(ConfigMap, name, namespace=release.namespace)
    client.delete(ConfigMap, name, namespace=release.namespace)

    def is_back(client: Client) -> ConfigMap | None:
        found = client.list(ConfigMap, namespace=release.namespace, fields={"metadata.name": name})
        return next((each for each in found if (each.data or {}).get("state.json")), None)

    after = release.access.wait_for(is_back, "the record", namespace=release.namespace, deadline_seconds=90)
    assert before.metadata and after.metadata
    assert after.metadata.labels == before.metadata.labels
    assert after.metadata.annotations == before.metadata.annotations
    assert wait_for_phase(release, "Running")["attempt"] == 1
    # Both Helms go on with it, although they have not made it.
    for helm in (release.helm, helm3):
        values = merge_values(release.values, {"run": {"maxRestarts": 5 if helm == helm3 else 4}})
        dataclasses.replace(release, helm=helm, values=values).upgrade()
    traces.end(release)
    wait_for_phase(release, "Succeeded")


def test_deleted_objects_are_named_and_restored(traces: Traces) -> None:
    release = traces.plan("robbed", {"roles": {"worker": {"replicas": 1}}, "networkPolicy": {"enabled": True}})
    release.install()
    wait_for_phase(release, "Running")
    client, namespace = release.access.client(), release.namespace
    client.delete(Service, "robbed-mnist", namespace=namespace)
    client.delete(StatefulSet, "robbed-mnist-ps", namespace=namespace)
    release.access.kubectl("delete", "networkpolicy", "robbed-mnist", "-n", namespace)

    def named(client: Client) -> bool:
        state = read_state(release, client)
        gone = {each["subject"] for each in state["problems"] if each["cause"] == "object-missing"} if state else set()
        return gone >= {"Service robbed-mnist", "NetworkPolicy robbed-mnist", "robbed-mnist-ps-0"}

    release.access.wait_for(named, "all three named", namespace=namespace, deadline_seconds=90)
    release.access.kubectl("delete", "rolebinding", "robbed-mnist-controller", "-n", namespace)
    report = ask(release, "why")
    assert {each["subject"] for each in report["problems"]} >= {"Service robbed-mnist"}
    assert any("the RoleBinding robbed-mnist-controller is missing" in remark for remark in report["remarks"])

    release.upgrade()
    release.access.wait_for(
        lambda client: not (read_state(release, client) or {"problems": [1]})["problems"],
        "nothing missing",
        namespace=namespace,
        deadline_seconds=90,
    )
    traces.end(release)
    wait_for_phase(release, "Succeeded")


def test_a_training_without_its_peers_is_named(traces: Traces) -> None:
    release = traces.plan("apart", {"command": ["python3", "-c", APART]})
    release.install()

    def read(client: Client) -> bool:
        problems = (read_state(release, client) or {}).get("problems", ())
        return any(each["cause"] == "not-connected" for each in problems)

    release.access.wait_for(read, "tasks not connected", namespace=release.namespace, deadline_seconds=180)
    [problem] = ask(release, "status")["problems"]
    assert problem["subject"] == "apart-mnist-chief-0"
    assert "apart-mnist-worker-0.apart-mnist:2222, " in problem["message"]


def test_why_names_what_others_did_to_pods(traces: Traces) -> None:
    names = ("relabelled", "unscheduled", "limited", "unbound")
    releases = {name: traces.plan(name, {}, "digits") for name in names}
    for release in releases.values():
        release.install()
    for release in releases.values():
        wait_for_phase(release, "Running")
    access, place = traces.access, ("-n", traces.namespace)

    def patch(kind: str, name: str, change: Any, *options: str) -> None:
        access.kubectl("patch", kind, name, *place, *options, "--type=merge", "-p", json.dumps(change))

    access.kubectl("label", "pod", "relabelled-digits-worker-0", *place, "app.kubernetes.io/component=x", "--overwrite")
    absent = {"spec": {"template": {"spec": {"schedulerName": "absent"}}}}
    patch("statefulset", "unscheduled-digits-worker", absent)
    access.kubectl("delete", "pod", "unscheduled-digits-worker-0", *place)
    patch("pod", "limited-digits-worker-0", {"spec": {"activeDeadlineSeconds": 1}})
    other = [{"kind": "ServiceAccount", "name": "default", "namespace": traces.namespace}]
    patch("rolebinding", "unbound-digits-controller", {"subjects": other})
    access.kubectl("autoscale", "statefulset", "unbound-digits-worker", *place, "--name=cost-saver", "--max=2")

    def wait_for_words(name: str, words: str) -> None:
        access.wait_for(
            lambda _: words in json.dumps(ask(releases[name], "why")), f"{name}: {words}", namespace=traces.namespace
        )

    wait_for_words("relabelled", "because a label was changed: app.kubernetes.io/component is x instead of worker")
    wait_for_words("limited", '"cause": "pod-deadline"')
    wait_for_words("unbound", "no longer names the ServiceAccount of its run controller")
    wait_for_words("unbound", f"kubectl delete hpa cost-saver -n {traces.namespace}")
    wait_for_words("unscheduled", "waits for the scheduler absent, which has not looked at it")
    for release in releases.values():
        release.uninstall()


def test_a_controller_that_a_queue_suspends_is_told(traces: Traces) -> None:
    release = traces.plan("held", {}, "digits")
    release.install()
    wait_for_phase(release, "Running")
    (job,) = find_jobs(release, release.access.client())
    patch = ("patch", "job", job, "-n", release.namespace, "--type=merge", "-p")
    release.access.kubectl(*patch, '{"spec": {"suspend": true}}')
    report = ask(release, "why")
    assert report["controller"] == "held"
    assert any(f"kubectl edit job {job}" in remark for remark in report["remarks"])
    release.access.kubectl(*patch, '{"spec": {"suspend": false}}')
    traces.end(release)
    wait_for_phase(release, "Succeeded")


@pytest.mark.parametrize("major", [3, 4])
def test_set_restored_by_an_upgrade_after_the_end_stays_stopped(
    traces: Traces, major: int, request: pytest.FixtureRequest
) -> None:
    helm: Path = request.getfixturevalue(f"helm{major}")
    release = dataclasses.replace(traces.plan(f"over{major}", {}, "digits"), helm=helm)
    release.install()
    wait_for_phase(release, "Running")
    traces.end(release)
    wait_for_phase(release, "Succeeded")
    wait_for_job(release, "Complete")
    client, name = release.access.client(), f"over{major}-digits-worker"
    started = [line for line in traces.read(release) if line.what == "started"]
    client.delete(StatefulSet, name, namespace=release.namespace)

    release.upgrade()

    release.access.wait_for(
        lambda client: client.get(StatefulSet, name, namespace=release.namespace).status.observedGeneration,
        "the set seen",
        namespace=release.namespace,
    )
    assert read_replicas(release, client) == {name: 0}
    assert not training_pods(release, client)
    # A new run is another matter; on one volume each has its own id.
    again = f"again-{major}"
    dataclasses.replace(release, values=merge_values(release.values, {"run": {"id": again}})).upgrade()
    wait_for_phase(release, "Succeeded", runId=again)
    assert [line for line in traces.read(release) if line.what == "started"] > started


BREAKS = "\nimport time; time.sleep(1)\nraise ValueError('no data')"
"""A little later: what a program prints to its two outputs at once comes in any order."""


@pytest.mark.parametrize(("name", "end"), [("done", ""), ("broken", BREAKS)])
def test_the_last_lines_of_the_pod_that_decides_are_kept(traces: Traces, name: str, end: str) -> None:
    changes = {"command": ["python3", "-c", TALKS + end], "run": {"maxRestarts": 0}}
    release = traces.plan(name, changes, "digits")
    release.install()
    wait_for_phase(release, "Failed" if end else "Succeeded")
    wait_for_job(release, "Failed" if end else "Complete")
    client = release.access.client()
    record = client.get(ConfigMap, f"{name}-digits-state", namespace=release.namespace)
    lines = json.loads((record.data or {})["logs.json"])[f"{name}-digits-worker-0"]["lines"]
    steps = [line for line in lines if line.startswith("step ")]
    assert steps[-1] == "step 499"
    assert len(steps) > 150
    assert not end or "ValueError: no data" in lines
    shown = release.access.run([sys.executable, "-m", "trainchart", "logs", name, "-n", release.namespace]).stdout
    assert "[worker-0] step 499" in shown
    assert not client.get(Job, next(iter(find_jobs(release, client))), namespace=release.namespace).spec.suspend
