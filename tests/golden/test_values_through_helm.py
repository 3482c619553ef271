"""Values as users give them, through the real engines: numbers, texts, bounds, and the chart as a subchart, twice."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.protocol import HelmEngine
from trainchart.helm.rendering import Rendering, ValueOverrides

GOLDEN = Path(__file__).parent
MNIST = GOLDEN.parent.parent / "charts" / "mnist"
PARAMETER_SERVER = GOLDEN / "parameter-server" / "chart"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}}

Engine = Callable[[], HelmEngine]


@pytest.fixture(params=["sdk", "helm3", "helm4"])
def engine(request: pytest.FixtureRequest) -> HelmEngine:
    if request.param == "sdk":
        return find_engine("sdk")
    return find_engine(str(request.getfixturevalue(request.param)))


def hyperparameters(rendering: Rendering) -> dict[str, object]:
    (text,) = [
        m.document["data"]["hyperparameters.json"]
        for m in rendering.manifests
        if m.kind == "ConfigMap" and "-hyperparameters-" in m.name
    ]
    parsed: dict[str, object] = json.loads(text)
    return parsed


def told(error: RenderError) -> str:
    return f"{error.message} {' '.join(str(problem) for problem in error.problems)}"


@pytest.mark.parametrize(
    ("given", "meant"), [("0.01", 0.01), ("1e-3", 0.001), (".5", 0.5), ("2", 2), ("1E-7", 1e-7), ("3.", 3.0)]
)
def test_numbers_reach_the_program_as_numbers(engine: HelmEngine, given: str, meant: float) -> None:
    overrides = ValueOverrides(sets=(f"hyperparameters.learningRate={given}",))
    found = hyperparameters(engine.render(MNIST, release="exp", overrides=overrides))["learningRate"]
    assert found == meant
    assert not isinstance(found, str)


@pytest.mark.parametrize(
    "given",
    [
        "hyperparameters.learningRate=fast",
        "hyperparameters.learningRate=0",
        "hyperparameters.learningRate=0.0",
        "hyperparameters.learningRate=-1e-3",
        "hyperparameters.learningRate=11.5",
        "hyperparameters.learningRate=true",
        "hyperparameters.learningRate=null",
        "hyperparameters.learningRate=0x10",
        "hyperparameters.maxSteps=0",
        "hyperparameters.maxSteps=1.5",
        "hyperparameters.maxStepz=1",
        "roles.worker.gpuz=1",
        "roles.workr.gpus=1",
        "roles.worker.gpus=many",
        "roles.worker.replicas=0",
        "roles.chief.replicas=2",
        "roles.worker.memory=lots",
        "roles.worker.env.TF_CONFIG=mine",
        "env.TRAINCHART_ORDINAL=5",
        "env.A-B=5",
        "image.pullPolicy=Sometimes",
        "image.digest=sha256:12",
        "run.startDeadline=soon",
        "run.controller.enabled=maybe",
        "gpu.resourceName=gpu",
        "volumes.checkpoints.accessMode=ReadWriteOnce",
        "service.port=70000",
        "service.port=2223",
        "image.tag=",
        "image.tag=a b",
        "image.tag=latest",
        "roles.worker.saveWaitSeconds=60",
        "volumes.checkpoints.roles={wroker}",
        "volumes.checkpoints.mountPath=",
        "volumes.checkpoints.mountPath=x",
        "volumes.checkpoints.size=",
        "volumes.checkpoints.accessMode=ReadOnlyMany",
        "volumes.data.uri=s3://b/p",
        "run.startDeadline=",
        "hyperparameters.shift=1e400",
        "hyperparameters.shift=1e-400",
        "hyperparameters.maxSteps=9007199254740993",
        "networkPolicy.tensorboardFrom=null",
        "networkPolicy.restrictEgress=true",
        "roles.worker.cpu=0",
        "roles.worker.cpuLimit=10m",
        "roles.worker.memoryLimit=1000Ki",
        "roles.worker.memory=0.0Gi",
        "roles.ps.shmSize=1Ti",
        "roles.ps.shmSize=0",
        "run.controller.cpu=0",
        "run.controller.memoryLimit=1Mi",
        "tensorboard.cpuLimit=1m",
        "volumes.checkpoints.size=0",
        "volumes.checkpoints.size=0Gi",
        "dnsPolicy=Default",
        "dnsPolicy=None",
        "dnsPolicy=Cluster",
        "roles.worker.dnsPolicy=Default",
        "tensorboard.dnsPolicy=None",
        "run.controller.dnsPolicy=None",
        "tolerations[0].value=ml",
        "tolerations[0].operator=Exist",
        "roles.worker.tolerations[0].effect=NoRun",
        "tensorboard.tolerations[0].tolerationSeconds=5",
        "run.controller.tolerations[0].operator=Equal",
        "podLabels.group=$(TRAINCHART_RUN)",
        "podLabels.group=--$(TRAINCHART_RELEASE)",
        "commonLabels.group=$(TRAINCHART_RELEASE)$(TRAINCHART_RELEASE)" + "x" * 60,
        "roles.worker.podAnnotations.group=$(TRAINCHART_NAME)",
        "resources.limits.cpu=1",
        "roles.worker.resources.requests.memory=1Gi",
        r"resources.limits.nvidia\.com/gpu=1",
        "resources.requests.rdma/hca=1",
        "roles.worker.resources.limits.rdma/hca=1.5",
        "resources.limits.gpu=1",
        "roles.ps.ephemeralStorage=2Gi,roles.ps.ephemeralStorageLimit=1Gi",
        "resources.amounts.ephemeral-storage=2Gi",
        "hostNetwork=true,dnsPolicy=ClusterFirst",
    ],
)
def test_wrong_values_are_refused_at_install(engine: HelmEngine, given: str) -> None:
    with pytest.raises(RenderError) as refusal:
        engine.render(PARAMETER_SERVER, release="exp", overrides=ValueOverrides(sets=(given,)))
    keys = given.split("=")[0].split(".")
    assert any(key in told(refusal.value) for key in keys[-2:]), told(refusal.value)


@pytest.mark.parametrize(
    "given",
    [
        "cpu=500m,cpuLimit=0.5",
        "cpu=1500m,cpuLimit=2",
        "cpu=2,cpuLimit=2000m",
        "memory=4Gi,memoryLimit=4294967296",
        "memory=1e9,memoryLimit=1G",
        "memory=1000Mi,memoryLimit=1Gi",
        "memory=4Pi,memoryLimit=1E",
    ],
)
def test_requests_may_be_as_large_as_their_limits(engine: HelmEngine, given: str) -> None:
    sets = tuple(f"roles.worker.{part}" for part in given.split(","))
    overrides = ValueOverrides(sets=(*sets, "roles.worker.shmSize=1Mi"))
    assert engine.render(PARAMETER_SERVER, release="exp", overrides=overrides).manifests


def test_texts_that_look_like_numbers_stay_texts(engine: HelmEngine) -> None:
    sets = ("image.tag=20261121", "hyperparameters.tag=1234567890", "env.YEAR=2026", "commonLabels.team=7")
    rendering = engine.render(PARAMETER_SERVER, release="exp", overrides=ValueOverrides(sets=sets))
    assert hyperparameters(rendering)["tag"] == "1234567890"
    sets_of_pods = [m.document for m in rendering.manifests if m.kind == "StatefulSet"]
    container = sets_of_pods[0]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"].endswith(":20261121")
    assert {"name": "YEAR", "value": "2026"} in container["env"]
    assert sets_of_pods[0]["metadata"]["labels"]["team"] == "7"


def test_options_that_look_like_numbers_can_be_set(engine: HelmEngine) -> None:
    rendering = engine.render(
        PARAMETER_SERVER, release="exp", overrides=ValueOverrides(sets=("hyperparameters.depth=50", "run.id=2026"))
    )
    assert hyperparameters(rendering)["depth"] == "50"


def test_security_context_of_a_role_keeps_the_rest_of_charts(engine: HelmEngine) -> None:
    sets = (
        "roles.worker.containerSecurityContext.runAsUser=1000",
        "roles.worker.containerSecurityContext.readOnlyRootFilesystem=false",
        "roles.worker.podSecurityContext.fsGroup=7",
        "nodeSelector.gpu=true",
    )
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    (worker,) = [
        m.document["spec"]["template"]["spec"]
        for m in rendering.manifests
        if m.kind == "StatefulSet" and m.name.endswith("-worker")
    ]
    assert worker["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": False,
        "runAsNonRoot": True,
        "runAsUser": 1000,
    }
    assert (worker["securityContext"]["fsGroup"], worker["securityContext"]["runAsNonRoot"]) == (7, True)
    assert worker["nodeSelector"] == {"gpu": "true"}


def test_tensorboard_gets_what_reaches_the_summaries(engine: HelmEngine) -> None:
    sets = ("volumes.checkpoints.uri=s3://b/p", "env.AWS_REGION=eu", "nodeSelector.pool=cpu")
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    (board,) = [m.document["spec"]["template"]["spec"] for m in rendering.manifests if m.kind == "Deployment"]
    assert "--logdir=s3://b/p/logs" in board["containers"][0]["args"]
    assert {"name": "AWS_REGION", "value": "eu"} in board["containers"][0]["env"]
    assert board["nodeSelector"] == {"pool": "cpu"}


def test_annotations_of_the_user_never_repeat_one_of_ours(engine: HelmEngine) -> None:
    files = (("v", 'commonAnnotations: {trainchart/replicas: "9"}\n'),)
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(files=files))
    replicas = {
        m.document["metadata"]["annotations"]["trainchart/replicas"]
        for m in rendering.manifests
        if m.kind == "StatefulSet"
    }
    assert replicas == {"1", "2"}


def test_a_digest_wins_over_the_tag(engine: HelmEngine) -> None:
    digest = "sha256:" + "a" * 64
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=(f"image.digest={digest}",)))
    images = {
        container["image"]
        for m in rendering.manifests
        if m.kind == "StatefulSet"
        for container in m.document["spec"]["template"]["spec"]["containers"]
    }
    assert images == {f"registry.example.com/ml/mnist@{digest}"}


def test_a_role_wins_over_the_chart_and_neither_repeats_a_name(engine: HelmEngine) -> None:
    sets = ("env.A=1", "env.B=2", "roles.worker.env.A=3", "nodeSelector.pool=cpu", "roles.worker.nodeSelector.pool=gpu")
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    pods = {
        m.document["metadata"]["labels"]["app.kubernetes.io/component"]: m.document["spec"]["template"]["spec"]
        for m in rendering.manifests
        if m.kind == "StatefulSet"
    }
    for role, a, pool in (("worker", "3", "gpu"), ("ps", "1", "cpu")):
        env = pods[role]["containers"][0]["env"]
        names = [entry["name"] for entry in env]
        assert len(names) == len(set(names))
        assert {"name": "A", "value": a} in env
        assert {"name": "B", "value": "2"} in env
        assert pods[role]["nodeSelector"] == {"pool": pool}


def test_too_many_tasks_for_tf_config_are_refused(engine: HelmEngine) -> None:
    sets = ("roles.worker.replicas=1000", "roles.ps.replicas=1000")
    with pytest.raises(RenderError) as refusal:
        engine.render(MNIST, release="x" * 53, overrides=ValueOverrides(sets=sets))
    assert "TF_CONFIG would need" in told(refusal.value)


def test_an_umbrella_chart_installs_two_aliased_copies(engine: HelmEngine, tmp_path: Path) -> None:
    umbrella = tmp_path / "umbrella"
    shutil.copytree(MNIST, umbrella / "charts" / "mnist")
    dependencies = [
        {"name": "mnist", "version": "0.1.0", "alias": alias, "condition": f"{alias}.enabled"}
        for alias in ("small", "large", "off")
    ]
    chart = {"apiVersion": "v2", "name": "umbrella", "version": "0.1.0", "dependencies": dependencies}
    (umbrella / "Chart.yaml").write_text(json.dumps(chart) + "\n")
    values = {
        "global": {"team": "research"},
        "small": {"enabled": True},
        "large": {"enabled": True, "roles": {"worker": {"replicas": 5}}},
        "off": {"enabled": False},
    }
    (umbrella / "values.yaml").write_text(json.dumps(values) + "\n")
    rendering = engine.render(umbrella, release="exp", overrides=ValueOverrides(sets=("large.image.tag=2.0.0",)))
    names = [(m.kind, m.name) for m in rendering.manifests]
    assert len(names) == len(set(names))
    sets = [m for m in rendering.manifests if m.kind == "StatefulSet"]
    replicas = {m.name: m.document["metadata"]["annotations"]["trainchart/replicas"] for m in sets}
    assert replicas["exp-small-worker"] == "2"
    assert replicas["exp-large-worker"] == "5"
    assert not any("off" in name for name in replicas)


@pytest.mark.parametrize("letter", ["\x7f", "\x80", "\x85", "\x9f", "\u2028", "\u2029", "\ufffe", "\uffff"], ids=ascii)
@pytest.mark.parametrize("place", ["env", "args", "podAnnotations"])
def test_what_yaml_cannot_hold_is_refused_and_drops_nothing(engine: HelmEngine, place: str, letter: str) -> None:
    """Helm's toYaml returns nothing for such a text: the whole block would be missing without a word."""
    given = {"env": {"A": f"x{letter}"}, "args": [f"x{letter}"], "podAnnotations": {"a": f"x{letter}"}}[place]
    overrides = ValueOverrides(set_jsons=(f"{place}={json.dumps(given)}",))
    with pytest.raises(RenderError) as refusal:
        engine.render(MNIST, release="exp", overrides=overrides)
    assert "does not allow" in told(refusal.value)


@pytest.mark.parametrize("letter", ["\u2028", "\u2029"], ids=ascii)
def test_line_separators_cannot_inject_keys(engine: HelmEngine, letter: str) -> None:
    """Helm writes them as they are, so what follows would be a line of its own: here, a key of the container."""
    text = f"x{letter}        lifecycle: {{postStart: {{exec: {{command: [id]}}}}}}\n#"
    with pytest.raises(RenderError) as refusal:
        engine.render(MNIST, release="exp", overrides=ValueOverrides(set_jsons=(f"args={json.dumps([text])}",)))
    assert "does not allow" in told(refusal.value)


@pytest.mark.parametrize("text", ["a", "a\n", "a\n\n", "\n", "\n\n\n"])
def test_trailing_text_of_an_extra_manifest_is_unchanged(engine: HelmEngine, text: str) -> None:
    """Helm changes blank lines at the end of a document, each of its versions in a different way."""
    secrets = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"x": text}} for name in "ab"
    ]
    overrides = ValueOverrides(set_jsons=(f"extraManifests={json.dumps(secrets)}",))
    rendering = engine.render(MNIST, release="exp", overrides=overrides)
    assert [m.document["stringData"]["x"] for m in rendering.manifests if m.kind == "Secret" and m.name in "ab"] == [
        text
    ] * 2


def test_templates_never_drop_what_yaml_cannot_hold() -> None:
    """Each family calls toYaml in one place, a helper that refuses what it leaves out."""
    families = GOLDEN.parent.parent / "chart-templates"
    used = [
        path.relative_to(families).parts[0]
        for path in families.rglob("*")
        if path.is_file()
        for _ in re.findall(r"\btoYaml\b", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL))
    ]
    assert sorted(used) == sorted(path.name for path in families.iterdir()), "templates use NAME.yaml"


@pytest.mark.parametrize(
    ("place", "given"),
    [
        ("env.A", "a<no value>b"),
        ("roles.worker.env.A", "<no value>"),
        ("args[0]", "--na=<no value>"),
        ("commonAnnotations.note", "<no value>"),
        ("extraManifests[0]", {**CONFIG_MAP, "data": {"a": "<no value>"}}),
        ("extraManifests[0]", {**CONFIG_MAP, "data": {"<no value>": "a"}}),
        ("extraContainers[0]", {"name": "c", "image": "a:1", "args": ["<no value>"]}),
        ("volumes.checkpoints.subPath", "a<no value>b"),
    ],
)
def test_a_text_that_helm_would_remove_is_refused(engine: HelmEngine, place: str, given: object) -> None:
    """Helm replaces this text in all that it has rendered by nothing, in quotes too."""
    overrides = ValueOverrides(set_jsons=(f"{place}={json.dumps(given)}",))
    with pytest.raises(RenderError) as refusal:
        engine.render(MNIST, release="exp", overrides=overrides)
    assert place in told(refusal.value)
    assert "contains <no value>, which Helm removes from every text" in told(refusal.value)


def test_a_hyperparameter_that_helm_would_remove_is_refused(engine: HelmEngine) -> None:
    overrides = ValueOverrides(set_strings=("hyperparameters.tag=<no value>",))
    with pytest.raises(RenderError) as refusal:
        engine.render(PARAMETER_SERVER, release="exp", overrides=overrides)
    assert 'hyperparameters.tag: "<no value>" contains <no value>' in told(refusal.value)


@pytest.mark.parametrize("place", ["commonAnnotations.note", "volumes.checkpoints.subPath"])
def test_a_text_that_becomes_what_helm_removes_is_refused(engine: HelmEngine, place: str) -> None:
    overrides = ValueOverrides(set_jsons=(f'{place}="<$(TRAINCHART_RELEASE) value>"',))
    engine.render(MNIST, release="yes", overrides=overrides)
    with pytest.raises(RenderError) as refusal:
        engine.render(MNIST, release="no", overrides=overrides)
    assert "has <no value> in it with the release's names" in told(refusal.value)


def test_a_key_that_readers_merge_is_refused(engine: HelmEngine) -> None:
    manifest = {**CONFIG_MAP, "data": {"<<": {"a": "merged"}, "b": "1"}}
    with pytest.raises(RenderError) as refusal:
        engine.render(
            MNIST, release="exp", overrides=ValueOverrides(set_jsons=(f"extraManifests[0]={json.dumps(manifest)}",))
        )
    assert "extraManifests[0].data.<<: YAML readers merge what the key << holds" in told(refusal.value)


@pytest.mark.parametrize("text", ["x\n\n\n", "x\u3000", "x\u00a0\n", "<<", "a: <<: b"])
def test_annotations_end_as_they_are_given(engine: HelmEngine, text: str) -> None:
    """Helm changes blank lines and spaces at the end of a document, where annotations must not stand."""
    values = {"commonAnnotations": {"zz": text}, "podAnnotations": {"zz-pod": text}}
    overrides = ValueOverrides(files=(("values.yaml", json.dumps(values)),))
    rendering = engine.render(MNIST, release="exp", overrides=overrides)
    metadata = [m.document["metadata"] for m in rendering.manifests]
    assert {each["annotations"]["zz"] for each in metadata} == {text}
    pods = [m.document["spec"]["template"]["metadata"] for m in rendering.manifests if m.kind == "StatefulSet"]
    pods += [m.document["metadata"] for m in rendering.manifests if m.kind == "Pod"]
    assert {each["annotations"]["zz-pod"] for each in pods} == {text}


@pytest.mark.parametrize("text", ["\n lead", "  lead\nb", "a\n", "<a>\n&"])
def test_a_text_of_several_lines_is_not_indented(engine: HelmEngine, text: str) -> None:
    rendering = engine.render(
        MNIST, release="exp", overrides=ValueOverrides(set_jsons=(f"workingDir={json.dumps(text)}",))
    )
    pods = [m.document["spec"]["template"]["spec"] for m in rendering.manifests if m.kind == "StatefulSet"]
    assert {pod["containers"][0]["workingDir"] for pod in pods} == {text}


@pytest.mark.parametrize("text", ["h\u00a0", "h\n\n", "\n", "\u2003"])
def test_the_last_text_of_a_pod_stays_as_it_is(engine: HelmEngine, text: str) -> None:
    volume = {"name": "x", "vsphereVolume": {"volumePath": text}}
    overrides = ValueOverrides(set_jsons=(f"extraVolumes[0]={json.dumps(volume)}",))
    rendering = engine.render(MNIST, release="exp", overrides=overrides)
    pods = [m.document["spec"]["template"]["spec"] for m in rendering.manifests if m.kind == "StatefulSet"]
    assert all(volume in pod["volumes"] for pod in pods)


def test_texts_like_the_one_that_helm_removes_are_kept(engine: HelmEngine) -> None:
    text = "<no-value> no value \\u003cno value\\u003e"
    overrides = ValueOverrides(set_jsons=(f"env={json.dumps({'A': text})}", 'global={"other": "<no value>"}'))
    assert ("A", text) in environment(engine.render(MNIST, release="exp", overrides=overrides))


def environment(rendering: Rendering, kind: str = "StatefulSet") -> list[tuple[str, str]]:
    """Return the names and texts of what users add to the first pod of a kind, in order."""
    pod = next(m for m in rendering.manifests if m.kind == kind).document["spec"]["template"]["spec"]
    entries = pod["containers"][0]["env"]
    return [(e["name"], e.get("value", "")) for e in entries if not e["name"].startswith(("TRAINCHART_", "NVIDIA"))]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (("env.A=x/$(Z)", "env.Z=world", "env.B=b"), ["Z", "A", "B"]),
        (("env.A=$(B)$(C)", "env.B=$(D)", "env.C=c", "env.D=d"), ["D", "B", "C", "A"]),
        (("env.A=$$(Z)", "env.Z=z", "env.B=$$$(Z)"), ["A", "Z", "B"]),
        (("env.Z=z", "roles.chief.env.A=$(Z)$(TRAINCHART_POD_NAME)"), ["Z", "A"]),
        (("env.A=$(Z)", "env.Z=z", "roles.chief.env.Z=$(KUBERNETES_SERVICE_HOST)"), ["Z", "A"]),
        (("env.A=$(A)$(B)", "envFrom[0].secretRef.name=s"), ["A"]),
    ],
)
def test_a_variable_stands_behind_those_it_refers_to(
    engine: HelmEngine, sets: tuple[str, ...], expected: list[str]
) -> None:
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    assert [name for name, _ in environment(rendering)] == expected


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("env.A=$(B)", "env.B=$(A)"), "env.A: variables refer to each other in a circle: A → B → A"),
        (("env.A=$(A)",), "env.A: variables refer to each other in a circle: A → A"),
        (
            ("roles.worker.env.A=$(B)",),
            "roles.worker.env.A: the pod has no variable B to fill in for $(B); write $$(B)",
        ),
        (("env.A=$(TRAINCHART_HP_X)", "envFrom[0].secretRef.name=s"), "env.A: the pod has no variable TRAINCHART_HP_X"),
    ],
)
def test_a_variable_that_cannot_be_filled_in_is_refused(
    engine: HelmEngine, sets: tuple[str, ...], message: str
) -> None:
    with pytest.raises(RenderError) as refusal:
        engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    assert message in told(refusal.value)


def test_tensorboard_has_no_variables_of_training_pods(engine: HelmEngine) -> None:
    sets = ("tensorboard.enabled=true", "env.A=$(TRAINCHART_POD_NAME)", "env.B=$(A)", "env.C=$(D)", "env.D=d")
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    assert environment(rendering, "Deployment") == [("D", "d"), ("C", "$(D)")]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            ("args[0]=--x=$(TRAINCHART_HP_DROPOUTT)",),
            "command or args of chief: nothing fills in $(TRAINCHART_HP_DROPOUTT); known: TRAINCHART_HP_",
        ),
        (("roles.worker.args[0]=$(TRAINCHART_POD_NAME?)",), "nothing fills in $(TRAINCHART_POD_NAME?)"),
        (
            ("extraContainers[0].name=c", "extraContainers[0].args[0]=$(TRAINCHART_LOG_DIR)"),
            "extraContainers: c: nothing fills in $(TRAINCHART_LOG_DIR); known: none",
        ),
        (
            (
                "initContainers[0].name=c",
                "initContainers[0].env[0].name=A",
                "initContainers[0].env[0].value=$(TRAINCHART_X)",
            ),
            "initContainers: c: nothing fills in $(TRAINCHART_X); known: none",
        ),
    ],
)
def test_words_that_nothing_fills_in_are_refused(engine: HelmEngine, sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(RenderError) as refusal:
        engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    assert message in told(refusal.value)


def test_words_that_are_filled_in_are_taken(engine: HelmEngine) -> None:
    sets = (
        "args[0]=$(TRAINCHART_HP_LEARNING_RATE?)$(TRAINCHART_ATTEMPT)$$(TRAINCHART_X)$(date)",
        "env.MINE=1",
        "roles.chief.args[0]=$(MINE)$(TRAINCHART_CHECKPOINTS_DIR)",
    )
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    chief = next(m for m in rendering.manifests if m.kind == "StatefulSet" and m.name.endswith("chief"))
    args = chief.document["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == "$(MINE)$(TRAINCHART_CHECKPOINTS_DIR)"


def test_more_resources_and_the_network_of_the_nodes(engine: HelmEngine) -> None:
    sets = (
        "hostNetwork=true",
        "resources.limits.rdma/hca=1",
        "roles.worker.ephemeralStorageLimit=20Gi",
        "roles.worker.gpus=2",
    )
    rendering = engine.render(MNIST, release="exp", overrides=ValueOverrides(sets=sets))
    pods = {m.name: m.document["spec"]["template"]["spec"] for m in rendering.manifests if m.kind == "StatefulSet"}
    worker = pods["exp-mnist-worker"]
    resources = worker["containers"][0]["resources"]
    assert {**resources["limits"], "cpu": "", "memory": ""} == {
        "cpu": "", "memory": "", "rdma/hca": "1", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "2"
    }  # fmt: skip
    assert resources["requests"]["ephemeral-storage"] == "1Gi"
    assert pods["exp-mnist-ps"]["containers"][0]["resources"]["limits"]["ephemeral-storage"] == "21Gi"
    for pod in pods.values():
        assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    # The run controller has no part in it.
    (job,) = [m.document["spec"]["template"]["spec"] for m in rendering.manifests if m.kind == "Job"]
    assert "hostNetwork" not in job and "dnsPolicy" not in job


def test_texts_may_name_the_release(engine: HelmEngine) -> None:
    group = "$(TRAINCHART_RELEASE)-pods"
    manifest = {
        "apiVersion": "x/v1",
        "kind": "PodGroup",
        "metadata": {"name": group, "namespace": "$(TRAINCHART_NAMESPACE)"},
    }
    values = {
        "podLabels": {"scheduling.x-k8s.io/pod-group": group},
        "roles": {"worker": {"podAnnotations": {"note": f"of {group} in $(TRAINCHART_NAMESPACE)"}}},
        "extraVolumes": [{"name": "own", "configMap": {"name": "$(TRAINCHART_RELEASE)-files"}}],
        "extraManifests": [manifest],
    }
    overrides = ValueOverrides(files=(("values.yaml", json.dumps(values)),))
    rendering = engine.render(MNIST, release="exp-7", namespace="ml", overrides=overrides)
    (found,) = [m.document["metadata"] for m in rendering.manifests if m.kind == "PodGroup"]
    assert found == {"name": "exp-7-pods", "namespace": "ml"}
    templates = [m.document["spec"]["template"] for m in rendering.manifests if m.kind == "StatefulSet"]
    for template in templates:
        assert template["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "exp-7-pods"
        assert {"name": "own", "configMap": {"name": "exp-7-files"}} in template["spec"]["volumes"]
    (worker,) = [m.document["spec"]["template"] for m in rendering.manifests if m.name == "exp-7-mnist-worker"]
    assert worker["metadata"]["annotations"]["note"] == "of exp-7-pods in ml"
