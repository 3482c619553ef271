"""A notebook over a shared volume: JupyterLab and TensorBoard answer those with the token, and runs stay unwritten."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.images.plan import NOTEBOOK_IMAGE
from tests.cluster.testcluster.pods import dump_objects, plan_claim, plan_pod
from tests.cluster.testcluster.releases import Release
from tests.support.family_charts import make_family_chart

pytestmark = pytest.mark.cluster

TOKEN = "0123456789abcdef"
WRITE_EVENTS = """
import tensorflow as tf
for run in ("exp-7", "exp-8"):
    writer = tf.summary.create_file_writer(f"/volume/{run}/logs/train")
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=1)
    writer.flush()
"""
ASK = """
import json, os, urllib.request
def ask(path):
    request = urllib.request.Request("http://localhost:8888" + path)
    request.add_header("Authorization", "token " + os.environ["JUPYTER_TOKEN"])
    return json.load(urllib.request.urlopen(request, timeout=60))
print(json.dumps([ask("/api/contents")["type"], sorted(ask("/tensorboard/data/runs"))]))
"""


def apply(admin: Access, namespace: str, *objects: dict[str, Any]) -> None:
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(*objects))


def test_a_notebook_shows_the_runs_of_its_claims(admin: Access, namespace: str, tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "my-token"},
        "data": {"token": base64.b64encode(TOKEN.encode()).decode()},
    }
    command = f"python3 - <<'PROGRAM'\n{WRITE_EVENTS}\nPROGRAM\necho written"
    writer = plan_pod("writer", command, claim="shared", fs_group=1000, memory_limit="2Gi")
    apply(admin, namespace, secret, plan_claim("shared", "shared", "ReadWriteMany"), writer)
    assert admin.wait_for_log("writer", namespace=namespace).endswith("written\n")

    repository, _, tag = NOTEBOOK_IMAGE.rpartition(":")
    runs = {run: {"claim": "shared", "path": run} for run in ("exp-7", "exp-8")}
    values = {
        "image": {"repository": repository, "tag": tag},
        "tokenSecret": "my-token",
        "runs": runs,
        "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}},
    }
    release = Release(admin, namespace, "nb", make_family_chart("notebook", tmp_path), values)
    release.install("--wait", "--timeout=4m")
    release.access.run([release.helm, "test", "nb", "--namespace", namespace, "--timeout=2m"])

    inside = ("exec", "-n", namespace, "deployment/nb", "--")
    found = json.loads(admin.kubectl(*inside, "python3", "-c", ASK))
    assert found == ["directory", ["exp-7/logs/train", "exp-8/logs/train"]]
    refused = admin.kubectl(*inside, "sh", "-c", "touch /runs/exp-7/new 2>&1 || true; touch /notebooks/mine.ipynb")
    assert "Read-only file system" in refused
    imported = admin.kubectl(*inside, "python3", "-c", "import mnist.train, trainchart_training; print('imported')")
    assert imported == "imported\n"
