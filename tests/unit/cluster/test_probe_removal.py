"""What belongs to a Job is removed with it, also what is made while it is being deleted."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.cluster.io import kubernetes_api, probe
from trainchart.errors import NotFound


class Api:
    """A cluster in which a Job's pods are, look by look."""

    def __init__(self, *looks: int, is_there: bool = True) -> None:
        self.looks, self.is_there = list(looks), is_there
        self.pod: dict[str, Any] = {"metadata": {"name": "helper-x"}}

    def delete_object(self, kind: Any, namespace: str, name: str) -> None:
        if not self.is_there:
            raise NotFound(name)

    def list_objects(self, kind: Any, namespace: str, *, labels: str) -> Any:
        if kind is not kubernetes_api.PODS:
            return ()
        return (self.pod,) * self.looks.pop(0)


@pytest.mark.parametrize("looks", [(1, 0), (0, 0), (0, 1, 0), (1, 1, 0)])
def test_a_pod_that_comes_late_is_waited_for(monkeypatch: pytest.MonkeyPatch, looks: tuple[int, ...]) -> None:
    monkeypatch.setattr(probe, "_POLL_SECONDS", 0.0)
    api: Any = Api(*looks)
    assert probe.remove(api, "team", "helper") == []
    assert api.looks == []


def test_what_stays_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(probe, "_REMOVAL_SECONDS", -1.0)
    api: Any = Api(1)
    assert probe.remove(api, "team", "helper") == ["Pod helper-x"]
    gone: Any = Api(is_there=False)
    assert probe.remove(gone, "team", "helper") == []


def test_a_damaged_pod_does_not_end_the_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_REMOVAL_SECONDS", -1.0)
    api: Any = Api(1)
    api.pod = {"metadata": "helper-x"}
    assert probe.remove(api, "team", "helper") == ["Pod (without a name)"]
