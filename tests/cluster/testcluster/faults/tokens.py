"""Tokens of ServiceAccounts that the API server takes no more."""

from __future__ import annotations

import json

from .fault import Change, Fault, Kubectl
from .site import Site


def revoke_tokens(site: Site, namespace: str, account: str = "default") -> Fault:
    """Make every token of a ServiceAccount answer 401, as one that ran out, within the ten seconds of a cache.

    The account is made anew, so that new pods get tokens that work; those of running pods stay refused. Kubernetes
    issues no token for less than ten minutes, so no test can wait for one to run out.
    """
    old = json.loads(site.access.kubectl("get", "serviceaccount", account, "-n", namespace, "-o", "json"))
    kept = {key: old["metadata"].get(key) for key in ("name", "namespace", "labels", "annotations")}
    new = {key: value for key, value in old.items() if key != "secrets"} | {"metadata": kept}
    delete = Kubectl(("delete", "serviceaccount", account, "-n", namespace))
    # A controller makes the account `default` anew at once, which applying is content with.
    create = Kubectl(("apply", "--server-side", "--force-conflicts", "-f", "-"), text=json.dumps(new))
    return Fault(f"tokens of {namespace}/{account} revoked", (Change(delete), Change(create)))
