"""The example organisation on a real cluster: its rules refuse what is edited, and its own family runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.pods import IMAGE, dump_objects, plan_claim, plan_pod
from tests.cluster.testcluster.releases import PROJECT, Release

pytestmark = pytest.mark.cluster

EDITS = {
    "a locked image": (
        "registry.acme.example/trainchart/run-controller:1.0.0",
        "registry.acme.example/mine:1",
        "run.controller.image is locked: only registry.acme.example/trainchart/run-controller:1.0.0",
    ),
    "a locked class": ('storageClassName: "cephfs"', 'storageClassName: "local"', "volumes.*.storageClass is locked"),
    "locked GPUs": (
        "            limits:\n",
        "            limits:\n              nvidia.com/gpu: 5\n",
        "roles.*.gpus is locked",
    ),
    "the registry": ("registry.acme.example/ml/classify", "registry.example.com/mine", "images must come from"),
    "the label": ("acme.example/cost-centre:", "acme.example/project:", "need the labels acme.example/cost-centre"),
    "the claim": ('storage: "20Gi"', 'storage: "20Ti"', "a claim has at most 999Gi"),
    "the network": (
        "      serviceAccountName:",
        "      hostNetwork: true\n      serviceAccountName:",
        "must not set hostNetwork",
    ),
}
"""What is edited in the manifests, and why the API server refuses the result."""


@pytest.fixture(scope="module")
def organisation(admin: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Generate a chart of the organisation, and apply its rules to namespaces with a label of this test."""
    folder = tmp_path_factory.mktemp("organisation") / "organisation"
    shutil.copytree(PROJECT / "examples" / "organisation", folder)
    run(folder, "generate", "classify", "nightly-classify")
    policies = run(
        folder, "pack", "admission", "--namespaces", f"organisation={folder.parent.name}", "--format", "json"
    )
    admin.kubectl("apply", "-f", "-", text=policies)
    yield folder
    admin.kubectl("delete", "-f", "-", text=policies)


def run(folder: Path, *arguments: str) -> str:
    argv = [sys.executable, "-m", "trainchart", *arguments]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_manifests_that_were_edited_are_refused(admin: Access, namespace: str, organisation: Path) -> None:
    """As by `helm template | sed | kubectl apply`, past all values, schemas and checks."""
    admin.kubectl("label", "namespace", namespace, f"organisation={organisation.parent.name}")
    chart = organisation / "charts" / "classify"
    manifests = admin.run(["helm", "template", "exp-1", chart, "-n", namespace, "--skip-tests"]).stdout

    def apply(text: str) -> str:
        done = admin.run(["kubectl", "apply", "--dry-run=server", "-n", namespace, "-f", "-"], text=text, check=False)
        return done.stderr if done.returncode else "applied"

    old, new, reason = EDITS["the registry"]
    admin.wait_for(
        lambda _: reason in apply(manifests.replace(old, new)), "the rules are in force", namespace=namespace
    )
    assert apply(manifests) == "applied"
    for what, (old, new, reason) in EDITS.items():
        assert old in manifests, what
        answer = apply(manifests.replace(old, new))
        assert reason in answer, what
        assert "of pack platform 1.4.0" in answer


def test_the_evaluation_scores_the_newest_export(admin: Access, namespace: str, organisation: Path) -> None:
    """The newest has the highest number, which is not the last by name."""
    claim = plan_claim("classify-exports", "shared", "ReadWriteMany")
    writer = plan_pod(
        "writer",
        "mkdir -p /volume/export/9 /volume/export/10 /volume/export/tmp",
        claim="classify-exports",
        fs_group=1000,
    )
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(claim, writer))
    admin.kubectl("wait", "pod/writer", "--for=jsonpath={.status.phase}=Succeeded", "-n", namespace, "--timeout=60s")
    program = "import os; print(os.environ['EXPORT'], os.listdir(os.environ['EXPORTS']).count('tmp'))"
    values = {"image": IMAGE, "command": ["python3", "-c", program], "pullSecrets": []}
    Release(admin, namespace, "nightly", organisation / "charts" / "nightly-classify", values).install()
    cron = admin.kubectl("get", "cronjobs", "-n", namespace, "-o", "name").strip()
    admin.kubectl("create", "job", "now", f"--from={cron}", "-n", namespace)
    admin.kubectl("wait", "job/now", "--for=condition=Complete", "-n", namespace, "--timeout=60s")
    assert admin.kubectl("logs", "job/now", "-n", namespace) == "/exports/export/10 1\n"
