"""Users of a cluster besides its administrator, each with a kubeconfig of its own, as a platform team hands them out.

A user here is a ServiceAccount with a token: the one kind of user that every cluster has.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .access import Access
from .pods import dump_objects

_TOKEN_SECONDS = 3600


def make_user(admin: Access, namespace: str, name: str, cluster_role: str, folder: Path) -> Access:
    """Make a user who has one ClusterRole in one namespace and nothing elsewhere; the kubeconfig goes into `folder`."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role},
        "subjects": [subject],
    }
    admin.kubectl("apply", "-f", "-", text=dump_objects(account, binding))
    token = admin.kubectl("create", "token", name, f"--namespace={namespace}", f"--duration={_TOKEN_SECONDS}s").strip()
    return pin_context(admin, folder / f"{name}.kubeconfig", {"token": token})


def pin_context(access: Access, path: Path, credentials: Mapping[str, Any] | None = None) -> Access:
    """Return the same way into the cluster through a kubeconfig of its own, with one context and no need of an option.

    With `credentials`, it is another user's way.
    """
    config = json.loads(access.kubectl("config", "view", "--minify", "--flatten", "--raw", "--output=json"))
    if credentials is not None:
        config["users"][0]["user"] = dict(credentials)
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return dataclasses.replace(access, kubeconfig=path, context=None)
