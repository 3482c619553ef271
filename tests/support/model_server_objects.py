"""Deployments of model servers, as the chart makes them and a cluster completes them."""

from __future__ import annotations

import json
from typing import Any

HASH = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
CLAIM = "exp1-mnist-checkpoints"


def make_promotion(version: int = 300, release: str = "exp1", by: str = "alice", **more: Any) -> dict[str, Any]:
    """Return what `trainchart promote` records."""
    model = {"version": version, "content": HASH, "claim": CLAIM, "path": "saved_model"}
    source = {"release": release, "run": "1f", "step": version, "chart": "mnist-0.1.0", "metrics": {"accuracy": 0.93}}
    gates = ["accuracy>=0.9"]
    return {"at": "2026-11-28T18:00:00Z", "by": by, "gates": gates, "model": model, "from": source, **more}


def make_deployment(
    name: str = "digits",
    *,
    namespace: str = "team-a",
    version: int = 300,
    track: str = "stable",
    wanted: int = 2,
    promotion: Any = None,
    weight: str = "",
) -> dict[str, Any]:
    """Return a Deployment all of whose pods are available."""
    labels = {
        "app.kubernetes.io/instance": name.removesuffix("-canary"),
        "app.kubernetes.io/component": "model-server",
        "trainchart/track": track,
        "helm.sh/chart": "digits-prod-0.1.0",
    }
    annotations = {"trainchart/promotion": json.dumps(promotion)} if promotion else {}
    annotations |= {"trainchart/weight": weight} if weight else {}
    pod = {
        "trainchart/model": name.removesuffix("-canary"),
        "trainchart/version": str(version),
        "trainchart/content": HASH,
    }
    volumes = [{"name": "source", "persistentVolumeClaim": {"claimName": CLAIM}}]
    numbers = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), wanted)
    return {
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels, "annotations": annotations, "generation": 3,
        },
        "spec": {"replicas": wanted, "template": {"metadata": {"annotations": pod}, "spec": {"volumes": volumes}}},
        "status": {"observedGeneration": 3, **numbers},
    }  # fmt: skip
