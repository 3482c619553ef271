"""What is said of the pod that shows the volumes of others: while it starts, and while its page is open."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.actions.support.viewer_pod import ViewerPod
from trainchart.cluster.io import kubernetes_api
from trainchart.errors import ClusterError, NotFound, NotInTime, Unreachable

NAME = "tensorboard-1"
LOST = Unreachable("cannot list pods: no answer")


def make_pod(*, ready: bool = False, ended: dict[str, Any] | None = None, phase: str = "Running") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    statuses = [{"name": "notebook", "state": {"running": {}}, "lastState": {"terminated": ended} if ended else {}}]
    return {
        "metadata": {"name": f"{NAME}-abc"},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": statuses},
    }


class Api:
    """A cluster whose pods are, look after look, what a test says; the last look goes on."""

    def __init__(self, *looks: list[dict[str, Any]] | Unreachable, events: tuple[dict[str, Any], ...] = ()) -> None:
        self.looks = list(looks)
        self.events = events
        self.is_installed = True

    def list_objects(self, kind: kubernetes_api.Kind, *_: str, **__: str) -> tuple[dict[str, Any], ...]:
        if kind is kubernetes_api.EVENTS:
            return self.events
        look = self.looks.pop(0) if self.looks[1:] else self.looks[0]
        if isinstance(look, Unreachable):
            raise look
        return tuple(look)

    def read_object(self, *_: str) -> dict[str, Any]:
        if not self.is_installed:
            raise NotFound("not found")
        return {}


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes only where something waits."""
    now = [0.0]
    monkeypatch.setattr(
        "trainchart.actions.support.viewer_pod.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    monkeypatch.setattr("trainchart.actions.support.viewer_pod.time.monotonic", lambda: now[0])


def make_viewer(api: Api, told: list[str] | None = None) -> ViewerPod:
    given: Any = api
    return ViewerPod(given, "team", NAME, "r/mnist:1", (told if told is not None else []).append)


def test_a_pod_that_gets_ready_is_found_also_after_lost_requests() -> None:
    viewer = make_viewer(Api([], LOST, LOST, [make_pod()], LOST, [make_pod(ready=True)]))
    viewer.await_ready()
    assert viewer.find_ready() == f"{NAME}-abc"


def test_a_cluster_that_stays_silent_is_an_error() -> None:
    with pytest.raises(Unreachable):
        make_viewer(Api([make_pod()], LOST)).await_ready()


def test_a_program_that_ends_while_it_starts_is_an_error() -> None:
    ended = {"exitCode": 1, "message": "No module named\ntensorboard", "finishedAt": "t1"}
    with pytest.raises(ClusterError, match="exit code 1: No module named tensorboard") as caught:
        make_viewer(Api([make_pod(ended=ended)])).await_ready()
    assert "does r/mnist:1 contain what it needs?" in caught.value.hint


def test_a_pod_that_is_refused_is_named_with_the_reason() -> None:
    event = {
        "metadata": {"name": "refusal.1"},
        "involvedObject": {"kind": "ReplicaSet", "name": f"{NAME}-5c"},
        "reason": "FailedCreate",
        "message": "exceeded quota",
    }
    with pytest.raises(ClusterError, match="refused: exceeded quota"):
        make_viewer(Api([], events=(event,))).await_ready()


def test_a_pod_that_is_silent_for_long_is_not_awaited_for_ever() -> None:
    with pytest.raises(NotInTime, match="ready for 600 seconds"):
        make_viewer(Api([make_pod()])).await_ready()


def test_an_evicted_pod_is_replaced_and_its_successor_watched() -> None:
    told: list[str] = []
    api = Api([make_pod(ready=True)], [make_pod(phase="Failed")], [], [make_pod()], [make_pod(ready=True)], LOST)
    with pytest.raises(Unreachable):
        make_viewer(api, told).watch()
    assert not api.looks[1:] and not told


def test_each_end_of_the_program_is_told_once() -> None:
    told: list[str] = []
    first, second = ({"exitCode": 137, "reason": "OOMKilled", "finishedAt": at} for at in ("t1", "t2"))
    looks = [[make_pod(ready=True, ended=each)] for each in (first, first, second)]
    with pytest.raises(Unreachable):
        make_viewer(Api(*looks, LOST), told).watch()
    assert (
        told
        == [f"note: the program of {NAME}-abc has ended with exit code 137: OOMKilled; Kubernetes starts it again"] * 2
    )


def test_an_uninstalled_release_is_named_as_such() -> None:
    api = Api([make_pod(ready=True)], [])
    api.is_installed = False
    with pytest.raises(ClusterError, match="tensorboard-1 was uninstalled meanwhile"):
        make_viewer(api).watch()
