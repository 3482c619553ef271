"""Faults of the control plane: the API server, its database, the controllers, tokens. Pure but for `revoke_tokens`."""

from __future__ import annotations

import json

from .fault import Change, Fault, Kubectl, StartComponent, StopComponent
from .site import Site

API_SERVER = "kube-apiserver"
_READY = Kubectl(("get", "--raw", "/readyz"), retry_seconds=60)


def stop_api_server() -> Fault:
    """Kill the API server; clients meet a refused connection."""
    change = Change(StopComponent(API_SERVER), (StartComponent(API_SERVER), _READY))
    return Fault("API server stopped", (change,), disturbs_watches=True)


def restart_api_server() -> Fault:
    """Kill the API server, start it, wait until it is ready: watches break, and it answers 403 for a moment."""
    stop = Change(StopComponent(API_SERVER))
    return Fault(
        "API server restarted", (stop, Change(StartComponent(API_SERVER)), Change(_READY)), disturbs_watches=True
    )


def stop_controllers() -> Fault:
    """Kill the controller manager: nothing replaces a pod, and no node is found lost."""
    return _stop("kube-controller-manager")


def stop_scheduler() -> Fault:
    """Kill the scheduler: new pods stay Pending without a word."""
    return _stop("kube-scheduler")


def revoke_tokens(site: Site, namespace: str, account: str = "default") -> Fault:
    """Make every token of a ServiceAccount answer 401, as one that ran out, within the ten seconds of a cache.

    The account is made anew, so that new pods get tokens that work; those of running pods stay refused.
    """
    text = site.access.kubectl("get", "serviceaccount", account, "-n", namespace, "-o", "json")
    old = json.loads(text)
    kept = {
        key: old["metadata"][key] for key in ("name", "namespace", "labels", "annotations") if key in old["metadata"]
    }
    new = {key: value for key, value in old.items() if key != "secrets"} | {"metadata": kept}
    delete = Kubectl(("delete", "serviceaccount", account, "-n", namespace))
    # A controller makes the account `default` anew at once, which applying is content with.
    create = Kubectl(("apply", "--server-side", "--force-conflicts", "-f", "-"), text=json.dumps(new))
    return Fault(f"tokens of {namespace}/{account} revoked", (Change(delete), Change(create)))


def _stop(component: str) -> Fault:
    change = Change(StopComponent(component), (StartComponent(component),))
    return Fault(f"{component} stopped", (change,), disturbs_watches=True)
