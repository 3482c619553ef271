"""One contract for every Helm engine: the SDK, helm 3 and helm 4 render, refuse and lint alike."""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError, ToolError, UsageError
from trainchart.helm.io import inputs
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.protocol import HelmEngine
from trainchart.helm.io.sdk import SdkEngine
from trainchart.helm.rendering import Rendering, ValueOverrides
from trainchart.kubernetes_yaml import find_plain_scalars

pytestmark = pytest.mark.helm


@pytest.fixture(params=["sdk", "helm3", "helm4"])
def engine(request: pytest.FixtureRequest) -> HelmEngine:
    if request.param == "sdk":
        return find_engine("sdk")
    return find_engine(str(request.getfixturevalue(request.param)))


@pytest.fixture
def reference() -> HelmEngine:
    return find_engine("sdk")


def render(engine: HelmEngine, chart: Path, **options: Any) -> Rendering:
    files = tuple((f"values-{number}.yaml", text) for number, text in enumerate(options.pop("files", ())))
    overrides = ValueOverrides(
        files=files,
        sets=options.pop("sets", ()),
        set_strings=options.pop("set_strings", ()),
        set_jsons=options.pop("set_jsons", ()),
    )
    return engine.render(chart, release=options.pop("release", "exp"), overrides=overrides, **options)


def values(rendering: Rendering) -> dict[str, Any]:
    """The final values as the chart's own templates saw them."""
    [manifest] = [m for m in rendering.manifests if m.source == "templates/values-configmap.yaml"]
    seen: dict[str, Any] = json.loads(manifest.document["data"]["values.json"])
    return seen


def problem_lines(error: RenderError) -> list[str]:
    return [str(problem) for problem in error.problems]


def test_every_object_with_its_source_hooks_included(engine: HelmEngine, plain_chart: Path) -> None:
    rendering = render(engine, plain_chart)
    assert [(m.source, m.kind, m.name) for m in rendering.manifests] == [
        ("templates/cluster-configmap.yaml", "ConfigMap", "exp-plain-cluster"),
        ("templates/service.yaml", "Service", "exp-plain"),
        ("templates/statefulset.yaml", "StatefulSet", "exp-plain-ps"),
        ("templates/statefulset.yaml", "StatefulSet", "exp-plain-worker"),
        ("templates/tests/reach.yaml", "Pod", "exp-plain-test"),
        ("templates/values-configmap.yaml", "ConfigMap", "exp-plain-values"),
    ]
    assert set(rendering.texts) == {m.source for m in rendering.manifests}
    assert "clusterIP: None" in rendering.texts["templates/service.yaml"]


def test_the_same_objects_as_the_reference(engine: HelmEngine, reference: HelmEngine, plain_chart: Path) -> None:
    options: dict[str, Any] = {"sets": ("roles.worker.replicas=3", "labels.team=nlp"), "is_upgrade": True}
    mine, theirs = render(engine, plain_chart, **options), render(reference, plain_chart, **options)
    assert mine.manifests == theirs.manifests
    assert "exp-plain-worker" in {m.name for m in mine.manifests}


@pytest.mark.parametrize(
    ("overrides", "path", "expected"),
    [
        ({"sets": ("free.x=0.01",)}, "x", "0.01"),
        ({"sets": ("free.x=1e-3",)}, "x", "1e-3"),
        ({"sets": ("free.x=7",)}, "x", 7),
        ({"sets": ("free.x=2000000",)}, "x", 2000000),
        ({"sets": ("free.x=007",)}, "x", "007"),
        ({"sets": ("free.x=true",)}, "x", True),
        ({"sets": ("free.x=",)}, "x", ""),
        ({"sets": ("free.x=1\\,2",)}, "x", "1,2"),
        ({"sets": ("free.x=1,free.x=2",)}, "x", 2),
        ({"sets": ("free.x=1", "free.x=2")}, "x", 2),
        ({"sets": ("free.x={a,2}",)}, "x", ["a", 2]),
        ({"sets": ("free.x[1]=b",)}, "x", [None, "b"]),
        ({"sets": ("free.x[0].y=1", "free.x[0].z=2")}, "x", [{"y": 1, "z": 2}]),
        ({"set_strings": ("free.x=7",)}, "x", "7"),
        ({"set_strings": ("free.x[0]=null",)}, "x", ["null"]),
        ({"sets": ("free.x=1",), "set_strings": ("free.x=2",)}, "x", "2"),
        ({"set_jsons": ('free.x={"y":[1,0.5,null]}',)}, "x", {"y": [1, 0.5, None]}),
        ({"set_jsons": ("free.x=1",), "sets": ("free.x=2",)}, "x", 2),
        ({"files": ("free: {x: 1, w: 1}\n", "free: {x: 2}")}, None, {"x": 2, "w": 1}),
        ({"files": ("free: {x: 1}\n",), "sets": ("free.x=2",)}, "x", 2),
        ({"files": ("free: {x: {w: 1}}\n", "free: {x: null}\n")}, "x", None),
        (
            {"files": ("free: {x: 1e3, w: 2026-01-01, z: 0x10}\n",)},
            None,
            {"x": 1000, "w": "2026-01-01", "z": 16},
        ),
        (
            {
                "files": ("free: {x: [{a: 0.5, b.c: yes}, {}, {d: [1, x]}, [], null]}\n",),
                "sets": ("free.x[2].d[1]=y",),
            },
            "x",
            [{"a": 0.5, "b.c": True}, {}, {"d": [1, "y"]}, [], None],
        ),
        ({"files": ("free: {x: [1.5, {}]}\n",), "set_jsons": ("free.x[0]=2.5",)}, "x", [2.5, {}]),
    ],
)
def test_values_reach_templates_with_helms_types_and_order(
    engine: HelmEngine, plain_chart: Path, overrides: dict[str, Any], path: str | None, expected: Any
) -> None:
    free = values(render(engine, plain_chart, **overrides))["free"]
    found = free if path is None else free[path]
    assert found == expected
    assert type(found) is type(expected)


def test_list_index_changes_a_files_list_but_not_the_charts(engine: HelmEngine, plain_chart: Path) -> None:
    from_file = render(
        engine, plain_chart, files=("env: [{name: X, value: a}, {name: Z}]\n",), sets=("env[1].value=b",)
    )
    assert values(from_file)["env"] == [{"name": "X", "value": "a"}, {"name": "Z", "value": "b"}]
    from_chart = render(engine, plain_chart, sets=("env[0].name=Z",))
    assert values(from_chart)["env"] == [{"name": "Z"}]


def test_a_hidden_separator_in_a_template_is_refused(engine: HelmEngine, plain_chart: Path) -> None:
    """A carriage return ends a line for YAML; Kubernetes reads no document after it."""
    hidden = "null\r---\rapiVersion: v1\nkind: ConfigMap\nmetadata: {name: hidden}\n"
    (plain_chart / "templates" / "hidden.yaml").write_text(hidden, newline="")
    with pytest.raises(RenderError) as caught:
        render(engine, plain_chart)
    assert "---" in caught.value.problems[0].message


_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"---\n{_MAP}", 1),
        (f"---{_MAP}", 1),
        (f"# first\n{_MAP}\n \n---\t{_MAP.replace('a}', 'b}')}", 2),
        (f"--- # first\n{_MAP}--- # second\n", 1),
        ("--- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", 1),
        (f"{_MAP}data:\n  a: |\n    ---\n    b\n", 1),
        ("---\n  " + _MAP.replace("\n", "\n  "), 0),
        ("\n  " + _MAP.replace("\n", "\n  "), 0),
    ],
)
def test_documents_are_separated_as_helm_does(engine: HelmEngine, plain_chart: Path, text: str, count: int) -> None:
    (plain_chart / "templates" / "more.yaml").write_text(text)
    if not count:
        with pytest.raises(RenderError):
            render(engine, plain_chart)
        return
    found = [
        manifest.name for manifest in render(engine, plain_chart).manifests if manifest.source.endswith("more.yaml")
    ]
    assert found == ["a", "b"][:count]


def test_no_object_hides_behind_the_name_of_a_source(engine: HelmEngine, plain_chart: Path) -> None:
    (plain_chart / "crds").mkdir()
    hidden = "---\n".join(f"# Source: {each}/q\n{_MAP.replace('a}', f'{each}}}')}" for each in ("p", "r"))
    (plain_chart / "crds" / "c.yaml").write_text(f"{_MAP}---\n{hidden}")
    found = {manifest.name for manifest in render(engine, plain_chart).manifests}
    assert {"a", "p", "r"} <= found


@pytest.mark.parametrize("wanted", [">=9.0.0", ">= v1.99", ">=1.36.1-0", "<1.20.0 || >=9", "not a version"])
def test_kubernetes_versions_that_a_chart_excludes_are_refused(
    engine: HelmEngine, helm4: Path, plain_chart: Path, wanted: str
) -> None:
    if engine.name.startswith("helm-python-sdk"):
        engine = SdkEngine(find_engine(str(helm4)))
    chart_file = plain_chart / "Chart.yaml"
    chart_file.write_text(f"{chart_file.read_text()}kubeVersion: '{wanted}'\n")
    with pytest.raises(RenderError) as caught:
        render(engine, plain_chart)
    assert f"requires kubeVersion: {wanted}" in str(caught.value) + "".join(problem_lines(caught.value))


@pytest.mark.parametrize(("text", "kind"), [("- a: 1\n", "a list"), ("12\n", "a single value")])
def test_values_files_without_keys_are_refused(engine: HelmEngine, plain_chart: Path, text: str, kind: str) -> None:
    with pytest.raises(RenderError, match=f"holds {kind}, expected keys with their values"):
        render(engine, plain_chart, files=(text,))


def test_null_deletes_a_default(engine: HelmEngine, plain_chart: Path) -> None:
    assert "learningRate" in values(render(engine, plain_chart))
    assert "learningRate" not in values(render(engine, plain_chart, sets=("learningRate=null",)))


def test_release_namespace_and_upgrade_reach_templates(engine: HelmEngine, plain_chart: Path) -> None:
    rendering = render(engine, plain_chart, release="a.b-1", namespace="ml", is_upgrade=True)
    [document] = [m.document for m in rendering.manifests if m.source == "templates/values-configmap.yaml"]
    assert document["data"]["upgrade"] == "true"
    assert document["data"]["namespace"] == "ml"
    assert (rendering.release, rendering.namespace) == ("a.b-1", "ml")


def test_the_schema_refuses_one_problem_a_value(engine: HelmEngine, plain_chart: Path) -> None:
    with pytest.raises(RenderError) as caught:
        render(
            engine,
            plain_chart,
            sets=("roles.worker.replicas=two", "gpuz=1", "enviroment=2", "learningRate=fast"),
        )
    assert [problem.message for problem in caught.value.problems] == [
        "learningRate: 'fast' is a string, expected a number",
        "roles.worker.replicas: 'two' is a string, expected a whole number",
        "unknown key enviroment",
        "unknown key gpuz",
    ]
    assert caught.value.message == "the values do not match the schema of chart plain"


def test_without_the_schema_the_same_objects(engine: HelmEngine, plain_chart: Path) -> None:
    options: dict[str, Any] = {"sets": ("roles.worker.replicas=3",), "files": ("labels: {team: nlp}",)}
    assert render(engine, plain_chart, validate=False, **options).texts == render(engine, plain_chart, **options).texts


def test_without_the_schema_nothing_refuses_a_value(engine: HelmEngine, plain_chart: Path, tmp_path: Path) -> None:
    subchart = Path(shutil.copytree(plain_chart, tmp_path / "umbrella" / "charts" / "plain"))
    chart = subchart.parent.parent
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: umbrella\nversion: 0.1.0\n")
    archive = tmp_path / "plain-0.1.0.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(plain_chart, "plain")
    for target, key in ((plain_chart, "gpuz"), (archive, "gpuz"), (chart, "plain.gpuz")):
        with pytest.raises(RenderError, match="schema"):
            render(engine, target, sets=(f"{key}=1",))
        assert render(engine, target, sets=(f"{key}=1",), validate=False).manifests


def test_values_files_of_several_documents_are_refused(engine: HelmEngine, plain_chart: Path) -> None:
    overrides = ValueOverrides(files=(("my.yaml", "free: {a: 1}\n---\nfree: {a: 2}\n"),))
    with pytest.raises(RenderError, match=r"my\.yaml holds 2 YAML documents"):
        engine.render(plain_chart, release="exp-7", overrides=overrides)
    with pytest.raises(RenderError, match=r"my\.yaml holds 2 YAML documents"):
        engine.lint(plain_chart, overrides=overrides)
    # Marks of a document alone make no second one.
    assert engine.render(plain_chart, release="exp-7", overrides=ValueOverrides(files=(("my.yaml", "---\n{}\n...\n"),)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"free": {"a": 1}}\n{"free": {"a": 2}}\n', "Helm would leave out the document that starts in line 2"),
        ('{"free": {"a": 1}} {"free": {"a": 2}}\n', "Helm would leave out the document that starts in line 1"),
        ("free: {a: 1}\n...\nfree: {a: 2}\n", "Helm would leave out the document that starts in line 3"),
        ("free: {a: 1}\nfree: {a: 2}\n", "the key free twice in one mapping, the second time in line 2"),
        ('{"free": {"a": 1, "a": 2}}', "the key a twice in one mapping"),
    ],
)
def test_values_of_which_helm_reads_a_part_are_refused(
    engine: HelmEngine, plain_chart: Path, text: str, problem: str
) -> None:
    overrides = ValueOverrides(files=(("my.yaml", text),))
    for ask in (engine.render, engine.lint):
        options = {"release": "exp-7"} if ask == engine.render else {}
        with pytest.raises(RenderError, match=rf"my\.yaml .*{problem}"):
            ask(plain_chart, overrides=overrides, **options)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\n---\nfree: {a: 1}\n", "holds 2 YAML documents"),
        ("free: {a: 1}\n--- free: {a: 2}\n", "mapping values are not allowed"),
        ("\0free: {a: 1}\n", "a character that YAML forbids"),
        ("free: {1: a, '1': b}\n", "two keys that both become '1'"),
    ],
)
def test_values_that_helms_read_differently_are_refused(
    engine: HelmEngine, plain_chart: Path, text: str, problem: str
) -> None:
    with pytest.raises(RenderError) as refusal:
        engine.render(plain_chart, release="exp-7", overrides=ValueOverrides(files=(("my.yaml", text),)))
    assert problem in f"{refusal.value} {refusal.value.problems}"


def test_templates_that_do_not_end_are_given_up(
    engine: HelmEngine, plain_chart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than the limit on any machine, yet over soon: what is left of it runs on beside other tests.
    loop = "{{ range until 3000 }}{{ range until 3000 }}{{ end }}{{ end }}"
    (plain_chart / "templates" / "endless.yaml").write_text(loop)
    monkeypatch.setattr(inputs, "RENDER_SECONDS", 0.05)
    with pytest.raises(RenderError, match=r"did not finish the templates of chart plain within 0\.05 seconds"):
        render(engine, plain_chart)
    with pytest.raises(RenderError, match=r"did not finish the templates of chart plain within 0\.05 seconds"):
        engine.lint(plain_chart)


SPELLINGS = (
    "0755",
    "0o17",
    "0x1f",
    "0b11",
    "1_0",
    "1e3",
    "1.10",
    "+5",
    ".5",
    "-0",
    "08",
    "12e4567",
    "y",
    "on",
    "1_0.5",
)


def test_helm_reads_numbers_and_words_as_is_told(engine: HelmEngine, plain_chart: Path) -> None:
    text = f"free: {{{', '.join(f'k{i}: {spelling}' for i, spelling in enumerate(SPELLINGS))}}}"
    told = {scalar.path[-1]: scalar.value for scalar in find_plain_scalars(text)}
    read = values(render(engine, plain_chart, files=(text,)))["free"]
    assert len(told) == len(SPELLINGS) - 1
    assert {**read, **told} == read


@pytest.mark.parametrize("release", ["Bad_Name", "", "-a", "a" * 54, "a..b", "a\nb"])
def test_bad_release_names_are_refused(engine: HelmEngine, plain_chart: Path, release: str) -> None:
    with pytest.raises(UsageError, match="is not a release name"):
        render(engine, plain_chart, release=release)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (
            "x: {{ .Values.free.a.b }}",
            "templates/broken.yaml:1:13: .Values.free.a.b: nil pointer evaluating interface {}.b\n"
            "  hint: a value that this template reads is not set",
        ),
        ('x: {{ fail "choose a claim" }}', "templates/broken.yaml:1:6: choose a claim"),
        ("x: {{ if }}", "templates/broken.yaml:1: missing value for if"),
        ("a: b: c", "renders to invalid YAML: mapping values are not allowed in this context"),
        (
            '{{ include "plain.deep" . }}{{ define "plain.deep" }}{{ .Values.free.a.b }}{{ end }}',
            ".Values.free.a.b: nil pointer evaluating interface {}.b",
        ),
    ],
)
def test_a_broken_template_says_where_and_why(
    engine: HelmEngine, plain_chart: Path, template: str, problem: str
) -> None:
    (plain_chart / "templates" / "broken.yaml").write_text(template + "\n")
    with pytest.raises(RenderError) as caught:
        render(engine, plain_chart)
    [line] = problem_lines(caught.value)
    assert problem in line
    assert line.startswith("templates/broken.yaml")
    assert "Error:" not in line
    assert "--debug" not in line


@pytest.mark.parametrize("sets", [("free",), ("env[x]=1",), ("env={a,b",)])
def test_a_malformed_set_is_refused(engine: HelmEngine, plain_chart: Path, sets: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        render(engine, plain_chart, sets=sets)


@pytest.mark.parametrize("value", ["~", "x", "{}", "[]", "[x]", "[~]", "{c: ~}", "{c: {d: 1}}"])
def test_a_set_of_what_has_another_type_ends_as_with_helm(helm4: Path, plain_chart: Path, value: str) -> None:
    file, engines = f"free: {{a: {value}}}\n", (find_engine("sdk"), find_engine(str(helm4)))
    for key in ("a.c", "a.c[0]", "a[0].b", "a[0][0]", "b.a.c"):
        found = []
        for each in engines:
            try:
                found.append(values(render(each, plain_chart, files=(file,), sets=(f"free.{key}=y",)))["free"])
            except UsageError:
                found.append(None)
        assert found[0] == found[1], key


def test_a_malformed_values_file_is_named(engine: HelmEngine, plain_chart: Path) -> None:
    with pytest.raises(RenderError) as caught:
        render(engine, plain_chart, files=("free: {a: 1}\n", "free: [\n"))
    text = "\n".join([caught.value.message, *problem_lines(caught.value)])
    assert "values-1.yaml" in text
    assert tempfile.gettempdir() not in text


def test_what_is_not_a_chart_is_a_tool_error(engine: HelmEngine, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is no chart at"):
        render(engine, tmp_path / "nowhere")
    with pytest.raises(ToolError, match=r"has no Chart\.yaml"):
        render(engine, tmp_path)
    (tmp_path / "notes.tgz").write_text("not gzip")
    with pytest.raises(ToolError, match="is not a chart"):
        render(engine, tmp_path / "notes.tgz")


def test_a_chart_file_that_does_not_load_is_refused(engine: HelmEngine, plain_chart: Path) -> None:
    (plain_chart / "Chart.yaml").write_text("name: [\n")
    with pytest.raises(RenderError, match="plain"):
        render(engine, plain_chart)


def test_an_archive_renders_like_its_folder(engine: HelmEngine, plain_chart: Path, tmp_path: Path) -> None:
    archive = tmp_path / "plain-1.2.3.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(plain_chart, "plain")
    assert render(engine, archive).manifests == render(engine, plain_chart).manifests


@pytest.fixture
def umbrella(plain_chart: Path, tmp_path: Path) -> Path:
    """A chart that holds the plain chart twice, under two aliases, the second one optional."""
    chart = tmp_path / "umbrella"
    (chart / "charts").mkdir(parents=True)
    shutil.copytree(plain_chart, chart / "charts" / "plain")
    (chart / "Chart.yaml").write_text(
        "apiVersion: v2\nname: umbrella\nversion: 0.1.0\ndependencies:\n"
        "  - {name: plain, version: 1.2.3, alias: left}\n"
        "  - {name: plain, version: 1.2.3, alias: right, condition: right.enabled}\n"
    )
    (chart / "values.yaml").write_text("left: {roles: {worker: {replicas: 5}}}\n")
    return chart


def test_a_subchart_under_two_aliases(engine: HelmEngine, reference: HelmEngine, umbrella: Path) -> None:
    rendering = render(engine, umbrella, sets=("right.free.x=1",))
    sets = {m.name: m.document["spec"]["replicas"] for m in rendering.manifests if m.kind == "StatefulSet"}
    assert sets == {"exp-left-worker": 5, "exp-left-ps": 1, "exp-right-worker": 2, "exp-right-ps": 1}
    assert {m.source for m in rendering.manifests if m.name == "exp-left-worker"} == {
        "charts/left/templates/statefulset.yaml"
    }
    assert rendering.manifests == render(reference, umbrella, sets=("right.free.x=1",)).manifests


def test_a_subchart_switched_off_and_one_refused(engine: HelmEngine, umbrella: Path) -> None:
    rendering = render(engine, umbrella, sets=("right.enabled=false",))
    assert {m.name for m in rendering.manifests if m.kind == "StatefulSet"} == {
        "exp-left-worker",
        "exp-left-ps",
    }
    with pytest.raises(RenderError) as caught:
        render(engine, umbrella, sets=("right.gpuz=1",))
    assert any("unknown key right.gpuz" in line for line in problem_lines(caught.value))


def test_a_missing_subchart_is_refused(engine: HelmEngine, umbrella: Path) -> None:
    shutil.rmtree(umbrella / "charts")
    with pytest.raises(RenderError, match="plain"):
        render(engine, umbrella)


def test_a_library_chart_is_refused(engine: HelmEngine, plain_chart: Path) -> None:
    chart_file = plain_chart / "Chart.yaml"
    chart_file.write_text(chart_file.read_text().replace("type: application", "type: library"))
    with pytest.raises(RenderError, match="library"):
        render(engine, plain_chart)


def test_custom_resource_definitions_are_rendered(engine: HelmEngine, plain_chart: Path) -> None:
    (plain_chart / "crds").mkdir()
    (plain_chart / "crds" / "things.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n"
    )
    found = [(m.source, m.name) for m in render(engine, plain_chart).manifests if m.kind == "CustomResourceDefinition"]
    assert found == [("crds/things.yaml", "things.example.com")]


def test_lint_names_problems_and_strict_makes_warnings_errors(engine: HelmEngine, plain_chart: Path) -> None:
    assert [m for m in engine.lint(plain_chart) if m.severity != "info"] == []
    (plain_chart / "templates" / "name.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n"
    )
    [strict] = [m for m in engine.lint(plain_chart) if m.severity != "info"]
    [lenient] = [m for m in engine.lint(plain_chart, strict=False) if m.severity != "info"]
    assert (strict.severity, lenient.severity) == ("error", "warning")
    assert "Not_A_Name" in strict.message
    assert "\n" not in strict.message


def test_lint_checks_values_and_archives(engine: HelmEngine, plain_chart: Path, tmp_path: Path) -> None:
    overrides = ValueOverrides(sets=("gpuz=1",))
    refused = [m for m in engine.lint(plain_chart, overrides=overrides, kube_version="1.33") if m.severity == "error"]
    assert any("unknown key gpuz" in m.message for m in refused)
    archive = tmp_path / "plain-1.2.3.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(plain_chart, "plain")
    assert [m for m in engine.lint(archive) if m.severity == "error"] == []


def test_nothing_stays_in_the_temporary_folder(
    engine: HelmEngine, plain_chart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    render(engine, plain_chart, files=("free: {a: 1}\n",))
    with pytest.raises(RenderError):
        render(engine, plain_chart, files=("gpuz: 1\n",))
    engine.lint(plain_chart, overrides=ValueOverrides(files=(("v.yaml", "free: {}\n"),)))
    assert list(temporary.iterdir()) == []


def test_the_environment_does_not_change_the_rendering(
    engine: HelmEngine, plain_chart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusal() -> tuple[str, list[str]]:
        with pytest.raises(UsageError) as caught:
            render(engine, plain_chart, sets=("free",))
        return caught.value.message, problem_lines(caught.value)

    plain, refused = render(engine, plain_chart), refusal()
    monkeypatch.setenv("HELM_DEBUG", "true")
    monkeypatch.setenv("HELM_NAMESPACE", "elsewhere")
    assert render(engine, plain_chart) == plain
    assert refusal() == refused
