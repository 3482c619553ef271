"""The program of helper pods on every Python that images have, and what is said of pods that do not do their work."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.launcher.test_python_versions import INTERPRETERS
from trainchart.actions.support import checkpoint_pod, checkpoint_release
from trainchart.actions.support.checkpoint_folder import read_list
from trainchart.actions.support.checkpoint_pod import Helper
from trainchart.actions.support.checkpoint_program import is_sending
from trainchart.actions.support.checkpoint_work import verify_folder
from trainchart.actions.support.checkpoint_zipapp import MODULES, build_program
from trainchart.checkpoints import wire
from trainchart.checkpoints.helper_pod import HelperPod
from trainchart.checkpoints.release_volume import ReleaseVolume
from trainchart.cluster.io import kubernetes_api
from trainchart.errors import ClusterError, NotInTime, ToolError, Unreachable

FIXTURE = Path(__file__).parents[2] / "fixtures" / "checkpoints"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "checkpoints.pyz"
    path.write_bytes(build_program())
    return path


def run(program: Path, settings: dict[str, Any], python: str = sys.executable) -> list[str]:
    file = program.with_name("settings.json")
    file.write_text(json.dumps(settings))
    argv = [python, "-I", "-S", program, file]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.split("/")[-3])
def test_the_program_needs_nothing_but_python(program: Path, python: str) -> None:
    lines = run(program, {"action": "verify", "folder": str(FIXTURE)}, python)
    found = wire.unpack_lines(lines)
    assert found is not None and wire.parse_verified(found) == verify_folder(FIXTURE, None, lambda _: None)
    assert lines[0] == f"{wire.NOTE}reading step 40 (3,937 bytes)"
    listed = wire.unpack_lines(run(program, {"action": "list", "folder": str(FIXTURE)}, python))
    assert listed is not None and len(wire.parse_list(listed).checkpoints) == 2


def test_the_program_prunes_what_is_not_used(program: Path, tmp_path: Path) -> None:
    for path in FIXTURE.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    owners = tmp_path / ".trainchart" / "owners"
    owners.mkdir(parents=True)
    (owners / "exp-worker-0.owner").write_text("{}")
    plan = {"action": "plan", "folder": str(tmp_path), "keep": 1}
    for alive in (None, ["exp-worker-0"]):
        found = wire.unpack_lines(run(program, {**plan, "alive": alive}))
        assert found is not None
        error = wire.find_error(found)
        assert isinstance(error, ToolError) and error.message == f"{tmp_path} is in use"
    found = wire.unpack_lines(run(program, {**plan, "alive": ["exp-worker-1"]}))
    assert found is not None
    pruning = wire.parse_pruning(found)
    assert (pruning.kept, pruning.removed) == ([40], [20])
    removal = {"action": "prune", "kept": [40], "removed": [20], "size": 1, "alive": []}
    run(program, {**removal, "folder": str(tmp_path)})
    assert not list(tmp_path.glob("ckpt-20*")) and list(tmp_path.glob("ckpt-40*"))


def test_a_file_is_sent_from_an_offset_on(program: Path) -> None:
    argv = [sys.executable, "-I", "-S", program, "send", FIXTURE / "ckpt-40.index", "900"]
    sent = subprocess.run(argv, capture_output=True, check=True).stdout
    assert sent == (FIXTURE / "ckpt-40.index").read_bytes()[900:]


def test_sending_ends_where_nothing_takes_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(4_000_000))
    code = "from pathlib import Path; from trainchart.actions.support import checkpoint_program as program\n"
    code += f"program._BLOCK_SECONDS = 1\nprogram.send(Path({str(tmp_path / 'large')!r}), 0)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as sender:
        assert sender.wait(timeout=30) == -signal.SIGALRM


def test_the_program_uses_nothing_newer_than_python_3_8(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    folders = (root / "generator", root / "training-images" / "runtime", root / "training-images" / "training")
    paths = [
        path for name in MODULES for folder in folders if (path := folder / f"{name.replace('.', '/')}.py").exists()
    ]
    assert len(paths) == len(MODULES)
    vermin = [Path(sys.executable).with_name("vermin"), "--target=3.8-", "--violations", "--no-tips"]
    # The library's comparison of two models is not part of what the program does.
    used = [path for path in paths if path.name != "catalogue.py"]
    done = subprocess.run([*vermin, "--backport", "typing", *used], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_who_sends_is_seen_among_the_processes(tmp_path: Path) -> None:
    for number, words in (("1", b"python3\0x.pyz\0settings.json"), ("self", b"python3\0send"), ("12", b"")):
        (tmp_path / number).mkdir()
        (tmp_path / number / "cmdline").write_bytes(words)
    assert not is_sending(tmp_path)
    (tmp_path / "12" / "cmdline").write_bytes(b"python3\0x.pyz\0send\0name\x000\0")
    assert is_sending(tmp_path)


class FakeApi:
    """A cluster with one pod, which stays as it is."""

    def __init__(self, pod: dict[str, Any] | None, events: list[dict[str, Any]], log: str, job: dict[str, Any]) -> None:
        self.found = {kubernetes_api.PODS: [] if pod is None else [pod], kubernetes_api.EVENTS: events}
        self.log, self.job = log, job

    def list_objects(self, kind: Any, namespace: str, **options: Any) -> Any:
        return tuple(self.found[kind])

    def read_log(self, *names: str) -> list[str]:
        return [f"2026-11-28T11:00:00Z {line}" for line in self.log.splitlines()]

    def read_object(self, *names: Any) -> dict[str, Any]:
        return self.job


def make_pod(state: dict[str, Any], **status: Any) -> dict[str, Any]:
    statuses = [{"name": "checkpoints", "state": state}]
    return {
        "metadata": {"name": "helper-x"},
        "spec": {"nodeName": "n"},
        "status": {"containerStatuses": statuses, **status},
    }


def make_event(kind: str, name: str, reason: str, message: str) -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    return {"metadata": {"name": f"{name}.1"}, "involvedObject": about, "reason": reason, "message": message}


ENDED = {"conditions": [{"type": "Failed", "reason": "DeadlineExceeded", "status": "True"}]}
PULL = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image x"}}
FULL = "pods is forbidden: exceeded quota: team"


@pytest.mark.parametrize(
    ("pod", "events", "log", "job", "kind", "words"),
    [
        (make_pod(PULL), [], "", {}, ClusterError, "does not start: Back-off pulling image x"),
        (None, [make_event("Job", "helper", "FailedCreate", FULL)], "", {}, ClusterError, "exceeded quota: team"),
        (None, [], "", ENDED, NotInTime, "the pod helper has not ended within 60 seconds"),
        (
            make_pod({"terminated": {"message": "no such file"}}),
            [],
            "x",
            {},
            ClusterError,
            "in the image i: no such file",
        ),
        (make_pod({"running": {}}), [], "trainchart-end 5", {}, ClusterError, "cannot be read: a part"),
        (
            make_pod({}),
            [make_event("Pod", "helper-x", "FailedMount", "MountVolume.SetUp failed")],
            "",
            {},
            ClusterError,
            "does not start: MountVolume.SetUp failed",
        ),
    ],
    ids=["pull", "quota", "deadline", "failed", "nonsense", "mount"],
)
def test_a_pod_that_does_not_answer_is_explained(
    monkeypatch: pytest.MonkeyPatch, pod: Any, events: Any, log: str, job: Any, kind: type[Exception], words: str
) -> None:
    for name in ("_PATIENCE_SECONDS", "_PULL_SECONDS", "_REFUSED_SECONDS"):
        monkeypatch.setattr(checkpoint_pod, name, 0.0)
    with pytest.raises(kind, match=words):
        make_helper(FakeApi(pod, events, log, {"status": job})).await_result()


def make_helper(api: Any) -> Helper:
    return Helper(
        api, "team", HelperPod("helper", ReleaseVolume("exp", "team", "c"), "i", "", False, 60), lambda _: None
    )


RESULT = "\n".join(wire.pack_lines(wire.dump_list(read_list(FIXTURE), None)))


class Unsteady(FakeApi):
    """A cluster that does not answer some of the first questions about pods."""

    def __init__(self, answers: list[Exception | None], pods: list[Any], job: dict[str, Any]) -> None:
        super().__init__(None, [], RESULT, {"status": job})
        self.answers, self.pods = answers, pods

    def list_objects(self, kind: Any, namespace: str, **options: Any) -> Any:
        if kind is not kubernetes_api.PODS:
            return ()
        error = self.answers.pop(0) if self.answers else None
        if error is not None:
            raise error
        return tuple(self.pods.pop(0) if len(self.pods) > 1 else self.pods[0])


def test_a_cluster_that_is_gone_for_a_moment_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_pod, "_POLL_SECONDS", 0.0)
    gone = Unreachable("cannot list pods")
    pods = [[make_pod({"running": {}})]]
    found = make_helper(Unsteady([gone, gone, None], pods, {})).await_result()
    assert len(wire.parse_list(found).checkpoints) == 2
    with pytest.raises(Unreachable):
        make_helper(Unsteady([gone] * 6, pods, {})).await_result()


@pytest.mark.parametrize(
    ("job", "words"), [({}, "was deleted in the meantime"), (ENDED, "has not ended within 60 seconds")]
)
def test_a_pod_that_goes_before_it_has_told_is_explained(
    monkeypatch: pytest.MonkeyPatch, job: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr(checkpoint_pod, "_POLL_SECONDS", 0.0)
    api = Unsteady([], [[make_pod({"running": {}})], []], job)
    api.log = f"{wire.NOTE}reading"
    with pytest.raises((ClusterError, NotInTime), match=words):
        make_helper(api).await_result()


def test_the_log_of_an_ended_pod_may_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_pod, "_POLL_SECONDS", 0.0)
    api = Unsteady([], [[make_pod({"terminated": {"exitCode": 0}})]], {})
    logs = ["", RESULT[:50], RESULT]
    api.read_log = lambda *names: [f"now {line}" for line in logs.pop(0).splitlines()]  # type: ignore[method-assign]
    assert len(wire.parse_list(make_helper(api).await_result()).checkpoints) == 2
    logs += [""] * 20
    with pytest.raises(ClusterError, match="has failed in the image i: no message"):
        make_helper(api).await_result()


class Sender:
    """A helper whose connections end after some bytes."""

    def __init__(self, content: bytes, piece: int, *, is_stuck: bool = False) -> None:
        self.content, self.piece, self.is_stuck, self.offsets = content, piece, is_stuck, list[int]()

    def read_file(self, name: str, offset: int) -> Iterator[bytes]:
        self.offsets.append(offset)
        if self.is_stuck and offset:
            raise Unreachable("it is gone")
        yield self.content[offset : offset + self.piece]
        if offset + self.piece < len(self.content):
            raise Unreachable("the connection has ended")


def receive(sender: Any, size: int, path: Path) -> bytes:
    with path.open("wb") as copy:
        checkpoint_release._receive_file(sender, "x", size, copy, checkpoint_release._Progress(size, lambda _: None))
    return path.read_bytes()


def test_a_lost_connection_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    content = bytes(range(250))
    sender = Sender(content, 100)
    assert receive(sender, 250, tmp_path / "x") == content and sender.offsets == [0, 100, 200]
    stuck = Sender(content, 100, is_stuck=True)
    with pytest.raises(Unreachable):
        receive(stuck, 250, tmp_path / "x")
    assert stuck.offsets == [0, *[100] * 4]


@pytest.mark.parametrize(("size", "words"), [(251, "less than 251"), (249, "more than 249")])
def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, size: int, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        receive(Sender(bytes(250), 1000), size, tmp_path / "x")
