"""Fixtures of the cluster tests: which cluster, a namespace for each test, users, and the fault kit's doors."""

from __future__ import annotations

import itertools
import re
import secrets
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from lightkube.core.client import Client
from lightkube.models.core_v1 import ResourceQuotaSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment, StatefulSet
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Namespace, Pod, ResourceQuota, ServiceAccount

from tests.cluster.testcluster.access import Access, describe
from tests.cluster.testcluster.choice import Named, Nowhere, Own
from tests.cluster.testcluster.cluster import Cluster, ClusterError, start_cluster
from tests.cluster.testcluster.control import ControlError
from tests.cluster.testcluster.faults import Faults, Site
from tests.cluster.testcluster.images import ImageBuildError
from tests.cluster.testcluster.ingredients import find_home, prepare_ingredients
from tests.cluster.testcluster.machine import find_choice
from tests.cluster.testcluster.named import NotUsable, open_cluster
from tests.cluster.testcluster.pods import plan_namespace
from tests.cluster.testcluster.programs import ProgramError
from tests.cluster.testcluster.slots import NoSlotError

QUOTA = {"requests.cpu": "8", "requests.memory": "24Gi", "requests.nvidia.com/gpu": "16", "pods": "40"}
"""Quota of each test's namespace: roomy, but every container must say what it needs."""

_TIMEOUT_SECONDS = 600
"""Of one test with its fixtures: a release that trains, on a machine that is busy with other things."""

_numbers = map("{}-{}".format, itertools.repeat(secrets.token_hex(2)), itertools.count())
"""Ends of the names of namespaces: none is used twice, in this run or a later one on the same cluster."""


class NotHere(pytest.skip.Exception):
    """Skips a test for a reason that many have: told in one line for all of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time than others have, and let them come last: a cluster at rest costs CPU."""
    ours = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    for item in ours:
        item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS))
    items.sort(key=set(ours).__contains__)


@pytest.fixture(scope="session")
def _choice(request: pytest.FixtureRequest) -> Named | Own:
    choice = find_choice(request.config.getoption("--kube-context"))
    if isinstance(choice, Nowhere):
        raise NotHere(choice.reason)
    return choice


@pytest.fixture(scope="session")
def _own_cluster(_choice: Named | Own) -> Iterator[Cluster | None]:
    if isinstance(_choice, Named):
        yield None
        return
    try:
        cluster = _start_cluster()
    except (ClusterError, ImageBuildError, NoSlotError, ProgramError) as error:
        # Once, and not as a trace of each of the tests, which come last.
        pytest.exit(str(error), returncode=pytest.ExitCode.TESTS_FAILED)
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def _watched(request: pytest.FixtureRequest, _own_cluster: Cluster | None) -> Iterator[None]:
    """Ends the run once a component of the cluster has ended by itself: all that follows would fail for it, slowly."""
    yield
    if _own_cluster is not None:
        try:
            _own_cluster.check()
        except ControlError as error:
            request.session.shouldfail = f"a component of the test cluster ended by itself: {error}"
            raise


@pytest.fixture(scope="session")
def lasting_cluster(_own_cluster: Cluster | None) -> Cluster:
    """The same as `own_cluster`, for fixtures that many tests share."""
    if _own_cluster is None:
        raise NotHere("these tests break nodes, which only the tests' own cluster is for")
    return _own_cluster


def _start_cluster() -> Cluster:
    """Start the cluster, a second time where it did not start: on a busy machine a component may give up too early.

    Elsewhere systemd starts such a component again. Why the first start failed is a warning at the end of the run.
    """
    ingredients = prepare_ingredients()
    try:
        return start_cluster(ingredients, find_home())
    except ClusterError as error:
        warnings.warn(f"started a second time: {error}", stacklevel=1)
        return start_cluster(ingredients, find_home())


@pytest.fixture
def own_cluster(lasting_cluster: Cluster) -> Cluster:
    """The tests' own cluster, for what nobody does to somebody's: stop kubelets, cut cables, fill disks."""
    return lasting_cluster


@pytest.fixture(scope="session")
def admin(
    _choice: Named | Own, _own_cluster: Cluster | None, helm4: Path, tmp_path_factory: pytest.TempPathFactory
) -> Access:
    """Access as cluster administrator, with helm 4 as `helm` on its PATH."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "helm").symlink_to(helm4)
    if _own_cluster is not None:
        address = _own_cluster.config.address
        return Access(_own_cluster.kubeconfig, None, (folder, _own_cluster.programs), address)
    assert isinstance(_choice, Named)
    try:
        return open_cluster(_choice, (folder,), tmp_path_factory.mktemp("access") / "kubeconfig")
    except NotUsable as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture
def faults(request: pytest.FixtureRequest, own_cluster: Cluster, admin: Access) -> Iterator[Faults]:
    """The fault kit; what a test breaks is mended at its end, and the cluster is as before."""
    # The namespace first: its end needs a cluster that works, so it has to come after the faults' end.
    if "namespace" in request.fixturenames:
        request.getfixturevalue("namespace")
    kit = Faults(Site(own_cluster, admin))
    yield kit
    kit.undo_all()


@pytest.fixture
def namespace(request: pytest.FixtureRequest, admin: Access) -> Iterator[str]:
    """A namespace of the test's own with Pod Security `restricted` and a quota; what is in it ends with the test."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40]
    yield from make_namespace(admin, f"{name}-{next(_numbers)}".lstrip("-"))


@pytest.fixture(scope="module")
def module_namespace(request: pytest.FixtureRequest, admin: Access) -> Iterator[str]:
    """Like `namespace`, shared by the tests of a module, for a release that many tests look at."""
    name = Path(request.node.name).stem.replace("_", "-")
    yield from make_namespace(admin, f"{name}-{next(_numbers)}")


def make_namespace(admin: Access, name: str) -> Iterator[str]:
    """Make a namespace and end it afterwards, its pods at once."""
    client = admin.client()
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    client.create(Namespace.from_dict(plan_namespace(name, **levels)))
    try:
        quota = ResourceQuota(metadata=ObjectMeta(name="tests"), spec=ResourceQuotaSpec(hard=QUOTA))
        client.create(quota, namespace=name)
        admin.wait_for(lambda client: _takes_pods(client, name), "a namespace that takes pods", namespace=name)
        yield name
    finally:
        try:
            # First what would make pods anew, then the pods; the last step does it all, but in its own time.
            for kind in (StatefulSet, Deployment, Job):
                client.deletecollection(kind, namespace=name)
            client.deletecollection(Pod, namespace=name, grace_period=0)
        finally:
            client.delete(Namespace, name)


def _takes_pods(client: Client, namespace: str) -> bool:
    """Tell whether the controllers have made what admission asks for."""
    client.get(ServiceAccount, "default", namespace=namespace)
    quota = client.get(ResourceQuota, "tests", namespace=namespace)
    return bool(quota.status and quota.status.hard)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show what the pods of a failed test did; of one that is given a release's name, that release's."""
    report = yield
    if report.skipped and call.excinfo and isinstance(call.excinfo.value, NotHere):
        # pytest folds what is skipped at one place into one line.
        report.longrepr = (str(Path(__file__).parent), None, f"Skipped: {call.excinfo.value}")
    funcargs = getattr(item, "funcargs", {})
    name = funcargs.get("namespace") or funcargs.get("module_namespace")
    if report.when != "teardown" and report.failed and name and "admin" in funcargs:
        told = describe(funcargs["admin"].client(), name, funcargs.get("release_name", ""))
        report.sections.append((f"namespace {name}", told))
    return report
