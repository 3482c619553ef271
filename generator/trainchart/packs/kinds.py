"""The kinds of objects that rules of packs can be about, and what the Kubernetes API calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ApiResource:
    """Where the API serves objects of a kind."""

    group: str
    version: str
    name: str
    """As in `kubectl api-resources`."""


POD_KINDS = ("CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet")
"""Kinds that are pods, or make some."""
RESOURCES: Mapping[str, ApiResource] = {
    "ConfigMap": ApiResource("", "v1", "configmaps"),
    "CronJob": ApiResource("batch", "v1", "cronjobs"),
    "DaemonSet": ApiResource("apps", "v1", "daemonsets"),
    "Deployment": ApiResource("apps", "v1", "deployments"),
    "Ingress": ApiResource("networking.k8s.io", "v1", "ingresses"),
    "Job": ApiResource("batch", "v1", "jobs"),
    "NetworkPolicy": ApiResource("networking.k8s.io", "v1", "networkpolicies"),
    "PersistentVolumeClaim": ApiResource("", "v1", "persistentvolumeclaims"),
    "Pod": ApiResource("", "v1", "pods"),
    "PodDisruptionBudget": ApiResource("policy", "v1", "poddisruptionbudgets"),
    "ReplicaSet": ApiResource("apps", "v1", "replicasets"),
    "ReplicationController": ApiResource("", "v1", "replicationcontrollers"),
    "Role": ApiResource("rbac.authorization.k8s.io", "v1", "roles"),
    "RoleBinding": ApiResource("rbac.authorization.k8s.io", "v1", "rolebindings"),
    "Secret": ApiResource("", "v1", "secrets"),
    "Service": ApiResource("", "v1", "services"),
    "ServiceAccount": ApiResource("", "v1", "serviceaccounts"),
    "StatefulSet": ApiResource("apps", "v1", "statefulsets"),
}
