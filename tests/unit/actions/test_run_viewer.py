"""How the release that shows the volumes of others is removed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import make_set
from trainchart.actions.support import run_viewer
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.run_viewer import ViewerRequest
from trainchart.cluster.io.kubernetes_api import Kind
from trainchart.errors import Forbidden, NotFound, ToolError, UsageError
from trainchart.helm.io.release import HelmInstall
from trainchart_runtime.contract import INSTANCE_LABEL, TENSORBOARD_DIR

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


INSTALL = HelmInstall("tensorboard-1", "team", "", ("chart",))
KINDS = {"networkpolicies", "services", "deployments", "secrets"}


class Api:
    """A cluster of which kinds are there, or may not be read."""

    def __init__(self, *there: str, hidden: tuple[str, ...] = ()) -> None:
        self.there, self.hidden = there, hidden

    def read_object(self, kind: Kind, *_: str) -> dict[str, Any]:
        assert kind.plural in KINDS
        if kind.plural in self.hidden:
            raise Forbidden("not yours")
        if kind.plural not in self.there:
            raise NotFound("not there")
        return {}


def uninstall(*there: str, hidden: tuple[str, ...] = ()) -> list[str]:
    told: list[str] = []
    api: Any = Api(*there, hidden=hidden)
    run_viewer._uninstall(api, INSTALL, told.append)
    return told


def test_a_second_signal_does_not_end_the_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(run_viewer, "run_uninstall", lambda *_: seen.extend(map(signal.getsignal, NUMBERS)))
    assert not uninstall()
    assert seen == [signal.SIG_IGN] * 3


def test_a_failed_removal_is_told_where_something_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> None:
        raise ToolError("helm uninstall exited with 1: no answer")

    monkeypatch.setattr(run_viewer, "run_uninstall", fail)
    for kind in KINDS:
        (told,) = uninstall(kind)
        assert "to remove it: helm uninstall tensorboard-1 --namespace team" in told
    assert uninstall(hidden=("services",))
    assert not uninstall()
    assert not uninstall(hidden=("secrets",))


@pytest.mark.parametrize("given", ["jupyter=false", "gpus=1,tokenSecret=x", " jupyter =true"])
def test_values_that_the_command_decides_are_refused(given: str) -> None:
    with pytest.raises(UsageError, match="this command sets it itself"):
        run_viewer._refuse_decided(["resources.limits.cpu=2", given])


def test_other_values_are_taken() -> None:
    run_viewer._refuse_decided(["env[0].value=a\\,jupyter=false", "runs.exp-7.writable=true"])


PENDING = "pending-logs"


class Cluster:
    """A cluster with the StatefulSets of two releases."""

    def __init__(self, *logs: str) -> None:
        self.sets = [_make_set(release, has_logs=release in logs) for release in ("pending", "exp-1", "exp.2")]

    def list_objects(self, kind: Kind, _: str, *, labels: str = "", **__: str) -> tuple[dict[str, Any], ...]:
        if kind.plural != "statefulsets":
            return ()
        release = labels.removeprefix("app.kubernetes.io/instance=") if "instance=" in labels else ""
        return tuple(each for each in self.sets if release in ("", each["metadata"]["labels"][INSTANCE_LABEL]))

    def read_object(self, _: Kind, __: str, name: str) -> dict[str, Any]:
        phase = "Pending" if name == PENDING else "Bound"
        return {"metadata": {"name": name}, "spec": {"volumeName": "pv"}, "status": {"phase": phase}}


def _make_set(release: str, *, has_logs: bool) -> dict[str, Any]:
    made = make_set("worker", release=release)
    if has_logs:
        spec = made["spec"]["template"]["spec"]
        spec["containers"][0]["env"].append({"name": TENSORBOARD_DIR, "value": "/logs"})
        spec["containers"][0]["volumeMounts"] = [{"name": "logs", "mountPath": "/logs"}]
        spec["volumes"] = [{"name": "logs", "persistentVolumeClaim": {"claimName": f"{release}-logs"}}]
    return made


def find(*releases: str, logs: tuple[str, ...]) -> tuple[list[str], list[str]]:
    told: list[str] = []
    request = ViewerRequest(
        *("tensorboard", Place(), releases, "", (), 0), has_jupyter=False, keeps=False, opens_browser=False
    )
    cluster: Any = Cluster(*logs)
    return [each.name for each in run_viewer._find_shown(cluster, "team-a", request, told.append)], told


def test_of_all_releases_those_without_logs_are_left_out() -> None:
    waiting = "note: pending is left out: the claim pending-logs has no volume: it is Pending"
    assert find(logs=("pending", "exp-1", "exp.2")) == (["exp-1", "exp.2"], [waiting])
    shown, told = find(logs=("exp.2",))
    assert (shown, told[:1]) == (["exp.2"], ["note: exp-1 is left out: the release exp-1 keeps no logs"])
    with pytest.raises(ToolError, match=r"the release .* keeps no logs"):
        find(logs=())
    with pytest.raises(ToolError, match="exp-1 keeps no logs"):
        find("exp-1", "exp.2", logs=("exp.2",))
