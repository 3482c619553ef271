"""The ways to install, and the users and machines that are not the administrator's own: one small model for all.

Only one of these releases trains; for the others a sleeping program tells as much, and test_training.py trains with
both helms.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Event
from lightkube.resources.policy_v1 import PodDisruptionBudget

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.ingredients import prepare_images
from tests.cluster.testcluster.releases import IDLE, PROJECT, Release, digits_values, list_objects, merge_values
from tests.cluster.testcluster.users import make_user

pytestmark = pytest.mark.cluster

CHART = PROJECT / "charts" / "digits"
ONE_EPOCH = digits_values(epochs=1)
ANY_UID = 1000660000
"""As OpenShift chooses it: a number from the namespace's range, which no image knows."""


@pytest.fixture
def edit_user(admin: Access, namespace: str, tmp_path: Path) -> Access:
    return make_user(admin, namespace, "engineer", "edit", tmp_path)


def test_namespace_editor_installs_upgrades_uninstalls_by_helm_3(
    admin: Access, namespace: str, edit_user: Access, helm3: Path
) -> None:
    """By helm 4 and with a parameter server, test_training.py does everything as such a user."""
    release = Release(edit_user, namespace, "exp3", CHART, merge_values(digits_values(), IDLE), helm=helm3)

    release.install()
    release.wait_until_running(1)
    assert "Succeeded" in edit_user.run([str(helm3), "test", "exp3", f"--namespace={namespace}"]).stdout
    assert "REVISION: 2" in release.upgrade("--set", "hyperparameters.epochs=7")
    release.uninstall()

    def is_gone(client: Client) -> bool:
        if release.pods(client):
            return False
        left = {name for name in list_objects(admin, namespace) if "exp3" in name}
        return left == {"persistentvolumeclaim/exp3-digits-checkpoints"}

    admin.wait_for(is_gone, "nothing but the claim", namespace=namespace)


def test_manifests_can_be_applied_without_helm_and_as_any_user(admin: Access, namespace: str) -> None:
    """As Argo CD installs, and with a user id that is nobody's, as OpenShift gives."""
    context = {"podSecurityContext": {"runAsUser": ANY_UID, "fsGroup": ANY_UID}}
    release = Release(admin, namespace, "applied", CHART, merge_values(ONE_EPOCH, context))
    manifests = release.template("--skip-tests")

    first = admin.kubectl("apply", f"--namespace={namespace}", "-f", "-", text=manifests).splitlines()
    assert first
    assert all(line.endswith(" created") for line in first)
    assert release.wait_until_succeeded("applied-digits-worker-0").own_failures == 0

    again = admin.kubectl("apply", f"--namespace={namespace}", "-f", "-", text=manifests).splitlines()
    changed = {line for line in again if not line.endswith(" unchanged")}
    # kubectl sends a budget's selector each time, whatever it is; the API server then finds nothing to change.
    assert changed <= {"poddisruptionbudget.policy/applied-digits configured"}
    budget = admin.client().get(PodDisruptionBudget, "applied-digits", namespace=namespace)
    assert budget.metadata is not None
    assert budget.metadata.generation == 1
    owner = ["exec", "applied-digits-worker-0", f"--namespace={namespace}", "--", "stat", "--format=%u:%g"]
    assert admin.kubectl(*owner, "/checkpoints/logs").strip() == f"{ANY_UID}:{ANY_UID}"


def test_the_kubelet_pulls_the_image_from_the_registry(own_cluster: Cluster, admin: Access, namespace: str) -> None:
    reference = prepare_images().registry_only["digits"]
    repository, _, tag = reference.rpartition(":")
    image = {"image": {"repository": repository, "tag": tag, "pullPolicy": "Always"}}
    release = Release(admin, namespace, "pulled", CHART, merge_values(merge_values(digits_values(), IDLE), image))

    release.install()
    release.wait_until_running(1)

    def read(client: Client) -> str | None:
        events = client.list(Event, namespace=namespace, fields={"reason": "Pulled"})
        return next((event.message for event in events), None)

    message = admin.wait_for(read, "an image pulled", namespace=namespace)
    assert message.startswith(f'Successfully pulled image "{reference}"')
