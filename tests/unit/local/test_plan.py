"""From manifests to processes: everything that a template says appears, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from trainchart.errors import PlanError, ToolError
from trainchart.helm.rendering import Manifest
from trainchart.local.plan import WRITES_FILE, LocalPlan, LocalSettings, needed_addresses, plan_local_run
from trainchart.local.pod_plan import PodPlan
from trainchart.local.report import describe_plan, summarize_plan

RELEASE_FOLDER = "/home/me/.trainchart/runs/exp-7"
CLAIMS = f"{RELEASE_FOLDER}/claims"
CLUSTER = {
    "strategy": "parameter-server",
    "service": "exp-7-mnist",
    "port": 2222,
    "statusPort": 2223,
    "roles": {
        "chief": {"name": "exp-7-mnist-chief", "replicas": 1},
        "worker": {"name": "exp-7-mnist-worker", "replicas": 2},
    },
}
SETTINGS = LocalSettings(
    release="exp-7",
    namespace="team-a",
    release_folder=RELEASE_FOLDER,
    launcher="/opt/here/launcher.pyz",
    code="/home/me/code",
    python="/venv/bin/python3.12",
    caller={"PATH": "/usr/bin", "HOME": "/home/me", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "no", "PYTHONPATH": "/x"},
    claims={},
    ports={},
)


def config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def stateful_set(role: str) -> dict[str, Any]:
    return {
        "kind": "StatefulSet",
        "metadata": {
            "name": f"exp-7-mnist-{role}",
            "labels": {"app.kubernetes.io/component": role, "helm.sh/chart": "mnist-1.2.3"},
            "annotations": {"trainchart/replicas": "2" if role == "worker" else "1"},
        },
        "spec": {
            "serviceName": "exp-7-mnist",
            "template": {
                "metadata": {"labels": {"team": "vision"}, "annotations": {"note": "mine"}},
                "spec": {
                    "containers": [
                        {
                            "name": "training",
                            "image": "registry.example.com:5000/ml/mnist:1.4.0@sha256:abc",
                            "command": ["python3", "/opt/trainchart/launcher.pyz", "--"],
                            "args": ["python", "-m", "mnist.train"],
                            "env": [{"name": "TRAINCHART_CLUSTER_FILE", "value": "/etc/trainchart/cluster.json"}],
                            "volumeMounts": [
                                {"name": "config", "mountPath": "/etc/trainchart"},
                                {"name": "checkpoints", "mountPath": "/checkpoints"},
                                {"name": "tmp", "mountPath": "/tmp"},
                            ],
                        }
                    ],
                    "volumes": [
                        {"name": "config", "projected": {"sources": [{"configMap": {"name": "cluster"}}]}},
                        {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "ckpt"}},
                        {"name": "tmp", "emptyDir": {}},
                    ],
                },
            },
        },
    }


Change = Callable[[dict[str, Any], dict[str, Any]], object]
"""Edits the pod spec and the container of every role by hand, as a user edits a template."""


def make_plan(change: Change = lambda pod, container: None, *extra: dict[str, Any], **settings: Any) -> LocalPlan:
    documents = [stateful_set("worker"), stateful_set("chief")]
    for document in documents:
        pod = document["spec"]["template"]["spec"]
        change(pod, pod["containers"][0])
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "ckpt"}}
    cluster = config_map("cluster", {"cluster.json": json.dumps(CLUSTER)})
    manifests = [
        Manifest("mnist/templates/all.yaml", copy.deepcopy(item)) for item in (*documents, cluster, claim, *extra)
    ]
    addresses = needed_addresses(manifests)
    ports = {address: 20000 + index for index, address in enumerate(addresses)}
    return plan_local_run(manifests, replace(SETTINGS, ports=ports, **settings))


def chief_of(plan: LocalPlan) -> PodPlan:
    return plan.pods[0]


def environment_with(*entries: dict[str, Any], **settings: Any) -> dict[str, str]:
    plan = make_plan(lambda pod, container: container["env"].extend(entries), **settings)
    return dict(chief_of(plan).environment)


@pytest.mark.parametrize(
    ("hyperparameters", "last_step"),
    [
        ('{"maxSteps": 300, "learningRate": 0.1}', 300),
        ('{"trainSteps": 20, "batchSize": 8}', 20),
        ('{"epochs": 3}', None),
        ('{"maxSteps": 0}', None),
        ('{"maxSteps": "many"}', None),
        ("broken", None),
    ],
)
def test_last_step_is_a_hyperparameter(hyperparameters: str, last_step: int | None) -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        pod["volumes"][0]["projected"]["sources"].append({"configMap": {"name": "hp"}})

    assert make_plan(change, config_map("hp", {"hyperparameters.json": hyperparameters})).last_step == last_step


def test_pods_are_those_of_the_stateful_sets() -> None:
    plan = make_plan()
    assert [(pod.label, pod.name) for pod in plan.pods] == [
        ("chief-0", "exp-7-mnist-chief-0"),
        ("worker-0", "exp-7-mnist-worker-0"),
        ("worker-1", "exp-7-mnist-worker-1"),
    ]
    assert plan.chart == "mnist-1.2.3"
    assert plan.deciding == ("chief-0",)
    assert plan.warnings == ()


def test_every_port_of_every_pod_has_an_address() -> None:
    plan = make_plan()
    assert list(plan.addresses.items())[:2] == [
        ("exp-7-mnist-chief-0.exp-7-mnist:2222", "127.0.0.1:20000"),
        ("exp-7-mnist-chief-0.exp-7-mnist:2223", "127.0.0.1:20001"),
    ]
    assert len(plan.addresses) == 6
    assert json.loads(chief_of(plan).environment["TRAINCHART_ADDRESSES"]) == plan.addresses


def test_replicas_of_the_spec_win_over_the_annotation() -> None:
    document = stateful_set("chief")
    document["spec"]["replicas"] = 3
    assert len(needed_addresses([Manifest("all.yaml", document)])) == 6


def test_command_runs_the_real_launcher_with_the_chosen_python() -> None:
    chief = chief_of(make_plan())
    assert chief.argv == (
        "/venv/bin/python3.12", "/opt/here/launcher.pyz", "--", "/venv/bin/python3.12", "-m", "mnist.train",
    )  # fmt: skip
    assert chief.working_directory == "/home/me/code"


def test_environment_is_the_containers_and_a_few_of_the_callers() -> None:
    environment = environment_with({"name": "FOO", "value": "bar"})
    assert environment["FOO"] == "bar"
    assert environment["PATH"] == "/venv/bin:/usr/bin"
    assert (environment["HOME"], environment["LC_ALL"]) == ("/home/me", "C")
    assert "AWS_SECRET_ACCESS_KEY" not in environment
    assert "PYTHONPATH" not in environment


def test_restarts_of_the_run_replace_those_of_the_chart() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        container["env"].append({"name": "TRAINCHART_MAX_RESTARTS", "value": "3"})

    chart, run = chief_of(make_plan(change)), chief_of(make_plan(change, max_restarts=0))
    assert (chart.max_restarts, chart.environment["TRAINCHART_MAX_RESTARTS"]) == (3, "3")
    assert (run.max_restarts, run.environment["TRAINCHART_MAX_RESTARTS"]) == (0, "0")


def test_writes_are_watched_where_the_pod_is_read_only() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        container["securityContext"] = {"readOnlyRootFilesystem": True}
        container["env"].append({"name": "PYTHONPATH", "value": "/app/lib"})

    environment = chief_of(make_plan(change, write_watch="/watch")).environment
    assert environment["PYTHONPATH"] == f"/watch:{SETTINGS.code}/lib"
    assert f"{CLAIMS}/ckpt" in environment["TRAINCHART_LOCAL_WRITABLE"].split(":")
    assert environment["TRAINCHART_LOCAL_READ_ONLY"] == f"{SETTINGS.code}:/home/me"
    assert WRITES_FILE not in chief_of(make_plan(write_watch="/watch")).environment


def test_every_proxy_variable_of_the_caller_passes() -> None:
    proxies = {"https_proxy": "http://p:1", "ALL_PROXY": "http://p:2", "no_grpc_proxy": "a"}
    assert chief_of(make_plan(caller=proxies)).environment.items() >= proxies.items()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"value": "$(FIRST)/$(LATER)/$$(FIRST)"}, "1/$(LATER)/$(FIRST)"),
        ({"value": "/checkpoints/run"}, f"{CLAIMS}/ckpt/run"),
        ({"value": "s3://bucket/checkpoints"}, "s3://bucket/checkpoints"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, "exp-7-mnist-chief-0"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}, "team-a"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}}, "0"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}}, "vision"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['note']"}}}, "mine"),
        # The set has this one, its pods have not.
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['trainchart/replicas']"}}}, ""),
        ({"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, "127.0.0.1"),
        ({"valueFrom": {"configMapKeyRef": {"name": "none", "key": "a", "optional": True}}}, None),
        ({"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}, None),
    ],
)
def test_values_come_from_where_the_template_says(entry: dict[str, Any], expected: str | None) -> None:
    entries = ({"name": "FIRST", "value": "1"}, {"name": "ASKED", **entry}, {"name": "LATER", "value": "2"})
    assert environment_with(*entries).get("ASKED") == expected


def test_env_overrides_env_from_and_may_use_it() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        container["envFrom"] = [{"prefix": "P_", "configMapRef": {"name": "shared"}}]
        container["env"] += [{"name": "P_A", "value": "mine"}, {"name": "C", "value": "$(P_B)"}]

    environment = chief_of(make_plan(change, config_map("shared", {"A": "theirs", "B": "b"}))).environment
    assert (environment["P_A"], environment["P_B"], environment["C"]) == ("mine", "b", "b")


def test_arguments_are_expanded_and_translated() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        container["env"].append({"name": "RATE", "value": "0.01"})
        container["args"] += ["--rate=$(RATE)", "--out=/checkpoints/out", "$(TASK_INDEX)", "python"]

    assert chief_of(make_plan(change)).argv[-4:] == (
        "--rate=0.01", f"--out={CLAIMS}/ckpt/out", "$(TASK_INDEX)", "python",
    )  # fmt: skip


def test_volumes_become_folders_and_files() -> None:
    chief = chief_of(make_plan())
    pod_folder = f"{RELEASE_FOLDER}/pods/chief-0"
    assert f"{CLAIMS}/ckpt" in chief.folders
    assert f"{pod_folder}/volumes/tmp" in chief.folders
    assert {file.path: json.loads(file.content) for file in chief.files} == {
        f"{pod_folder}/volumes/config/cluster.json": CLUSTER
    }
    assert chief.environment["TRAINCHART_CLUSTER_FILE"] == f"{pod_folder}/volumes/config/cluster.json"
    assert chief.environment["TRAINCHART_TERMINATION_FILE"] == f"{pod_folder}/termination-log"


def test_a_plan_says_what_stands_for_every_path_of_the_container() -> None:
    plan = make_plan()
    chief = chief_of(plan)

    assert chief.paths["/app"] == SETTINGS.code
    assert chief.paths["/opt/trainchart/launcher.pyz"] == SETTINGS.launcher
    assert chief.paths["/etc/trainchart"] == f"{RELEASE_FOLDER}/pods/chief-0/volumes/config"
    assert describe_plan(plan)["pods"][0]["paths"] == chief.paths


def test_a_working_directory_in_a_volume_is_made() -> None:
    inside = chief_of(make_plan(lambda pod, container: container.update(workingDir="/checkpoints/runs/7")))
    assert inside.working_directory == f"{CLAIMS}/ckpt/runs/7"
    assert inside.working_directory in inside.folders

    in_code = chief_of(make_plan(lambda pod, container: container.update(workingDir="/app/train")))
    assert in_code.working_directory == f"{SETTINGS.code}/train"
    assert in_code.working_directory not in in_code.folders


def test_items_and_sub_paths() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        pod["volumes"].append(
            {"name": "extra", "configMap": {"name": "extra", "items": [{"key": "a", "path": "sub/b.txt"}]}}
        )
        container["volumeMounts"] += [
            {"name": "extra", "mountPath": "/conf/b.txt", "subPath": "sub/b.txt"},
            {"name": "checkpoints", "mountPath": "/logs", "subPath": "tensorboard"},
        ]
        container["env"] += [{"name": "CONF", "value": "/conf/b.txt"}, {"name": "LOGS", "value": "/logs"}]

    chief = chief_of(make_plan(change, config_map("extra", {"a": "1", "z": "2"})))
    assert chief.environment["CONF"] == f"{RELEASE_FOLDER}/pods/chief-0/volumes/extra/sub/b.txt"
    assert chief.environment["LOGS"] == f"{CLAIMS}/ckpt/tensorboard"
    assert f"{CLAIMS}/ckpt/tensorboard" in chief.folders
    assert [PurePosixPath(file.path).name for file in chief.files] == ["cluster.json", "b.txt"]


def test_each_pod_has_a_folder_for_an_ephemeral_volume() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        pod["volumes"] += [{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "b", "ephemeral": {}}]
        container["volumeMounts"] += [{"name": name, "mountPath": f"/{name}"} for name in "ab"]
        container["env"] += [{"name": "SCRATCH", "value": "/b/x"}]

    plan = make_plan(change)
    folders = [pod.environment["SCRATCH"] for pod in plan.pods if "SCRATCH" in pod.environment]
    assert folders == [f"{RELEASE_FOLDER}/pods/{pod.label}/volumes/b/x" for pod in plan.pods]
    assert {f"{RELEASE_FOLDER}/pods/chief-0/volumes/{name}" for name in "ab"} <= set(plan.pods[0].folders)
    assert not {folder for folder in plan.outputs if "/pods/" in folder}


def test_secrets_come_from_chart_or_caller_and_are_marked() -> None:
    entry = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    from_caller = make_plan(
        lambda pod, container: container["env"].append(entry), caller={**SETTINGS.caller, "TOKEN": "/checkpoints"}
    )
    assert chief_of(from_caller).environment["TOKEN"] == "/checkpoints"
    assert chief_of(from_caller).secrets == {"TOKEN"}
    secret = {"kind": "Secret", "metadata": {"name": "hub"}, "data": {"token": "aHVudGVyMg=="}}
    from_chart = make_plan(lambda pod, container: container["env"].append(entry), secret)
    assert chief_of(from_chart).environment["TOKEN"] == "hunter2"


def test_no_part_of_a_shown_plan_holds_a_secret() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        container["envFrom"] = [{"prefix": "HUB_", "secretRef": {"name": "hub"}}]
        container["env"] += [
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            {"name": "HEADER", "value": "Bearer $(TOKEN)"},
            {"name": "HUB_user", "value": "me-myself"},
        ]
        container["args"] += ["--key=$(TOKEN)", "--header=$(HEADER)", "--other=$(HUB_token)", "--user=$(HUB_user)"]
        container["volumeMounts"].append({"name": "tmp", "mountPath": "/scratch", "subPathExpr": "of-$(TOKEN)"})

    secret = {"kind": "Secret", "metadata": {"name": "hub"}, "stringData": {"token": "hunter2", "user": "root-user"}}
    plan = make_plan(change, secret)
    assert "--key=hunter2" in chief_of(plan).argv
    for shown in (json.dumps(describe_plan(plan)), summarize_plan(plan)):
        assert "hunter2" not in shown
        assert "--key=***" in shown
        assert "--user=me-myself" in shown
    assert chief_of(plan).mask("error: invalid key 'hunter2'") == "error: invalid key '***'"


def test_a_chosen_folder_stands_for_a_claim() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        pod["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": "mnist-data"}})
        container["volumeMounts"].append({"name": "data", "mountPath": "/data", "readOnly": True})
        container["env"].append({"name": "DATA", "value": "/data/train"})

    assert "`--claim mnist-data=FOLDER`" in make_plan(change).warnings[0]
    chosen = make_plan(change, claims={"mnist-data": "/home/me/digits"})
    assert chosen.warnings == ()
    assert chief_of(chosen).environment["DATA"] == "/home/me/digits/train"


@pytest.mark.parametrize("name", ["exp-7-mnist-checkpoints", "checkpoints"])
def test_a_claim_may_be_called_by_its_short_name(name: str) -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        (claim,) = (volume["persistentVolumeClaim"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume)
        claim["claimName"] = "exp-7-mnist-checkpoints"

    plan = make_plan(change, claims={name: "/home/me/old"})
    assert plan.claims == {"exp-7-mnist-checkpoints": "/home/me/old"}


def test_a_volume_of_clusters_only_can_be_replaced() -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        pod["volumes"].append({"name": "disk", "hostPath": {"path": "/mnt"}})
        container["volumeMounts"].append({"name": "disk", "mountPath": "/mnt"})
        container["env"].append({"name": "DATA", "value": "/mnt/train"})

    plan = make_plan(change, claims={"volume-disk": "/home/me/digits"})
    assert plan.warnings == ()
    assert chief_of(plan).environment["DATA"] == "/home/me/digits/train"


def test_a_claim_that_nobody_mounts_cannot_be_replaced() -> None:
    with pytest.raises(ToolError, match="no claim 'checkpoint' for --claim") as caught:
        make_plan(claims={"checkpoint": "/home/me/old"})
    assert caught.value.hint == "claims: ckpt"


def test_hidden_gpus_are_hidden_from_cuda() -> None:
    assert environment_with({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "CUDA_VISIBLE_DEVICES" not in environment_with()


def test_a_machine_without_a_gpu_says_that_the_cpu_is_used() -> None:
    def ask(pod: dict[str, Any], container: dict[str, Any]) -> None:
        container.update(resources={"limits": {"nvidia.com/gpu": 1}})

    (warning, *_) = make_plan(ask, has_gpu=False).warnings
    assert "asks for nvidia.com/gpu: this machine has no GPU: the CPU is used" in warning
    assert "no GPU" not in make_plan(ask).warnings[0]


@pytest.mark.parametrize("resource", ["rdma/hca", "vpc.amazonaws.com/efa", "openshift.io/mlx", "nvidia.com/hostdev"])
def test_a_resource_that_is_no_gpu_needs_no_gpu_here(resource: str) -> None:
    def ask(pod: dict[str, Any], container: dict[str, Any]) -> None:
        container.update(resources={"limits": {resource: 1}})

    assert not any(resource in warning for warning in make_plan(ask, has_gpu=False).warnings)


def test_injected_launcher_is_the_one_of_this_machine() -> None:
    def inject(pod: dict[str, Any], container: dict[str, Any]) -> None:
        pod["initContainers"] = [{"name": "launcher"}]
        pod["volumes"].append({"name": "launcher", "emptyDir": {}})
        mount = {"name": "launcher", "mountPath": "/opt/trainchart/launcher.pyz", "subPath": "launcher.pyz"}
        container["volumeMounts"].append(mount)

    assert make_plan(inject) == make_plan()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda pod, container: pod.update(initContainers=[{"name": "wait"}]), "not wait"),
        (lambda pod, container: pod["containers"].append({"name": "proxy"}), "not proxy"),
        (lambda pod, container: container.update(resources={"limits": {"nvidia.com/gpu": 1}}), "nvidia.com/gpu"),
        (lambda pod, container: container.update(workingDir="/workspace"), "/workspace"),
        (
            lambda pod, container: (
                pod["volumes"].append({"name": "disk", "hostPath": {"path": "/mnt"}}),
                container["volumeMounts"].append({"name": "disk", "mountPath": "/mnt"}),
            ),
            "volume disk (hostPath)",
        ),
    ],
)
def test_what_is_different_here_is_said_once(change: Change, expected: str) -> None:
    warnings = make_plan(change).warnings
    assert len([warning for warning in warnings if expected in warning]) == len({
        warning.partition(":")[0] for warning in warnings
    })  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda pod, container: container.pop("command"), "no command"),
        (lambda pod, container: container.update(name="main"), "no container is named 'training'"),
        (
            lambda pod, container: container["volumeMounts"].append({"name": "x", "mountPath": "/x"}),
            "mounts the volume 'x'",
        ),
        (lambda pod, container: container.update(envFrom=[{"secretRef": {"name": "gone"}}]), "the Secret 'gone'"),
        (
            lambda pod, container: container["env"].append(
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
            ),
            "TOKEN of chief comes from key 'token' of the Secret 'hub'",
        ),
        (lambda pod, container: container["env"].clear() or pod["volumes"].pop(0), "mounts the volume 'config'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_every_reason(change: Change, expected: str) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(change)
    assert any(expected in problem.message for problem in caught.value.problems)


SECRET = {"secretName": "hub", "items": [{"key": "token", "path": "../../../../x"}]}
DOWNWARD = {"items": [{"path": "/etc/x", "fieldRef": {"fieldPath": "metadata.name"}}]}


@pytest.mark.parametrize(
    ("volume", "mount", "expected"),
    [
        ({"secret": SECRET}, {}, "items.path in volume 'v' of chief is '../../../../x'"),
        ({"projected": {"sources": [{"secret": {**SECRET, "name": "hub"}}]}}, {}, "items.path in volume 'v'"),
        ({"configMap": {"name": "odd"}}, {}, "a key in volume 'v' of chief is '../x'"),
        ({"downwardAPI": DOWNWARD}, {}, "items.path in volume 'v' of chief is '/etc/x'"),
        ({"persistentVolumeClaim": {"claimName": "../../x"}}, {}, "a claimName of chief is '../../x'"),
        ({"persistentVolumeClaim": {"claimName": "a/b"}}, {}, "a claimName of chief is 'a/b'"),
        ({"persistentVolumeClaim": {"claimName": ".."}}, {}, "a claimName of chief is '..'"),
        ({"name": "../v", "emptyDir": {}}, {"name": "../v"}, "a volume's name of chief is '../v'"),
        ({"name": "../v", "nfs": {}}, {"name": "../v"}, "a volume's name of chief is '../v'"),
        ({"emptyDir": {}}, {"subPath": "a/../../b"}, "the subPath of volume 'v' of chief is 'a/../../b'"),
        ({"emptyDir": {}}, {"subPath": "/etc"}, "the subPath of volume 'v' of chief is '/etc'"),
        ({"emptyDir": {}}, {"subPathExpr": "$(OUT)"}, "the subPath of volume 'v' of chief is '../out'"),
    ],
)
def test_a_run_writes_in_its_own_folder_only(volume: dict[str, Any], mount: dict[str, Any], expected: str) -> None:
    def change(pod: dict[str, Any], container: dict[str, Any]) -> None:
        pod["volumes"].append({"name": "v", **volume})
        container["volumeMounts"].append({"name": "v", "mountPath": "/v", **mount})
        container["env"].append({"name": "OUT", "value": "../out"})

    secret = {"kind": "Secret", "metadata": {"name": "hub"}, "stringData": {"token": "t"}}
    with pytest.raises(PlanError) as caught:
        make_plan(change, secret, config_map("odd", {"../x": "1"}))
    assert any(expected in problem.message for problem in caught.value.problems)


def test_a_working_directory_outside_of_its_volume_is_not_made() -> None:
    plan = make_plan(lambda pod, container: container.update(workingDir="/checkpoints/../../../../out"))
    assert all(".." not in folder for pod in plan.pods for folder in pod.folders)


def test_an_unknown_strategy_is_refused() -> None:
    odd = config_map("cluster", {"cluster.json": json.dumps({**CLUSTER, "strategy": "gossip"})})
    with pytest.raises(PlanError) as caught:
        make_plan(lambda pod, container: None, odd)
    assert "unknown strategy 'gossip'" in caught.value.problems[0].message


def test_a_chart_without_training_is_refused() -> None:
    with pytest.raises(PlanError, match="no training pods"):
        plan_local_run([Manifest("all.yaml", config_map("a", {}))], SETTINGS)


def test_two_trainings_in_one_chart_are_refused() -> None:
    documents = [stateful_set("chief"), stateful_set("chief")]
    with pytest.raises(PlanError, match="several training runs"):
        plan_local_run([Manifest("all.yaml", document) for document in documents], SETTINGS)
