"""A namespace whose quota is used up. Pure."""

from __future__ import annotations

import json

from .fault import Change, Fault, Kubectl

_NAME = "trainchart-fault"


def exhaust_quota(namespace: str, resource: str = "pods") -> Fault:
    """Allow no more of a resource, such as pods or requests.nvidia.com/gpu, than a namespace uses: none at all.

    What runs goes on; whatever asks for more is refused with 403.
    """
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": _NAME, "namespace": namespace},
        "spec": {"hard": {resource: "0"}},
    }
    delete = Kubectl(("delete", "resourcequota", _NAME, "-n", namespace))
    create = Kubectl(("apply", "-f", "-"), text=json.dumps(quota))
    await_status = Kubectl(
        ("wait", f"resourcequota/{_NAME}", "-n", namespace, "--for=jsonpath={.status.hard}", "--timeout=30s")
    )
    return Fault(f"quota of {namespace} used up", (Change(create, (delete,)), Change(await_status)))
