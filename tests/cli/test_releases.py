"""`trainchart list`, `status`, `why`, `wait`, `logs` and `rerun` against a small API: exit codes and output."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_controller_pod,
    make_end,
    make_event,
    make_job,
    make_pod,
    make_pods,
    make_record,
    make_revision,
    make_set,
    make_sets,
    make_state,
    make_verdict,
    stamp,
    unschedulable,
)
from tests.small_cluster.small_api import SmallApi, serve_small_api
from tests.support.command_line import call
from trainchart.reports.text import describe_time
from trainchart_runtime import causes

LOGS = json.dumps({"exp1-mnist-worker-1": {"at": NOW, "lines": ["step 1", "ValueError: no data today"]}})


@pytest.fixture
def api() -> Iterator[SmallApi]:
    """A cluster with exp1, which runs and has no controller."""
    with serve_small_api() as server:
        server.objects = {"statefulsets": make_sets(), "pods": make_pods()}
        yield server


def run_to(api: SmallApi, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return call(folder, *arguments, environment=make_environment(api, folder, **environment))


def make_environment(api: SmallApi, folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, "KUBECONFIG": str(api.write_kubeconfig(folder / "kubeconfig")), **more}


def end_run(api: SmallApi, result: str = "Failed", **verdict: Any) -> None:
    state = make_state(result, verdict=make_verdict(result, **verdict))
    api.objects = {
        "statefulsets": make_sets(0),
        "pods": [],
        "jobs": [make_job("Complete" if result == "Succeeded" else "Failed")],
        "configmaps": [make_record(state, logs=LOGS)],
    }


def test_list_says_who_holds_gpus_and_those_first(api: SmallApi, tmp_path: Path) -> None:
    api.objects["statefulsets"] += [make_set("worker", 1, release="a-waiting")]
    api.objects["pods"] += [make_pod("worker-0", node="", release="a-waiting", conditions=[unschedulable()])]
    api.page_size = 2
    done = run_to(api, tmp_path, "list", "-A")
    heading, first, second = done.stdout.splitlines()
    assert heading.split()[:4] == ["WHERE", "RELEASE", "CHART", "PHASE"]
    assert first.split()[:4] == [NAMESPACE, "exp1", "mnist-0.1.0", "Running"]
    assert "2 nvidia.com/gpu" in first
    assert "a-waiting" in second
    assert "unschedulable" in second
    assert (done.returncode, done.stderr) == (0, "")
    (exp1, waiting) = json.loads(run_to(api, tmp_path, "list", "--format", "json").stdout)
    assert (exp1["gpus"], waiting["gpus"]) == ({"nvidia.com/gpu": 2}, {})


def test_release_that_argo_cd_applies_is_changed_there(api: SmallApi, tmp_path: Path) -> None:
    end_run(api)
    for each in api.objects["statefulsets"]:
        each["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = f"exp1:apps/StatefulSet:{NAMESPACE}/x"
    done = run_to(api, tmp_path, "rerun", "exp1")
    assert done.returncode == 9
    assert "Helm does not know the release exp1" in done.stderr
    assert "the Argo CD application exp1 applied its manifests" in done.stderr


def test_list_and_why_name_the_same_cause(api: SmallApi, tmp_path: Path) -> None:
    api.objects["pods"] = [pod for pod in make_pods() if "worker-1" not in str(pod)]
    refused = "pods \"exp1-mnist-worker-1\" is forbidden: ValidatingAdmissionPolicy 'images-by-digest' denied request"
    api.objects["events"] = [make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", refused)]
    assert run_to(api, tmp_path, "list").stdout.splitlines()[1].endswith("1 problem: admission-refused")
    policy = {"metadata": {"name": "images-by-digest", "creationTimestamp": stamp(NOW - 5)}}
    api.objects["validatingadmissionpolicies"] = [policy]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "[admission-refused]" in why and "note: images-by-digest, which refuses the pods, was created at" in why
    api.refused["validatingadmissionpolicies"] = 403
    assert "images-by-digest, which" not in run_to(api, tmp_path, "why", "exp1").stdout
    api.objects["pods"] = make_pods()
    api.requests.clear()
    assert run_to(api, tmp_path, "list").stdout.splitlines()[1].endswith("  -")
    assert not [request for request in api.requests if "/events" in request], "nothing is left to explain"


@pytest.mark.parametrize("command", ["list", "status exp1", "why exp1", "logs exp1", "top", "suspend exp1"])
def test_a_damaged_pod_hides_no_other(command: str, api: SmallApi, tmp_path: Path) -> None:
    api.objects["pods"][0]["spec"]["containers"] = "damaged"
    name = api.objects["pods"][0]["metadata"]["name"]
    done = run_to(api, tmp_path, *command.split())
    assert "Traceback" not in done.stderr
    if command.partition(" ")[0] in ("list", "status", "why"):
        assert (done.returncode, done.stderr) == (0, "")
        told = run_to(api, tmp_path, *command.split(), "--format", "json").stdout
        assert f"left out pods/{name}, whose field spec.containers is missing or has the wrong type" in told
        assert "worker-0" in told


def test_a_release_of_damaged_objects_alone_is_not_absent(api: SmallApi, tmp_path: Path) -> None:
    for each in (*api.objects["pods"], *api.objects["statefulsets"]):
        each["spec"] = "damaged"
    done = run_to(api, tmp_path, "status", "exp1")
    assert done.returncode == 9
    assert "could not read the release 'exp1'" in done.stderr
    assert "whose field spec is missing or has the wrong type" in done.stderr


def test_an_empty_list_is_no_error(api: SmallApi, tmp_path: Path) -> None:
    api.objects = {}
    done = run_to(api, tmp_path, "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no runs in .trainchart/runs or in this namespace" in done.stderr
    assert json.loads(run_to(api, tmp_path, "list", "--format=json").stdout) == []


def test_status_shows_roles_and_pods(api: SmallApi, tmp_path: Path) -> None:
    done = run_to(api, tmp_path, "status", "exp1")
    assert done.stdout.startswith("exp1 (team-a, mnist-0.1.0): Running for ")
    assert [line.split()[0] for line in done.stdout.splitlines() if "-0 " in line or "-1 " in line] == [
        "chief-0",
        "worker-0",
        "worker-1",
        "ps-0",
    ]
    assert "\x1b" not in done.stdout
    assert json.loads(run_to(api, tmp_path, "status", "exp1", "--format", "json").stdout)["phase"] == "Running"


def test_status_watches_until_the_run_is_over(api: SmallApi, tmp_path: Path) -> None:
    end_run(api)
    done = run_to(api, tmp_path, "status", "exp1", "--watch", "--format", "json")
    assert [json.loads(line)["phase"] for line in done.stdout.splitlines()] == ["Failed"]


def test_why_names_the_first_failure_and_what_to_do(api: SmallApi, tmp_path: Path) -> None:
    end_run(api)
    done = run_to(api, tmp_path, "why", "exp1")
    assert "What failed first: exp1-mnist-worker-1 on node2" in done.stdout
    assert "exit code  1" in done.stdout
    assert "error      ValueError: no data today" in done.stdout
    assert "Then: trainchart rerun exp1 -n team-a" in done.stdout
    assert done.returncode == 0


def test_why_shows_where_every_pod_of_a_run_that_hangs_is(api: SmallApi, tmp_path: Path) -> None:
    progress = {"attempt": 1, "step": 39, "bestStep": 39, "at": time.time() - 840}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=progress))], "jobs": [make_job()]}
    api.logs = {
        "exp1-mnist-worker-0": "2026-11-21T10:00:01Z step 38\n2026-11-21T10:00:02Z step 39\n",
        "exp1-mnist-worker-1": "2026-11-21T10:00:07Z reading shard 417 as Bearer tk-4411\n",
    }
    done = run_to(api, tmp_path, "why", "exp1")
    lines = done.stdout.splitlines()
    start = lines.index("The last line of each pod:")
    assert lines[start + 1 : start + 3] == [
        "  2026-11-21T10:00:02Z  worker-0  step 39",
        "  2026-11-21T10:00:07Z  worker-1  reading shard 417 as Bearer ***",
    ]
    shown = json.loads(run_to(api, tmp_path, "why", "exp1", "--format", "json").stdout)["lastLines"]
    assert [(line["pod"], line["text"]) for line in shown] == [
        ("worker-0", "step 39"),
        ("worker-1", "reading shard 417 as Bearer ***"),
    ]
    api.logs = {}
    assert "The last line" not in run_to(api, tmp_path, "why", "exp1").stdout


@pytest.mark.parametrize(
    "answer",
    [
        "unable to retrieve container logs for containerd://4f0d6c1b",
        'failed to try resolving symlinks in path "/var/log/pods/a/0.log": lstat /var/log/pods/a: no such file',
        'failed to open log file "/var/log/pods/a/training/0.log": open /var/log/pods/a: no such file or directory',
    ],
)
def test_kubelet_without_a_log_is_no_line_of_a_program(api: SmallApi, tmp_path: Path, answer: str) -> None:
    progress = {"attempt": 1, "step": 39, "bestStep": 39, "at": time.time() - 840}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=progress))], "jobs": [make_job()]}
    api.logs = {"exp1-mnist-worker-0": f"{stamp(NOW)} {answer}\n", "exp1-mnist-worker-1": answer}
    note = f"note: node node1 no longer has the log of worker-1, so its last lines are not known: {answer}. If the "
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert note in why
    assert why[why.index("The last line of each pod:") :].splitlines()[1].endswith(f"Z  worker-0  {answer}")
    assert why.count(answer) == 2
    logs = run_to(api, tmp_path, "logs", "exp1")
    assert (logs.stdout, logs.stderr.count(note)) == (f"[worker-0] {answer}\n", 1)


def test_why_names_the_policy_that_keeps_pods_apart(api: SmallApi, tmp_path: Path) -> None:
    progress = {"attempt": 1, "step": 39, "bestStep": 39, "at": time.time() - 840}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=progress))], "jobs": [make_job()]}
    metadata = {"name": "egress-baseline", "namespace": NAMESPACE, "labels": {}}
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 443}]}]}
    api.objects["networkpolicies"] = [{"metadata": metadata, "spec": spec}]
    assert "note: the NetworkPolicy egress-baseline, " in run_to(api, tmp_path, "why", "exp1").stdout
    api.refused = {"networkpolicies": 403}
    assert "could not read networkpolicies (forbidden)" in run_to(api, tmp_path, "why", "exp1").stdout
    progress["at"] = time.time()
    api.objects["configmaps"] = [make_record(make_state("Running", progress=progress))]
    api.requests.clear()
    run_to(api, tmp_path, "why", "exp1")
    of_all = [each for each in api.requests if "networkpolicies" in each and "labelSelector" not in each]
    assert not of_all, "only those of the release are read"


def test_why_names_the_policy_behind_a_failed_download(api: SmallApi, tmp_path: Path) -> None:
    error = "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"
    ended = make_end(causes.DOWNLOAD_FAILED, error=error)
    pods = make_pods(worker_1=make_pod("worker-1", ended=ended, restarts=1))
    api.objects |= {"pods": [*pods, make_controller_pod()], "configmaps": [make_record(None)], "jobs": [make_job()]}
    metadata = {"name": "default-deny", "namespace": NAMESPACE, "labels": {}, "creationTimestamp": stamp(NOW - 900)}
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    api.objects["networkpolicies"] = [{"metadata": metadata, "spec": spec}]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    cause = "The NetworkPolicy default-deny keeps the pods from the cluster's DNS and the run controller from the API "
    assert f"What to do next: {cause}server, see the notes" in why
    assert "Then: trainchart rerun exp1 -n team-a. If it fails again: Put the file into the image" in why
    assert "helm uninstall" not in why
    assert "has not written it yet" not in why


def share_folder(*claims: str) -> list[dict[str, Any]]:
    """Return running pods of exp1 and exp2 that keep their checkpoints in one claim, or in one each."""
    pods = [make_pod("chief-0"), make_pod("chief-0", release="exp2")]
    for pod, claim in zip(pods, claims * 2, strict=False):
        pod["spec"]["volumes"] = [{"name": "volume-checkpoints", "persistentVolumeClaim": {"claimName": claim}}]
        mounts = [{"name": "volume-checkpoints", "mountPath": "/checkpoints"}]
        env = [{"name": "TRAINCHART_CHECKPOINTS_DIR", "value": "/checkpoints"}]
        pod["spec"]["containers"][0] |= {"volumeMounts": mounts, "env": env}
    return pods


def count_pod_lists(api: SmallApi, folder: Path, *arguments: str) -> tuple[int, str]:
    """Return how many times a command lists pods, and what it prints."""
    api.requests.clear()
    shown = run_to(api, folder, *arguments).stdout
    return sum("/pods?" in each or each.endswith("/pods") for each in api.requests), shown


def test_releases_in_one_checkpoint_folder_are_named(api: SmallApi, tmp_path: Path) -> None:
    api.objects["pods"] = share_folder("team-data")
    for command, head in (("status", "note: "), ("why", "note: ")):
        lists, shown = count_pod_lists(api, tmp_path, command, "exp1")
        assert f"{head}will share its checkpoint folder with exp2 once both run: exp2-mnist-chief-0 writes" in shown
        assert lists == 2
    lists, shown = count_pod_lists(api, tmp_path, "list")
    assert "will share its checkpoint folder with exp1" in shown and lists == 1


def test_why_knows_claims_of_one_static_volume(api: SmallApi, tmp_path: Path) -> None:
    api.objects["pods"] = share_folder("team-a", "team-b")
    names = {"pv-1": "team-a", "pv-2": "team-b"}
    api.objects["persistentvolumeclaims"] = [
        {"metadata": {"name": claim, "namespace": NAMESPACE}, "spec": {"volumeName": name}}
        for name, claim in names.items()
    ]
    api.objects["persistentvolumes"] = [
        {"metadata": {"name": name, "namespace": ""}, "spec": {"nfs": {"server": "nas", "path": "/export"}}}
        for name in names
    ]
    assert "exp2-mnist-chief-0 writes to NFS server nas/export as well" in run_to(api, tmp_path, "why", "exp1").stdout
    api.refused = {"persistentvolumes": 403}
    assert "could not read persistentvolumes (forbidden)" in run_to(api, tmp_path, "why", "exp1").stdout
    api.objects["pods"] = share_folder("team-a", "exp2-mnist-checkpoints")
    assert "persistentvolumes" not in run_to(api, tmp_path, "why", "exp1").stdout


def test_status_looks_for_no_sharer_of_an_own_claim(api: SmallApi, tmp_path: Path) -> None:
    api.objects["pods"] = share_folder("exp1-mnist-checkpoints")
    lists, shown = count_pod_lists(api, tmp_path, "status", "exp1")
    assert "checkpoint folder" not in shown and lists == 1
    lists, shown = count_pod_lists(api, tmp_path, "why", "exp1")
    assert "will share its checkpoint folder with exp2" in shown and lists == 2
    api.objects["pods"] = make_pods()
    assert count_pod_lists(api, tmp_path, "why", "exp1")[0] == 1


@pytest.mark.parametrize(("result", "code"), [("Succeeded", 0), ("Failed", 10), ("Stopped", 10)])
def test_wait_returns_how_the_run_ended(api: SmallApi, tmp_path: Path, result: str, code: int) -> None:
    end_run(api, result)
    done = run_to(api, tmp_path, "wait", "exp1")
    assert done.returncode == code
    assert re.search(rf": {result} \d+ s ago\n", done.stdout)
    assert ("trainchart why exp1 -n team-a" in done.stderr) == (code == 10)


def test_wait_sees_the_end_after_an_api_server_outage(api: SmallApi, tmp_path: Path) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-m", "trainchart", "wait", "exp1"],
        env=make_environment(api, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    assert "Running" in waiting.stderr.readline()
    api.refused = dict.fromkeys(("statefulsets", "pods", "configmaps", "jobs", "events"), 503)
    assert "trying again" in waiting.stderr.readline()
    end_run(api, "Succeeded")
    api.refused = {}
    assert waiting.wait(timeout=30) == 0


def test_wait_gives_up_with_a_code_of_its_own(api: SmallApi, tmp_path: Path) -> None:
    done = run_to(api, tmp_path, "wait", "exp1", "--timeout", "0", "--format", "json")
    assert done.returncode == 11
    told = done.stderr[done.stderr.index("{") :]
    assert json.loads(told)["error"] == "NotInTime"
    assert run_to(api, tmp_path, "wait", "exp1", "--timeout", "soon").returncode == 2


def test_wait_does_not_wait_for_what_nobody_can_see(api: SmallApi, tmp_path: Path) -> None:
    api.refused = {"pods": 403}
    hidden = run_to(api, tmp_path, "wait", "exp1", "--format", "json")
    assert json.loads(hidden.stderr)["error"] == "Forbidden"
    api.refused = {}
    del api.objects["statefulsets"]
    half = run_to(api, tmp_path, "wait", "exp1", "--format", "json")
    assert json.loads(half.stderr)["error"] == "ClusterError"
    assert "partly deleted" in half.stderr


def test_wait_says_when_the_release_goes_away(api: SmallApi, tmp_path: Path) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-m", "trainchart", "wait", "exp1"],
        env=make_environment(api, tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    waiting.stderr.readline()
    api.objects = {}
    assert "exp1 no longer exists" in waiting.stderr.read()
    assert waiting.wait(timeout=30) == 9


@pytest.mark.parametrize("command", [["wait"], ["status", "--watch"], ["logs", "--follow", "-n", NAMESPACE]])
def test_control_c_is_quiet(api: SmallApi, tmp_path: Path, command: list[str]) -> None:
    api.logs = dict.fromkeys([f"exp1-mnist-{task}" for task in ("chief-0", "worker-0", "worker-1", "ps-0")], "")
    api.logs["exp1-mnist-chief-0"] = f"{stamp(NOW)} hello\n"
    # A test run in the background of a shell ignores the signal, and so would what it starts.
    heeding = ["env", "--default-signal=INT"]
    process = subprocess.Popen(
        [*heeding, sys.executable, "-m", "trainchart", command[0], "exp1", *command[1:]],
        env=make_environment(api, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    stream = process.stderr if command[0] == "wait" else process.stdout
    assert stream is not None
    stream.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"objects": {}}, "NotFound", "there is no training run 'exp1' in namespace team-a"),
        ({"refused": {"statefulsets": 403, "pods": 403}}, "Forbidden", "could not find out whether"),
        ({"refused": {"statefulsets": 401}}, "Unauthorized", "cannot list statefulsets"),
        ({"refused": {"statefulsets": 503}}, "Unreachable", "HTTP 503"),
        ({"raw": (200, "text/html", b"<h1>Log in</h1>")}, "ClusterError", "does not respond like a Kubernetes API"),
        ({"raw": (500, "", b"")}, "Unreachable", "HTTP 500"),
        ({"raw": (403, "text/html", b"<h1>proxy says no</h1>")}, "Forbidden", "proxy says no"),
        ({"port": 1}, "Unreachable", "onnection refused"),
    ],
)
def test_kinds_of_trouble_are_told_apart(
    api: SmallApi, tmp_path: Path, change: dict[str, Any], error: str, words: str
) -> None:
    if error == "Forbidden" and "refused" in change:
        api.objects = {}
    for name, value in change.items():
        setattr(api, name, value)
    done = run_to(api, tmp_path, "wait", "exp1", "--format", "json")
    told = json.loads(done.stderr)
    assert (done.returncode, told["error"]) == (9, error)
    assert words in told["message"]
    assert "secret-token" not in done.stderr


def test_what_is_hidden_is_said_and_the_rest_is_shown(api: SmallApi, tmp_path: Path) -> None:
    api.refused = {"configmaps": 403, "events": 403}
    done = run_to(api, tmp_path, "status", "exp1")
    assert done.returncode == 0
    assert "note: could not read configmaps (forbidden)" in done.stdout
    assert "chief-0" in done.stdout


def test_a_release_of_something_else_is_not_looked_at(api: SmallApi, tmp_path: Path) -> None:
    del api.objects["statefulsets"][0]["metadata"]["annotations"]
    api.objects = {"statefulsets": api.objects["statefulsets"][:1]}
    done = run_to(api, tmp_path, "status", "exp1")
    assert (done.returncode, done.stdout) == (9, "")
    assert "contains no training run of trainchart" in done.stderr
    assert "another kind of release, or partly deleted" in done.stderr


def test_a_release_elsewhere_is_pointed_at(api: SmallApi, tmp_path: Path) -> None:
    done = run_to(api, tmp_path, "status", "exp1", "-n", "team-b")
    assert "there is one in: team-a (name it with -n)" in done.stderr
    assert "training runs there: exp1" in run_to(api, tmp_path, "status", "exp2").stderr


def test_logs_of_all_pods_by_time_with_prefixes(api: SmallApi, tmp_path: Path) -> None:
    api.logs = {
        "exp1-mnist-chief-0": "2026-11-21T10:00:01.5Z first\n2026-11-21T10:00:03Z fourth\n",
        # This node writes its own time zone.
        "exp1-mnist-worker-0": "2026-11-21T12:00:01.600000000+02:00 second\n",
        "exp1-mnist-ps-0": "2026-11-21T10:00:02Z third\n",
    }
    done = run_to(api, tmp_path, "logs", "exp1")
    assert done.stdout.splitlines() == ["[chief-0] first", "[worker-0] second", "[ps-0] third", "[chief-0] fourth"]
    assert "no local run exp1" in done.stderr
    assert "container of exp1-mnist-worker-1 is waiting to start" in done.stderr
    last = run_to(api, tmp_path, "logs", "exp1", "-n", NAMESPACE, "--role", "chief", "--tail", "1")
    assert last.stdout == "[chief-0] fourth\n"


def test_logs_since_the_failure_have_the_programs_last_words(api: SmallApi, tmp_path: Path) -> None:
    words = make_end(causes.PROGRAM_ERROR, 1, error="ValueError: no", lines=["step 1", "ValueError: no"])
    api.objects["pods"] = make_pods(worker_0=make_pod("worker-0", last=words, restarts=3))
    api.logs = {
        "exp1-mnist-chief-0": f"{stamp(NOW - 600)} too early\n{stamp(NOW - 61)} peer lost\n",
        "exp1-mnist-worker-0": f"{stamp(NOW - 5)} gave up before\n",
    }
    done = run_to(api, tmp_path, "logs", "exp1", "--since-failure")
    assert done.stdout.splitlines() == [
        "[worker-0] step 1",
        "[worker-0] ValueError: no",
        "[chief-0] peer lost",
        "[worker-0] gave up before",
    ]


def test_logs_after_the_end_are_what_was_kept(api: SmallApi, tmp_path: Path) -> None:
    end_run(api)
    done = run_to(api, tmp_path, "logs", "exp1")
    assert done.stdout.splitlines() == ["[worker-1] step 1", "[worker-1] ValueError: no data today"]
    assert "the pods are gone" in done.stderr and "no times" not in done.stderr
    since = run_to(api, tmp_path, "logs", "exp1", "--since-failure")
    assert since.stdout == done.stdout
    assert "note: kept lines have no times, so those from before the failure are shown too" in since.stderr
    gone = "no lines of chief-0, worker-0, ps-0 were kept: when the run ended, their pods were gone, or"
    assert gone in since.stderr
    kept = {"exp1-mnist-ps-0": {"at": NOW, "lines": ["served"]}, "odd": 5}
    api.objects["configmaps"][0]["data"]["logs.json"] = json.dumps(kept)
    done = run_to(api, tmp_path, "logs", "exp1")
    assert done.stdout.splitlines() == ["[worker-1] starting", "[worker-1] ValueError: no data today", "[ps-0] served"]
    api.objects["configmaps"][0]["data"]["logs.json"] = "{"
    done = run_to(api, tmp_path, "logs", "exp1")
    assert done.stdout.splitlines() == ["[worker-1] starting", "[worker-1] ValueError: no data today"]
    assert "the kept logs are damaged" in done.stderr


def test_pod_that_uses_the_claim_is_named(api: SmallApi, tmp_path: Path) -> None:
    message = (
        "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
        "access mode."
    )
    volumes = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "lstm-scratch"}}]
    waiting = make_pod("worker-1", node="", conditions=[unschedulable(message)])
    waiting["spec"]["volumes"] = volumes
    owner = {"kind": "StatefulSet", "name": "notebook-kim", "controller": True}
    metadata = {"namespace": NAMESPACE, "creationTimestamp": stamp(NOW - 900), "ownerReferences": [owner]}
    others = [
        {"metadata": metadata | {"name": "notebook-kim-0"}, "status": {"phase": "Running"}},
        {"metadata": metadata | {"name": "export-1"}, "status": {"phase": "Succeeded"}},
    ]
    for each in others:
        each["spec"] = {"nodeName": "node1", "volumes": volumes}
    api.objects["pods"] = [*make_pods(worker_1=waiting), *others]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "[claim-in-use]" in why
    user = f"pod notebook-kim-0 (of StatefulSet notebook-kim, since {describe_time(NOW - 900)})"
    assert f"note: the claim lstm-scratch is in use by {user}: exp1-mnist-worker-1 waits" in why


def test_exception_of_a_thread_is_shown_where_a_run_stalls(api: SmallApi, tmp_path: Path) -> None:
    step = {"attempt": 1, "step": 70, "bestStep": 70, "at": time.time() - 840}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=step))], "jobs": [make_job()]}
    trace = """step 70
Exception in thread prefetch:
Traceback (most recent call last):
  File "train.py", line 9
    block = unpack(part)
zlib.error: Error -3: invalid distance
queue is empty"""
    api.logs = {f"exp1-mnist-{task}": f"{stamp(NOW)} step 70\n" for task in ("chief-0", "worker-0", "ps-0")}
    api.logs["exp1-mnist-worker-1"] = "".join(f"{stamp(NOW)} {line}\n" for line in trace.splitlines())
    done = run_to(api, tmp_path, "why", "exp1")
    line = f"{stamp(NOW)}  worker-1  zlib.error: Error -3: invalid distance (exception in thread prefetch)"
    heading = "The last exception that pods printed, in a program that is still running:"
    assert f"{heading}\n  {line}\n  next: an exception in a thread does not end the program" in done.stdout
    assert "one of its tasks hangs" not in done.stdout


def test_run_that_only_warns_says_what_to_check(api: SmallApi, tmp_path: Path) -> None:
    step = {"attempt": 1, "step": 0, "bestStep": 0, "at": time.time() - 400}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=step))], "jobs": [make_job()]}
    lines = [f"{stamp(time.time() - 60 + number)} warning: batch {number} is empty, skipped\n" for number in range(5)]
    api.logs = {"exp1-mnist-worker-0": "".join(lines)}
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "If its steps do not take that long, and the notes do not explain it, one of its tasks hangs" in why
    assert "warning: batch 4 is empty, skipped. No step was made meanwhile. Fix what it warns about" in why


def test_a_volume_that_few_nodes_reach_is_named(api: SmallApi, tmp_path: Path) -> None:
    message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity."
    waiting = make_pod("worker-1", node="", conditions=[unschedulable(message)])
    waiting["spec"]["volumes"] = [{"name": "tiles", "persistentVolumeClaim": {"claimName": "seg-tiles"}}]
    waiting["status"]["containerStatuses"] = []
    api.objects["pods"] = make_pods(worker_1=waiting)
    words = "note: a volume of exp1-mnist-worker-1 (claim seg-tiles) can be reached from some nodes only"
    assert words in run_to(api, tmp_path, "why", "exp1").stdout
    refused = run_to(api, tmp_path, "logs", "exp1", "--pod", "worker-1")
    assert refused.returncode != 0
    assert "worker-1 of exp1 has no node yet, and so has printed nothing" in refused.stderr


def test_logs_of_several_pods_without_a_node_are_refused(api: SmallApi, tmp_path: Path) -> None:
    waiting = {pod: make_pod(pod.replace("_", "-"), node="") for pod in ("chief_0", "worker_1")}
    for pod in waiting.values():
        pod["status"]["containerStatuses"] = []
    api.objects["pods"] = list(waiting.values())
    refused = run_to(api, tmp_path, "logs", "exp1")
    assert "error: chief-0, worker-1 of exp1 have no node yet, and so have printed nothing" in refused.stderr


def test_why_shows_warnings_that_a_running_pod_repeats(api: SmallApi, tmp_path: Path) -> None:
    step = {"attempt": 1, "step": 2900, "bestStep": 2900, "at": time.time()}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=step))], "jobs": [make_job()]}
    for pod in api.objects["pods"]:
        pod["spec"]["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "team-ckpt"}}]
    warning = "WARNING saver: could not save step {}00: [Errno 28] No space left on device"
    lines = [f"{stamp(NOW + number)} {warning.format(number)}\n" for number in range(5)]
    api.logs = {"exp1-mnist-chief-0": "".join(lines), "exp1-mnist-ps-0": "".join(lines[:2])}
    done = run_to(api, tmp_path, "why", "exp1")
    (note,) = (line for line in done.stdout.splitlines() if line.startswith("note: ") and "again and again" in line)
    assert note.startswith("note: chief-0 prints the same warning again and again (5 times from ")
    assert f"{warning.format(4)}. Free space in a volume (claim team-ckpt, or /tmp) now" in note
    assert f"\nNo failure is recorded, but:\n{note}\n" in done.stdout


def test_why_names_a_thread_that_died_while_steps_come(api: SmallApi, tmp_path: Path) -> None:
    step = {"attempt": 1, "step": 2900, "bestStep": 2900, "at": time.time()}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=step))], "jobs": [make_job()]}
    printed = ["Exception in thread saver:", "Traceback (most recent call last):", "OSError: busy"]
    printed += [f"step {number}" for number in range(400)]
    lines = [f"{stamp(NOW + number)} {line}\n" for number, line in enumerate(printed)]
    api.logs = {"exp1-mnist-chief-0": "".join(lines)}
    note = "note: a thread of chief-0 has died, and its program continues without it: OSError: busy (saver, "
    assert note in run_to(api, tmp_path, "why", "exp1").stdout


def test_why_quotes_the_init_container_that_waits(api: SmallApi, tmp_path: Path) -> None:
    waits = make_pod("worker-1")
    waits["spec"]["initContainers"] = [{"name": "fetch", "command": ["nc", "features:8080"]}]
    running = {"running": {"startedAt": stamp(time.time() - 80)}}
    waits["status"] |= {"containerStatuses": [], "initContainerStatuses": [{"name": "fetch", "state": running}]}
    own = {"metadata": {"name": "exp1-mnist", "namespace": NAMESPACE}}
    api.objects |= {"pods": make_pods(worker_1=waits), "services": [own]}
    note = "note: exp1-mnist-worker-1 does not start: its init container fetch has run for "
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert note in why
    assert (
        ". Its command: nc features:8080. It names features, and team-a has no such Service. To see what it waits"
        in why
    )
    api.logs = {"exp1-mnist-worker-1": "unable to retrieve container logs for containerd://4f0d6c1b"}
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "unable to" not in why and ". Its command: nc features:8080." in why
    api.logs = {"exp1-mnist-worker-1": f"{stamp(NOW)} waiting for features\n"}
    api.refused = {"services": 403}
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert (
        ". Its last line: waiting for features. To see what it waits for: kubectl logs exp1-mnist-worker-1 -c fetch"
        in why
    )


def test_why_names_the_autoscaler_that_deletes_pods(api: SmallApi, tmp_path: Path) -> None:
    deaths = [
        {"at": NOW - 120 * each, "pod": "exp1-mnist-worker-1", "node": "node1", "cause": "pod-deleted", "action": ""}
        for each in (3, 2, 1)
    ]
    state = make_state("Running", incidents=deaths)
    api.objects |= {"configmaps": [make_record(state)], "jobs": [make_job()]}
    target = {"kind": "StatefulSet", "name": "exp1-mnist-worker"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 1}
    metadata = {"name": "cost-saver", "namespace": NAMESPACE}
    api.objects["horizontalpodautoscalers"] = [{"metadata": metadata, "spec": spec, "status": {"desiredReplicas": 1}}]
    api.refused = {"verticalpodautoscalers": 404}
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert (
        "\nNo failure is recorded, but:\nnote: the HorizontalPodAutoscaler cost-saver scales exp1-mnist-worker" in why
    )
    assert "kubectl delete hpa cost-saver -n team-a" in why
    assert "Find out who or what keeps deleting it" not in why
    api.refused = {"horizontalpodautoscalers": 403}
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "could not read horizontalpodautoscalers (forbidden)" in why
    assert "Find out who or what keeps deleting it" in why


def test_why_names_accounts_that_may_delete_pods(api: SmallApi, tmp_path: Path) -> None:
    deaths = [
        {"at": NOW - 120 * each, "pod": "exp1-mnist-worker-1", "node": "node1", "cause": "pod-deleted", "action": ""}
        for each in (3, 2, 1)
    ]
    reaper = {"name": "reaper-28", "namespace": NAMESPACE, "ownerReferences": [{"kind": "Job", "name": "reaper"}]}
    reaper["ownerReferences"][0]["controller"] = True  # type: ignore[index]
    job = make_job()
    job["spec"] = {"template": {"spec": {"serviceAccountName": ACCOUNT}}}
    api.objects |= {"configmaps": [make_record(make_state("Running", incidents=deaths))], "jobs": [job]}
    api.objects["pods"].append({"metadata": reaper, "spec": {"serviceAccountName": "cleaner"}})
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]}
    api.objects["roles"] = [make_named("tidy", rules=[rule]), make_named(ACCOUNT, rules=[rule])]
    api.objects["rolebindings"] = [make_binding("tidy", "Role", "cleaner"), make_binding(ACCOUNT, "Role", ACCOUNT)]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert (
        "these ServiceAccounts may delete pods in team-a: cleaner (RoleBinding tidy, used by Job reaper). Check first "
        "whether a program that uses them" in " ".join(why.split())
    )
    api.refused = {"clusterroles": 403, "rolebindings": 403}
    assert "may delete pods" not in run_to(api, tmp_path, "why", "exp1").stdout


@pytest.mark.parametrize(
    ("plural", "kind", "changed"), [("services", "Service", "ports"), ("networkpolicies", "NetworkPolicy", "ingress")]
)
def test_why_names_who_changed_another_object(
    api: SmallApi, tmp_path: Path, plural: str, kind: str, changed: str
) -> None:
    edit = {"manager": "kubectl-edit", "time": stamp(NOW + 60), "fieldsV1": {"f:spec": {f"f:{changed}": {}}}}
    labels = {"app.kubernetes.io/instance": "exp1", "app.kubernetes.io/managed-by": "Helm"}
    own = {"name": "exp1-mnist", "namespace": NAMESPACE, "labels": labels, "managedFields": [edit]}
    api.objects[plural] = [{"metadata": own}]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert f"{kind} exp1-mnist, by kubectl-edit: spec.{changed}" in why
    assert "next: if changes to the release's own objects were not intended, helm rollback exp1 REVISION" in why


ACCOUNT = "exp1-mnist-controller"


def make_named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, **more}


def make_binding(role: str, kind: str, account: str) -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]
    return make_named(role, roleRef={"kind": kind, "name": role}, subjects=subjects)


def make_right(**more: Any) -> dict[str, Any]:
    labels = {"app.kubernetes.io/instance": "exp1", "app.kubernetes.io/component": "controller"}
    return {"metadata": {"name": ACCOUNT, "namespace": NAMESPACE, "labels": labels}, **more}


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (
            "rolebindings",
            f"the RoleBinding {ACCOUNT} is missing, so its run controller lacks rights that the run needs",
        ),
        ("roles", f"the Role {ACCOUNT} is missing"),
        ("subjects", f"the RoleBinding {ACCOUNT} no longer names the ServiceAccount of its run controller"),
        ("", ""),
        ("all", ""),
        ("others", ""),
    ],
)
def test_why_names_missing_rights_of_the_controller(api: SmallApi, tmp_path: Path, missing: str, words: str) -> None:
    job = make_job()
    job["spec"] = {"template": {"spec": {"serviceAccountName": ACCOUNT}}}
    subjects = [{"kind": "ServiceAccount", "name": "other" if missing == "subjects" else ACCOUNT}]
    rights = {
        "serviceaccounts": [make_right()],
        "roles": [make_right()],
        "rolebindings": [make_right(subjects=subjects)],
    }
    record = make_record(make_state("Running"))
    api.objects |= {"jobs": [job], "configmaps": [record], **({} if missing == "all" else rights)}
    api.objects.pop(missing, None)
    if missing == "others":  # a Job, and an account for it, that the values add to the release
        added = {**make_right(), "spec": job["spec"]}
        added["metadata"]["labels"].pop("app.kubernetes.io/component")
        api.objects |= {"jobs": [added, job], "serviceaccounts": [added], "roles": [], "rolebindings": []}
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert words in why
    assert ("helm rollback exp1 REVISION" in why) == bool(words)


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        ("pending-upgrade", "helm rollback exp1 2 -n team-a, or with another revision of helm history exp1"),
        ("pending-rollback", "helm rollback exp1 2 -n team-a"),
        ("pending-install", "helm uninstall exp1 -n team-a, then install it again"),
        ("deployed", ""),
    ],
)
def test_why_tells_of_an_upgrade_that_was_cut_off(api: SmallApi, tmp_path: Path, status: str, cure: str) -> None:
    end_run(api)
    revisions = {1: "superseded", 2: "deployed", 3: status}
    api.objects["secrets"] = [
        {
            "metadata": {
                "name": f"sh.helm.release.v1.exp1.v{number}",
                "namespace": NAMESPACE,
                "labels": {"owner": "helm", "name": "exp1", "status": word, "version": str(number)},
                "creationTimestamp": stamp(NOW - 60),
            }
        }
        for number, word in revisions.items()
    ]
    why = " ".join(run_to(api, tmp_path, "why", "exp1").stdout.split())
    assert (f"revision 3 of the release has been {status} since" in why) == bool(cure)
    assert cure in why


@pytest.mark.parametrize(("later", "is_told"), [("superseded", True), ("deployed", False)])
def test_why_says_what_helm_says_of_a_failed_upgrade(api: SmallApi, tmp_path: Path, later: str, is_told: bool) -> None:
    end_run(api)
    words = 'Release "exp1" failed: persistentvolumeclaims "exp1-data" is forbidden: exceeded quota: storage'
    api.objects["secrets"] = [
        make_revision(2, status="failed", description=words + "@@ -10,7 +10,7 @@   }\n- 'a',"),
        make_revision(3 if later == "deployed" else 1, status=later),
    ]
    why = " ".join(run_to(api, tmp_path, "why", "exp1").stdout.split())
    assert (f"some of its objects may be missing or old: {words}. Correct what Helm names" in why) == is_told


def test_why_names_who_changed_a_config_map_of_the_run(api: SmallApi, tmp_path: Path) -> None:
    end_run(api)
    pods = api.objects["statefulsets"][0]["spec"]["template"]["spec"]
    pods["volumes"] = [{"name": "code", "configMap": {"name": "exp1-code"}}]
    helm = {"manager": "helm", "operation": "Apply", "time": stamp(NOW - 9000), "fieldsV1": {"f:data": {"f:a.py": {}}}}
    edit = {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:data": {"f:train.py": {}}}}
    noted = {"meta.helm.sh/release-name": "exp1"}
    own = {"name": "exp1-code", "namespace": NAMESPACE, "labels": {}, "annotations": noted}
    changed = {"metadata": own | {"managedFields": [helm, edit | {"time": stamp(NOW)}]}}
    api.objects["configmaps"].append(changed)
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "ConfigMap exp1-code, by kubectl-edit: data.train.py" in why
    assert "What to do next: Files from ConfigMaps were changed during the run" in why
    assert (
        "helm rollback exp1 REVISION -n team-a, with the newest revision of helm history exp1 -n team-a, restores"
        in why
    )
    del own["annotations"]
    changed["metadata"] = own | {"managedFields": [edit | {"time": stamp(NOW)}]}
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "have the owner of ConfigMap exp1-code apply the earlier version again" in why
    changed["metadata"]["managedFields"] = [helm, edit | {"time": stamp(NOW - 90000)}]
    assert "exp1-code" not in run_to(api, tmp_path, "why", "exp1").stdout, "the run began after it"


def hold(name: str, amount: int, namespace: str = NAMESPACE, **metadata: object) -> dict[str, Any]:
    """Return a pod that holds GPUs."""
    resources = {"limits": {"nvidia.com/gpu": amount}}
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": stamp(NOW - 900), **metadata},
        "spec": {"nodeName": "node1", "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Running"},
    }


def test_why_names_the_revision_with_an_image(api: SmallApi, tmp_path: Path) -> None:
    waiting = make_pod("worker-1")
    status = waiting["status"]["containerStatuses"][0]
    status["state"] = {"waiting": {"reason": "ErrImagePull", "message": "ml/a:1.4.O: not found"}}
    for each in api.objects["statefulsets"]:
        each["spec"]["template"]["spec"]["containers"][0]["image"] = "ml/a:1.4.O"
    api.objects["pods"] = make_pods(worker_1=waiting)
    api.objects["secrets"] = [make_revision(1, "ml/a:1.4.0"), make_revision(2, "ml/a:1.4.O")]
    words = "note: revision 1 of the release has the image ml/a:1.4.0, and ml/a:1.4.O came later: helm rollback exp1 1"
    assert words in run_to(api, tmp_path, "why", "exp1").stdout
    tags = [{"image": {"tag": tag}} for tag in ("1.4.0", "1.4.O")]
    api.objects["secrets"] = [make_revision(number, values=values) for number, values in enumerate(tags, 1)]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert 'revision 2\n    image.tag from "1.4.0" to "1.4.O"\n  next: if the last of them is the cause' in why
    api.refused["secrets"] = 403
    upgrade = {"manager": "helm", "time": stamp(NOW - 5)}
    for each in api.objects["statefulsets"]:
        each["metadata"]["managedFields"] = [upgrade]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "image.tag" not in why and "note: helm upgrade changed the StatefulSets at" in why


def test_why_names_who_uses_a_quota(api: SmallApi, tmp_path: Path) -> None:
    refused = (
        'pods "exp1-mnist-worker-1" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2, '
        "used: requests.nvidia.com/gpu=7, limited: requests.nvidia.com/gpu=8"
    )
    ended = hold("old", 9) | {"status": {"phase": "Succeeded"}}
    others = [hold(f"b-{number}", 3, labels={"app.kubernetes.io/instance": "exp-b"}) for number in range(2)]
    elsewhere = hold("c", 50, "other-team")
    api.objects["pods"] = [pod for pod in make_pods() if "worker-1" not in str(pod)]
    api.objects["pods"] += [ended, *others, hold("lab", 1), elsewhere]
    api.objects["events"] = [make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", refused)]
    template = api.objects["statefulsets"][1]["spec"]["template"]["spec"]
    template["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "5"}}
    since = describe_time(NOW - 900)
    users = f"release exp-b (6, since {since}), pod lab (1, since {since}), this release (1, since "
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert f"note: requests.nvidia.com/gpu of the quota team is used by {users}" in why
    assert "note: this release alone needs 10 of 8 requests.nvidia.com/gpu in the quota team: waiting, or" in why


@pytest.mark.parametrize("is_allowed", [True, False])
def test_why_names_who_holds_the_gpus_of_the_nodes(api: SmallApi, tmp_path: Path, is_allowed: bool) -> None:
    waiting = make_pod("worker-1", node="", conditions=[unschedulable("0/2 nodes: 2 Insufficient nvidia.com/gpu.")])
    owner = {"kind": "Job", "name": "sweep", "controller": True}
    api.objects["pods"] = [
        *make_pods(worker_1=waiting),
        hold("lab", 1),
        hold("s", 4, "vision", ownerReferences=[owner]),
    ]
    if not is_allowed:
        api.refused["/api/v1/pods"] = 403
    since = describe_time(NOW - 900)
    users = f"Job sweep in namespace vision (4, since {since}), " if is_allowed else ""
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert f"note: nvidia.com/gpu of the nodes is held by {users}pod lab (1, since {since})" in why


@pytest.mark.parametrize(
    ("preemption", "is_useless"),
    [("2 Preemption is not helpful for scheduling", True), ("2 No preemption victims found for incoming pod", False)],
)
def test_why_tells_what_is_held_from_what_no_node_has(
    api: SmallApi, tmp_path: Path, preemption: str, is_useless: bool
) -> None:
    words = (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/2 nodes "
    )
    waiting = make_pod("worker-1", node="", conditions=[unschedulable(f"{words}are available: {preemption}.")])
    api.objects["pods"] = [*make_pods(worker_1=waiting), hold("lab", 1)]
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert ("note: no node has as much nvidia.com/gpu as a pod asks for" in why) == is_useless
    assert ("is held by pod lab" in why) != is_useless


def test_why_does_not_take_one_burst_of_warnings_for_many(api: SmallApi, tmp_path: Path) -> None:
    step = {"attempt": 1, "step": 2900, "bestStep": 2900, "at": time.time()}
    api.objects |= {"configmaps": [make_record(make_state("Running", progress=step))], "jobs": [make_job()]}
    api.logs = {"exp1-mnist-chief-0": f"{stamp(NOW)} WARNING saver: failed to connect\n" * 4}
    assert "again and again" not in run_to(api, tmp_path, "why", "exp1").stdout


def test_quota_that_counts_finished_pods_is_explained(api: SmallApi, tmp_path: Path) -> None:
    refused = (
        'pods "exp1-mnist-worker-1" is forbidden: exceeded quota: team-objects, requested: count/pods=1, '
        "used: count/pods=9, limited: count/pods=9"
    )
    api.objects["pods"] = [pod for pod in make_pods() if "worker-1" not in str(pod)]
    api.objects["events"] = [make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", refused)]
    for number in range(7):
        owner = {"kind": "Job", "name": f"nightly-export-{number % 2}", "controller": True}
        metadata = {"name": f"nightly-{number}", "namespace": NAMESPACE, "ownerReferences": [owner]}
        api.objects["pods"].append({"metadata": metadata, "status": {"phase": "Succeeded"}})
    remark = "1 problem: quota-exceeded (quota team-objects: count/pods, 9 of 9 used)"
    assert run_to(api, tmp_path, "list").stdout.splitlines()[1].endswith(f"  {remark}")
    why = run_to(api, tmp_path, "why", "exp1").stdout
    assert "the quota team-objects counts finished pods too (count/pods, unlike pods)" in why
    assert (
        "7 of the 10 pods in the namespace have finished, of Job nightly-export-0 (4), Job nightly-export-1 (3)" in why
    )
    assert "next: Delete finished pods and Jobs of the namespace, or have the quota raised" in why
    assert "They count until they are deleted" in why and "for room" not in why


def test_pods_without_kept_lines_and_warnings_are_named(api: SmallApi, tmp_path: Path) -> None:
    end_run(api)
    kept = {
        "exp1-mnist-worker-1": {"at": NOW, "lines": ["step 1", "…", "ValueError: no data today"]},
        "exp1-mnist-worker-0": {"at": NOW, "lines": ["WARNING input: skipped train-00002.csv", "INFO 0 examples"]},
        "exp1-mnist-ps-0": {"at": NOW, "lines": []},
    }
    api.objects["configmaps"][0]["data"]["logs.json"] = json.dumps(kept)
    gone = "note: no lines of chief-0 were kept: when the run ended, its pod was gone"
    cut = "note: only some of the last lines of worker-1"
    done = run_to(api, tmp_path, "why", "exp1")
    assert "\n  worker-0 | WARNING input: skipped train-00002.csv\n\nThe last lines of " in done.stdout
    assert gone in done.stdout and cut in done.stdout
    done = run_to(api, tmp_path, "logs", "exp1")
    assert gone in done.stderr and cut in done.stderr
    assert gone not in run_to(api, tmp_path, "logs", "exp1", "--role", "worker").stderr


def test_logs_since_a_failure_at_no_time_are_all_of_them(api: SmallApi, tmp_path: Path) -> None:
    end_run(api, at=1e300)
    done = run_to(api, tmp_path, "logs", "exp1", "-n", NAMESPACE, "--since-failure")
    assert (done.returncode, "no data today" in done.stdout) == (0, True), done.stderr


def test_logs_that_may_not_be_read(api: SmallApi, tmp_path: Path) -> None:
    api.refused = {"logs": 403}
    done = run_to(api, tmp_path, "logs", "exp1", "-n", NAMESPACE)
    assert (done.returncode, done.stdout) == (9, "")
    assert "pods/log is forbidden" in done.stderr


def test_the_program_starts_without_the_kubernetes_client() -> None:
    code = "import sys, trainchart.cli.app; print([m for m in ('lightkube', 'httpx2', 'msgspec') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
