"""Locked values through real Helm: no spec, values file or --set gets past a lock, and all else goes on working."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trainchart.cli.app import app
from trainchart.errors import PlanError, RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: tiny
description: A tiny model.
image: {repository: registry.example.com/tiny, tag: "1.0"}
framework: {tensorflow: "2.21.0", flavour: gpu}
code: {path: code, command: [python, train.py]}
strategy: parameter-server
volumes:
  checkpoints: {size: 1Gi, mountPath: /checkpoints, storageClass: cephfs}
"""
POLICY = """\
apiVersion: trainchart/v1
kind: Policy
locked:
  run.controller.image: {value: "registry.acme.example/run-controller:1.0.0", message: ask the platform team}
  roles.*.gpus: {maximum: 2}
  roles.*.stopGraceSeconds: {minimum: 10, maximum: 60}
  volumes.*.storageClass: {enum: [cephfs, glusterfs]}
  networkPolicy.enabled: {enum: [true]}
  nodeSelector: {value: {pool: research}}
  env.HTTP_PROXY: {value: "http://proxy:3128"}
  podSecurityContext.runAsNonRoot: {value: true}
"""
REFUSED = (
    "run.controller.image=evil:1",
    "run.controller.image=",
    "run.controller.image=null",
    "run.controller=null",
    "run=null",
    "roles.worker.gpus=3",
    "roles.ps.gpus=null",
    "roles.worker.stopGraceSeconds=900",
    "volumes.checkpoints.storageClass=local",
    "nodeSelector.pool=other",
    "nodeSelector.more=x",
    "nodeSelector=null",
    "roles.worker.nodeSelector.pool=other",
    "run.controller.nodeSelector.pool=other",
    "tensorboard.nodeSelector.pool=other",
    "env.HTTP_PROXY=http://other",
    "env.HTTP_PROXY=null",
    "env=null",
    "roles.worker.env.HTTP_PROXY=http://other",
    "networkPolicy.enabled=null",
    "networkPolicy=null",
    "podSecurityContext.runAsNonRoot=false",
    "podSecurityContext.runAsNonRoot=null",
    "roles.worker.podSecurityContext.runAsNonRoot=false",
)
ALLOWED = (
    "roles.worker.gpus=2",
    "volumes.checkpoints.storageClass=glusterfs",
    "env.MORE=x",
    "roles.worker.env.MORE=x",
    "roles.worker.nodeSelector.pool=research",
    "podSecurityContext.fsGroup=2000",
    "roles.worker.podSecurityContext.fsGroup=2000",
)


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart of a model whose project locks the paths of POLICY."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        assert call("pack", "init", "acme").exit_code == 0
        Path("packs/acme/policy.yaml").write_text(POLICY)
        Path("models").mkdir()
        Path("models/tiny.yaml").write_text(SPEC)
        Path("code").mkdir()
        Path("code/train.py").write_text("print('trained')\n")
        assert call("pack", "check").exit_code == 0
        assert call("generate").exit_code == 0
    return folder / "charts" / "tiny"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def render(engine: str, chart: Path, *sets: str) -> Rendering:
    return find_engine(engine).render(chart, release="exp", overrides=ValueOverrides(sets=sets))


@pytest.mark.parametrize("attempt", REFUSED)
def test_set_does_not_get_past_a_lock(chart: Path, attempt: str) -> None:
    with pytest.raises(RenderError) as refusal:
        render("sdk", chart, attempt)
    key = attempt.split("=")[0].split(".")[0]
    assert key in f"{refusal.value.message} {refusal.value.problems}"


@pytest.mark.parametrize("version", ["helm3", "helm4"])
def test_both_helm_programs_refuse_what_is_locked(chart: Path, version: str, request: pytest.FixtureRequest) -> None:
    engine = str(request.getfixturevalue(version))
    assert render(engine, chart).manifests
    for attempt in REFUSED[::3]:
        with pytest.raises(RenderError):
            render(engine, chart, attempt)


@pytest.mark.parametrize("choice", ALLOWED)
def test_what_is_not_locked_can_still_be_chosen(chart: Path, choice: str) -> None:
    assert render("sdk", chart, choice).manifests


def test_the_lock_is_the_value_of_every_pod(chart: Path) -> None:
    pods = [
        manifest.document["spec"]["template"]["spec"]
        for manifest in render("sdk", chart).manifests
        if manifest.document["kind"] in ("StatefulSet", "Job")
    ]
    assert len(pods) >= 3
    assert all(pod["nodeSelector"] == {"pool": "research"} for pod in pods)


def test_a_chart_with_locks_passes_every_check(chart: Path) -> None:
    done = call("check", str(chart))
    assert done.exit_code == 0, done.stdout
    assert "0 errors, 0 warnings" in done.stderr


def test_a_refused_value_says_why(chart: Path) -> None:
    with pytest.raises(RenderError) as refusal:
        render("sdk", chart, "run.controller.image=evil:1")
    (problem,) = set(refusal.value.problems)
    assert problem.message == "run.controller.image: 'evil:1' is not allowed"
    assert problem.hint == (
        "Locked by pack acme 0.1.0: only registry.acme.example/run-controller:1.0.0; ask the platform team"
    )


def test_a_spec_that_breaks_a_lock_writes_no_chart(chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(chart.parent.parent)
    Path("models/other.yaml").write_text(SPEC.replace("name: tiny", "name: other") + "roles: {ps: {gpus: 5}}\n")
    error = call("generate", "other").exception
    assert isinstance(error, PlanError)
    assert error.problems[0].message == "roles.ps.gpus: 5 is not allowed, only at most 2"
    assert not Path("charts/other").exists()
