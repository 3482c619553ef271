"""Charts of the family model-server: what they hold, and which values they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.family_charts import FAMILIES, make_family_chart, render_family_chart
from trainchart.errors import RenderError
from trainchart.helm.rendering import Rendering
from trainchart.promotion.servers import read_servers

HASH = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
CANARY = {"weight": 10, "version": 300, "content": HASH}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_family_chart("model-server", tmp_path_factory.mktemp("project"))


def render(chart: Path, **values: Any) -> Rendering:
    return render_family_chart(chart, "shop", "team-a", values)


def find(rendering: Rendering, kind: str, name: str = "shop") -> dict[str, Any]:
    (found,) = [each.document for each in rendering.manifests if (each.kind, each.name) == (kind, name)]
    return found


def read_pod(rendering: Rendering, name: str = "shop") -> dict[str, Any]:
    pod: dict[str, Any] = find(rendering, "Deployment", name)["spec"]["template"]["spec"]
    return pod


def test_a_pod_copies_the_model_verified_and_serves_the_copy(chart: Path) -> None:
    pod = read_pod(render(chart))
    (fetch,), (server,) = pod["initContainers"], pod["containers"]
    spec = (FAMILIES / "model-server" / "tests" / "digits-prod.yaml").read_text()
    content = fetch["args"][-1]
    assert content.startswith("sha256:") and content in spec
    assert fetch["args"] == ["/source/saved_model", "/models/digits/200", content]
    assert f"--content=200={content}" in server["args"]
    mounts = {mount["name"]: mount.get("readOnly", False) for mount in server["volumeMounts"]}
    assert mounts == {"models": True, "tmp": False}
    assert {"name": "source", "mountPath": "/source", "readOnly": True} in fetch["volumeMounts"]
    assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_program_of_tensorflow_serving_is_told_by_variables(chart: Path) -> None:
    rendering = render(
        chart, server="tensorflow-serving", fetchImage="example/serving:1", env=[{"name": "A", "value": "b"}]
    )
    pod = read_pod(rendering)
    (fetch,), (server,) = pod["initContainers"], pod["containers"]
    assert fetch["image"] == "example/serving:1"
    assert "command" not in server
    variables = {each["name"]: each["value"] for each in server["env"]}
    assert variables == {"MODEL_NAME": "digits", "MODEL_BASE_PATH": "/models", "A": "b"}
    assert server["readinessProbe"]["httpGet"]["path"] == "/v1/models/digits/versions/200/metadata"


def test_an_export_elsewhere_needs_no_claim(chart: Path) -> None:
    pod = read_pod(render(chart, model={"claim": "", "path": "gs://models/digits"}))
    assert pod["initContainers"][0]["args"][0] == "gs://models/digits"
    assert {volume["name"] for volume in pod["volumes"]} == {"models", "tmp"}


def test_a_canary_is_a_second_deployment_behind_the_service(chart: Path) -> None:
    rendering = render(chart, replicas=9, canary=CANARY)
    canary = find(rendering, "Deployment", "shop-canary")
    assert canary["spec"]["replicas"] == 1
    arguments = read_pod(rendering, "shop-canary")["initContainers"][0]["args"]
    assert arguments == ["/source/saved_model", "/models/digits/300", HASH]
    selector = find(rendering, "Service")["spec"]["selector"]
    for name in ("shop", "shop-canary"):
        labels = find(rendering, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
        assert selector.items() <= labels.items()


def test_a_gateway_divides_requests_exactly(chart: Path) -> None:
    rendering = render(chart, canary=CANARY, route={"parents": [{"name": "public"}]})
    (rule,) = find(rendering, "HTTPRoute")["spec"]["rules"]
    weights = {each["name"]: each["weight"] for each in rule["backendRefs"]}
    assert weights == {"shop-stable": 90, "shop-canary": 10}
    assert find(rendering, "Service", "shop-canary")["spec"]["selector"]["trainchart/track"] == "canary"


def test_autoscaling_alone_sets_the_number_of_pods(chart: Path) -> None:
    rendering = render(chart, autoscaling={"enabled": True, "maxReplicas": 4})
    assert "replicas" not in find(rendering, "Deployment")["spec"]
    scaler = find(rendering, "HorizontalPodAutoscaler")["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 4)
    assert scaler["behavior"] == {"scaleDown": {"stabilizationWindowSeconds": 300}}


def test_a_single_pod_does_not_hold_up_drains(chart: Path) -> None:
    kinds = {each.kind for each in render(chart, replicas=1).manifests}
    assert "PodDisruptionBudget" not in kinds


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model": {"content": "latest"}}, "model/content"),
        ({"model": {"version": 0}}, "model/version"),
        ({"model": {"name": "a/b"}}, "model/name"),
        ({"server": "triton"}, "server"),
        ({"canary": {"weight": 10}}, "canary: a canary needs its own version and content"),
        ({"canary": {**CANARY, "version": 200}, "replicas": 9}, "canary.version: 200 is already the version in model"),
        ({"canary": CANARY}, "of 2 and 1 pods, the canary would get 33 % of the requests, not 10; set replicas to 9"),
        ({"canary": CANARY, "autoscaling": {"enabled": True}}, "turn autoscaling off, or set route.parents"),
        (
            {"autoscaling": {"enabled": True, "maxReplicas": 1}},
            "maxReplicas: 1 is less than minReplicas, 2",
        ),
        ({"autoscaling": {"scaleDownSeconds": 3601}}, "autoscaling/scaleDownSeconds"),
        ({"autoscaling": {"minReplicas": 1001, "maxReplicas": 1001}}, "autoscaling/minReplicas"),
        ({"autoscaling": {"maxReplicas": 2_000_000}}, "autoscaling/maxReplicas"),
        ({"autoscaling": {"enabled": True, "cpuPercent": 0}}, "autoscaling: set cpuPercent or metrics"),
        (
            {"autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}, "limits": {"cpu": None}}},
            "resources.requests.cpu must be set",
        ),
    ],
)
def test_wrong_values_are_refused(chart: Path, values: dict[str, Any], words: str) -> None:
    with pytest.raises(RenderError) as refusal:
        render(chart, **values)
    told = " ".join(map(str, refusal.value.problems))
    assert words in told or words.replace("/", ".") in told, told


def test_the_record_of_a_promotion_starts_no_pod_again(chart: Path) -> None:
    record = {"at": "2026-11-28T18:40:00Z", "by": 'a"b\n', "from": {"metrics": {"accuracy": 0.9}}}
    before, after = (find(render(chart, promotion=each), "Deployment") for each in ({}, record))
    assert "annotations" not in before["metadata"]
    assert json.loads(after["metadata"]["annotations"]["trainchart/promotion"]) == record
    assert before["spec"] == after["spec"]
    canary = find(render(chart, promotion=record, canary=CANARY, replicas=9), "Deployment", "shop-canary")
    assert canary["metadata"]["annotations"] == {"trainchart/weight": "10"}


def test_what_the_chart_notes_is_what_the_console_reads(chart: Path) -> None:
    pinned = read_pod(render(chart))["initContainers"][0]["args"][-1]
    claim = next(each for each in read_pod(render(chart))["volumes"] if each["name"] == "source")
    model = {
        "version": 200,
        "content": pinned,
        "claim": claim["persistentVolumeClaim"]["claimName"],
        "path": "saved_model",
    }
    record = {"at": "2026-11-28T18:40:00Z", "by": "alice", "model": model, "from": {"release": "exp-7", "step": 200}}
    rendering = render(chart, promotion=record, canary=CANARY, replicas=9)
    found = [find(rendering, "Deployment", name) for name in ("shop", "shop-canary")]
    (server,) = read_servers(found)
    assert (server.name, server.model, server.stable.version, server.stable.wanted) == ("shop", "digits", "200", 9)
    assert server.since == ("2026-11-28T18:40:00Z", "alice")
    assert server.canary is not None
    assert (server.canary.version, server.canary.content, server.weight) == ("300", HASH, "10")
