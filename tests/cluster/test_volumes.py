"""Volumes as releases use them: of each pod, one claim for two releases, and a claim of one node for pods on two."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import PersistentVolumeClaim

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.pods import dump_objects, plan_claim
from tests.cluster.testcluster.releases import IDLE, SMALL, Release, merge_values
from tests.support.golden_charts import render_case, write_chart

pytestmark = pytest.mark.cluster

CASE = "multi-worker-mirrored"
"""Its chart has checkpoints, and a volume scratch that each worker has for itself."""
SPREAD = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}]


Make = Callable[[str, Mapping[str, Any]], Release]


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts") / CASE
    write_chart(folder, render_case(CASE))
    return folder


@pytest.fixture
def make(admin: Access, namespace: str, chart: Path) -> Make:
    return functools.partial(make_release, admin, namespace, chart)


def make_release(admin: Access, namespace: str, chart: Path, name: str, changes: Mapping[str, Any]) -> Release:
    """A release of two idle workers, one a node."""
    worker = {**SMALL, "replicas": 2, "gpus": 0, "topologySpreadConstraints": SPREAD}
    values = {
        "image": {"repository": f"{REGISTRY_HOST}/ml/mnist", "tag": "1.0.0"},
        "run": {"controller": {"enabled": False}},
        "roles": {"worker": worker, "evaluator": {**SMALL, "replicas": 0}},
        "volumes": {"checkpoints": {"storageClass": "shared", "size": "1Gi"}, "scratch": {"size": "100Mi"}},
    }
    return Release(admin, namespace, name, chart, merge_values(merge_values(values, IDLE), changes))


def in_pod(release: Release, ordinal: int, command: str) -> str:
    pod = f"{release.name}-{CASE}-worker-{ordinal}"
    return release.access.kubectl("exec", pod, "-c", "training", "-n", release.namespace, "--", "sh", "-c", command)


@pytest.mark.parametrize("storage_class", ["", "shared"])
def test_each_pod_has_a_volume_of_its_own(make: Make, admin: Access, namespace: str, storage_class: str) -> None:
    release = make("own", {"volumes": {"scratch": {"storageClass": storage_class}}})
    release.install()
    release.wait_until_running(2)

    for ordinal in (0, 1):
        in_pod(release, ordinal, f'echo {ordinal} > "$TRAINCHART_SCRATCH_DIR/mine"')
    assert [in_pod(release, ordinal, "cat /scratch/mine") for ordinal in (0, 1)] == ["0\n", "1\n"]
    claims = {f"own-{CASE}-worker-{ordinal}-volume-scratch" for ordinal in (0, 1) if storage_class}
    checkpoints = f"own-{CASE}-checkpoints"
    assert list_claims(admin.client(), namespace) == {checkpoints, *claims}

    release.uninstall()
    only_checkpoints = f"only the claim {checkpoints}"
    admin.wait_for(
        lambda client: list_claims(client, namespace) == {checkpoints}, only_checkpoints, namespace=namespace
    )


def test_two_releases_share_a_claim_but_no_folder(make: Make, admin: Access, namespace: str) -> None:
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(plan_claim("team", "shared", "ReadWriteMany")))
    shared = {"existingClaim": "team", "size": "", "subPath": "runs/$(TRAINCHART_RELEASE)", "keep": False}
    releases = [make(name, {"volumes": {"checkpoints": shared}}) for name in ("a", "b")]
    for release in releases:
        release.install()
    for release in releases:
        release.wait_until_running(2)
        in_pod(release, 0, f'echo {release.name} > "$TRAINCHART_CHECKPOINTS_DIR/ckpt"')
    for release in releases:
        assert in_pod(release, 1, "cat /checkpoints/ckpt") == f"{release.name}\n"

    whole = make("all", {"volumes": {"checkpoints": {**shared, "subPath": ""}}})
    whole.install()
    whole.wait_until_running(2)
    assert in_pod(whole, 0, "cd /checkpoints && ls runs/*/ckpt") == "runs/a/ckpt\nruns/b/ckpt\n"

    twin = make("twin", {"volumes": {"checkpoints": {**shared, "subPath": "runs/a"}}})
    told = [("list",), *((command, release) for command in ("status", "why") for release in ("a", "b", "all"))]
    assert not any("checkpoint folder" in explain(admin, namespace, *each) for each in told)
    twin.install()
    twin.wait_until_running(2)
    for command in ("status", "why"):
        assert "note: shares its checkpoint folder with twin since 20" in explain(admin, namespace, command, "a")
        assert f"twin-{CASE}-worker-0, twin-{CASE}-worker-1 write to claim team/runs/a as well" in (
            explain(admin, namespace, command, "a")
        )
        assert "with a since" in explain(admin, namespace, command, "twin")
        assert "checkpoint folder" not in explain(admin, namespace, command, "b")


def test_pods_of_two_nodes_for_a_claim_of_one_are_explained(make: Make, admin: Access, namespace: str) -> None:
    admin.kubectl(
        "apply", "-n", namespace, "-f", "-", text=dump_objects(plan_claim("disk", "local-rwo", "ReadWriteOnce"))
    )
    disk = {"existingClaim": "disk", "size": "", "keep": False}
    release = make("exp", {"volumes": {"checkpoints": disk}})
    release.install()

    def read(_: Client) -> str | None:
        why = explain(admin, namespace, "why", "exp")
        return why if "the claim disk is ReadWriteOnce" in why else None

    why = admin.wait_for(read, "the claim in trainchart why", namespace=namespace)
    assert "serves one node at a time" in why and "ReadWriteMany" in why
    assert all(f"exp-{CASE}-worker-{ordinal} on node" in why for ordinal in (0, 1))


def explain(admin: Access, namespace: str, *command: str) -> str:
    """Return what a command of trainchart says of a namespace, or of a release in it."""
    return admin.run([sys.executable, "-m", "trainchart", *command, "-n", namespace], check=False).stdout


def list_claims(client: Client, namespace: str) -> set[str]:
    found = client.list(PersistentVolumeClaim, namespace=namespace)
    return {str(claim.metadata.name) for claim in found if claim.metadata}
