"""What every generated chart promises, asserted on what Helm renders from it: every golden case and charts/*.

Each test is one item of what good charts do; the golden files only tell that something changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden_charts import list_charts
from trainchart.cluster.outside_changes import SET_BY_CHARTS
from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Manifest, Rendering, ValueOverrides
from trainchart.json_documents import resolve_reference
from trainchart.kubernetes_yaml import parse_mapping
from trainchart_runtime.cluster import TASK_TYPES_BY_STRATEGY, hosts_by_task_type, parse_cluster

ROOT = Path(__file__).parent.parent.parent
CHARTS = [*list_charts(), *sorted((ROOT / "charts").glob("*"))]
each_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda path: f"{path.parent.name}-{path.name}")
VALUES = ("", "ci/every-switch-values.yaml", "ci/uncontrolled-values.yaml")
each_values = pytest.mark.parametrize("values", VALUES, ids=["default", "every-switch", "controller"])

Labels = Mapping[str, str]


@cache
def render(chart: Path, values: str = "", release: str = "exp-7", sets: tuple[str, ...] = ()) -> Rendering:
    files = ((values, (chart / values).read_text()),) if values else ()
    return find_engine("sdk").render(chart, release=release, overrides=ValueOverrides(files=files, sets=sets))


def wanted_replicas(stateful_set: Manifest) -> int:
    """Return how many pods a role has; the field itself belongs to the run controller."""
    return int(stateful_set.document["metadata"]["annotations"]["trainchart/replicas"])


def of_kind(rendering: Rendering, *kinds: str) -> list[Manifest]:
    return [manifest for manifest in rendering.manifests if manifest.kind in kinds]


def pods(rendering: Rendering) -> Iterator[tuple[Manifest, Mapping[str, Any]]]:
    """Yield every pod template and bare pod with its owner."""
    for manifest in rendering.manifests:
        if manifest.kind == "Pod":
            yield manifest, manifest.document
        elif "template" in (manifest.document.get("spec") or {}):
            yield manifest, manifest.document["spec"]["template"]


def own(rendering: Rendering) -> list[Manifest]:
    return [manifest for manifest in rendering.manifests if "extra-manifests" not in manifest.source]


def selects(selector: Labels, labels: Labels) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


@each_chart
@each_values
def test_objects_are_unique_and_name_no_namespace(chart: Path, values: str) -> None:
    rendering = render(chart, values)
    names = [(manifest.kind, manifest.name) for manifest in rendering.manifests]
    assert len(names) == len(set(names))
    assert [m.name for m in own(rendering) if "namespace" in m.document["metadata"]] == []


@each_chart
@each_values
def test_every_object_has_the_standard_labels(chart: Path, values: str) -> None:
    for manifest in own(render(chart, values)):
        labels = manifest.document["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "exp-7"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        missing = {"name", "component", "version", "part-of"} - {
            key.removeprefix("app.kubernetes.io/") for key in labels
        }
        assert not missing, f"{manifest.kind} {manifest.name}"
        assert labels["helm.sh/chart"].startswith(labels["app.kubernetes.io/name"] + "-")


@each_chart
@each_values
def test_versions_stay_out_of_what_must_not_change(chart: Path, values: str) -> None:
    for manifest in of_kind(render(chart, values), "StatefulSet", "Deployment"):
        spec = manifest.document["spec"]
        frozen = [spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"]]
        frozen += [claim["metadata"].get("labels", {}) for claim in spec.get("volumeClaimTemplates", [])]
        for labels in frozen:
            assert not {"helm.sh/chart", "app.kubernetes.io/version"} & set(labels)
        assert selects(spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"])


@each_chart
@pytest.mark.parametrize("length", [1, 20, 52, 53])
def test_names_fit_whatever_the_release_is_called(chart: Path, length: int) -> None:
    rendering = render(chart, release=("r" + "elease-of-an-experiment-" * 3)[: length - 1] + "x")
    sets = of_kind(rendering, "StatefulSet")
    assert len({m.name for m in sets}) == len(sets)
    for manifest in sets:
        assert len(manifest.name) <= 52
        last = wanted_replicas(manifest) - 1
        assert len(f"{manifest.name}-{last}") <= 63
    for manifest in of_kind(rendering, "Service", "Pod", "Deployment", "ConfigMap", "PersistentVolumeClaim"):
        assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", manifest.name), manifest.name


@pytest.mark.parametrize("release", ["7", "true", "2026-11-21", "a.b", "0x1f", "null"])
def test_release_names_that_yaml_or_dns_would_misread_work(release: str) -> None:
    rendering = render(ROOT / "charts" / "mnist", release=release)
    for manifest in rendering.manifests:
        assert manifest.document["metadata"]["labels"]["app.kubernetes.io/instance"] == release
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", manifest.name), manifest.name


def test_similar_releases_do_not_share_names() -> None:
    chart = ROOT / "charts" / "mnist"
    releases = ["a-b", "a.b", "7", "r-7", "r7", "x" * 53, "x" * 52 + "y"]
    names = [{(m.kind, m.name) for m in render(chart, release=release).manifests} for release in releases]
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            assert not one & other


@each_chart
@each_values
def test_every_pod_passes_the_restricted_level(chart: Path, values: str) -> None:
    allowed = {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
    for owner, pod in pods(render(chart, values)):
        spec = pod["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), owner.name
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        assert "runAsUser" not in spec["securityContext"], "a fixed user is refused where the platform assigns them"
        for volume in spec.get("volumes", ()):
            assert set(volume) - {"name"} <= allowed
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}


@each_chart
@each_values
def test_pods_carry_no_token_and_an_account_that_exists(chart: Path, values: str) -> None:
    rendering = render(chart, values)
    accounts = {m.name for m in of_kind(rendering, "ServiceAccount")}
    for _, pod in pods(rendering):
        is_controller = pod["metadata"]["labels"]["app.kubernetes.io/component"] == "controller"
        assert pod["spec"]["automountServiceAccountToken"] is is_controller
        assert pod["spec"]["serviceAccountName"] in {*accounts, "trainer"}


@each_chart
@each_values
def test_all_containers_have_requests_and_limits_gpus_are_limits(chart: Path, values: str) -> None:
    settings = parse_mapping((chart / "values.yaml").read_text())
    if values:
        changed = parse_mapping((chart / values).read_text())
        settings["gpu"] = changed.get("gpu", settings["gpu"])
        for role, change in changed.get("roles", {}).items():
            settings["roles"][role].update(change)
    gpu = settings["gpu"]["resourceName"]
    for owner, pod in pods(render(chart, values)):
        for container in pod["spec"]["containers"]:
            requests, limits = container["resources"]["requests"], container["resources"]["limits"]
            assert {"cpu", "memory"} <= set(requests) & set(limits)
            # As Kubernetes writes them itself, or applying the chart again would seem to change them.
            assert all(isinstance(amount, str) for amount in (*requests.values(), *limits.values()))
            role = pod["metadata"]["labels"]["app.kubernetes.io/component"]
            gpus = settings["roles"][role]["gpus"] if owner.kind == "StatefulSet" else 0
            assert limits.get(gpu, "0") == str(gpus)
            hidden = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
            assert hidden is (gpus == 0), "a pod without a GPU must not see the node's"


@each_chart
@each_values
def test_network_policy_covers_all_pods_and_admits_release_only(chart: Path, values: str) -> None:
    rendering = render(chart, values)
    policy = of_kind(rendering, "NetworkPolicy")[0]
    spec = policy.document["spec"]
    assert spec["policyTypes"][0] == "Ingress"
    for owner, pod in pods(rendering):
        assert selects(spec["podSelector"]["matchLabels"], pod["metadata"]["labels"]), owner.name
    first = spec["ingress"][0]
    assert first["from"] == [{"podSelector": spec["podSelector"]}]
    assert "ports" not in first
    given = parse_mapping((chart / "values.yaml").read_text())["networkPolicy"]
    if values:
        given |= parse_mapping((chart / values).read_text()).get("networkPolicy", {})
    has_board = bool(of_kind(rendering, "Deployment"))
    assert len(spec["ingress"]) == 1 + bool(given["statusFrom"]) + (has_board and bool(given["tensorboardFrom"]))
    ports = {port for _, pod in pods(rendering) for c in pod["spec"]["containers"] for port in names_of_ports(c)}
    assert {port["port"] for rule in spec["ingress"][1:] for port in rule["ports"]} <= ports


@each_chart
def test_restricted_egress_leaves_peers_dns_and_what_is_listed(chart: Path) -> None:
    (policy,) = of_kind(render(chart), "NetworkPolicy")
    assert policy.document["spec"]["policyTypes"] == ["Ingress"] and "egress" not in policy.document["spec"]
    rendering = render(chart, "ci/every-switch-values.yaml")
    everyone, controllers = (policy.document["spec"] for policy in of_kind(rendering, "NetworkPolicy"))
    assert everyone["policyTypes"] == ["Ingress", "Egress"]
    peers, dns, listed = everyone["egress"]
    assert peers == {"to": [{"podSelector": everyone["podSelector"]}]}
    assert {port["port"] for port in dns["ports"]} == {53, 5353} and {"podSelector": {}} not in dns["to"]
    assert listed == {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": 443}]}
    assert controllers["policyTypes"] == ["Egress"]
    assert controllers["egress"] == [
        {"to": [{"ipBlock": {"cidr": "198.51.100.7/32"}}]},
        {"ports": [{"port": 443, "protocol": "TCP"}]},
    ]
    chosen = [
        owner.kind
        for owner, pod in pods(rendering)
        if selects(controllers["podSelector"]["matchLabels"], pod["metadata"]["labels"])
    ]
    assert chosen == ["Job"], "the only pod with a token is the only one that reaches the API server"


def names_of_ports(container: Mapping[str, Any]) -> list[str]:
    return [port["name"] for port in container.get("ports", [])]


@each_chart
def test_the_disruption_budget_never_blocks_a_drain(chart: Path) -> None:
    rendering = render(chart)
    (budget,) = of_kind(rendering, "PodDisruptionBudget")
    spec = budget.document["spec"]
    assert (spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    selected = {
        owner.kind
        for owner, pod in pods(rendering)
        if selects(spec["selector"]["matchLabels"], pod["metadata"]["labels"])
    }
    assert selected == {"StatefulSet"}


@each_chart
@each_values
def test_one_headless_service_names_all_training_pods(chart: Path, values: str) -> None:
    rendering = render(chart, values)
    (service,) = [m for m in of_kind(rendering, "Service") if m.document["spec"].get("clusterIP") == "None"]
    assert service.document["spec"]["publishNotReadyAddresses"] is True
    for manifest in of_kind(rendering, "StatefulSet"):
        spec = manifest.document["spec"]
        assert spec["serviceName"] == service.name
        assert spec["podManagementPolicy"] == "Parallel"
        assert spec["updateStrategy"] == {"type": "OnDelete"}
        assert selects(service.document["spec"]["selector"], spec["template"]["metadata"]["labels"])
        ports = names_of_ports(spec["template"]["spec"]["containers"][0])
        assert {port["targetPort"] for port in service.document["spec"]["ports"]} <= set(ports)


@each_chart
@pytest.mark.parametrize("replicas", [0, 1, 3, 12])
def test_the_hosts_of_tf_config_are_the_pods_names(chart: Path, replicas: int) -> None:
    schema = json.loads((chart / "values.schema.json").read_text())["properties"]["roles"]["properties"]
    bounds = {role: entry["properties"]["replicas"] for role, entry in schema.items()}
    sets = tuple(
        f"roles.{role}.replicas={min(max(replicas, limits['minimum']), limits['maximum'])}"
        for role, limits in sorted(bounds.items())
    )
    rendering = render(chart, sets=sets)
    (text,) = [m.document["data"]["cluster.json"] for m in of_kind(rendering, "ConfigMap") if "-cluster-" in m.name]
    cluster = parse_cluster(text)
    pods_by_name = {
        f"{m.name}-{ordinal}.{m.document['spec']['serviceName']}:2222"
        for m in of_kind(rendering, "StatefulSet")
        for ordinal in range(wanted_replicas(m))
    }
    addresses = {cluster.address(task, cluster.port) for role in cluster.roles for task in cluster.tasks(role)}
    assert addresses == pods_by_name
    in_tf_config = {host for hosts in hosts_by_task_type(cluster, {}).values() for host in hosts}
    assert in_tf_config <= pods_by_name
    assert bool(in_tf_config) is bool(TASK_TYPES_BY_STRATEGY[cluster.strategy])
    names = {role: str(settings.name) for role, settings in cluster.roles.items()}
    assert len(set(names.values())) == len(names), "two roles with one name would answer for each other"


def claims_of(owner: Manifest) -> set[str]:
    volumes = owner.document["spec"]["template"]["spec"]["volumes"]
    return {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume}


@each_chart
@each_values
def test_claims_name_a_class_only_and_shared_ones_are_shared(chart: Path, values: str) -> None:
    rendering = render(chart, values)
    claims = {m.name: m.document for m in of_kind(rendering, "PersistentVolumeClaim")}
    settings = parse_mapping((chart / "values.yaml").read_text())
    existing = {volume["existingClaim"] for volume in settings["volumes"].values()}
    for _, pod in pods(rendering):
        for volume in pod["spec"].get("volumes", []):
            assert not {"glusterfs", "cephfs", "rbd", "hostPath", "nfs"} & set(volume)
            if "persistentVolumeClaim" in volume:
                name = volume["persistentVolumeClaim"]["claimName"]
                assert name in claims or name in existing
    for name, claim in claims.items():
        mounting = [wanted_replicas(m) for m in of_kind(rendering, "StatefulSet") if name in claims_of(m)]
        mounting += [1 for m in of_kind(rendering, "Deployment") if name in claims_of(m)]
        assert claim["spec"]["accessModes"] == ["ReadWriteMany" if sum(mounting) > 1 else "ReadWriteOnce"]
        if name.endswith("-checkpoints"):
            assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@each_chart
@each_values
def test_images_are_pinned(chart: Path, values: str) -> None:
    for _, pod in pods(render(chart, values)):
        for container in pod["spec"]["containers"]:
            assert re.search(r"(:[\w][\w.-]*|@sha256:[0-9a-f]{64})$", container["image"])
            assert not container["image"].endswith(":latest")
            assert container["imagePullPolicy"] == "IfNotPresent"


@each_chart
def test_a_helm_test_exists_and_the_notes_are_short_and_current(chart: Path) -> None:
    rendering = render(chart, "ci/uncontrolled-values.yaml")
    (hook,) = of_kind(rendering, "Pod")
    annotations = hook.document["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "test"
    assert "before-hook-creation" in annotations["helm.sh/hook-delete-policy"]
    url = hook.document["spec"]["containers"][0]["args"][0]
    leaders = {
        f"http://{m.name}-0.{m.document['spec']['serviceName']}:2223/metrics" for m in of_kind(rendering, "StatefulSet")
    }
    assert url in leaders
    (hook,) = of_kind(render(chart), "Pod")
    (volume,) = hook.document["spec"]["volumes"]
    assert volume["configMap"]["name"] in {m.name for m in of_kind(render(chart), "ConfigMap")}
    assert 5 < len(rendering.notes.splitlines()) <= 40
    assert not re.search(r"--atomic|--force\b", rendering.notes)


@each_chart
def test_immutable_config_is_named_by_its_content(chart: Path) -> None:
    configs = of_kind(render(chart), "ConfigMap")
    hashed = [m for m in configs if re.search(r"-[0-9a-f]{8}$", m.name)]
    assert len(hashed) == 2
    assert all(m.document["immutable"] is True for m in hashed)
    role = next(iter(parse_mapping((chart / "values.yaml").read_text())["roles"]))
    unrelated = {m.name for m in of_kind(render(chart, sets=(f"roles.{role}.memory=9Gi",)), "ConfigMap")}
    assert unrelated == {m.name for m in configs}


def test_changed_content_gives_the_config_another_name() -> None:
    chart = ROOT / "charts" / "mnist"

    def names(*sets: str) -> dict[str, str]:
        configs = of_kind(render(chart, sets=sets), "ConfigMap")
        return {m.name.rpartition("-")[0]: m.name for m in configs}

    before = names()
    other_rate, other_size = names("hyperparameters.learningRate=0.1"), names("roles.worker.replicas=3")
    assert {part for part in before if other_rate[part] != before[part]} == {"exp-7-mnist-hyperparameters"}
    assert {part for part in before if other_size[part] != before[part]} == {"exp-7-mnist-cluster"}


@each_chart
def test_the_schema_is_closed_everywhere(chart: Path) -> None:
    values = parse_mapping((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    free = {"podLabels", "podAnnotations", "env", "nodeSelector", "annotations", "commonLabels", "commonAnnotations"}
    free |= {"labels"}
    maps = {key for key, entry in schema["properties"].items() if isinstance(entry.get("additionalProperties"), dict)}
    assert maps <= free, "a new free-form map must be meant: name it here"

    def objects(node: Any, path: tuple[str, ...]) -> Iterator[str]:
        if isinstance(node, dict) and not (path and path[-1] in free):
            yield ".".join(path)
            for key, value in node.items():
                yield from objects(value, (*path, key))

    # Helm names all wrong keys at once, so each has a name of its own.
    wrong = {f"gpuz{number}": path for number, path in enumerate(objects(values, ()))}
    assert len(wrong) > 20
    with pytest.raises(RenderError) as caught:
        render(chart, sets=tuple(f"{path}.{key}=1".lstrip(".") for key, path in wrong.items()))
    said = {problem.message.removeprefix("unknown key ") for problem in caught.value.problems}
    assert [path for key, path in wrong.items() if f"{path}.{key}".lstrip(".") not in said] == []


@each_chart
def test_schema_values_and_readme_know_the_same_keys(chart: Path) -> None:
    values = parse_mapping((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    assert set(values) | {"global", "enabled"} == set(schema["properties"])
    readme = (chart / "README.md").read_text()
    rows = set(re.findall(r"^\| `([\w.*-]+)` \|", readme, re.M))
    for key, value in values.items():
        if key == "hyperparameters":
            continue  # has a table of its own, asserted below
        assert key in rows or any(row.startswith(f"{key}.") for row in rows), key
        if key in ("roles", "volumes"):
            for entry in value.values():
                assert {f"{key}.*.{name}" for name in entry if not isinstance(entry[name], dict)} <= rows
    assert {f"hyperparameters.{name}" for name in values["hyperparameters"]} <= rows
    for row in rows - {"worker", "ps", "chief", "evaluator"}:
        node: Any = schema
        for part in row.split("."):
            known = resolve_reference(node, schema)["properties"]
            node = next(iter(known.values())) if part == "*" else known[part]


@each_chart
def test_every_value_has_a_comment_where_it_stands_first(chart: Path) -> None:
    lines = (chart / "values.yaml").read_text().splitlines()
    keys = [i for i, line in enumerate(lines) if re.match(r" *[A-Za-z][\w-]*:( |$)", line)]
    has_comment = {i for i in keys if re.match(r" *# ", lines[i - 1]) or re.search(r"  # ", lines[i])}
    explained = {lines[i].split(":")[0].strip() for i in has_comment}
    bare = {line for line in (lines[i] for i in keys) if line.split(":")[0].strip() not in explained}
    # Kubernetes documents what is below a free-form value; roles and volumes are names.
    allowed = re.compile(
        r" +(allowPriv|readOnlyRoot|runAsNon|capab|drop|seccomp|type|fsGroup"
        r"|pool|key|operator|apiV|kind|meta|name|matchLabels|TF_)|  [a-z][\w-]*:$"
    )
    assert [line for line in sorted(bare) if not allowed.match(line)] == []


@each_chart
def test_templates_use_only_values_that_exist_and_all_of_them(chart: Path) -> None:
    values = parse_mapping((chart / "values.yaml").read_text())
    text = "\n".join(path.read_text() for path in (chart / "templates").rglob("*.*") if path.suffix != ".md")
    used = set(re.findall(r"\.Values\.(\w+)", text))
    optional = {"hyperparameters"} if not values["hyperparameters"] else set()
    assert used == set(values) - optional
    for section in ("image", "run", "service", "networkPolicy", "tensorboard", "serviceAccount", "gpu"):
        for key in values[section]:
            if section == "tensorboard" and not {"checkpoints", "logs"} & set(values["volumes"]):
                continue  # refused when switched on: there is nothing to read
            assert re.search(rf"\.{key}\b", text), f"{section}.{key} is used nowhere"


@each_chart
def test_integers_print_as_integers_after_a_json_round_trip(chart: Path) -> None:
    """`helm upgrade --reuse-values` turns every number into a float."""
    values = json.loads(json.dumps(parse_mapping((chart / "values.yaml").read_text())), parse_int=float)
    overrides = ValueOverrides(files=(("reused", json.dumps(values, indent=1)),))
    again = find_engine("sdk").render(chart, release="exp-7", overrides=overrides)
    assert [m.document for m in again.manifests] == [m.document for m in render(chart).manifests]


@each_chart
@each_values
def test_why_knows_the_fields_that_charts_set(chart: Path, values: str) -> None:
    for manifest in own(render(chart, values)):
        if manifest.kind in SET_BY_CHARTS:
            assert set(manifest.document["spec"]) <= set(SET_BY_CHARTS[manifest.kind]), manifest.source
