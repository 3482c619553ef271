"""A model goes live from the release that trained it: docs/families.md, "Model servers".

The tests go on from each other: a training's export is served, a second version takes over under load, and what is not
what was pinned takes no request.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.model_servers import CLAIM, install_server, train_export, wait_for_rollout
from tests.cluster.testcluster.pods import dump_objects, plan_namespace, plan_pod
from tests.cluster.testcluster.releases import TRAINING_GROUP, Release, merge_values
from tests.cluster.testcluster.serving_client import ServingClient, start_client
from tests.cluster.testcluster.users import make_user
from trainchart.actions.console import RunSource, Scope
from trainchart.actions.support.cluster_access import Place
from trainchart.console.views import RunRef, ServerRef
from trainchart.reports.report import CLUSTER

pytestmark = pytest.mark.cluster

WATCH = ("--watch=1s", "--timeout=90s")
SPOIL = "file.seek(0, 2); file.write(b'x')"


@pytest.fixture(scope="module")
def elsewhere(admin: Access, module_namespace: str) -> Iterator[str]:
    name = f"{module_namespace}-elsewhere"
    admin.kubectl("apply", "-f", "-", text=dump_objects(plan_namespace(name, purpose="shop")))
    yield name
    admin.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def content(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The content hash of the export of a release that has trained."""
    return train_export(admin, module_namespace, tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="module")
def server(admin: Access, module_namespace: str, content: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Two pods that serve version 40, for clients in namespaces of the shop."""
    network = {"from": [{"namespaceSelector": {"matchLabels": {"purpose": "shop"}}}]}
    return install_server(admin, module_namespace, tmp_path_factory.mktemp("project"), content, network=network)


@pytest.fixture(scope="module")
def shop(admin: Access, server: Release, elsewhere: str) -> ServingClient:
    """A client in the other namespace that never stops to ask."""
    client = start_client(admin, elsewhere, "shop", f"digits.{server.namespace}.svc", "digits", rate=100)
    client.wait_for_more(20)
    return client


def serve(server: Release, version: int, **values: object) -> Release:
    """Upgrade to another version of the model."""
    changes = {"model": {"version": version}, **values}
    release = dataclasses.replace(server, values=merge_values(server.values, changes))
    release.upgrade()
    return release


def change_export(server: Release, pod_name: str, change: str) -> None:
    """Change the graph of the export by a statement about its file, in a pod."""
    command = f"python3 -c \"file = open('/volume/saved_model/saved_model.pb', 'rb+'); {change}\""
    pod = plan_pod(pod_name, command, claim=CLAIM, fs_group=TRAINING_GROUP)
    pod["spec"]["securityContext"]["runAsUser"] = TRAINING_GROUP
    server.access.kubectl("apply", "-n", server.namespace, "-f", "-", text=dump_objects(pod))
    server.access.wait_for_log(pod_name, namespace=server.namespace)


def promote(server: Release, *arguments: str, code: int = 0) -> Any:
    """Run `trainchart promote --to` the server, and return what it prints: JSON, or the error."""
    place = [f"--to={server.name}", f"--namespace={server.namespace}", "--format=json"]
    done = server.access.run([sys.executable, "-m", "trainchart", "promote", *arguments, *place], check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout or done.stderr[done.stderr.index("{\n") :])


def test_the_service_answers_who_is_allowed(admin: Access, server: Release, shop: ServingClient) -> None:
    assert shop.read()["failed"] == 0, shop.read()
    assert set(shop.read()["versions"]) == {"40"}
    # The namespace of the servers themselves is not on the list.
    start_client(admin, server.namespace, "stranger", "digits", "digits", rate=1)
    refused = '{"waits": "timed out"}'

    def is_refused(_: Client) -> bool:
        return refused in admin.kubectl("logs", "stranger", "-n", server.namespace, check=False)

    admin.wait_for(is_refused, "a stranger that is refused", namespace=server.namespace)
    admin.kubectl("delete", "pod/stranger", "-n", server.namespace, "--grace-period=0")
    admin.run([server.helm, "test", server.name, f"--namespace={server.namespace}"])


def test_no_request_fails_while_a_version_takes_over(admin: Access, server: Release, shop: ServingClient) -> None:
    """Nor while a pod is deleted and a node is drained."""
    unknown = promote(server, "exp-7", "--gate=accuracy>=serving", code=6)
    assert "the model that is serving now was not promoted" in unknown["problems"][0]["message"]
    done = promote(server, "exp-7", "--version=41", "--gate=accuracy>=0.2", *WATCH)
    assert (done["state"], done["model"]["version"], done["before"]["version"]) == ("serving", 41, 40)
    assert (done["record"]["from"]["release"], done["record"]["from"]["step"]) == ("exp-7", 40)
    assert done["record"]["by"] != "unknown"
    # Nodes hear of a pod's end a moment later; until then it goes on answering.
    before = shop.wait_for_more(200)["versions"]["40"]
    assert shop.wait_for_more(100)["versions"]["40"] == before, "a version that was replaced still answers"

    pod = next(iter(server.pods(admin.client(), "model-server")))
    admin.kubectl("delete", f"pod/{pod}", "-n", server.namespace, "--wait=false")
    shop.wait_for_more(100)
    wait_for_rollout(server, 41)
    own = admin.client().get(Pod, shop.name, namespace=shop.namespace).spec
    node = "node2" if own and own.nodeName == "node1" else "node1"
    try:
        admin.kubectl(
            "drain",
            node,
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            f"--pod-selector=app.kubernetes.io/instance={server.name}",
        )
        shop.wait_for_more(100)
    finally:
        admin.kubectl("uncordon", node)
    wait_for_rollout(server, 41)
    counts = shop.read()
    assert counts["failed"] == 0, counts
    assert counts["sent"] > 500


def test_a_promotion_is_rolled_back_by_itself_or_on_demand(admin: Access, server: Release, shop: ServingClient) -> None:
    """Under 200 requests a second, of which none fails."""
    # With one pod, each takeover is sooner over; --reuse-values keeps the record of the promotion before.
    place = [server.name, server.chart, f"--namespace={server.namespace}"]
    admin.run([server.helm, "upgrade", *place, "--reuse-values", "--set=replicas=1"])
    second = promote(server, "exp-7", "--version=61", "--gate=accuracy>=serving-0.01", *WATCH)
    assert (second["before"]["version"], second["revision"]) == (41, 4)
    assert shop.wait_for_more(100)["versions"]["61"] > 0
    assert promote(server, "--rollback", *WATCH)["model"]["version"] == 41

    change_export(server, "spoils-first", SPOIL)
    broken = promote(server, "exp-7", "--version=62", *WATCH, code=9)
    assert broken["error"] == "RolledBack"
    assert "the files differ from SHA256SUMS: changed: saved_model.pb" in broken["message"]
    assert "version 41 serves again" in broken["message"]
    change_export(server, "restores", "file.seek(-1, 2); file.truncate()")

    states = {each["model"]["version"]: (each["state"], each["why"]) for each in promote(server, "--history")}
    assert states[41] == ("serving", None)
    assert states[61] == ("rolled back", "requested with --rollback")
    assert "SHA256SUMS" in states[62][1]
    history = admin.run([server.helm, "history", server.name, f"--namespace={server.namespace}"]).stdout
    assert "trainchart promote: exp-7 as version 61" in history
    counts = shop.wait_for_more(100)
    assert "62" not in counts["versions"]
    assert counts["failed"] == 0, counts


def test_the_console_shows_what_was_promoted(server: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to a user who may only read; the history is what Helm keeps, which he may not."""
    reader = make_user(server.access, server.namespace, "reader", "view", tmp_path)
    for access, reads_secrets in ((server.access, True), (reader, False)):
        for name, value in access.environment.items():
            monkeypatch.setenv(name, value)
        source = RunSource(Scope(Place("", server.namespace), tmp_path))
        (listed,) = source.watch_servers()().servers
        assert listed.record.promotion is not None
        assert (listed.name, listed.record.promotion.source.release) == (server.name, "exp-7")
        assert (listed.stable.version, listed.stable.phase) == ("41", "Serving")
        view = source.watch_server(ServerRef(server.namespace, server.name))()
        states = {each.promotion.model.version: each.state for each in view.entries}
        known = {41: "serving", 61: "rolled back", 62: "rolled back"}
        assert states == (known if reads_secrets else {}), states
        assert ("secrets" in view.history_error) is not reads_secrets, view.history_error
        run = source.watch_run(RunRef(CLUSTER, server.namespace, "exp-7", "mnist"))()
        assert [each.name for each in run.servers] == [server.name]


def test_a_canary_answers_its_share(admin: Access, server: Release, content: str, shop: ServingClient) -> None:
    """One pod beside two; each request takes one of them by chance, so that 1,500 are within four points of a third."""
    release = serve(server, 41, canary={"weight": 33, "version": 50, "content": content})
    canary = dataclasses.replace(release, name=f"{release.name}-canary")
    wait_for_rollout(canary, 50)
    # The client's node learns of the pod a moment after it is ready.
    before = next(each for each in (shop.wait_for_more(200)["versions"] for _ in range(60)) if "50" in each)
    after = shop.wait_for_more(3000)["versions"]
    share = (after["50"] - before["50"]) / sum(after[each] - before[each] for each in ("41", "50"))
    assert abs(share - 1 / 3) < 0.05, (before, after)
    serve(server, 41)
    wait_for_rollout(server, 41)

    def is_gone(client: Client) -> bool:
        found = client.list(Deployment, namespace=server.namespace)
        return all(each.metadata and each.metadata.name != canary.name for each in found)

    admin.wait_for(is_gone, "no canary", namespace=server.namespace)
    assert shop.wait_for_more(50)["failed"] == 0, shop.read()


def test_an_export_that_is_not_what_was_pinned_takes_no_request(
    admin: Access, server: Release, shop: ServingClient
) -> None:
    change_export(server, "spoils", SPOIL)
    new = serve(server, 42)

    def read_message(client: Client) -> str | None:
        for pod in new.pods(client, "model-server").values():
            for status in (pod.status.initContainerStatuses or []) if pod.status else []:
                for state in (status.state, status.lastState):
                    if state and state.terminated and state.terminated.exitCode:
                        return state.terminated.message or ""
        return None

    message = admin.wait_for(read_message, "a refused export", namespace=server.namespace)
    assert "the files differ from SHA256SUMS: changed: saved_model.pb" in message
    assert "42" not in shop.wait_for_more(100)["versions"]
    admin.run([server.helm, "rollback", server.name, f"--namespace={server.namespace}"])
    wait_for_rollout(server, 41)
    assert shop.read()["failed"] == 0, shop.read()
