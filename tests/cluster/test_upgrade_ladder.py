"""Two published charts, upgraded by real helm from each version to the next: what `trainchart diff` says comes true.

Nothing trains here, and there is no run controller: pods are as helm, the API server and Kubernetes leave them.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.apps_v1 import StatefulSet

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.ladder import LADDERS, Ladder, Rung
from tests.cluster.testcluster.releases import Release
from tests.repositories.chart_servers import serve_registry
from trainchart.actions.support.repository_access import Address
from trainchart.compare.effect import Effect

pytestmark = pytest.mark.cluster

MONITORED: dict[str, Any] = {"networkPolicy": {"statusFrom": [{"podSelector": {}}]}}
"""Values of a release that has a rule of the network of its own."""


def publish(ladder: Ladder, access: Access, folder: Path) -> dict[str, Path]:
    """Release a model again and again into a registry, and return its versions as helm pulls them from there."""
    charts: dict[str, Path] = {}
    with serve_registry(folder / "data") as host:
        to = Address(f"oci://{host}/charts", plain_http=True)
        for rung, released in ladder.publish(folder, to):
            assert released.version == rung.version
            pull = ["helm", "pull", f"{to.text}/{ladder.name}", "--plain-http", f"--version={rung.version}", "--untar"]
            access.run([*pull, f"--untardir={folder / rung.version}"])
            charts[rung.version] = folder / rung.version / ladder.name
    return charts


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_every_upgrade_does_what_its_label_says(admin: Access, namespace: str, ladder: Ladder, tmp_path: Path) -> None:
    charts = publish(ladder, admin, tmp_path)
    first, *following = ladder.rungs
    release = Release(admin, namespace, "exp", charts[first.version])
    release.install()
    release.wait_until_running(len(ladder.spec["roles"]))
    before = settle(release, first)
    for rung in following:
        upgraded = dataclasses.replace(release, chart=charts[rung.version])
        if rung.effect is Effect.rejected:
            with pytest.raises(CommandFailed, match=r"immutable|[Ff]orbidden"):
                upgraded.upgrade()
            continue
        upgraded.upgrade()
        after = settle(release, rung)
        # Under OnDelete no pod ends by itself; whether its next one is another says the revision.
        assert before.pods.items() <= after.pods.items(), rung.name
        changed = [name for name, revision in before.revisions.items() if after.revisions[name] != revision]
        if rung.effect is Effect.restart:
            assert changed, rung.name
        else:
            assert (changed, after.pods) == ([], before.pods), rung.name
        before = after


def test_a_model_is_compared_with_a_release(admin: Access, namespace: str, tmp_path: Path) -> None:
    """With the values of the release: a rule of the network that it sets itself stays as it is."""
    ladder = LADDERS[0]
    rung, _ = next(ladder.publish(tmp_path, Address(str(tmp_path / "repository"))))
    chart = tmp_path / "repository" / f"{ladder.name}-{rung.version}.tgz"
    Release(admin, namespace, "plain", chart).install()
    Release(admin, namespace, "monitored", chart, MONITORED).install()
    last = ladder.rungs[-1]
    spec = ladder.write_spec(tmp_path, last)
    plain, monitored = (diff(admin, namespace, spec, release) for release in ("plain", "monitored"))
    assert plain["against"] == f"release plain in namespace {namespace}"
    assert (plain["oldVersion"], plain["nextVersion"]) == (rung.version, last.version)
    assert plain["effect"] == monitored["effect"] == last.effect.text
    rule = ("NetworkPolicy", Effect.applied.text)
    assert rule in labels(plain)
    assert rule not in labels(monitored)
    refused = diff(admin, namespace, spec, "nowhere", code=9)
    assert refused["error"] == "NotFound"
    assert "there is no release nowhere" in refused["message"]


def diff(admin: Access, namespace: str, spec: Path, release: str, *, code: int = 0) -> dict[str, Any]:
    """Return what `trainchart diff --against RELEASE` prints as JSON, its error where it ends with `code`."""
    argv = [sys.executable, "-m", "trainchart", "diff", str(spec), f"--against={release}", f"--namespace={namespace}"]
    argv += ["--format=json", *([f"--context={admin.context}"] if admin.context else [])]
    done = admin.run(argv, check=False)
    assert done.returncode == code, done.stderr
    told = json.loads(done.stderr if code else done.stdout)
    assert isinstance(told, dict)
    return told


def labels(told: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the kinds of objects that differ, with what becomes of them."""
    return {(change["kind"], change["effect"]) for change in told["objects"]}


@dataclasses.dataclass(frozen=True)
class Settled:
    """What a release looks like once its controllers have seen an upgrade: pods' uids, StatefulSets' revisions."""

    pods: dict[str, str]
    revisions: dict[str, str]


def settle(release: Release, rung: Rung) -> Settled:
    """Wait until Kubernetes has seen the version of `rung`, and say what it has made of it."""

    def read(client: Client) -> Settled | None:
        sets = list(client.list(StatefulSet, namespace=release.namespace, labels=dict(release.selector)))
        revisions: dict[str, str] = {}
        wanted = 0
        for each in sets:
            assert each.metadata is not None
            assert each.spec is not None
            is_new = (each.metadata.labels or {})["helm.sh/chart"] == f"{release.chart.name}-{rung.version}"
            if not each.status or each.status.observedGeneration != each.metadata.generation or not is_new:
                return None
            revisions[str(each.metadata.name)] = each.status.updateRevision or ""
            wanted += each.spec.replicas or 0
        pods = {name: str(pod.metadata.uid) for name, pod in release.pods(client).items() if pod.metadata}
        return Settled(pods, revisions) if len(pods) == wanted else None

    return release.access.wait_for(read, f"version {rung.version} seen", namespace=release.namespace)
