"""What `why` says of paths, Secrets, services and host names that pods are given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_job,
    make_pods,
    make_record,
    make_sets,
    make_state,
    make_verdict,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import TrainingKey
from trainchart.reports.why import why_lines
from trainchart_runtime import causes
from trainchart_runtime.cause import Cause

MOUNTS = [
    {"name": "tmp", "mountPath": "/tmp"},
    {"name": "volume-checkpoints", "mountPath": "/checkpoints"},
    {"name": "documents", "mountPath": "/data/documents"},
]


def look(
    state: dict[str, Any], *, env: Any = (), args: Any = (), spec: Any = (), services: Any = (), **container: Any
) -> str:
    """Return what `why` says of exp1, whose worker has failed or waits, with these fields in its pods."""
    sets = make_sets()
    for each in sets:
        template = each["spec"]["template"]["spec"]
        template |= dict(spec)
        variables = [{"name": name, "value": value} for name, value in dict(env).items()]
        template["containers"][0] |= {"volumeMounts": MOUNTS, "args": list(args), **container}
        template["containers"][0]["env"] += variables
        template["containers"][0]["env"] += container.get("sources", [])
    is_over = state["phase"] == "Failed"
    seen = Snapshot(
        now=NOW,
        sets=tuple(sets),
        pods=() if is_over else tuple(make_pods()),
        records=(make_record(state),),
        jobs=(make_job("Failed" if is_over else ""),),
        services=tuple(services),
    )
    return "\n".join(why_lines(diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)))


def fail(error: str, *, step: int | None = None, cause: Cause = causes.PROGRAM_ERROR, **fields: Any) -> dict[str, Any]:
    history = [{"at": NOW - 125, "phase": "Running", "message": ""}]
    verdict = make_verdict(error=error, step=step, cause=cause)
    return make_state("Failed", verdict=verdict, history=history, **fields)


def stand(ago: float, **fields: Any) -> dict[str, Any]:
    """A run that has made 80 steps in 20 seconds, and none since."""
    progress = {"at": NOW - ago, "attempt": 1, "step": 81, "bestStep": 81}
    history = [{"at": NOW - ago - 20, "phase": "Running", "message": ""}]
    return make_state("Running", progress=progress, firstStep=1, history=history, since=NOW - ago - 20, **fields)


NO_DATA = "ZeroDivisionError: integer modulo by zero"
AT_START = "it will fail in the same way if nothing changes"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"env": {"DATA_DIR": "/data/document"}}, "DATA_DIR=/data/document, which is in no volume (mounted: /data/doc"),
        (
            {"env": {"DATA_DIR": "/data/documents/v2"}},
            "DATA_DIR=/data/documents/v2, in the volume mounted at /data/doc",
        ),
        ({"args": ["train", "--data=/data/document"]}, "--data=/data/document, which is in no volume"),
        ({"env": {"DATA_DIR": "/srv/a"}}, "DATA_DIR=/srv/a, which is in no volume"),
        ({"args": ["--data", "/srv/a"]}, "args=/srv/a, which is in no volume"),
        ({"env": {"DATA_DIR": "/data/documents/"}}, ""),
        ({"env": {"OUT": "/checkpoints/run1", "TMP": "/tmp/a", "LIB": "/usr/lib/x", "PYTHONPATH": "/app"}}, ""),
        ({"env": {"API_TOKEN": "/Ab3/xyz", "TRAINCHART_STATE_DIR": "/state", "LIST": "/a:/b", "N": "3"}}, ""),
    ],
)
def test_failure_at_the_start_names_doubtful_paths(given: dict[str, Any], words: str) -> None:
    text = look(fail(NO_DATA), **given)
    assert AT_START in text
    assert ("Check that the files that it reads are where it looks: " in text) == bool(words)
    assert words in text


@pytest.mark.parametrize(
    "state",
    [
        fail(NO_DATA, step=80),
        fail("TimeoutError: timed out"),
        fail("", cause=causes.OUT_OF_MEMORY),
        fail(NO_DATA, progress={"at": NOW - 130, "attempt": 1, "step": 3, "bestStep": 3}),
        fail(NO_DATA) | {"history": [{"at": NOW - 4000, "phase": "Running", "message": ""}]},
    ],
    ids=["at a step", "passes", "another cause", "a start before made steps", "it ran for long"],
)
def test_other_failures_name_no_paths(state: dict[str, Any]) -> None:
    text = look(state, env={"DATA_DIR": "/data/document"})
    assert AT_START not in text and "DATA_DIR" not in text


def test_deaths_of_other_pods_hide_no_failure_at_the_start() -> None:
    death = {"at": NOW - 123, "node": "node1", "cause": "peer-lost", "action": ""}
    assert AT_START in look(fail(NO_DATA, incidents=[death | {"pod": "exp1-mnist-chief-0"}]))
    assert AT_START not in look(fail(NO_DATA, incidents=[death | {"pod": "exp1-mnist-worker-1"}]))


def test_refused_access_names_the_secret_of_its_credentials() -> None:
    refused = fail("StoreError: 401 invalid_token", step=81, cause=causes.ACCESS_REFUSED)
    source = {"name": "STORE_TOKEN", "valueFrom": {"secretKeyRef": {"name": "store-token", "key": "token"}}}
    text = look(refused, sources=[source])
    assert (
        "Its credentials come from Secret store-token (key token as STORE_TOKEN): put a new value into it. Check the "
        "credentials that the program uses"
    ) in text
    mounts = [{"name": "gcs", "mountPath": "/secrets"}]
    volumes = [{"name": "gcs", "secret": {"secretName": "gcs-key"}}, {"name": "other", "secret": {"secretName": "no"}}]
    sources = [{"secretRef": {"name": "login"}}, {"configMapRef": {"name": "settings"}}]
    text = look(refused, envFrom=sources, volumeMounts=mounts, spec={"volumes": volumes})
    assert "from Secret login (all keys as variables), Secret gcs-key (at /secrets): put a new value into the" in text
    assert "credentials come from" not in look(refused)
    assert "credentials come from" not in look(fail(NO_DATA), sources=[source])


@pytest.mark.parametrize(
    "error",
    [
        r"ValueError: Invalid header value b'Bearer ***\n'",
        "requests.exceptions.InvalidHeader: Header part contains leading whitespace, reserved, or return character(s)",
        "h11._util.LocalProtocolError: Illegal header value b'x '",
    ],
)
def test_a_value_that_is_no_header_names_its_secret(error: str) -> None:
    source = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "tracker", "key": "token"}}}
    text = look(fail(error), sources=[source])
    assert (
        "from Secret tracker (key token as TOKEN): a value that ends with a line break is not a valid HTTP header"
        in text
    )


def test_a_program_that_ran_is_not_looked_for() -> None:
    text = look(fail("AttributeError: no attribute 'product'"), args=["/data/documents/train.py"])
    assert "train.py" not in text


@pytest.mark.parametrize(("ago", "is_told"), [(30, False), (106, True), (240, True)])
def test_run_that_pauses_names_its_services(ago: float, *, is_told: bool) -> None:
    env = {"SHARDS_URL": "http://user:secret@shards:8080/x", "BROKERS": "a.b:9092,c.b:9092", "BUCKET": "gs://docs"}
    text = look(stand(ago), env=env, args=["--ps=exp1-mnist-ps-0.exp1-mnist:2222"])
    words = f"No step was reported for {'106 s' if ago < 180 else '4 min'}, while steps took about 0.25 s before."
    assert (words in text) == is_told
    services = "shards:8080 (SHARDS_URL), a.b:9092 (BROKERS), c.b:9092 (BROKERS)"
    assert (f"Check whether the services that it uses answer: {services}." in text) == is_told
    assert "secret" not in text and "docs" not in text and "ps-0.exp1" not in text
    assert ("Nothing has failed." in text) != is_told


def test_slow_steps_and_a_silent_controller_are_no_pause() -> None:
    slow = stand(106) | {"history": [{"at": NOW - 106 - 800, "phase": "Running", "message": ""}]}
    assert "No step was reported" not in look(slow)
    report = diagnose(
        TrainingKey(NAMESPACE, "exp1", "mnist"),
        Snapshot(now=NOW, sets=tuple(make_sets()), pods=tuple(make_pods()), records=(make_record(stand(106)),)),
    )
    assert not report.step_pause


SHARDS = {"metadata": {"name": "shards"}, "spec": {"ports": [{"port": 8080}]}}


@pytest.mark.parametrize(
    ("address", "is_wrong"),
    [
        ("shards:8000", True),
        (f"shards.{NAMESPACE}.svc:8000", True),
        ("shards:8080", False),
        ("a:1", False),
        ("shards.else:8000", False),
    ],
)
@pytest.mark.parametrize("cause", [causes.DOWNLOAD_FAILED, causes.SERVICE_UNREACHABLE])
def test_port_that_a_service_does_not_have_is_named(address: str, cause: Cause, *, is_wrong: bool) -> None:
    text = look(
        fail("Connection refused", cause=cause), env={"SHARDS_URL": f"http://{address}/next"}, services=[SHARDS]
    )
    host = address.partition(":")[0]
    words = (
        f"SHARDS_URL names port 8000 of the Service {host}, which has 8080: if that is a mistake, correct it in `env`."
    )
    assert (words in text) == is_wrong


def test_pod_that_fails_on_its_node_alone_is_told() -> None:
    words = (
        "; worker-0 on node1 did not fail. Unless the pods' shares of the work differ, suspect the node: it may hold"
    )
    failed = fail(NO_DATA)
    failed["verdict"]["spared"] = "worker-0 on node1"
    assert words in look(failed)
    assert "suspect the node" not in look(fail(NO_DATA))


@pytest.mark.parametrize(("name", "is_near"), [("BACTH_SIZE", True), ("BATCH_SIZE", False), ("LEARNING_RATE", False)])
def test_variable_with_a_slip_in_its_name_is_named(name: str, *, is_near: bool) -> None:
    text = look(fail("KeyError: 'BATCH_SIZE'"), env={name: "32"})
    assert (f"The program looks for BATCH_SIZE, but gets {name}: one of them may be a typo." in text) == is_near


def test_address_that_does_not_answer_names_host_aliases() -> None:
    aliases = {"hostAliases": [{"ip": "10.0.0.7", "hostnames": ["store", "store.local"]}]}
    lost = fail("OSError: [Errno 113] No route to host", step=5, cause=causes.SERVICE_UNREACHABLE)
    words = "Its pods have hostAliases (store is 10.0.0.7, store.local is 10.0.0.7), which take precedence over DNS"
    assert words in look(lost, spec=aliases)
    assert "hostAliases (" not in look(lost) and "hostAliases (" not in look(fail(NO_DATA), spec=aliases)
    death = {"at": NOW - 20, "pod": "exp1-mnist-worker-1", "node": "", "action": "", "error": "No route to host"}
    running = stand(60, incidents=[death | {"cause": "service-unreachable"}])
    assert words in look(running, spec=aliases)


def test_leads_are_json_and_survive_odd_objects() -> None:
    odd = {"env": [{"name": "_", "value": "/a"}], "envFrom": {}, "args": "x", "volumeMounts": [None]}
    sets = make_sets()
    for each in sets:
        each["spec"]["template"]["spec"] = {
            "containers": [{"name": "training", **odd}],
            "hostAliases": [{"ip": 1, "hostnames": 2}],
        }
    seen = Snapshot(now=NOW, sets=tuple(sets), records=(make_record(fail(NO_DATA)),))
    assert json.dumps(diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).leads).startswith(
        '["Check that the files that it reads are where it looks: _=/a, which is in no volume."'
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"env": {"HTTPS_PROXY": "http://me:pw@proxy.corp:3128"}}, "(HTTPS_PROXY=***@proxy.corp:3128): "),
        ({"envFrom": [{"configMapRef": {"name": "proxy"}}]}, "(perhaps one in ConfigMap proxy, whose keys become vari"),
        ({"envFrom": [{"secretRef": {"name": "proxy"}}]}, "(perhaps one in Secret proxy, whose keys become variables"),
        ({"env": {"no_proxy": ".svc"}}, ""),
    ],
)
def test_failed_download_names_the_proxy_of_its_pod(given: dict[str, Any], words: str) -> None:
    failed = fail(
        "URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", cause=causes.DOWNLOAD_FAILED
    )
    text = look(failed, **given)
    assert ("A proxy may be in the way" in text) == bool(words)
    assert words in text and "pw@" not in text
    assert "A proxy may be in the way" not in look(fail(NO_DATA), **given)


OWN_PORTS = [{"name": "tensorflow", "containerPort": 2222}, {"name": "status", "containerPort": 2223}]
NO_SERVER = "error: worker 1: Could not start gRPC server"
ON_NODE = "exp1-mnist-worker-1 uses the network of its node node2 (hostNetwork)"


@pytest.mark.parametrize(
    ("error", "port"),
    [
        (NO_SERVER, "uses port 2222 (service.port)"),
        ("OSError: [Errno 98] Address already in use: 0.0.0.0:2223", "uses port 2223 (service.statusPort)"),
        (
            "OSError: [Errno 98] Address already in use",
            "uses a port that the program needs (the ports of the chart are 2222 (service.port), 2223 "
            "(service.statusPort))",
        ),
    ],
)
def test_taken_port_of_the_host_network_is_the_nodes(error: str, port: str) -> None:
    state = fail(error, cause=causes.PORT_IN_USE)
    text = look(state, spec={"hostNetwork": True}, ports=OWN_PORTS)
    assert f"What to do next: {ON_NODE}, where another process or pod already {port}" in text
    assert "`ss -ltnp` on node2 shows" in text and "kubectl get pods -A --field-selector spec.nodeName=node2" in text


def test_taken_host_port_is_named_while_the_run_goes_on() -> None:
    death = {"at": NOW - 60, "pod": "exp1-mnist-worker-1", "node": "node2", "cause": "port-in-use", "error": NO_SERVER}
    state = make_state("Running", incidents=[{"action": "", **death}])
    text = look(state, spec={"hostNetwork": True}, ports=OWN_PORTS)
    assert f"{ON_NODE}, where another process or pod already uses port 2222 (service.port)" in text


def test_taken_port_of_an_own_network_is_not_the_nodes() -> None:
    state = fail(NO_SERVER, cause=causes.PORT_IN_USE)
    assert "network of its node" not in look(state, ports=OWN_PORTS)
    assert "network of its node" not in look(state, spec={"hostNetwork": False}, ports=OWN_PORTS)
    assert "network of its node" not in look(fail(NO_DATA), spec={"hostNetwork": True}, ports=OWN_PORTS)


def test_error_before_the_first_step_is_listed_but_not_first() -> None:
    death = {"pod": "exp1-mnist-worker-1", "node": "", "action": "", "error": "[Errno 111] Connection refused"}
    deaths = [death | {"at": NOW - 300, "cause": "service-unreachable"}]
    text = look(fail("HTTP Error 401: Unauthorized", step=300, incidents=deaths, firstStepAt=NOW - 290))
    assert text.count("Connection refused") == 1 and text.count("What failed first") == 0
    text = look(fail("HTTP Error 401: Unauthorized", step=300, incidents=deaths))
    assert text.count("Connection refused") == 2 and text.count("What failed first") == 1


NO_SPACE = "OSError: [Errno 28] No space left on device: "
VOLUMES = [
    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
    {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
    {"name": "cache", "persistentVolumeClaim": {"claimName": "feature-cache"}},
    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
    {"name": "host", "hostPath": {"path": "/mnt/disk1"}},
    {"name": "share", "nfs": {"server": "a", "path": "/b"}},
]
PLACES = {"shm": "/dev/shm", "tmp": "/tmp", "cache": "/cache/", "scratch": "/cache/tmp", "host": "/h", "share": "/s"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (f"{NO_SPACE}'/cache/13/8113.feat'", "/cache is claim feature-cache."),
        (
            f"{NO_SPACE}'/cache/tmp/a'",
            "/cache/tmp is claim exp1-mnist-worker-1-scratch, which is deleted with its pod.",
        ),
        (f"{NO_SPACE}'/cache/tmp2'", "/cache is claim feature-cache."),
        (
            "a.ResourceExhaustedError: /job:a/task:0 /tmp/x; No space left on device",
            "/tmp is an emptyDir (sizeLimit 1Gi) on the disk",
        ),
        (
            f"{NO_SPACE[:-2]} (full: /dev/shm of 64 MiB)",
            "/dev/shm is an emptyDir (sizeLimit 64Mi) in memory, set by roles.worker.shmSize.",
        ),
        (f"{NO_SPACE}'/s/a' -> '/h/a'", "/h is folder /mnt/disk1 on the disk of its node node2."),
        (f"{NO_SPACE}'/s/a'", "/s is volume share (nfs)."),
        (f"{NO_SPACE}'/opt/a'", "/opt/a is in no volume, but in the container's own file system, on the disk of its"),
        (f"{NO_SPACE}'model.keras'", ""),
    ],
)
def test_volume_without_space_is_named(error: str, words: str) -> None:
    mounts = [{"name": name, "mountPath": path} for name, path in PLACES.items()]
    text = look(fail(error, step=5, cause=causes.DISK_FULL), spec={"volumes": VOLUMES}, volumeMounts=mounts)
    assert f"What to do next: {words}" in text
    assert ("Free space there, enlarge it, or write less, such as fewer checkpoints." in text) is bool(words)
    assert ("/tmp and everything outside volumes" in text) is (not words)


def test_advice_on_inodes_is_not_to_enlarge_a_volume() -> None:
    mounts = [{"name": "cache", "mountPath": "/cache"}]
    error = f"{NO_SPACE}'a.feat' (no inodes are left on /cache, which has 8192 files and folders)"
    text = look(fail(error, step=5, cause=causes.DISK_FULL), spec={"volumes": VOLUMES}, volumeMounts=mounts)
    assert "What to do next: /cache is claim feature-cache. Delete small files, or pack them" in text
    assert "with more inodes; df -i shows them" in text and "nlarge" not in text
