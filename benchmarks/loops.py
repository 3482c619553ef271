"""Five hundred run controllers' loops against one API server, as threads of a few processes.

What a loop reads, decides and writes is real, and so are its release's objects, its ServiceAccount and its token. Only
the pod around it is missing, and nothing answers where it would ask its launcher.
"""

from __future__ import annotations

import base64
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightkube.core.client import Client
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, ServiceAccountToken

from benchmarks.fake_pods import FAKE_VALUES, end_program
from benchmarks.generator import ROOT
from benchmarks.measure import Row
from benchmarks.own_cluster import RequestCount, make_namespace, wait_for
from tests.cluster.testcluster.config import API_PORT
from tests.cluster.testcluster.faults import Site
from tests.cluster.testcluster.ingredients import tell
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import Release
from trainchart.kubernetes_yaml import parse_documents
from trainchart_runtime import contract

LOOPS = 500
PROCESSES = 4
_NAMES = tuple(f"exp-{number:03}" for number in range(LOOPS))
_MODEL = "loop-model"
"""Name of the release that is rendered; the objects of each loop are the same with another name in its place."""
_KINDS = ("StatefulSet", "ConfigMap", "ServiceAccount", "Role", "RoleBinding")
_NAMESPACE = "loops"
_START_SECONDS = 300
_QUIET_SECONDS = 60.0
_VERDICT_SECONDS = 120
_TOKEN_SECONDS = 7200


def measure_loops(site: Site) -> list[Row]:
    """Measure how long verdicts take when many runs end within seconds, and what the loops ask for while none does."""
    tell(f"{LOOPS} loops ...")
    make_namespace(site, _NAMESPACE)
    rendered = Release(site.access, _NAMESPACE, _MODEL, ROOT / "charts" / "digits", FAKE_VALUES).template()
    releases = {name: parse_documents(rendered.replace(_MODEL, name)) for name in _NAMES}
    objects = [document for documents in releases.values() for document in documents if document["kind"] in _KINDS]
    site.access.kubectl("create", f"--namespace={_NAMESPACE}", "-f", "-", text=dump_objects(*objects))
    requests = RequestCount(site.access)
    requests.begin(_NAMESPACE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environs = _write_surroundings(site, releases, folder)
        records = Records(site.access.client())
        with _run_loops(environs, folder):
            wait_for(lambda: len(records.running) == LOOPS, f"{LOOPS} running runs", _START_SECONDS)
            per_minute = requests.per_minute(_QUIET_SECONDS)
            begun = time.time()
            ended = _end_programs(site.access.client())
            wait_for(lambda: len(records.verdicts) == LOOPS, f"{LOOPS} verdicts", _VERDICT_SECONDS)
    delays = [records.verdicts[name] - ended[name] for name in _NAMES]
    span = max(ended.values()) - begun
    return [
        Row(f"{LOOPS} controllers' loops in {PROCESSES} processes: API requests of all", per_minute, "a minute"),
        Row(f"all their runs succeed within {span:.0f} s: success → verdict recorded", statistics.median(delays), "s"),
        Row("the slowest of them", max(delays), "s", mark=10),
    ]


class Records:
    """The phases that the runs' records tell, followed in a thread."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.running: set[str] = set()
        """Releases whose runs have been Running."""
        self.verdicts: dict[str, float] = {}
        """Release → when its verdict was first seen."""
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        labels: dict[str, Any] = {"app.kubernetes.io/component": "controller"}
        for _, record in self._client.watch(ConfigMap, namespace=_NAMESPACE, labels=labels):
            assert record.metadata is not None
            name = (record.metadata.labels or {})["app.kubernetes.io/instance"]
            state = json.loads((record.data or {}).get(contract.STATE_KEY, "{}"))
            if state.get("phase") == "Running":
                self.running.add(name)
            if state.get("verdict"):
                self.verdicts.setdefault(name, time.time())


def _end_programs(client: Client) -> dict[str, float]:
    """Let every run succeed, one after the other, and return when each did."""
    ended = {}
    for name in _NAMES:
        ended[name] = time.time()
        end_program(client, _NAMESPACE, f"{name}-digits-worker-0")
    return ended


def _write_surroundings(
    site: Site, releases: Mapping[str, Sequence[Mapping[str, Any]]], folder: Path
) -> list[dict[str, str]]:
    """Write the files that each controller's pod would mount, and return the variables that it would have."""
    client = site.access.client()
    where = "jsonpath={.clusters[0].cluster.certificate-authority-data}"
    authority = base64.b64decode(site.access.kubectl("config", "view", "--raw", f"--output={where}"))
    asked = TokenRequestSpec(audiences=[], expirationSeconds=_TOKEN_SECONDS)
    request = ServiceAccountToken(metadata=ObjectMeta(), spec=asked)
    environs = []
    for name, documents in releases.items():
        own = folder / name
        own.mkdir()
        (job,) = (document for document in documents if document["kind"] == "Job")
        pod = job["spec"]["template"]["spec"]
        token = client.create(request, pod["serviceAccountName"], namespace=_NAMESPACE)
        (own / "token").write_text(token.to_dict()["status"]["token"])
        (own / "ca.crt").write_bytes(authority)
        data = [document["data"] for document in documents if document["kind"] == "ConfigMap" and "data" in document]
        (cluster,) = (files[contract.CLUSTER_FILE_NAME] for files in data if contract.CLUSTER_FILE_NAME in files)
        (own / contract.CLUSTER_FILE_NAME).write_text(cluster)
        variables = pod["containers"][0]["env"]
        environs.append(
            {
                **{variable["name"]: variable.get("value", "") for variable in variables},
                contract.NAMESPACE: _NAMESPACE,
                contract.POD_NAME: f"{name}-digits-controller-loop",
                contract.CLUSTER_FILE: str(own / contract.CLUSTER_FILE_NAME),
                contract.SERVICE_ACCOUNT_DIR: str(own),
                "KUBERNETES_SERVICE_HOST": site.cluster.config.address,
                "KUBERNETES_SERVICE_PORT": str(API_PORT),
            }
        )
    return environs


@contextmanager
def _run_loops(environs: Sequence[Mapping[str, str]], folder: Path) -> Iterator[None]:
    """Run the loops in a few processes, which end with this block."""
    processes = []
    try:
        for number in range(PROCESSES):
            share = folder / f"loops-{number}.json"
            share.write_text(json.dumps(environs[number::PROCESSES]))
            argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "benchmarks.loop_threads", str(share)]
            with share.with_suffix(".log").open("wb") as log:
                processes.append(subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
