"""Faults of nodes, the control plane, the network and the volumes, as pods and users meet them, and their end."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Pod

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import API_SERVICE_ADDRESS, DNS_ADDRESS
from tests.cluster.testcluster.faults import Change, Fault, Faults, UndoFailed, daemons, network, nodes, storage, tokens
from tests.cluster.testcluster.faults.fault import Inside, Kubectl
from tests.cluster.testcluster.faults.processes import Container, Victim, find_processes, kill_process
from tests.cluster.testcluster.faults.soundness import RESOLVE, find_problems
from tests.cluster.testcluster.pods import dump_objects, plan_claim
from tests.cluster.testcluster.scheduled_pods import ScheduledPod

pytestmark = pytest.mark.cluster

SERVE = """
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(int(self.path.strip("/"))))
http.server.ThreadingHTTPServer(("", 8080), Answer).serve_forever()
"""
FETCH = "import sys, urllib.request as r; print(len(r.urlopen(sys.argv[1], timeout=float(sys.argv[2])).read()))"
FETCH_IN_TIME = """
import signal, sys, urllib.request
def stop(*_):
    raise TimeoutError("timed out")
signal.signal(signal.SIGALRM, stop)
signal.alarm(2)
urllib.request.urlopen(sys.argv[1]).read()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close(); print('connected')"
BIG, SMALL = 8 << 20, 10


@dataclass(frozen=True)
class Pair:
    """A pod `asks` on node1, with a volume, and one `serves` on node2."""

    access: Access
    namespace: str
    asks: str
    serves: str
    """Addresses."""

    def attempt(self, program: str, *arguments: str) -> str:
        """Run a program in the pod that asks; the last line that it printed, of its failure if it failed."""
        argv = ["kubectl", "exec", "asks", "-n", self.namespace, "--", "python3", "-S", "-c", program, *arguments]
        done = self.access.run(argv, check=False)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("command terminated")]
        return lines[-1] if lines else ""

    def await_attempt(self, expected: str, program: str, *arguments: str) -> None:
        """Repeat until the last line holds what is expected."""
        self.access.wait_for(
            lambda _: expected in self.attempt(program, *arguments), expected, namespace=self.namespace
        )


@pytest.fixture(scope="module")
def pair(admin: Access, module_namespace: str) -> Pair:
    claim = plan_claim("shared", "shared", "ReadWriteMany")
    asks = ScheduledPod("asks", node="node1", claim="shared")
    serves = ScheduledPod("serves", ("python3", "-c", SERVE), node="node2")
    admin.kubectl(
        "apply", "-n", module_namespace, "-f", "-", text=dump_objects(claim, asks.manifest(), serves.manifest())
    )

    def read(client: Client) -> dict[str, str] | None:
        found = {}
        for pod in client.list(Pod, namespace=module_namespace):
            if pod.metadata and pod.status and is_ready(pod):
                found[str(pod.metadata.name)] = str(pod.status.podIP)
        return found if len(found) == 2 else None

    pair = Pair(admin, module_namespace, **admin.wait_for(read, "two pods", namespace=module_namespace))
    # Ready means started; the server listens a moment later.
    pair.await_attempt("connected", CONNECT, pair.serves, "8080")
    return pair


def is_ready(pod: Pod) -> bool:
    conditions = (pod.status.conditions if pod.status else None) or []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def test_names_that_do_not_resolve(pair: Pair, faults: Faults) -> None:
    query = (RESOLVE, DNS_ADDRESS, "kubernetes.default.svc.cluster.local")
    silent = faults.inflict(network.silence_dns())
    pair.await_attempt("timed out", *query)
    faults.undo(silent)
    pair.await_attempt("code 0, 1 answers", *query)

    faults.inflict(network.remove_dns())
    pair.await_attempt("refused", *query)
    # One fault within the other: CoreDNS need not come back between them.
    faults.inflict(network.break_dns(faults.site.cluster.config))
    pair.await_attempt("code 2", *query)
    faults.undo_all()
    pair.await_attempt("code 0, 1 answers", *query)


def test_cut_and_slow_cables(pair: Pair, faults: Faults) -> None:
    server = pair.serves

    cut = faults.inflict(network.partition_addresses(pair.asks, server))
    assert "timed out" in pair.attempt(CONNECT, server, "8080")
    faults.undo(cut)
    pair.await_attempt("connected", CONNECT, server, "8080")

    hidden = faults.inflict(network.hide_api_from_pods())
    assert "timed out" in pair.attempt(CONNECT, API_SERVICE_ADDRESS, "443")
    faults.undo(hidden)
    pair.await_attempt("connected", CONNECT, API_SERVICE_ADDRESS, "443")

    slow = faults.inflict(network.slow_node("node2", kilobits_per_second=1000))
    assert pair.attempt(FETCH, f"http://{server}:8080/{SMALL}", "20") == str(SMALL)
    # Eight megabytes would take a minute.
    assert "timed out" in pair.attempt(FETCH_IN_TIME, f"http://{server}:8080/{BIG}")
    faults.undo(slow)
    assert pair.attempt(FETCH, f"http://{server}:8080/{BIG}", "20") == str(BIG)


def test_a_full_disk(pair: Pair, faults: Faults) -> None:
    write = "open('/volume/file', 'wb').write(bytes(100_000)); print('written')"
    full = faults.inflict(storage.fill_disk())
    assert "No space left on device" in pair.attempt(write)
    faults.undo(full)
    assert pair.attempt(write) == "written"


def test_a_kubelet_that_is_gone(admin: Access, pair: Pair, faults: Faults) -> None:
    stopped = faults.inflict(daemons.stop_kubelet("node1"))
    with pytest.raises(CommandFailed, match="connection refused"):
        admin.kubectl("logs", "asks", "-n", pair.namespace)
    kill_process(faults.site, Container(pair.namespace, "asks"), Victim.LAUNCHER)
    assert not is_restarted(admin.client(), pair)
    faults.undo(stopped)
    admin.wait_for(lambda client: is_restarted(client, pair), "a restart", namespace=pair.namespace)


def test_a_container_runtime_that_is_gone(pair: Pair, faults: Faults) -> None:
    stopped = faults.inflict(daemons.stop_component("containerd-node1"))
    assert "containerd.sock" in pair.attempt("print('ran')")
    faults.undo(stopped)
    pair.await_attempt("ran", "print('ran')")


def is_restarted(client: Client, pair: Pair) -> bool:
    status = client.get(Pod, "asks", namespace=pair.namespace).status
    return [container.restartCount for container in (status and status.containerStatuses) or []] == [1]


def test_a_lost_node(pair: Pair, faults: Faults) -> None:
    """Silent, and well: its pods run on. What becomes of them later, test_lifecycle_recovery.py waits for."""
    lost = faults.inflict(network.partition_node("node2"))
    assert "timed out" in pair.attempt(CONNECT, pair.serves, "8080")
    assert find_processes(faults.site, Container(pair.namespace, "serves"), Victim.EVERY)

    faults.undo(lost)
    pair.await_attempt("connected", CONNECT, pair.serves, "8080")


def test_an_api_server_that_is_gone_and_tokens_that_are_revoked(
    admin: Access, namespace: str, own_cluster: Cluster, faults: Faults
) -> None:
    def ask(token: str) -> int:
        request = urllib.request.Request(
            f"{own_cluster.config.api_url}/api/v1/pods", headers={"Authorization": f"Bearer {token}"}
        )
        context = ssl._create_unverified_context()
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(request, context=context, timeout=10)
        return refusal.value.code

    def make_token() -> str:
        return admin.kubectl("create", "token", "default", "-n", namespace).strip()

    used, old = make_token(), make_token()
    assert ask(used) == 403
    faults.inflict(tokens.revoke_tokens(faults.site, namespace))
    admin.wait_for(lambda _: ask(old) == 401, "the old token refused", namespace=namespace)
    assert ask(make_token()) == 403

    stopped = faults.inflict(daemons.stop_api_server())
    with pytest.raises(CommandFailed, match="refused"):
        admin.kubectl("get", "pods")
    faults.undo(stopped)
    admin.kubectl("get", "pods")
    faults.inflict(daemons.restart_api_server())
    admin.kubectl("get", "pods")


def test_everything_is_undone_in_reverse_and_a_failure_is_told(faults: Faults, own_cluster: Cluster) -> None:
    trace = "/run/cluster/trace"

    def make_fault(name: str, *undo: str) -> Fault:
        return Fault(name, tuple(Change(Inside(("true",)), (Inside(("sh", "-c", line)),)) for line in undo))

    kit = Faults(faults.site)
    kit.inflict(make_fault("first", f"echo 1 >> {trace}", f"echo 2 >> {trace}"))
    kit.inflict(make_fault("second", "echo the wheel is stuck >&2; exit 1", f"echo 3 >> {trace}"))
    with pytest.raises(CommandFailed):
        kit.inflict(Fault("third", (Change(Inside(("true",)), (Inside(("sh", "-c", f"echo 4 >> {trace}")),)), REFUSED)))

    with pytest.raises(UndoFailed, match=r"cannot undo the fault 'second': .*the wheel is stuck"):
        kit.undo_all()
    assert own_cluster.run_inside(["cat", trace]).stdout.split() == ["4", "3", "2", "1"]
    kit.undo_all()


REFUSED = Change(Kubectl(("get", "nonsense")), (Inside(("false",)),))


def test_what_is_still_broken_is_told(faults: Faults) -> None:
    faults.inflict(nodes.cordon_node("node1"))
    faults.inflict(network.silence_dns())
    faults.inflict(storage.fill_disk())

    left = "\n".join(find_problems(faults.site))
    faults.undo_all()

    for problem in ("node1 is cordoned", "rule on node1: -A PREROUTING", "rule on node2", f"{storage.FILLER} is there"):
        assert problem in left
    assert not find_problems(faults.site)
