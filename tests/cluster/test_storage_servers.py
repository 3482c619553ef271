"""GlusterFS and Ceph in the test cluster: shared volumes that survive the loss of one of three storage servers."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.faults import Fault, Faults
from tests.cluster.testcluster.faults.storage_servers import kill_bricks, kill_osds
from tests.cluster.testcluster.pods import USER, dump_objects, plan_claim, plan_pod
from tests.cluster.testcluster.releases import TRAINING_GROUP, TRAINING_SECONDS, Release
from tests.cluster.testcluster.runs import ENDED, wait_for_phase
from tests.cluster.testcluster.servers import find_leftovers, find_missing, plan_server, start_server, stop_server
from tests.cluster.testcluster.storage_faults import diagnose, find_digest, plan_meeting, train
from tests.cluster.testcluster.storage_training import (
    DIES_AT,
    SAVED,
    WAITS_AT,
    ask,
    check_checkpoints,
    find_leader,
    plan_training,
)
from trainchart_training.saving.catalogue import find_steps

pytestmark = pytest.mark.cluster

GROUP = 4321
WRITE = """
import hashlib, json, os, pathlib, time
folder = pathlib.Path("/volume/files"); folder.mkdir()
done = errors = 0
slowest = 0.0
said = time.monotonic()
while True:
    start = time.monotonic()
    content = f"{done} ".encode() * 2000
    try:
        with open(folder / "new", "wb") as file:
            file.write(content); file.flush(); os.fsync(file.fileno())
        os.replace(folder / "new", folder / f"{done}")
        if (folder / f"{done}").read_bytes() != content:
            raise SystemExit(f"file {done} has changed")
        done += 1
    except OSError as error:
        errors += 1
        print(json.dumps({"error": str(error)}), flush=True)
        time.sleep(0.5)
    slowest = max(slowest, time.monotonic() - start)
    if time.monotonic() - said > 0.3:
        said = time.monotonic()
        print(json.dumps({"done": done, "errors": errors, "slowest": round(slowest, 2)}), flush=True)
    time.sleep(0.1)
"""
READ = """
import pathlib, sys
for number in range(int(sys.argv[1])):
    assert pathlib.Path(f"/volume/files/{number}").read_bytes() == f"{number} ".encode() * 2000, number
print("all there")
"""
SHARE = """
import os, pathlib, sys, time
own, peer = (pathlib.Path("/volume", name) for name in sys.argv[1:])
with open(f"{own}.new", "w") as file:
    file.write(own.name); file.flush(); os.fsync(file.fileno())
os.rename(f"{own}.new", own)
while not peer.exists():
    time.sleep(0.1)
found = own.stat(), pathlib.Path("/volume").stat()
print(peer.read_text(), *(f"{one.st_uid}:{one.st_gid}" for one in found))
"""


SEND = """
import base64, io, sys, tarfile
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w") as archive:
    archive.add("/volume")
print(base64.b64encode(packed.getvalue()).decode())
"""


@dataclass(frozen=True)
class Storage:
    """A running server, a namespace with a writing pod, and the faults that fit."""

    name: str
    namespace: str
    kill: Callable[..., Fault]
    numbers: tuple[int, ...]
    stop: Callable[[], list[str]]
    """Ends the server and returns what is left of it."""


@pytest.fixture(scope="module", params=["glusterfs", "cephfs"])
def storage(
    request: pytest.FixtureRequest, admin: Access, lasting_cluster: Cluster, module_namespace: str
) -> Iterator[Storage]:
    name = request.param
    server = plan_server(name)
    if reason := find_missing(server):
        pytest.skip(reason)

    def end() -> list[str]:
        admin.kubectl("delete", "pods,pvc", "--all", "--grace-period=0", "-n", module_namespace)
        admin.wait_for(lambda client: not _volumes(client, name), "no volumes", namespace=module_namespace)
        stop_server(server, lasting_cluster, admin)
        return find_leftovers(server, lasting_cluster)

    start_server(server, lasting_cluster, admin)
    try:
        write = _python("write", WRITE, node="node1", claim=name)
        pods = [_python(own, SHARE, own, peer, node=node, claim=name) for own, peer, node in _peers(name)]
        admin.kubectl(
            "apply", "-n", module_namespace, "-f", "-", text=dump_objects(_claim(name), _named(write, name), *pods)
        )
        kill, numbers = (kill_bricks, (1, 2, 3)) if name == "glusterfs" else (kill_osds, (0, 1, 2))
        yield Storage(name, module_namespace, kill, numbers, end)
    finally:
        end()


def test_pods_of_both_nodes_share_a_volume(admin: Access, storage: Storage) -> None:
    for own, peer, _ in _peers(storage.name):
        assert _wait_for_log(admin, storage.namespace, own).split() == [peer, f"{USER}:{GROUP}", f"0:{GROUP}"]
    claim = admin.client().get(PersistentVolumeClaim, storage.name, namespace=storage.namespace)
    assert claim.spec
    assert claim.spec.storageClassName == storage.name


@pytest.mark.long
def test_killed_storage_processes_lose_nothing(admin: Access, storage: Storage, faults: Faults) -> None:
    _go_on(admin, storage)
    one = faults.inflict(storage.kill(storage.numbers[0]))
    _go_on(admin, storage)
    faults.undo(one)
    assert _go_on(admin, storage)["errors"] == 0

    two = faults.inflict(storage.kill(*storage.numbers[1:]))
    _await_stall(admin, storage)
    # GlusterFS refuses writes and says so, Ceph lets them wait.
    errors = _read_errors(admin, storage)
    assert bool(errors) == (storage.name == "glusterfs")
    assert all("endpoint is not connected" in error for error in errors), errors
    faults.undo(two)
    _assert_all_there(admin, storage, _go_on(admin, storage)["done"])


@pytest.mark.parametrize(
    "strategy", ["parameter-server", pytest.param("multi-worker-mirrored", marks=pytest.mark.long)]
)
def test_a_training_on_it_loses_no_checkpoint(
    admin: Access, storage: Storage, faults: Faults, strategy: str, tmp_path: Path
) -> None:
    """One storage process is killed with -9 and comes back, then two; and the leading task dies while it saves."""
    release = plan_training(admin, storage.namespace, strategy, storage.name, tmp_path)
    release.install()
    leader = find_leader(release, strategy)
    _wait_for_step(release, leader, DIES_AT - 20)
    assert len({pod.spec.nodeName for pod in release.pods(admin.client()).values() if pod.spec}) == 2
    one = faults.inflict(storage.kill(storage.numbers[0]))
    # Killed between write and rename at the step before.
    _wait_for_step(release, leader, WAITS_AT)
    faults.undo(one)
    admin.kubectl("exec", leader, "-n", release.namespace, "--", "touch", "/checkpoints/go")

    two = faults.inflict(storage.kill(*storage.numbers[1:]))
    _wait_for_silence(release)
    faults.undo(two)
    state = wait_for_phase(release, *ENDED, deadline_seconds=TRAINING_SECONDS)
    assert state["phase"] == "Succeeded", state["verdict"]
    folder = _fetch(admin, storage, f"{release.name}-mnist-checkpoints", tmp_path)
    assert (folder / "died").exists()
    check_checkpoints(folder)
    release.uninstall()


@pytest.mark.long
def test_its_fault_is_named_and_the_checkpoint_before_restores(lasting_cluster: Cluster, storage: Storage) -> None:
    """CephFS has quotas; GlusterFS says of a folder that was exchanged that its handle is stale."""
    met = plan_meeting(storage.name)
    lasting_cluster.run_inside(["sh", "-ec", met.prepare])
    try:
        code, lines = train(lasting_cluster, met.folder, 60, met.inflict)
        lasting_cluster.run_inside(["sh", "-ec", met.mend])
        last, again = train(lasting_cluster, met.folder, 21, "true")
    finally:
        lasting_cluster.run_inside(["sh", "-c", met.remove], check=False)
    assert code == 1
    cause, error = diagnose(lines)
    assert cause.name == met.cause, lines
    assert error.startswith(f"error: worker 0: cannot save step 40 in {met.folder}: ")
    assert met.words in error
    assert last == 0, again
    assert find_digest(again, "began", 20) == find_digest(lines, "saved", 20) != ""


def test_a_stopped_storage_server_leaves_nothing(storage: Storage) -> None:
    assert storage.stop() == []


def _peers(name: str) -> tuple[tuple[str, str, str], ...]:
    return (f"{name}-a", f"{name}-b", "node1"), (f"{name}-b", f"{name}-a", "node2")


def _claim(name: str) -> dict[str, Any]:
    return plan_claim(name, name, "ReadWriteMany")


def _python(name: str, program: str, *arguments: str, node: str, claim: str) -> dict[str, Any]:
    pod = plan_pod(name, "", node=node, claim=claim, fs_group=GROUP)
    pod["spec"]["containers"][0]["command"] = ["python3", "-c", program, *arguments]
    return pod


def _named(pod: dict[str, Any], name: str) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "name": f"{name}-writer"}}


def _volumes(client: Client, name: str) -> list[PersistentVolume]:
    return [volume for volume in client.list(PersistentVolume) if volume.spec and volume.spec.storageClassName == name]


def _read_log(admin: Access, storage: Storage) -> list[dict[str, Any]]:
    lines = admin.kubectl("logs", f"{storage.name}-writer", "-n", storage.namespace, check=False).splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def _read_errors(admin: Access, storage: Storage) -> list[str]:
    return [line["error"] for line in _read_log(admin, storage) if "error" in line]


def _go_on(admin: Access, storage: Storage) -> dict[str, Any]:
    """Wait until further files are written, for two seconds at the least, and return what the writer said last."""
    least = _last_done(admin, storage) + 20

    def read(_: Client) -> dict[str, Any] | None:
        said = [line for line in _read_log(admin, storage) if line.get("done", -1) >= least]
        return said[-1] if said else None

    return admin.wait_for(read, f"{least} files on {storage.name}", namespace=storage.namespace)


def _await_stall(admin: Access, storage: Storage) -> None:
    """Wait until nothing is written for three seconds."""

    def read(_: Client) -> bool:
        before = _last_done(admin, storage)
        time.sleep(3)
        return before == _last_done(admin, storage)

    admin.wait_for(read, f"no further files on {storage.name}", namespace=storage.namespace)


def _last_done(admin: Access, storage: Storage) -> int:
    return max((line.get("done", 0) for line in _read_log(admin, storage)), default=0)


def _assert_all_there(admin: Access, storage: Storage, count: int) -> None:
    """Read every file that was reported as written, on the other node."""
    name = f"{storage.name}-reads-{count}"
    pod = _python(name, READ, str(count), node="node2", claim=storage.name)
    admin.kubectl("apply", "-n", storage.namespace, "-f", "-", text=dump_objects(pod))
    assert _wait_for_log(admin, storage.namespace, name) == "all there\n"


def _wait_for_log(admin: Access, namespace: str, pod: str) -> str:
    """Return what a pod printed once it has ended well."""

    def has_ended(client: Client) -> bool:
        status = client.get(Pod, pod, namespace=namespace).status
        assert status is None or status.phase != "Failed", admin.kubectl("logs", pod, "-n", namespace)
        return status is not None and status.phase == "Succeeded"

    admin.wait_for(has_ended, f"the end of pod {pod}", namespace=namespace)
    return admin.kubectl("logs", pod, "-n", namespace)


def _wait_for_step(release: Release, chief: str, least: int) -> None:
    """Wait until a checkpoint of a step is complete, as the chief's log says."""

    def read(_: Client) -> bool:
        argv = ("exec", chief, "-n", release.namespace, "--", "ls", "/checkpoints")
        return max(find_steps(release.access.kubectl(*argv, check=False).split()), default=0) >= least

    release.access.wait_for(read, f"step {least} saved", namespace=release.namespace, deadline_seconds=TRAINING_SECONDS)


def _wait_for_silence(release: Release) -> None:
    """Wait until the CLI says that the training stands still because its storage does not answer."""

    def read(_: Client) -> bool:
        return "storage-silent" in {each["cause"] for each in ask(release, "why")["problems"]}

    release.access.wait_for(read, f"{release.name} without storage", namespace=release.namespace)
    steps = [ask(release, "status")["progress"]["step"] for _ in range(2)]
    assert steps[0] == steps[1] < SAVED[-1]


def _fetch(admin: Access, storage: Storage, claim: str, folder: Path) -> Path:
    """Copy a volume here through a pod on the other node, byte by byte."""
    name = f"{claim}-sends"
    pod = plan_pod(name, "sleep 600", node="node2", claim=claim, fs_group=TRAINING_GROUP, is_read_only=True)
    admin.kubectl("apply", "-n", storage.namespace, "-f", "-", text=dump_objects(pod))
    admin.wait_for(lambda client: _is_running(client, name, storage.namespace), name, namespace=storage.namespace)
    packed = admin.kubectl("exec", name, "-n", storage.namespace, "--", "python3", "-c", SEND)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "volume"


def _is_running(client: Client, name: str, namespace: str) -> bool:
    status = client.get(Pod, name, namespace=namespace).status
    return status is not None and status.phase == "Running"
