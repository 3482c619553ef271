"""What Deployments show of model servers: phase, model, record, canary; odd ones are read as far as they go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.model_server_objects import make_deployment, make_promotion
from trainchart.promotion.servers import NOT_READY, OFF, ROLLING_OUT, SERVING, STUCK, list_servers_of, read_servers


def test_a_server_tells_what_serves_since_when_and_from_what() -> None:
    (server,) = read_servers([make_deployment(promotion=make_promotion())])
    assert (server.namespace, server.name, server.model, server.stable.version) == ("team-a", "digits", "digits", "300")
    assert (server.stable.phase, server.stable.ready, server.stable.wanted) == (SERVING, 2, 2)
    assert server.since == ("2026-11-28T18:00:00Z", "alice")
    assert [each.name for each in list_servers_of([server], "team-a", "exp1")] == ["digits"]
    assert not list(list_servers_of([server], "team-b", "exp1"))
    assert not list(list_servers_of([server], "team-a", "exp2"))


def test_a_canary_belongs_to_its_server() -> None:
    canary = make_deployment("digits-canary", version=350, track="canary", wanted=1, weight="10")
    (server,) = read_servers([canary, make_deployment()])
    assert server.canary is not None
    assert (server.canary.version, server.canary.ready, server.weight) == ("350", 1, "10")


def test_a_record_of_another_model_says_nothing() -> None:
    (server,) = read_servers([make_deployment(promotion=make_promotion(version=200))])
    assert (server.record.promotion, server.record.takeback, server.since) == (None, None, ("", ""))


def test_a_model_that_came_back_serves_since_then() -> None:
    back = {"revision": 3, "version": 310, "why": "the pods failed", "at": "2026-11-28T19:00:00Z", "by": "bob"}
    (server,) = read_servers([make_deployment(promotion=make_promotion(rolledBack=back))])
    assert server.since == ("2026-11-28T19:00:00Z", "bob")
    # What was not promoted can come back, too.
    (server,) = read_servers([make_deployment(promotion={"rolledBack": back})])
    assert server.since == ("2026-11-28T19:00:00Z", "bob")


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({"availableReplicas": 1}, ROLLING_OUT),
        ({"availableReplicas": 0}, NOT_READY),
        ({"updatedReplicas": 1, "replicas": 3}, ROLLING_OUT),
        ({"observedGeneration": 2}, ROLLING_OUT),
        ({"conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}, STUCK),
    ],
)
def test_phases_of_a_rollout(changes: dict[str, Any], phase: str) -> None:
    deployment = make_deployment()
    deployment["status"] |= changes
    assert read_servers([deployment])[0].stable.phase == phase


def test_a_server_without_pods_is_off() -> None:
    assert read_servers([make_deployment(wanted=0)])[0].stable.phase == OFF


@pytest.mark.parametrize("text", ["{", "[1]", '"x"', "null", "[" * 5000, '{"model": 1, "from": []}', '{"at": NaN}'])
def test_records_that_make_no_sense_are_none(text: str) -> None:
    deployment = make_deployment()
    deployment["metadata"]["annotations"] = {"trainchart/promotion": text}
    assert read_servers([deployment])[0].since == ("", "")


def test_a_deployment_that_is_almost_empty_is_read() -> None:
    labels = {"app.kubernetes.io/instance": "digits"}
    bare = {"metadata": {"name": "digits", "namespace": "team-a", "labels": labels}}
    (server,) = read_servers([bare])
    assert (server.stable.version, server.stable.phase) == ("", NOT_READY)
    # The canary alone, while the other is being deleted.
    (server,) = read_servers([make_deployment("digits-canary", track="canary")])
    assert server.stable.wanted in (0, 1)
