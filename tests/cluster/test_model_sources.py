"""Model servers: an export from a web server, verified by its hash, and the share of a canary of 10 %.

Ten servers that load TensorFlow on one machine take minutes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from lightkube.core.client import Client

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.model_servers import CLAIM, install_server, train_export, wait_for_rollout
from tests.cluster.testcluster.pods import dump_objects, plan_pod
from tests.cluster.testcluster.releases import TRAINING_GROUP, Release, merge_values
from tests.cluster.testcluster.serving_client import ServingClient, start_client

pytestmark = [pytest.mark.cluster, pytest.mark.long]

FILES = "web-files"
PORT = 8000
EGRESS = [{"to": [{"podSelector": {"matchLabels": {"app": FILES}}}], "ports": [{"port": PORT}]}]
SMALL = {"requests": {"cpu": "50m", "memory": "320Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
WRONG = "sha256:" + "0" * 64
CANARY_REQUESTS = 6000
ROLLOUT_SECONDS = 400


@pytest.fixture(scope="module")
def content(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_export(admin, module_namespace, tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="module")
def server(admin: Access, module_namespace: str, content: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One small pod that serves version 40 from the claim."""
    folder = tmp_path_factory.mktemp("project")
    return install_server(admin, module_namespace, folder, content, replicas=1, resources=SMALL)


@pytest.fixture(scope="module")
def client(admin: Access, server: Release) -> ServingClient:
    """A client that never stops to ask."""
    started = start_client(admin, server.namespace, "client", server.name, "digits", rate=100)
    started.wait_for_more(20)
    return started


@pytest.fixture(scope="module")
def address(admin: Access, server: Release) -> str:
    """The export on a web server in the cluster."""
    command = f"cd /volume && exec python3 -m http.server {PORT} --bind 0.0.0.0"
    volume: dict[str, Any] = {"claim": CLAIM, "is_read_only": True, "fs_group": TRAINING_GROUP}
    pod = plan_pod(FILES, command, **volume, labels={"app": FILES}, ports={"http": PORT})
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": FILES},
        "spec": {"selector": {"app": FILES}, "ports": [{"port": PORT}]},
    }
    admin.kubectl("apply", "-n", server.namespace, "-f", "-", text=dump_objects(pod, service))
    admin.kubectl("wait", f"pod/{FILES}", "-n", server.namespace, "--for=condition=Ready", "--timeout=60s")
    return f"http://{FILES}.{server.namespace}.svc:{PORT}/saved_model"


def change(server: Release, **values: Any) -> Release:
    release = dataclasses.replace(server, values=merge_values(server.values, values))
    release.upgrade()
    return release


def read_refusal(release: Release) -> str:
    """Return what the container that takes the export said when it failed."""

    def read(client: Client) -> str | None:
        for pod in release.pods(client, "model-server").values():
            for status in (pod.status.initContainerStatuses or []) if pod.status else []:
                for state in (status.state, status.lastState):
                    if state and state.terminated and state.terminated.exitCode:
                        return state.terminated.message or ""
        return None

    return release.access.wait_for(read, "a refused export", namespace=release.namespace)


def test_an_export_from_a_web_server_is_verified_and_serves(
    admin: Access, server: Release, client: ServingClient, content: str, address: str
) -> None:
    """A wrong hash is refused, and what served goes on without a failed request."""
    model = {"claim": "", "path": address, "version": 41, "content": content}
    release = change(server, model=model, network={"egress": EGRESS})
    wait_for_rollout(release, 41)
    before = client.wait_for_more(200)["versions"]
    assert client.wait_for_more(100)["versions"]["41"] > before["41"]

    refused = change(release, model={"version": 42, "content": WRONG})
    message = read_refusal(refused)
    assert f"the content hash is {content}, but {WRONG} is pinned" in message
    before = client.wait_for_more(10)["versions"]
    after = client.wait_for_more(200)["versions"]
    assert after["41"] > before["41"]
    assert "42" not in after
    admin.run([server.helm, "rollback", server.name, f"--namespace={server.namespace}"])
    wait_for_rollout(release, 41)
    assert client.read()["failed"] == 0, client.read()


def test_a_canary_of_a_tenth_answers_a_tenth(server: Release, client: ServingClient, content: str) -> None:
    """One pod beside nine, each request over a connection of its own: of 3,000, nearly always within 1.7 points."""
    release = change(server, replicas=9, canary={"weight": 10, "version": 50, "content": content})
    canary = dataclasses.replace(release, name=f"{release.name}-canary")
    wait_for_rollout(canary, 50, ROLLOUT_SECONDS)
    wait_for_rollout(release, 40, ROLLOUT_SECONDS)
    # The client's node learns of the pods a moment after they are ready.
    before = next(each for each in (client.wait_for_more(200)["versions"] for _ in range(60)) if "50" in each)
    # Ten servers that load at once leave the cluster's own DNS no time: what fails meanwhile is not counted.
    before = client.wait_for_more(200)
    for _ in range(CANARY_REQUESTS // 1000):
        after = client.wait_for_more(1000)
    answers = {each: count - before["versions"].get(each, 0) for each, count in after["versions"].items()}
    share = answers["50"] / sum(answers.values())
    print(f"the canary has answered {answers['50']} of {sum(answers.values())} requests: {share:.1%}")
    assert sum(answers.values()) >= 0.9 * CANARY_REQUESTS / 2
    assert abs(share - 0.1) <= 0.03, answers
    assert after["failed"] == before["failed"], after
