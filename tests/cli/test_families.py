"""Charts of families besides trainings: started, generated, checked, explained, compared and packed by the commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.commands import invoke, refuse
from trainchart.actions.check import check_chart
from trainchart.check.finding import Severity
from trainchart.errors import SpecError, TrainchartError, UsageError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Manifest, Rendering, ValueOverrides

ROOT = Path(__file__).parent.parent.parent
PACK = "apiVersion: trainchart/v1\nkind: Pack\nname: acme\nversion: 0.1.0\n"
FAMILY = """\
apiVersion: trainchart/v1
kind: Family
description: Says something.
values:
  words:
    description: What it says.
    type: string
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  labels:
    app.kubernetes.io/name: {{ .Chart.Name | quote }}
    app.kubernetes.io/instance: {{ .Release.Name | quote }}
    app.kubernetes.io/component: words
    app.kubernetes.io/part-of: <%= name %>
    app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
    helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
data:
  words: {{ .Values.words | quote }}
"""
SPEC = """\
apiVersion: trainchart/v1
kind: Chart
family: speech
name: hello
description: Says hello.
values: {words: hello}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def succeed(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception, getattr(result.exception, "problems", ()))
    return result.stdout


def add_pack(project: Path, defaults: str = "", **files: str) -> Path:
    pack = project / "packs" / "acme"
    for path, text in {
        "pack.yaml": PACK,
        "defaults.yaml": defaults,
        "families/speech/family.yaml": FAMILY,
        "families/speech/templates/words.yaml": CONFIG,
        "families/speech/tests/hello.yaml": SPEC,
        **files,
    }.items():
        (pack / path).parent.mkdir(parents=True, exist_ok=True)
        (pack / path).write_text(text)
    (project / "trainchart.yaml").write_text("apiVersion: trainchart/v1\nkind: Project\nextends: [packs/acme]\n")
    return pack


@pytest.mark.parametrize("engine", ["sdk", "helm3"])
def test_a_tenant_is_started_generated_and_checked(engine: str, helm3: Path) -> None:
    helm = {"sdk": "sdk", "helm3": str(helm3)}[engine]
    assert succeed("init", "team-a", "--family", "tenant") == "models/team-a.yaml\n"
    assert succeed("generate") == "charts/team-a  0.1.0  new, 16 files\n"
    found = check_chart(Path("charts/team-a"), engine=helm).findings
    assert [finding for finding in found if finding.severity is not Severity.info] == []
    rendering = find_engine(helm).render(
        Path("charts/team-a"), release="team-a", overrides=ValueOverrides(), validate=True
    )
    kinds = sorted(manifest.kind for manifest in rendering.manifests)
    assert kinds == [
        *("LimitRange", "Namespace", "NetworkPolicy", "ResourceQuota", "ResourceQuota", "Role", "Role"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    ]


def test_commented_values_of_a_new_spec_are_defaults(project: Path) -> None:
    succeed("init", "team-a", "--family", "tenant")
    succeed("generate")
    before = Path("charts/team-a/values.yaml").read_text()
    spec = project / "models" / "team-a.yaml"
    head, values = spec.read_text().split("values:\n")
    lines = [line.replace("# ", "", 1) for line in values.splitlines() if ": " in line or line.endswith(":")]
    is_text = [line for line in lines if line.rstrip().endswith(".")]
    spec.write_text(f"{head}values:\n" + "\n".join(line for line in lines if line not in is_text) + "\n")
    succeed("generate")
    assert yaml.safe_load(Path("charts/team-a/values.yaml").read_text()) == yaml.safe_load(before)


def test_values_of_a_chart_are_explained_with_their_layer(project: Path) -> None:
    add_pack(project, "families: {speech: {words: hi}}\n")
    (project / "models" / "hello.yaml").write_text(SPEC)
    assert succeed("explain", "hello", "words") == (
        'words = "hello"  # models/hello.yaml:6:10 (model spec)\n'
        '  overrides "hi"  # packs/acme/defaults.yaml:1:21 (pack acme 0.1.0)\n'
    )


def test_a_family_of_a_pack_makes_charts_like_any_other(project: Path) -> None:
    add_pack(project)
    (project / "models" / "hello.yaml").write_text(SPEC)
    assert "packs/acme" in succeed("pack", "check")
    succeed("generate")
    assert succeed("generate", "--check") == ""
    succeed("check", "charts/hello")
    assert "part-of: hello" in Path("charts/hello/templates/words.yaml").read_text()
    assert '| `words` | `"hello"` | What it says. |' in Path("charts/hello/README.md").read_text()
    succeed("package", "charts/hello", "-d", "dist")
    (project / "models" / "hello.yaml").write_text(SPEC.replace("words: hello", "words: goodbye"))
    assert "goodbye" in invoke("diff", "hello", "--against", "dist/hello-0.1.0.tgz").output
    succeed("upgrade")
    assert "goodbye" in Path("charts/hello/values.yaml").read_text()


def test_an_edited_chart_of_a_family_is_not_overwritten(project: Path) -> None:
    add_pack(project)
    (project / "models" / "hello.yaml").write_text(SPEC)
    succeed("generate")
    Path("charts/hello/templates/words.yaml").write_text("mine: true\n")
    assert "changed by hand" in refuse("generate").message


@pytest.mark.parametrize("command", [("run", "hello"), ("plan", "hello"), ("image", "build", "hello")])
def test_commands_for_models_refuse_charts_of_families(project: Path, command: tuple[str, ...]) -> None:
    add_pack(project)
    (project / "models" / "hello.yaml").write_text(SPEC)
    assert "is the spec of a chart of the family speech, not of a model" in refuse(*command).message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SPEC.replace("family: speech", "family: speach"), "unknown family speach"),
        (SPEC.replace("words: hello", "word: hello"), "unknown value values.word"),
        (SPEC.replace("values: {words: hello}\n", ""), "values.words is missing"),
        (SPEC + "strategy: single\n", "unknown key strategy"),
        (SPEC.replace("name: hello", "name: Hello"), "name: 'Hello' is not accepted"),
        (SPEC + "version: one\n", "'one' is not a SemVer version"),
    ],
)
def test_a_wrong_spec_is_named_with_its_line_and_writes_nothing(project: Path, spec: str, message: str) -> None:
    add_pack(project)
    (project / "models" / "hello.yaml").write_text(spec)
    error = refuse("generate")
    assert isinstance(error, SpecError)
    assert any(message in problem.message for problem in error.problems), error.problems
    assert all(problem.where.startswith("models/hello.yaml:") for problem in error.problems)
    assert not Path("charts").exists()


def test_pack_check_renders_the_tests_of_its_families(project: Path) -> None:
    bad = CONFIG.replace("    app.kubernetes.io/component: words\n", "").replace("kind: ConfigMap", "kind: Pod")
    add_pack(project, **{"families/speech/templates/words.yaml": bad})
    error = refuse("pack", "check")
    assert any(
        problem.where.startswith("packs/acme/families/speech/templates/words.yaml") for problem in error.problems
    )


def test_pack_check_reports_what_two_helms_render_differently(
    project: Path, helm3: Path, helm4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = add_pack(project)
    both = ("--engine", str(helm4), "--engine", str(helm3))
    succeed("pack", "check", *both)
    template = pack / "families" / "speech" / "templates" / "words.yaml"
    template.write_text(f"{CONFIG}  helm: {{{{ .Capabilities.HelmVersion.Version | quote }}}}\n")
    (problem,) = refuse("pack", "check", *both).problems
    assert problem.message == f"ConfigMap release differs between {helm4} and {helm3}"
    assert problem.where == "packs/acme/families/speech/templates/words.yaml"
    (tmp_path / "helm").symlink_to(helm3)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (problem,) = refuse("pack", "check").problems
    assert "between helm-python-sdk" in problem.message


def test_pack_check_reports_a_chart_that_one_helm_refuses(project: Path, helm3: Path, helm4: Path) -> None:
    only_4 = '{{ if hasPrefix "v3" .Capabilities.HelmVersion.Version }}{{ fail "no Helm 3" }}{{ end }}\n'
    add_pack(project, **{"families/speech/templates/words.yaml": only_4 + CONFIG})
    (problem,) = refuse("pack", "check", "--engine", str(helm4), "--engine", str(helm3)).problems
    assert problem.message.startswith("whether the chart renders (")
    assert "no Helm 3" in problem.message


def test_a_family_without_tests_fails_pack_check(project: Path) -> None:
    pack = add_pack(project)
    shutil.rmtree(pack / "families" / "speech" / "tests")
    (problem,) = refuse("pack", "check").problems
    assert problem.message == "the family speech has no tests"


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        ("families: {speach: {words: hi}}\n", "unknown family speach"),
        ("families: {tenant: {quotas: {pods: 1}}}\n", "unknown value values.quotas"),
        ("families: {speech: {words: 1}}\n", "values.words: 1 is not of type 'string'"),
        ("families: {speech: loud}\n", "families.speech is not a mapping"),
    ],
)
def test_wrong_defaults_for_a_family_fail_pack_check(project: Path, defaults: str, message: str) -> None:
    spec = SPEC.replace("values: {words: hello}\n", "")
    add_pack(project, defaults, **{"families/speech/tests/hello.yaml": spec})
    problems = refuse("pack", "check").problems
    found = [each.where for each in problems if message in each.message]
    assert found, problems
    assert found[0].startswith("packs/acme/defaults.yaml:1:")


EGRESS = """\
<% extends "templates/networkpolicy.yaml" %>
<% block egress_rules %>
<%= super() %>
    - to: [{ipBlock: {cidr: 10.9.8.7/32}}]
<% endblock %>
"""
VIEWERS = CONFIG.replace("  words: {{ .Values.words | quote }}", "  team: {{ .Release.Name | quote }}")


def test_a_pack_changes_and_adds_templates_of_a_built_in_family(project: Path) -> None:
    changes = {"families/tenant/templates/networkpolicy.yaml": EGRESS, "families/tenant/templates/team.yaml": VIEWERS}
    add_pack(project, **changes)
    succeed("init", "team-a", "--family", "tenant")
    (problem,) = refuse("generate").problems
    assert problem.message == "the overridden text of the block egress_rules is not recorded"
    assert problem.where == "packs/acme/families/tenant/templates/networkpolicy.yaml:2"
    assert problem.hint.endswith("then run: trainchart pack accept packs/acme")
    place = "packs/acme/families/tenant/templates/networkpolicy.yaml"
    assert succeed("pack", "accept", "packs/acme") == f"{place}  egress_rules  accepted\n"
    assert succeed("pack", "accept", "packs/acme") == f"{place}  egress_rules  unchanged\n"
    succeed("generate")
    succeed("pack", "check")
    rendering = find_engine().render(Path("charts/team-a"), release="team-a")
    (policy,) = (each.document for each in rendering.manifests if each.kind == "NetworkPolicy")
    assert policy["spec"]["egress"][-1] == {"to": [{"ipBlock": {"cidr": "10.9.8.7/32"}}]}
    assert policy["spec"]["egress"][0] == {"to": [{"podSelector": {}}]}
    (added,) = (each.document for each in rendering.manifests if each.kind == "ConfigMap")
    assert added["data"] == {"team": "team-a"}
    base = Path("packs/acme/families/tenant/bases/networkpolicy.yaml")
    base.write_text(base.read_text().replace("53", "54"))
    (problem,) = refuse("generate").problems
    assert problem.message.startswith("the overridden block egress_rules has changed")


def test_a_pack_changes_a_family_of_another_pack(project: Path) -> None:
    block = CONFIG.replace("\ndata:\n", "\ndata:\n<% block data %>\n") + "<% endblock %>\n"
    add_pack(project, **{"families/speech/templates/words.yaml": block})
    team = project / "packs" / "team" / "families" / "speech" / "templates"
    team.mkdir(parents=True)
    (team.parent.parent.parent / "pack.yaml").write_text(PACK.replace("acme", "team") + "extends: [{path: ../acme}]\n")
    (team / "words.yaml").write_text(
        '<% extends "templates/words.yaml" %>\n<% block data %>\n<%= super() %>\n  more: words\n<% endblock %>\n'
    )
    (project / "trainchart.yaml").write_text("apiVersion: trainchart/v1\nkind: Project\nextends: [packs/team]\n")
    (project / "models" / "hello.yaml").write_text(SPEC)
    succeed("pack", "accept", "packs/team")
    succeed("pack", "check")
    succeed("generate")
    (manifest,) = find_engine().render(Path("charts/hello"), release="a").manifests
    assert manifest.document["data"] == {"words": "hello", "more": "words"}


def test_templates_for_an_unknown_family_fail_pack_check(project: Path) -> None:
    add_pack(project, **{"families/tenants/templates/networkpolicy.yaml": EGRESS})
    (problem,) = refuse("pack", "check").problems
    assert (problem.message, problem.hint) == ("unknown family tenants", "did you mean tenant?")
    assert problem.where.startswith("packs/acme/families/tenants")
    assert "there is no family tenants" in refuse("pack", "accept", "packs/acme").message


def test_two_families_of_one_name_are_refused(project: Path) -> None:
    pack = add_pack(project)
    shutil.copytree(pack / "families" / "speech", pack / "families" / "tenant")
    (project / "models" / "hello.yaml").write_text(SPEC)
    assert "two families have the name tenant" in refuse("generate").message


def test_templates_of_a_family_cannot_reach_out(project: Path) -> None:
    hostile = "a: <%= ''.__class__.__mro__ %>\nb: <% include '/etc/passwd' %>\n"
    add_pack(project, **{"families/speech/templates/words.yaml": hostile})
    (project / "models" / "hello.yaml").write_text(SPEC)
    messages = [problem.message for problem in refuse("generate").problems]
    assert messages
    assert not Path("charts").exists()


def test_an_unknown_type_of_kubernetes_is_named(project: Path) -> None:
    add_pack(project, **{"families/speech/family.yaml": FAMILY.replace("type: string", "kubernetesDefinition: io.Pod")})
    assert "is io.Pod, which is not a Kubernetes type" in refuse("pack", "check").problems[0].message


def test_a_tenant_is_not_installed_in_itself() -> None:
    succeed("init", "team-a", "--family", "tenant")
    succeed("generate")
    overrides = ValueOverrides()
    with pytest.raises(TrainchartError) as refused:
        find_engine("sdk").render(Path("charts/team-a"), release="default", overrides=overrides, validate=True)
    assert "install the tenant default from another namespace" in f"{refused.value.hint} {refused.value.problems}"


@pytest.mark.parametrize("release", ["null", "yes", "1e3", "0x1f", "012"])
@pytest.mark.parametrize("engine", ["sdk", "helm3"])
def test_a_tenant_may_be_called_as_no_text_is_written(engine: str, helm3: Path, release: str) -> None:
    succeed("init", "team-a", "--family", "tenant")
    succeed("generate")
    name = "alice\u00a0"
    values = json.dumps({"engineers": [{"kind": "User", "name": name}], "queue": {"clusterQueue": "g", "name": "yes"}})
    helm = {"sdk": "sdk", "helm3": str(helm3)}[engine]
    rendering = find_engine(helm).render(
        Path("charts/team-a"), release=release, overrides=ValueOverrides(files=(("a", values),))
    )
    documents = [manifest.document for manifest in rendering.manifests]
    names = {each["metadata"].get("namespace", each["metadata"]["name"]) for each in documents}
    assert names == {release, f"tenant-{release}"}
    bindings = [each for each in documents if each["kind"] == "RoleBinding"]
    assert name in {subject["name"] for each in bindings for subject in each["subjects"]}


@pytest.mark.parametrize(
    "values",
    ["{engineers: [{kind: Groop, name: a}]}", "{ci: [{kind: ServiceAccount, name: a}]}", "{quota: {pods: many}}"],
)
def test_wrong_values_of_a_tenant_are_refused(project: Path, values: str) -> None:
    spec = SPEC.replace("speech", "tenant").replace("{words: hello}", values)
    (project / "models" / "hello.yaml").write_text(spec)
    assert "the values do not fit the family tenant" in refuse("generate").message


def test_endless_patterns_of_a_family_end(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainchart.actions.support.family_charts._VALIDATION_SECONDS", 0.2)
    add_pack(project, **{"families/speech/family.yaml": FAMILY + "    pattern: ^(a+)+$\n"})
    (project / "models" / "hello.yaml").write_text(SPEC.replace("words: hello", f"words: {'a' * 40}b"))
    assert "takes too long" in refuse("generate").message
    default = f"    pattern: ^(a+)+$\n    default: {'a' * 40}b\n"
    add_pack(project, **{"families/speech/family.yaml": FAMILY + default})
    assert "takes too long" in str(refuse("pack", "check").problems)


def test_options_of_models_do_not_go_with_a_family() -> None:
    error = refuse("init", "team-a", "--family", "tenant", "--strategy", "single")
    assert isinstance(error, UsageError)
    assert "--strategy is for models, and cannot be used with --family" in error.message


def test_an_unknown_family_is_refused_with_those_that_are_known() -> None:
    error = refuse("init", "team-a", "--family", "tennant")
    assert (error.message, error.hint) == ("unknown family tennant", "did you mean tenant?")


def test_a_published_pack_brings_its_families(project: Path, tmp_path: Path) -> None:
    add_pack(project)
    repository = f"file://{tmp_path}/repository"
    succeed("pack", "publish", "packs/acme", "--to", repository)
    shutil.rmtree(project / "packs")
    source = f'{{repository: "{repository}", name: acme, version: 0.1.0}}'
    (project / "trainchart.yaml").write_text(f"apiVersion: trainchart/v1\nkind: Project\nextends: [{source}]\n")
    (project / "models" / "hello.yaml").write_text(SPEC)
    succeed("pack", "update")
    succeed("generate")
    assert "part-of: hello" in Path("charts/hello/templates/words.yaml").read_text()


@pytest.mark.parametrize("queue", ["", "trainings"])
def test_rights_of_a_tenant_cover_those_of_run_controllers(project: Path, queue: str) -> None:
    """A Role can only be granted by those who hold its rights."""
    succeed("init", "team-a", "--family", "tenant")
    succeed("generate")
    engine = find_engine("sdk")
    values = f"queue: {{clusterQueue: '{'gpus' if queue else ''}'}}\n"
    tenant = engine.render(Path("charts/team-a"), release="team", overrides=ValueOverrides(files=(("a", values),)))
    run = f"run: {{queue: '{queue}'}}\n"
    release = engine.render(ROOT / "charts" / "mnist", release="exp", overrides=ValueOverrides(files=(("a", run),)))
    held = [rule for role in list_roles(tenant) if role.name == "tenant-releases" for rule in role.document["rules"]]
    for rule in (rule for role in list_roles(release) for rule in role.document["rules"]):
        wanted = {
            (group, name, verb) for group in rule["apiGroups"] for name in rule["resources"] for verb in rule["verbs"]
        }
        has = {
            (group, name, verb)
            for own in held
            for group in own["apiGroups"]
            for name in own["resources"]
            for verb in own["verbs"]
        }
        assert wanted <= has, wanted - has


def list_roles(rendering: Rendering) -> list[Manifest]:
    return [manifest for manifest in rendering.manifests if manifest.kind == "Role"]
