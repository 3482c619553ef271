"""What the run controller's token can do: what its Role says, and less with docs/security/run-controllers.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.releases import PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED, wait_for_phase

pytestmark = pytest.mark.cluster

POLICY = PROJECT / "docs" / "security" / "run-controllers.yaml"
PATCH = """
import json, os, sys
sys.path.insert(0, "/opt/trainchart/controller.pyz")
from trainchart_controller.api import Api, ApiError
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
try:
    Api(os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]), folder).request(
        "PATCH", sys.argv[1], json.loads(sys.argv[2])
    )
except ApiError as error:
    print(error)
"""
SLEEP = {"command": ["sleep", "86400"], "roles": {"evaluator": {"replicas": 0}}}


@pytest.fixture(scope="module")
def release(admin: Access, module_namespace: str) -> Iterator[Release]:
    values = merge_values(merge_values(mnist_values(), CONTROLLED), SLEEP)
    release = Release(admin, module_namespace, "exp1", PROJECT / "charts" / "mnist", values)
    admin.kubectl("apply", "-f", str(POLICY))
    admin.kubectl("label", "namespace", module_namespace, "trainchart=bounded")
    release.install()
    wait_for_phase(release, "Running", deadline_seconds=120)
    yield release
    admin.kubectl("delete", "-f", str(POLICY), "--wait=false")


def attempt(release: Release, *arguments: str, text: str | None = None) -> str:
    """Do something as the run controller; return why it was refused, or nothing."""
    account = f"system:serviceaccount:{release.namespace}:exp1-mnist-controller"
    try:
        release.access.kubectl(*arguments, "-n", release.namespace, f"--as={account}", text=text)
    except CommandFailed as refusal:
        return str(refusal)
    return ""


def patch(release: Release, path: str, body: Any) -> str:
    """Patch an object with the controller's own token and client, since kubectl reads it first; as `attempt`."""
    label = "app.kubernetes.io/component=controller"
    pod = release.access.kubectl("get", "pods", "-n", release.namespace, "-l", label, "-o", "name").strip()
    argv = ("exec", pod, "-n", release.namespace, "--", "python3", "-c", PATCH, path, json.dumps(body))
    return release.access.kubectl(*argv).strip()


def event(release: Release, kind: str, name: str) -> str:
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "forged.", "namespace": release.namespace},
        "involvedObject": {"kind": kind, "name": name, "namespace": release.namespace, "apiVersion": "v1"},
        "reason": "RunSucceeded",
        "message": "all is well",
        "type": "Normal",
    }
    return json.dumps(body)


def test_what_the_role_does_not_give_is_forbidden(release: Release) -> None:
    for arguments in (
        ("get", "secrets"),
        ("get", "configmaps"),
        ("get", "pod", "exp1-mnist-chief-0"),
        ("logs", "another"),
        ("delete", "pod", "another"),
        ("patch", "statefulset", "exp1-mnist-chief", "--type=merge", "-p", '{"metadata": {"labels": {"a": "b"}}}'),
        ("patch", "statefulset", "another", "--subresource=scale", "--type=merge", "-p", '{"spec": {"replicas": 1}}'),
        ("delete", "configmap", "exp1-mnist-state"),
        ("create", "token", "exp1-mnist-controller"),
    ):
        assert "forbidden" in attempt(release, *arguments).lower(), arguments
    exec_ = ("exec", "exp1-mnist-chief-0", "--", "true")
    assert attempt(release, *exec_)


def test_the_admission_policy_bounds_what_the_role_gives(release: Release) -> None:
    create = ("create", "-f", "-")
    for kind, name in (("Pod", "exp1-mnist-chief-0"), ("Node", "node1"), ("ConfigMap", "exp2-mnist-state")):
        assert "about its own record only" in attempt(release, *create, text=event(release, kind, name)), name
    assert not attempt(release, *create, text=event(release, "ConfigMap", "exp1-mnist-state"))
    scale = f"/apis/apps/v1/namespaces/{release.namespace}/statefulsets/exp1-mnist-worker/scale"
    assert "at most 100" in patch(release, scale, {"spec": {"replicas": 5000}})
    assert not patch(release, scale, {"spec": {"replicas": 0}}), "a number of 0 is left out of the request"
    assert not patch(release, scale, {"spec": {"replicas": 2}})
    (job,) = release.access.kubectl("get", "jobs", "-n", release.namespace, "-o", "name").split()
    path = f"/apis/batch/v1/namespaces/{release.namespace}/jobs/{job.rpartition('/')[2]}"
    changes: list[dict[str, Any]] = [{"spec": {"parallelism": 9}}, {"spec": {"suspend": True}}]
    for change in (*changes, {"metadata": {"finalizers": ["example.com/a"]}}):
        assert "nothing but the backoffLimit" in patch(release, path, change), change
    assert not patch(release, path, {"spec": {"backoffLimit": 999}})


def test_a_bounded_controller_still_ends_its_run(release: Release) -> None:
    stop = {"run": merge_values(CONTROLLED["run"], {"desiredState": "stopped"})}
    changed = Release(
        release.access, release.namespace, release.name, release.chart, merge_values(release.values, stop)
    )
    changed.upgrade()
    wait_for_phase(changed, "Stopped", deadline_seconds=120)
    events = release.access.kubectl(
        "get", "events", "-n", release.namespace, "-o", "jsonpath={.items[*].reason}"
    ).split()
    assert "RunStopped" in events or "RunStopping" in events
