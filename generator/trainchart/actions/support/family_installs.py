"""Whether the charts that a family makes of its tests can be installed, changed, tested and removed on a cluster."""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.family_tests import FamilyTest, render_tests
from trainchart.cluster.io.kubernetes_api import EVENTS, KubernetesApi
from trainchart.errors import ClusterError, Problem, ToolError
from trainchart.families.family import CI
from trainchart.helm.io.trial import Trial
from trainchart.host.files import write_tree
from trainchart.packs.pack import Pack

LABELS = {"app.kubernetes.io/managed-by": "trainchart-pack-check"}
"""Of the namespaces that are made for tests."""
_WARNINGS_SHOWN = 3
_UNKNOWN_KIND = re.compile(r'no matches for kind "(\w+)" in version "([^"]+)"')
"""How Helm says that a custom resource is not installed on a cluster, which is no fault of the family."""


def find_install_problems(chain: tuple[Pack, ...], context: str, tell: Callable[[str], None]) -> Iterator[Problem]:
    """Yield what goes wrong when Helm installs each test of the families of the last pack of `chain`.

    Each is installed in a new namespace, upgraded to each set of values in the chart's ci/, tested and removed, with
    the namespace. `tell` gets a line before each installation, and one for values that need a kind that the cluster
    does not have.

    Raises:
        ClusterError: the cluster cannot be used.
    """
    api, _ = open_cluster(Place(context))
    tests, _ = render_tests(chain)
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="trainchart-") as scratch, _make_namespace(api) as namespace:
            chart = Path(scratch, test.name)
            write_tree(chart, test.files, is_ours=lambda path: False)
            tell(f"installing the chart of {test.place} in the namespace {namespace}")
            # Of another name than the namespace: tenants are named after their release.
            trial = Trial(f"trial-{namespace[-8:]}", namespace, context, chart)
            found = _try(trial, test, tell)
            warnings = "; ".join(_read_warnings(api, namespace)) if found else ""
        yield from (Problem(each.message, each.where, warnings or each.hint) for each in found)


@contextmanager
def _make_namespace(api: KubernetesApi) -> Iterator[str]:
    name = f"trainchart-check-{secrets.token_hex(4)}"
    api.create_namespace(name, LABELS)
    try:
        yield name
    finally:
        api.delete_namespace(name)


def _try(trial: Trial, test: FamilyTest, tell: Callable[[str], None]) -> list[Problem]:
    """Return the first step that failed, and whether the release could not be removed."""
    steps = [("installed", trial.install)]
    for values in sorted(path for path in test.files if path.startswith(f"{CI}/")):
        steps.append((f"upgraded to {values}", partial(trial.upgrade, values)))
    steps.append(("tested", trial.test))
    found: list[Problem] = []
    try:
        for what, act in steps:
            failed = _attempt(what, act, test)
            unknown = _UNKNOWN_KIND.search(failed[0].message) if failed else None
            if unknown is not None:
                tell(f"the chart of {test.place} was not {what}: this cluster has no {unknown[1]} of {unknown[2]}")
                if act == trial.install:
                    break
            elif failed:
                found += failed
                break
    finally:
        found += _attempt("removed", partial(trial.uninstall, test.files), test)
    return found


def _attempt(what: str, act: Callable[[], None], test: FamilyTest) -> list[Problem]:
    try:
        act()
    except ToolError as error:
        return [Problem(f"its chart cannot be {what}: {error.message}", test.place, error.hint)]
    return []


def _read_warnings(api: KubernetesApi, namespace: str) -> list[str]:
    """Return what Kubernetes warned of in a namespace, each thing once."""
    try:
        events = api.list_objects(EVENTS, namespace, fields="type=Warning")
    except ClusterError:
        return []
    found = {}
    for event in events:
        about = event.get("involvedObject") or {}
        found[str(event.get("message"))] = f"{about.get('kind')} {about.get('name')}: {event.get('message')}"
    return list(found.values())[-_WARNINGS_SHOWN:]
