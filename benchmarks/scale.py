"""Many pods of one release, and many releases: pods on simulated nodes, everything else real."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lightkube.core.client import Client
from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.core_v1 import Pod

from benchmarks.fake_pods import FAKE_VALUES, end_program
from benchmarks.generator import ROOT
from benchmarks.loops import measure_loops
from benchmarks.measure import Row
from benchmarks.own_cluster import RequestCount, controller_memory, make_namespace, own_cluster, wait_for
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.components import Component, plan_controllers
from tests.cluster.testcluster.fake_nodes import fake_nodes
from tests.cluster.testcluster.faults import Site
from tests.cluster.testcluster.ingredients import prepare_ingredients, tell
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import Release, merge_values
from tests.cluster.testcluster.runs import read_replicas, wait_for_phase
from trainchart.kubernetes_yaml import parse_documents
from trainchart_runtime.cluster import ROLES

WORKERS = 1000
DEFAULT_ROUNDS = 3
"""At Kubernetes' default rates, which leave less to chance and take longer."""
RELEASES = 20
FAKE_NODES = 16
_RUNNING_SECONDS = 600
_BARE = f"bare StatefulSets of {WORKERS:,} workers, a chief and a ps: all Running"
_RELEASE = "a release of the same size, from `helm install` on"
_WHY_DEARER = (
    "At the tests' rates, control plane, simulated nodes and release keep the two cores that they share busy all the"
    " time, and every other component that works for a release adds to it: the endpoints of its headless Service"
    " (1.5 s), its run controller's watch (1.7 s), its PodDisruptionBudget (0.8 s), and helm (0.4 s)"
)
"""Found by adding one by one to the bare sets."""
_ROUNDS = "Medians of {} rounds at the default rates, of {} at the tests'; what follows is measured once."
_QUIET_SECONDS = 60.0


def measure_scale(rounds: int) -> list[Row]:
    """Measure on a cluster that is started for it: some two minutes a round, and ten more."""
    with own_cluster() as site, fake_nodes(site.cluster, site.access, count=FAKE_NODES):
        with _default_rates(site):
            usual = _measure_default_rates(site)
        return [*usual, *_measure_large_release(site, rounds), *_measure_controllers(site), *measure_loops(site)]


@contextmanager
def _default_rates(site: Site) -> Iterator[None]:
    """Let the control plane ask the API server no more often than Kubernetes' defaults allow."""
    programs = prepare_ingredients().programs
    fast, slow = plan_controllers(programs), plan_controllers(programs, rates=())

    def restart(components: Sequence[Component]) -> None:
        for component in components:
            site.cluster.stop_component(component.name)
            site.cluster.run_component(component)

    restart([component for component in slow if component not in fast])
    yield
    restart([component for component in fast if component not in slow])


def _measure_default_rates(site: Site) -> list[Row]:
    """Measure a release of 1,000 workers beside its bare StatefulSets where the control plane sets the pace."""
    large = _plan_large_release(site, "at-default-rates")
    bare, released = [], []
    for number in range(1, DEFAULT_ROUNDS + 1):
        tell(f"round {number} of {DEFAULT_ROUNDS} at Kubernetes' default rates ...")
        bare.append(_time_bare_sets(large, f"bare{number}"))
        release = replace(large, name=f"large{number}")
        released.append(_time_release(release))
        release.uninstall()
        _wait_until_empty(site.access, large.namespace)
    return _compare("Kubernetes' default rates", bare, released)


def _compare(rates: str, bare: Sequence[float], released: Sequence[float]) -> list[Row]:
    """Return the rows of a release beside its bare sets, from the seconds of each round."""
    own, others = statistics.median(released), statistics.median(bare)
    return [
        Row(f"{rates}: {_BARE}", others, "s"),
        Row(f"{rates}: {_RELEASE}", own, "s"),
        Row("ratio", own / others, "×", mark=1.2),
    ]


def _plan_large_release(site: Site, namespace: str) -> Release:
    make_namespace(site, namespace)
    where = FAKE_VALUES["roles"]["worker"]
    roles = {role: {**where, "replicas": 0 if role == "evaluator" else 1} for role in ROLES}
    values = merge_values(FAKE_VALUES, {"roles": merge_values(roles, {"worker": {"replicas": WORKERS}})})
    return Release(site.access, namespace, "large", ROOT / "charts" / "mnist", values)


def _measure_large_release(site: Site, rounds: int) -> list[Row]:
    """Measure a release of 1,000 workers beside its bare StatefulSets, by turns."""
    large = _plan_large_release(site, "large")
    bare, released, freed, memory = [], [], [], []
    tell(f"{WORKERS} workers as bare sets, not counted ...")
    _time_bare_sets(large, "bare0")
    for number in range(1, rounds + 1):
        tell(f"round {number} of {rounds}: {WORKERS} workers, as bare sets and as a release ...")
        # Names of their own each time: what plays the kubelets here may forget a pod that follows one of its name.
        bare.append(_time_bare_sets(large, f"bare{number}"))
        release = replace(large, name=f"large{number}")
        released.append(_time_release(release))
        memory.append(controller_memory(site, release))
        freed.append(_time_success(release))
        release.uninstall()
        _wait_until_empty(site.access, large.namespace)
    return [
        *_compare("the tests' rates, 15 times as high", bare, released),
        Row("its chief's success → every set at 0 and every pod gone", statistics.median(freed), "s"),
        Row("its run controller: resident memory, at most", max(memory), "MiB", mark=64),
        Row("", 0, "", note=f"{_ROUNDS.format(DEFAULT_ROUNDS, rounds)} {_WHY_DEARER}."),
    ]


def _time_bare_sets(release: Release, name: str) -> float:
    """Return the seconds that the sets of such a release take to be Running without Helm and controller."""
    access, namespace = release.access, f"--namespace={release.namespace}"
    uncontrolled = merge_values(release.values, {"run": {"controller": {"enabled": False}}})
    rendered = parse_documents(replace(release, name=name, values=uncontrolled).template())
    text = dump_objects(*(each for each in rendered if each["kind"] in ("StatefulSet", "ServiceAccount")))
    begun = time.monotonic()
    access.kubectl("create", namespace, "-f", "-", text=text)
    _wait_until_ready(access, release.namespace)
    taken = time.monotonic() - begun
    access.kubectl("delete", namespace, "--wait=false", "-f", "-", text=text)
    _wait_until_empty(access, release.namespace)
    return taken


def _time_release(release: Release) -> float:
    begun = time.monotonic()
    release.install()
    _wait_until_ready(release.access, release.namespace)
    return time.monotonic() - begun


def _time_success(release: Release) -> float:
    wait_for_phase(release, "Running")
    client = release.access.client()
    begun = time.monotonic()
    end_program(client, release.namespace, f"{release.name}-mnist-chief-0")
    training = {**release.selector, "trainchart/training": "true"}
    wait_for(
        lambda: not any(read_replicas(release, client).values()) and _is_empty(client, release.namespace, training),
        "a run that has freed everything",
        _RUNNING_SECONDS,
    )
    return time.monotonic() - begun


def _wait_until_ready(access: Access, namespace: str) -> None:
    client = access.client()

    def is_ready() -> bool:
        sets = list(client.list(StatefulSet, namespace=namespace))
        return sum((each.status.readyReplicas or 0) if each.status else 0 for each in sets) == WORKERS + 2

    wait_for(is_ready, f"{WORKERS + 2} pods Running", _RUNNING_SECONDS)


def _wait_until_empty(access: Access, namespace: str) -> None:
    client = access.client()
    # At once, and not as fast as the garbage collector may; the answer to a thousand takes its time.
    access.kubectl("delete", "--raw", f"/api/v1/namespaces/{namespace}/pods")
    wait_for(lambda: _is_empty(client, namespace, {}), "the end of every pod", _RUNNING_SECONDS)


def _is_empty(client: Client, namespace: str, labels: dict[str, Any]) -> bool:
    """Say whether there are no such pods; a thousand of them are not fetched for that."""
    return next(iter(client.list(Pod, namespace=namespace, labels=labels, chunk_size=1)), None) is None


def _measure_controllers(site: Site) -> list[Row]:
    """Measure the pods of twenty run controllers while their trainings go on."""
    tell(f"{RELEASES} releases ...")
    namespace = make_namespace(site, "many")
    releases = [
        Release(site.access, namespace, f"exp{number}", ROOT / "charts" / "digits", FAKE_VALUES)
        for number in range(RELEASES)
    ]
    for release in releases:
        release.install()
    for release in releases:
        wait_for_phase(release, "Running", deadline_seconds=_RUNNING_SECONDS)
    requests = RequestCount(site.access)
    requests.begin(namespace)
    per_minute = requests.per_minute(_QUIET_SECONDS)
    memory = [controller_memory(site, release) for release in releases]
    for release in releases:
        release.uninstall()
    _wait_until_empty(site.access, namespace)
    return [
        Row(
            f"{RELEASES} run controllers of small releases: resident memory of the largest", max(memory), "MiB", mark=64
        ),
        Row("of all together", sum(memory), "MiB"),
        Row("API requests of one of them while nothing happens", per_minute / RELEASES, "a minute", mark=10),
    ]
