"""Specs that are well-formed and cannot train: each refused with its line, its reason and a way out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainchart.errors import PlanError
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.strategies import STRATEGIES

Resolve = Callable[..., ChartPlan]


def change(spec: str, old: str, new: str) -> str:
    assert old in spec
    return spec.replace(old, new)


def test_a_request_may_equal_its_limit(resolved: Resolve, spec: str) -> None:
    plan = resolved(change(spec, "memory: 8Gi", "memory: 8Gi, memoryLimit: 8192Mi"))
    assert plan.spec.roles["worker"].memory_limit == "8192Mi"


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_is_planned_with_its_roles(resolved: Resolve, spec: str, strategy: str) -> None:
    start = spec.index("roles:")
    plan = resolved(change(spec[:start], "parameter-server", strategy))
    assert set(plan.roles) == set(STRATEGIES[strategy].required)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("chief: {", "chief: {replicas: 2, ", 9, "2 chiefs"),
        ("worker: {replicas: 2", "worker: {replicas: 0", 10, "needs at least one worker"),
        ("worker: {replicas: 2", "worker: {replicas: 1001", 10, "do not fit into TF_CONFIG"),
        ("  chief: {", "  cheif: {", 9, "unknown role cheif"),
        ("memory: 8Gi", "memory: 8Gi, memoryLimit: 4Gi", 10, "requests 8Gi memory but is limited to 4Gi"),
        ("cpu: 4,", "cpu: 4, cpuLimit: 3500m,", 10, "requests 4 cpu but is limited to 3500m"),
        ("memory: 8Gi", "memory: lots", 10, "'lots' is not a positive quantity"),
        ("memory: 8Gi", "memory: 0", 10, "0 is not a positive quantity"),
        ("memory: 8Gi", "memory: 512m", 10, "'512m' is less than 1Mi"),
        ("memory: 8Gi", "memory: 8Gi, shmSize: 64", 10, "roles.worker.shmSize: 64 is less than 1Mi"),
        ("memory: 8Gi", "memory: 8Gi, shmSize: 8Gi", 10, "does not fit into the memory of"),
        ("memory: 8Gi", "memory: 8Gi, gpus: 1", 10, "the image contains TensorFlow for CPUs"),
        ("memory: 8Gi", "memory: 8Gi, saveWaitSeconds: 15", 10, "may wait 15 s, but has only 15 s to stop"),
        ("memory: 8Gi", "memory: 8Gi, env: {TF_CONFIG: x}", 10, "TF_CONFIG is set by trainchart itself"),
        ("memory: 8Gi", "memory: 8Gi, env: {A-B: x}", 10, "not a valid name of an environment variable"),
        ("memory: 8Gi", "memory: 8Gi, env: {AB: [x]}", 10, "neither a string nor a valueFrom"),
        ("memory: 8Gi", "memory: 8Gi, env: {AB: {secret: x}}", 10, "neither a string nor a valueFrom"),
        ("memory: 8Gi", "memory: 8Gi, env: {AB: [valueFrom]}", 10, "neither a string nor a valueFrom"),
        ("memory: 8Gi", "memory: 8Gi, env: {AB: {valueFrom: {}, b: 1}}", 10, "neither a string nor a valueFrom"),
        ("memory: 8Gi", "memory: 8Gi, resources: {limits: {cpu: 2}}", 10, "cpu has its own keys"),
        ("memory: 8Gi", "memory: 8Gi, resources: {requests: {memory: 1Gi}}", 10, "memory has its own keys"),
        (
            "memory: 8Gi",
            "memory: 8Gi, resources: {limits: {nvidia.com/gpu: 1}}",
            10,
            "nvidia.com/gpu has its own key",
        ),
        ("memory: 8Gi", "memory: 8Gi, resources: {requests: {rdma/hca: 1}}", 10, "is in requests only"),
        (
            "memory: 8Gi",
            "memory: 8Gi, resources: {requests: {rdma/hca: 1}, limits: {rdma/hca: 2}}",
            10,
            "must equal the limit",
        ),
        ("memory: 8Gi", "memory: 8Gi, resources: {limits: {rdma/hca: 1.5}}", 10, "is not a whole number"),
        ("memory: 8Gi", "memory: 8Gi, resources: {limits: {gpu: 1}}", 10, "is not a Kubernetes resource"),
        (
            "memory: 8Gi",
            "memory: 8Gi, ephemeralStorage: 2Gi, ephemeralStorageLimit: 1Gi",
            10,
            "requests 2Gi ephemeralStorage but is limited to 1Gi",
        ),
        ("memory: 8Gi", "memory: 8Gi, tmpSize: 0", 10, "is not a positive quantity"),
        ("memory: 8Gi", "memory: 8Gi, resources: {limits: {ephemeral-storage: 1Gi}}", 10, "has its own keys"),
        ("memory: 8Gi", "memory: 8Gi, hostNetwork: true, dnsPolicy: ClusterFirst", 10, "ClusterFirst means Default"),
        ("memory: 8Gi", "memory: 8Gi, podLabels: {a: $(TRAINCHART_RUN)}", 10, "$(TRAINCHART_RUN) is not known here"),
        ("size: 20Gi,", "", 13, "has no source"),
        ("size: 20Gi,", "size: 20Gi, uri: 's3://x/y',", 13, "several sources"),
        ("size: 20Gi", "size: 20Gi, ephemeral: true", 13, "what a pod saves is lost with the pod"),
        ("/checkpoints}", "/checkpoints}\n  s: {ephemeral: true, mountPath: /s}", 14, "ephemeral volume s has no size"),
        (
            "/checkpoints}",
            "/checkpoints}\n  s: {ephemeral: true, size: 1Gi, mountPath: /s, existingClaim: team}",
            14,
            "each pod gets its own empty volume, and existingClaim is not used",
        ),
        (
            "/checkpoints}",
            "/checkpoints}\n  s: {ephemeral: true, size: 1Gi, mountPath: /s, uri: 's3://x/y'}",
            14,
            "each pod gets its own empty volume, and uri is not used",
        ),
        ("/checkpoints}", "/checkpoints}\n  s: {ephemeral: true, size: 1Gi, keep: true, mountPath: /s}", 14, "be kept"),
        (
            "/checkpoints}",
            "/checkpoints}\n  s: {ephemeral: true, size: 1Gi, readOnly: true, mountPath: /s}",
            14,
            "empty",
        ),
        (
            "/checkpoints}",
            "/checkpoints}\n  logs: {ephemeral: true, size: 1Gi, mountPath: /logs}\ntensorboard: true",
            14,
            "TensorBoard cannot read it",
        ),
        ("size: 20Gi", "size: much", 13, "'much' is not a positive quantity"),
        ("size: 20Gi", "size: 5", 13, "volumes.checkpoints.size: 5 is less than 1Mi"),
        ("size: 20Gi", "size: 20Gi, accessMode: ReadWriteOnce", 13, "4 pods mount checkpoints"),
        ("size: 20Gi", "size: 20Gi, roles: [driver]", 13, "lists role driver, which model"),
        ("size: 20Gi", "size: 20Gi, roles: [chief]", 13, "ps must also mount the checkpoints"),
        ("size: 20Gi", "size: 20Gi, roles: [ps]", 13, "chief must also mount the checkpoints"),
        ("size: 20Gi", "size: 20Gi, readOnly: true", 13, "checkpoints cannot be saved"),
        ("size: 20Gi", "size: 20Gi, subPath: ../x", 13, "is not a folder inside the volume"),
        ("size: 20Gi", "size: 20Gi, subPath: $(TRAINCHART_RUN_ID)", 13, "$(TRAINCHART_RUN_ID) is not known here"),
        ("  checkpoints: {", "  state: {", 13, "cannot be called state"),
        ("  checkpoints: {", "  log: {", 13, "cannot be called log"),
        ("mountPath: /checkpoints", "mountPath: //opt/./x", 13, "/opt/x is used"),
        ("size: 20Gi", "size: 20Gi, accessMode: ReadOnlyMany", 13, "is writable, but"),
        (", mountPath: /checkpoints", "", 13, "has no mountPath"),
        ("mountPath: /checkpoints", "mountPath: /etc/trainchart/x", 13, "used by the image or the system"),
        ('tag: "1.4.0"', "tag: latest", 5, "is a moving tag"),
        ('tag: "1.4.0"', "tag: 'a b'", 5, "is not an image tag"),
        ("path: examples/mnist", "path: /etc/security", 6, "'/etc/security' is outside the project"),
        ("path: examples/mnist", "path: ../x", 6, "'../x' is outside the project"),
        ("path: examples/mnist", "path: ./a/../../x", 6, "'./a/../../x' is outside the project"),
        ('tag: "1.4.0"', 'tag: "1.4.0", injectLauncher: true', 5, "no runtime image to copy the launcher from"),
    ],
)
def test_the_impossible_is_refused(resolved: Resolve, spec: str, old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(PlanError) as refusal:
        resolved(change(spec, old, new))
    matching = [problem for problem in refusal.value.problems if says in problem.message]
    assert matching, [str(problem) for problem in refusal.value.problems]
    assert matching[0].where.startswith(f"m.yaml:{line}:")


@pytest.mark.parametrize(
    ("added", "says"),
    [
        ("rbac: {create: false}\nrun: {controller: {enabled: true}}\n", "the run controller would have no rights"),
        ("env: {TRAINCHART_ROLE: x}\n", "set by trainchart itself"),
        ("service: {port: 2223}\n", "cannot serve both TensorFlow and the status"),
        ("tensorboard: {memory: 2Gi, memoryLimit: 1Gi}\n", "tensorboard requests 2Gi memory"),
        ("run: {controller: {cpu: 0}}\n", "0 is not a positive quantity"),
        ("run: {controller: {memory: 2Gi, memoryLimit: 1Gi}}\n", "controller requests 2Gi memory"),
        ("networkPolicy: {restrictEgress: true}\n", "keeps the run controller from reaching the API server"),
        ("tensorboard: {enabled: true, ingress: true}\n", "allows no traffic to TensorBoard"),
        ("tolerations: [{key: a, operator: Exists, value: b}]\n", "operator Exists takes no value, but has 'b'"),
        ("run: {controller: {tolerations: [{value: b}]}}\n", "tolerations[0]: operator Equal needs a key"),
        (
            "tensorboard: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]}\n",
            "tolerationSeconds needs the effect NoExecute, not none",
        ),
        ("tensorboard: {dnsPolicy: None}\n", "dnsPolicy None needs dnsConfig.nameservers"),
    ],
)
def test_the_impossible_elsewhere_is_refused(resolved: Resolve, spec: str, added: str, says: str) -> None:
    with pytest.raises(PlanError) as refusal:
        resolved(spec + added)
    assert [says in problem.message for problem in refusal.value.problems] == [True]
    assert refusal.value.problems[0].where.startswith("m.yaml:14:")


@pytest.mark.parametrize(
    ("everywhere", "worker", "line"),
    [
        ("dnsPolicy: Default\n", "", 14),
        ("", "dnsPolicy: Default", 10),
        ("dnsConfig: {nameservers: [10.96.0.10]}\n", "dnsPolicy: None", 10),
        ("dnsConfig: {nameservers: [10.96.0.10], searches: [ml.svc.example]}\n", "dnsPolicy: None", None),
        ("dnsPolicy: ClusterFirst\n", "dnsConfig: {options: [{name: ndots, value: '2'}]}", None),
    ],
)
def test_pods_resolve_the_names_of_their_peers(
    resolved: Resolve, spec: str, everywhere: str, worker: str, line: int | None
) -> None:
    text = change(spec, "memory: 8Gi", f"memory: 8Gi, {worker}" if worker else "memory: 8Gi") + everywhere
    if line is None:
        assert resolved(text).roles
        return
    with pytest.raises(PlanError) as refusal:
        resolved(text)
    assert {problem.where.split(":")[1] for problem in refusal.value.problems} == {str(line)}
    assert any("cannot resolve the names of their peers" in problem.message for problem in refusal.value.problems)


@pytest.mark.parametrize("role", ["evaluator: {}", "evaluator:"])
def test_an_evaluator_needs_shared_checkpoints(resolved: Resolve, spec: str, role: str) -> None:
    without = spec[: spec.index("volumes:")]
    with pytest.raises(PlanError) as refusal:
        resolved(f"{without}  {role}\n")
    assert "an evaluator without shared checkpoints has no work" in refusal.value.problems[0].message
    assert resolved(f"{without}  {role}\nvolumes: {{checkpoints: {{uri: 's3://b/p'}}}}\n").roles[-1] == "evaluator"


def test_several_problems_are_reported_together(resolved: Resolve, spec: str) -> None:
    broken = change(change(spec, "cpu: 4,", "cpu: 4, cpuLimit: 1,"), "chief: {", "chief: {replicas: 3, ")
    with pytest.raises(PlanError) as refusal:
        resolved(broken)
    assert len(refusal.value.problems) == 2
