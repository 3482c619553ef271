"""Who applies a release from git is read from what that tool writes on its objects."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.cluster.gitops import GitOpsOwner, find_gitops_owner

FLUX = "toolkit.fluxcd.io"


@pytest.mark.parametrize(
    ("metadata", "name", "pause"),
    [
        (
            {"annotations": {"argocd.argoproj.io/tracking-id": "exp1:apps/StatefulSet:team-a/exp1-mnist-ps"}},
            "the Argo CD application exp1",
            "argocd app set exp1 --sync-policy none",
        ),
        (
            {"annotations": {"argocd.argoproj.io/tracking-id": "argo-a_exp1:apps/StatefulSet:team-a/exp1-mnist-ps"}},
            "the Argo CD application exp1",
            "argocd app set exp1 --sync-policy none",
        ),
        (
            {"labels": {"argocd.argoproj.io/instance": "exp1"}},
            "the Argo CD application exp1",
            "argocd app set exp1 --sync-policy none",
        ),
        (
            {"labels": {f"helm.{FLUX}/name": "exp1", f"helm.{FLUX}/namespace": "team-a"}},
            "the Flux HelmRelease team-a/exp1",
            "flux suspend helmrelease exp1 -n team-a",
        ),
        (
            {"labels": {f"kustomize.{FLUX}/name": "models", f"kustomize.{FLUX}/namespace": "flux-system"}},
            "the Flux Kustomization flux-system/models",
            "flux suspend kustomization models -n flux-system",
        ),
    ],
)
def test_the_owner_and_how_to_pause_it_are_named(metadata: dict[str, Any], name: str, pause: str) -> None:
    assert find_gitops_owner([{"metadata": {}}, {"metadata": metadata}]) == GitOpsOwner(name, pause)


def test_a_release_that_helm_applies_has_no_such_owner() -> None:
    assert find_gitops_owner([{"metadata": {"labels": {"app.kubernetes.io/instance": "exp1"}}}]) is None
