"""Locks on values of families through real Helm: no spec, pack, values file or --set gets past them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import invoke, refuse
from trainchart.errors import PlanError, RenderError, SpecError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides

PACK = "apiVersion: trainchart/v1\nkind: Pack\nname: acme\nversion: 0.1.0\n"
POLICY = """\
apiVersion: trainchart/v1
kind: Policy
families:
  tenant:
    podSecurity: {value: restricted, message: ask the security team}
    quota.requests.nvidia.com/gpu: {maximum: 8}
    quota.services.nodeports: {value: 0}
    network.restrictEgress: {enum: [true]}
    forbiddenPriorityClasses: {value: [system-cluster-critical, system-node-critical, urgent]}
"""
SPEC = """\
apiVersion: trainchart/v1
kind: Chart
family: tenant
name: team-a
description: The vision team.
"""
GPUS = r"quota.requests\.nvidia\.com/gpu"
REFUSED = (
    "podSecurity=baseline",
    "podSecurity=null",
    f"{GPUS}=9",
    f"{GPUS}=null",
    "quota=null",
    r"quota.services\.nodeports=1",
    r"quota.services\.nodeports=null",
    "network.restrictEgress=false",
    "network.restrictEgress=null",
    "network=null",
    "forbiddenPriorityClasses={}",
    "forbiddenPriorityClasses[0]=x",
    "forbiddenPriorityClasses=null",
    r"namespaceLabels.pod-security\.kubernetes\.io/enforce=privileged",
)
ALLOWED = (f"{GPUS}=2", "podSecurity=restricted", "quota.pods=200", r"quota.requests\.amd\.com/gpu=4")


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory: pytest.TempPathFactory, helm3: Path, helm4: Path) -> Iterator[Path]:
    """A project whose pack locks values of tenants. Both Helms are found before its caches are put elsewhere."""
    folder = tmp_path_factory.mktemp("project")
    for path, text in {
        "trainchart.yaml": "apiVersion: trainchart/v1\nkind: Project\nextends: [packs/acme]\n",
        "packs/acme/pack.yaml": PACK,
        "packs/acme/policy.yaml": POLICY,
        "models/team-a.yaml": SPEC,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        assert invoke("generate", "team-a").exit_code == 0
        yield folder


def render(engine: str, overrides: ValueOverrides) -> None:
    find_engine(engine).render(Path("charts/team-a"), release="team-a", namespace="tenants", overrides=overrides)


@pytest.mark.parametrize("attempt", REFUSED)
def test_set_does_not_get_past_a_lock(attempt: str) -> None:
    with pytest.raises(RenderError):
        render("sdk", ValueOverrides(sets=(attempt,)))


@pytest.mark.parametrize("version", ["helm3", "helm4"])
def test_both_helm_programs_refuse_what_is_locked(version: str, request: pytest.FixtureRequest) -> None:
    engine = str(request.getfixturevalue(version))
    for allowed in ALLOWED:
        render(engine, ValueOverrides(sets=(allowed,)))
    for attempt in (*REFUSED[::3], f"{GPUS}=9"):
        with pytest.raises(RenderError):
            render(engine, ValueOverrides(sets=(attempt,)))


def test_a_number_as_text_does_not_get_past_a_range() -> None:
    with pytest.raises(RenderError):
        render("sdk", ValueOverrides(set_strings=(f"{GPUS}=100",)))
    with pytest.raises(RenderError):
        render("sdk", ValueOverrides(files=(("values", 'quota: {requests.nvidia.com/gpu: "100"}\n'),)))


def test_a_refused_value_says_who_locks_it() -> None:
    with pytest.raises(RenderError) as refusal:
        render("sdk", ValueOverrides(sets=("podSecurity=baseline",)))
    (problem,) = set(refusal.value.problems)
    assert problem.message == "podSecurity: 'baseline' is not allowed"
    assert problem.hint == "Locked by pack acme 0.1.0: only restricted; ask the security team"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("podSecurity: baseline", "values.podSecurity: 'baseline' is not allowed, only restricted"),
        (
            "quota: {requests.nvidia.com/gpu: 9}",
            "values.quota.requests.nvidia.com/gpu: 9 is not allowed, only at most 8",
        ),
        ("quota: {requests.nvidia.com/gpu: '9'}", "values.quota.requests.nvidia.com/gpu: '9' is not allowed"),
        ("quota: {requests.nvidia.com/gpu: null}", "values.quota.requests.nvidia.com/gpu: None is not allowed"),
        ("network: {restrictEgress: false}", "values.network.restrictEgress: False is not allowed, only True"),
    ],
)
def test_a_spec_that_breaks_a_lock_writes_no_chart(project: Path, values: str, message: str) -> None:
    (project / "models" / "other.yaml").write_text(f"{SPEC.replace('team-a', 'other')}values: {{{values}}}\n")
    error = refuse("generate", "other")
    assert isinstance(error, PlanError)
    assert error.problems[0].message.startswith(message)
    assert error.problems[0].where.startswith("models/other.yaml:6:")
    assert "pack acme 0.1.0 locks values." in error.problems[0].hint
    assert not Path("charts/other").exists()


def test_a_stronger_pack_does_not_get_past_a_lock(project: Path) -> None:
    stronger = project / "packs" / "team"
    stronger.mkdir()
    (stronger / "pack.yaml").write_text(PACK.replace("acme", "team"))
    (stronger / "defaults.yaml").write_text("families: {tenant: {podSecurity: privileged}}\n")
    file = project / "trainchart.yaml"
    before = file.read_text()
    try:
        file.write_text(before.replace("packs/acme", "packs/acme, packs/team"))
        error = refuse("generate", "team-a")
        assert error.problems[0].message == "values.podSecurity: 'privileged' is not allowed, only restricted"
        assert error.problems[0].where.startswith("packs/team/defaults.yaml:1")
    finally:
        file.write_text(before)


def test_a_waived_lock_holds_no_more(project: Path) -> None:
    waiver = (
        "waivers:\n  - rule: families.tenant.podSecurity\n    models: [legacy]\n    owner: Kim\n"
        "    reason: until it is moved\n    until: 2999-01-01\n"
    )
    policy = project / "packs" / "acme" / "policy.yaml"
    try:
        policy.write_text(POLICY + waiver)
        (project / "models" / "legacy.yaml").write_text(
            f"{SPEC.replace('team-a', 'legacy')}values: {{podSecurity: baseline}}\n"
        )
        assert invoke("generate", "legacy").exit_code == 0
        schema = json.loads(Path("charts/legacy/values.schema.json").read_text())
        assert schema["properties"]["podSecurity"]["enum"] == ["restricted", "baseline", "privileged"]
    finally:
        policy.write_text(POLICY)


def test_a_chart_with_locks_passes_every_check() -> None:
    everything = Path("charts/team-a/ci/everything-values.yaml").read_text()
    assert "podSecurity" not in everything
    assert "restrictEgress" not in everything
    assert "clusterQueue: gpus" in everything
    done = invoke("check", "charts/team-a")
    assert done.exit_code == 0, done.stdout
    assert invoke("pack", "check").exit_code == 0


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        ("podsecurity: {value: restricted}", "unknown value values.podsecurity"),
        ("network: {value: {}}", "values.network is a section"),
        ("podSecurity: {maximum: 1}", "values.podSecurity is not an integer, so it has no range"),
        ("engineers.kind: {value: User}", "values.engineers.kind cannot be locked by itself"),
        ("containers.max.*: {enum: [64Gi]}", "values.containers.max.* cannot be locked by itself"),
        (
            "quota.requests.amd.com/gpu: {maximum: 4}",
            "values.quota.requests.amd.com/gpu is locked, and no layer sets it",
        ),
        ("podSecurity: {}", "families.tenant.podSecurity: expected value, or enum, or minimum and maximum"),
    ],
)
def test_a_lock_that_makes_no_sense_is_refused(project: Path, lock: str, message: str) -> None:
    policy = project / "packs" / "acme" / "policy.yaml"
    try:
        policy.write_text(f"apiVersion: trainchart/v1\nkind: Policy\nfamilies:\n  tenant:\n    {lock}\n")
        for command in (("pack", "check"), ("generate", "team-a")):
            error = refuse(*command)
            assert isinstance(error, SpecError)
            assert [problem.message for problem in error.problems] == [message]
            assert error.problems[0].where.startswith("packs/acme/policy.yaml:5")
        policy.write_text(POLICY.replace("  tenant:\n", "  tenants:\n"))
        for command in (("pack", "check"), ("generate", "team-a")):
            assert refuse(*command).problems[0].message == "unknown family tenants"
    finally:
        policy.write_text(POLICY)
