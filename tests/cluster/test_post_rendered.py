"""What was changed outside the chart stays through suspend, resume, stop and rerun, with Helm 3 and 4.

Nothing trains here: the programs sleep.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_cli_releases import trainchart
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.images.plan import RUNTIME_IMAGE
from tests.cluster.testcluster.releases import IDLE, PROJECT, Release, digits_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY, wait_for_phase

pytestmark = pytest.mark.cluster

RENDERER = f"""\
#!{sys.executable}
import sys
import yaml

SLEEPS = "import signal, sys; signal.signal(15, lambda *_: sys.exit()); signal.pause()"

objects = [each for each in yaml.safe_load_all(sys.stdin) if each]
for each in objects:
    each["metadata"].setdefault("labels", {{}})["team"] = "vision"
    if each["kind"] == "StatefulSet":
        each["spec"]["template"]["metadata"].setdefault("annotations", {{}})["mesh"] = "off"
        pods = each["spec"]["template"]["spec"]
        training = pods["containers"][0]
        sidecar = {{key: training[key] for key in ("image", "securityContext", "resources")}}
        pods["containers"].insert(0, {{"name": "sidecar", "command": ["python3", "-c", SLEEPS], **sidecar}})
    if each["kind"] == "Job":
        each["spec"]["template"]["spec"]["containers"][0]["image"] = "{RUNTIME_IMAGE}"
objects.append({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "house-rules"}}}})
print(yaml.dump_all(objects, sort_keys=False))
"""
TAKES_SETTINGS = """\
        variables = each["spec"]["template"]["spec"]["containers"][0]["env"]
        (settings,) = [each for each in variables if each["name"] == "TRAINCHART_RUN_SETTINGS"]
        settings["value"] = settings["value"].replace(":", ": ", 1)
"""


def write_renderer(folder: Path, text: str = RENDERER) -> Path:
    """Write the post-renderer as a program for Helm 3 and as a plugin for Helm 4, and return the program."""
    program = folder / "house" / "render"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)
    plugin = {
        "apiVersion": "v1",
        "name": "house",
        "version": "1.0.0",
        "type": "postrenderer/v1",
        "runtime": "subprocess",
        "runtimeConfig": {"platformCommand": [{"command": str(program)}]},
    }
    (program.parent / "plugin.yaml").write_text(json.dumps(plugin))
    return program


def install(release: Release, program: Path, helm: str) -> None:
    renderer = program if helm == "helm3" else "house"
    argv = ["env", f"HELM_PLUGINS={program.parent.parent}", "helm", "install", release.name, release.chart]
    argv += [f"--namespace={release.namespace}", "--values=-", f"--post-renderer={renderer}"]
    release.access.run(argv, text=json.dumps(release.values))


def read_objects(release: Release, *kinds: str) -> list[dict[str, Any]]:
    """Return the live objects of the release of these kinds, without those on their way out."""
    selector = f"--selector=app.kubernetes.io/instance={release.name}"
    text = release.access.kubectl("get", ",".join(kinds), f"--namespace={release.namespace}", selector, "--output=json")
    return [each for each in json.loads(text)["items"] if "deletionTimestamp" not in each["metadata"]]


def assert_kept(release: Release, helm: str, memory: str = "96Mi") -> None:
    """Everything that the post-renderer did, and the memory set by hand, is there, live and in Helm's record."""
    objects = read_objects(release, "statefulset", "job", "service", "configmap", "serviceaccount", "role")
    assert len(objects) >= 6
    assert {each["metadata"]["labels"].get("team") for each in objects} == {"vision"}
    for each in objects:
        containers = each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
        if each["kind"] == "StatefulSet":
            assert [container["name"] for container in containers] == ["sidecar", "training"]
            assert each["spec"]["template"]["metadata"]["annotations"]["mesh"] == "off"
            assert containers[1]["resources"]["limits"]["memory"] == memory
        if each["kind"] == "Job":
            assert containers[0]["image"] == RUNTIME_IMAGE
    access, where = release.access, f"--namespace={release.namespace}"
    assert access.kubectl("get", "configmap", "house-rules", where, "--output=name")
    stored = access.run(["helm", "get", "manifest", release.name, where]).stdout
    assert stored.count("team: vision") >= len(objects)
    assert "name: house-rules" in stored
    hooks = access.run(["helm", "get", "hooks", release.name, where]).stdout
    assert hooks.count("team: vision") == (1 if helm == "helm4" else 0), "Helm 3 renders hooks without post-renderers"


@pytest.fixture
def release(admin: Access, namespace: str, helm: str, request: pytest.FixtureRequest, tmp_path: Path) -> Release:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "helm").symlink_to(request.getfixturevalue(helm))
    access = dataclasses.replace(admin, programs=(programs, *admin.programs))
    own = {"run": {"controller": {"image": ""}}, "roles": {"worker": {**TINY, "saveWaitSeconds": 0}}}
    values = merge_values(merge_values(merge_values(digits_values(), IDLE), CONTROLLED), own)
    return Release(access, namespace, "exp1", PROJECT / "charts" / "digits", values)


@pytest.mark.parametrize("helm", ["helm3", "helm4"])
def test_all_four_commands_keep_what_was_changed(release: Release, helm: str, tmp_path: Path) -> None:
    install(release, write_renderer(tmp_path), helm)
    wait_for_phase(release, "Running")
    assert_kept(release, helm, TINY["memory"])
    owner = ("helm.toolkit.fluxcd.io/name=exp1", f"helm.toolkit.fluxcd.io/namespace={release.namespace}")
    where = ("statefulset", "exp1-digits-worker", f"--namespace={release.namespace}")
    release.access.kubectl("label", *where, *owner)
    release.access.kubectl("set", "resources", *where, "--containers=training", "--limits=memory=96Mi")
    told = json.loads(trainchart(release.access, release.namespace, "suspend", "exp1", "--format=json"))
    kept = "StatefulSet exp1-digits-worker: spec.template.spec.containers"
    assert {f"{kept}[sidecar]", f"{kept}[training].resources.limits.memory"} <= set(told["kept"])
    assert told["note"].startswith(f"the Flux HelmRelease {release.namespace}/exp1 will undo this")
    wait_for_phase(release, "Suspended")
    assert_kept(release, helm)
    trainchart(release.access, release.namespace, "resume", "exp1")
    assert_kept(release, helm)
    trainchart(release.access, release.namespace, "stop", "exp1")
    wait_for_phase(release, "Stopped")
    trainchart(release.access, release.namespace, "rerun", "exp1")
    assert_kept(release, helm)
    wait_for_phase(release, "Running")


@pytest.mark.parametrize("helm", ["helm4"])
def test_a_change_that_cannot_be_kept_is_refused(release: Release, helm: str, tmp_path: Path) -> None:
    install(
        release, write_renderer(tmp_path, RENDERER.replace("objects.append", f"{TAKES_SETTINGS}objects.append")), helm
    )
    wait_for_phase(release, "Starting", "Running")
    told = trainchart(release.access, release.namespace, "suspend", "exp1", code=9)
    assert "nothing was changed: this command would undo changes made to exp1 outside its chart" in told
    assert "spec.template.spec.containers[controller].env[TRAINCHART_RUN_SETTINGS].value" in told
    assert "helm upgrade exp1 CHART" in told
    history = release.access.run(["helm", "history", "exp1", f"--namespace={release.namespace}", "--output=json"])
    assert len(json.loads(history.stdout)) == 1
