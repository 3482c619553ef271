"""Reads from labels and annotations which tool applies an object from git, and so sets back other changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainchart.cluster.snapshot import Object, label, section

_ARGO_ID = "argocd.argoproj.io/tracking-id"
_ARGO_LABEL = "argocd.argoproj.io/instance"
_FLUX_KINDS = (
    ("helm.toolkit.fluxcd.io", "HelmRelease", "helmrelease"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization", "kustomization"),
)


@dataclass(frozen=True)
class GitOpsOwner:
    """What applies an object again and again."""

    name: str
    """Such as `the Argo CD application exp-7`."""
    pause: str
    """Command that makes it leave its objects alone."""

    @property
    def advice(self) -> str:
        """What to do so that it does not undo a change."""
        return f"set the value in Git too, or pause it first: {self.pause}"


def find_gitops_owner(objects: Iterable[Object]) -> GitOpsOwner | None:
    """Return what applies the first of `objects` that names such a tool; None where none does."""
    return next((owner for each in objects if (owner := _find_owner(each))), None)


def _find_owner(each: Object) -> GitOpsOwner | None:
    tracked = str(section(each, "metadata", "annotations").get(_ARGO_ID) or "").partition(":")[0]
    application = tracked or label(each, _ARGO_LABEL)
    if application:
        # The namespace is part of some tracking ids, as NAMESPACE_NAME.
        name = application.rpartition("_")[2]
        return GitOpsOwner(f"the Argo CD application {name}", f"argocd app set {name} --sync-policy none")
    for domain, kind, command in _FLUX_KINDS:
        name, namespace = label(each, f"{domain}/name"), label(each, f"{domain}/namespace")
        if name:
            return GitOpsOwner(f"the Flux {kind} {namespace}/{name}", f"flux suspend {command} {name} -n {namespace}")
    return None
