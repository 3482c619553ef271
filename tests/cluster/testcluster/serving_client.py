"""A pod that sends requests to a model server through its Service, each over a connection of its own, and counts."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from lightkube.core.client import Client

from .access import Access
from .pods import dump_objects, plan_pod

PROGRAM = """
import collections, http.client, json, sys, threading, time
host, model, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
def ask(method, path, body=None):
    connection = http.client.HTTPConnection(host, 8501, timeout=10)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise OSError(f"{answer.status}: {text[:200]}")
        return json.loads(text)
    finally:
        connection.close()
def read_metadata():
    return ask("GET", f"/v1/models/{model}/metadata")
while True:
    try:
        found = read_metadata()
        break
    except OSError as error:
        print(json.dumps({"waits": str(error)}), flush=True)
        time.sleep(0.5)
(entry,) = found["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"].values()
example = 0
for size in reversed([int(dim["size"]) for dim in entry["tensor_shape"]["dim"][1:]]):
    example = [example] * size
body = json.dumps({"instances": [example]})
counts, versions, errors, lock = collections.Counter(), collections.Counter(), [], threading.Lock()
THREADS = 4
def send(number):
    due = time.monotonic() + number * 1 / rate
    while True:
        time.sleep(max(0, due - time.monotonic()))
        due = max(due + THREADS / rate, time.monotonic() - 1)
        try:
            ask("POST", f"/v1/models/{model}:predict", body)
            version = read_metadata()["model_spec"]["version"]
            with lock:
                counts["sent"] += 2
                versions[version] += 1
        except (OSError, ValueError, http.client.HTTPException) as error:
            with lock:
                counts["sent"] += 2
                counts["failed"] += 1
                errors.append(f"{type(error).__name__}: {error}")
for number in range(THREADS):
    threading.Thread(target=send, args=(number,), daemon=True).start()
while True:
    time.sleep(0.5)
    with lock:
        print(json.dumps({"failed": 0, **counts, "versions": versions, "errors": errors[:5]}), flush=True)
"""


@dataclass(frozen=True)
class ServingClient:
    """A running client; `rate` predictions per second, and as many requests for metadata, which tell the version."""

    access: Access
    namespace: str
    name: str

    def read(self) -> dict[str, Any]:
        """Return what the client counts now: sent, failed, versions and the first errors; {} before it counts."""
        log = self.access.kubectl("logs", self.name, "-n", self.namespace, "--tail=1", check=False)
        found: dict[str, Any] = json.loads(log) if log.startswith("{") else {}
        return found

    def wait_for_more(self, requests: int) -> dict[str, Any]:
        """Wait until so many further requests were sent; return the counts."""
        least = self.read().get("sent", 0) + requests

        def read(_: Client) -> dict[str, Any] | None:
            found = self.read()
            return found if found.get("sent", 0) >= least else None

        return self.access.wait_for(read, f"{least} requests of {self.name}", namespace=self.namespace)


def start_client(access: Access, namespace: str, name: str, host: str, model: str, rate: float) -> ServingClient:
    """Start a client of the model at `host`, a name of a Service."""
    command = shlex.join(["python3", "-u", "-c", PROGRAM, host, model, str(rate)])
    pod = plan_pod(name, f"exec {command}", memory_limit="512Mi")
    access.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(pod))
    return ServingClient(access, namespace, name)
