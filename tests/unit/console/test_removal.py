"""What uninstalling leaves: objects with helm's policy, and the claims that StatefulSets make."""

from __future__ import annotations

from typing import Any

from trainchart.console.removal import divide, warn_of


def make(kind: str, name: str, policy: str = "", **more: Any) -> dict[str, Any]:
    annotations = {"helm.sh/resource-policy": policy} if policy else None
    return {"kind": kind, "metadata": {"name": name, "annotations": annotations}, **more}


def test_kept_and_lost_claims_are_told_apart() -> None:
    size = {"resources": {"requests": {"storage": "5Gi"}}}
    objects = [
        make("PersistentVolumeClaim", "a", "keep", spec=size),
        make("PersistentVolumeClaim", "b", "delete", spec=size),
        make("ConfigMap", "c", "Keep "),
        make("ConfigMap", "d"),
        make("ConfigMap", "e"),
    ]
    kept, lost, kinds = divide(objects)
    assert kept == ["PersistentVolumeClaim a (5Gi)", "ConfigMap c"]
    assert lost == ["PersistentVolumeClaim b (5Gi)"]
    assert kinds == [("ConfigMap", 2), ("PersistentVolumeClaim", 1)]


def test_claims_of_a_set_stay_unless_it_deletes_them() -> None:
    templates = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}, "odd"]}
    retained = make("StatefulSet", "a", spec=templates)
    deleted = make(
        "StatefulSet", "b", spec={**templates, "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}
    )
    assert divide([retained, deleted, make("StatefulSet", "c")])[0] == ["PersistentVolumeClaims data-a-…"]


def test_a_tool_that_installs_again_is_named() -> None:
    warning = warn_of("the Argo CD application exp-7", "argocd app set exp-7 --sync-policy none")
    assert "the Argo CD application exp-7" in warning
    assert "argocd app set exp-7 --sync-policy none" in warning
