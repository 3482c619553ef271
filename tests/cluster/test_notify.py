"""run.notify: a webhook in the cluster gets one message for a failed run, one for a succeeded run, and no other."""

from __future__ import annotations

import json

import pytest
from lightkube.core.client import Client

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.images.plan import RUNTIME_IMAGE
from tests.cluster.testcluster.releases import PROJECT, Release, digits_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY, wait_for_job, wait_for_phase

pytestmark = pytest.mark.cluster

RECEIVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
HTTPServer(("", 8080), Handler).serve_forever()
"""


def start_receiver(admin: Access, namespace: str) -> str:
    """Start a web server in a pod that logs what it gets, and return its URL."""
    limits = {"cpu": "500m", "memory": "64Mi", "ephemeral-storage": "64Mi"}
    container = {
        "name": "receiver",
        "image": RUNTIME_IMAGE,
        "command": ["python3", "-c", RECEIVER],
        "resources": {"requests": {**limits, "cpu": "10m"}, "limits": limits},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "receiver"}, "spec": {"containers": [container]}}
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=json.dumps(pod))
    admin.kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/receiver", "--timeout=60s")
    address = admin.kubectl("get", "-n", namespace, "pod/receiver", "-o", "jsonpath={.status.podIP}")
    return f"http://{address}:8080/services/T0/s3cr3t"


def test_webhook_gets_one_message_for_each_end(admin: Access, namespace: str) -> None:
    url = start_receiver(admin, namespace)
    admin.kubectl("create", "secret", "generic", "channel", "-n", namespace, f"--from-literal=url={url}")
    base = merge_values(merge_values(digits_values(), CONTROLLED), {"roles": {"worker": TINY}})
    told = {"run": {"maxRestarts": 0, "notify": {"secret": "channel"}}}
    programs = {
        "good": ("pass", told, "Succeeded"),
        "bad": ("raise ValueError('<no> data')", told, "Failed"),
        "mute": ("pass", {"run": {"notify": {"secret": "missing"}}}, "Succeeded"),
    }
    releases = {}
    for name, (program, values, _) in programs.items():
        values = merge_values(merge_values(base, values), {"command": ["python3", "-c", program]})
        releases[name] = Release(admin, namespace, name, PROJECT / "charts" / "digits", values)
        releases[name].install()
    for name, (_, _, phase) in programs.items():
        wait_for_phase(releases[name], phase, deadline_seconds=180)
        wait_for_job(releases[name], "Complete" if phase == "Succeeded" else "Failed")

    def outcome(name: str) -> str:
        return str(wait_for_phase(releases[name], programs[name][2])["notice"]["outcome"])

    assert (outcome("good"), outcome("bad")) == ("sent", "sent")
    assert outcome("mute") == "the Secret missing has no key url, or is missing"

    def read(_: Client) -> list[str]:
        return admin.kubectl("logs", "-n", namespace, "receiver").splitlines()

    texts = sorted(json.loads(line)["text"] for line in admin.wait_for(read, "messages", namespace=namespace))
    bad, good = texts
    assert bad.startswith(f"bad in namespace {namespace}: Failed, 1 attempt\nprogram-error: ")
    assert good == f"good in namespace {namespace}: Succeeded, 1 attempt"
