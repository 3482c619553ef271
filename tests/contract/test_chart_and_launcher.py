"""The contract between generated charts and the launcher, without processes: what a chart of every strategy tells its
pods, read by the launcher's own code, gives the TF_CONFIG, flags and hyperparameters that TensorFlow expects.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden_charts import CASES, chart_folder
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides
from trainchart.local.plan import POD_MARK, LocalPlan, LocalSettings, needed_addresses, plan_local_run
from trainchart.local.pod_plan import PodPlan
from trainchart_launcher.environment import Invocation, resolve_invocation
from trainchart_launcher.settings import read_settings
from trainchart_runtime import contract
from trainchart_runtime.cluster import TASK_TYPES_BY_STRATEGY


def plan_of(case: str, folder: Path, *sets: str) -> LocalPlan:
    rendering = find_engine("sdk").render(chart_folder(case), release="exp", overrides=ValueOverrides(sets=sets))
    addresses = needed_addresses(rendering.manifests)
    settings = LocalSettings(
        release="exp",
        namespace="default",
        release_folder=str(folder),
        launcher="/launcher.pyz",
        code="/code",
        python="/usr/bin/python3",
        caller={"PATH": "/usr/bin"},
        claims={},
        ports={address: 20000 + index for index, address in enumerate(addresses)},
    )
    return plan_local_run(rendering.manifests, settings)


def invoke(pod: PodPlan) -> Invocation:
    """Return what the launcher would start in `pod`."""
    for file in pod.files:
        path = Path(file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.content if isinstance(file.content, str) else file.content.decode())
    settings = read_settings(pod.environment)
    program = pod.argv[list(pod.argv).index("--") + 1 :]
    return resolve_invocation(settings, program, pod.environment, "/progress.json", 1)


@pytest.mark.parametrize("case", CASES)
def test_every_task_gets_the_tf_config_of_its_strategy(case: str, tmp_path: Path) -> None:
    plan = plan_of(case, tmp_path)
    local = {address: mapped for address, mapped in plan.addresses.items() if address.endswith(":2222")}
    expected_cluster: dict[str, list[str]] = {}
    for task_type in TASK_TYPES_BY_STRATEGY[case]:
        pods = [pod for pod in plan.pods if pod.role == task_type]
        hosts = [local[f"{pod.name}.exp-{_chart(case)}:2222"] for pod in pods]
        if hosts:
            expected_cluster[task_type] = hosts
    for pod in plan.pods:
        found = invoke(pod).environ.get(contract.TF_CONFIG)
        if not expected_cluster:
            assert found is None, "one process has no cluster"
            continue
        index = int(pod.name.rpartition("-")[2])
        assert json.loads(found or "") == {
            "cluster": expected_cluster,
            "task": {"type": pod.role, "index": index},
        }


def _chart(case: str) -> str:
    return case.replace("between-graph", "bg")


def test_classic_flags_are_filled_in(tmp_path: Path) -> None:
    plan = plan_of("between-graph-sync", tmp_path)
    pod = next(pod for pod in plan.pods if pod.label == "worker-2")
    ps = ",".join(plan.addresses[f"exp-bg-sync-ps-{n}.exp-bg-sync:2222"] for n in range(2))
    workers = ",".join(plan.addresses[f"exp-bg-sync-worker-{n}.exp-bg-sync:2222"] for n in range(3))
    assert list(invoke(pod).command)[2:] == [
        "--job_name=worker",
        "--task_index=2",
        f"--ps_hosts={ps}",
        f"--worker_hosts={workers}",
    ]


def test_hyperparameters_arrive_typed_as_json_and_one_by_one(tmp_path: Path) -> None:
    plan = plan_of("parameter-server", tmp_path, "hyperparameters.learningRate=1e-3")
    environ = invoke(plan.pods[0]).environ
    expected: dict[str, Any] = {"learningRate": 0.001, "maxSteps": 2000000, "tag": "1e3", "shift": 0, "depth": "18"}
    assert json.loads(environ[contract.HYPERPARAMETERS]) == expected
    assert environ["TRAINCHART_HP_LEARNING_RATE"] == "0.001"
    assert environ["TRAINCHART_HP_MAX_STEPS"] == "2000000"
    assert environ["TRAINCHART_HP_TAG"] == "1e3"


@pytest.mark.parametrize("case", CASES)
def test_every_variable_of_ours_is_one_of_the_contract(case: str, tmp_path: Path) -> None:
    names = {value for name, value in vars(contract).items() if name.isupper() and isinstance(value, str)}
    volumes = {"TRAINCHART_DATA_DIR", "TRAINCHART_LOGS_DIR", "TRAINCHART_SCRATCH_DIR"}
    for pod in plan_of(case, tmp_path).pods:
        ours = {name for name in pod.environment if name.startswith("TRAINCHART_")}
        assert ours - {POD_MARK} <= names | volumes
        required = {contract.TASK_TYPE, contract.POD_NAME, contract.ORDINAL, contract.CLUSTER_FILE, contract.STATE_DIR}
        assert required <= ours


def test_the_names_of_variables_are_those_of_chart_and_launcher(tmp_path: Path) -> None:
    rendering = find_engine("sdk").render(chart_folder("parameter-server"), release="exp")
    sets = [manifest for manifest in rendering.manifests if manifest.kind == "StatefulSet"]
    names = [
        [entry["name"] for entry in item.document["spec"]["template"]["spec"]["containers"][0]["env"]] for item in sets
    ]
    volumes = [name for name in names[0] if name.endswith("_DIR") and name != contract.STATE_DIR]
    for found in names:
        assert tuple(name for name in found if name in contract.CONTAINER_VARIABLES) == contract.CONTAINER_VARIABLES
        others = set(found) - set(contract.CONTAINER_VARIABLES) - set(volumes)
        assert not {name for name in others if name.startswith("TRAINCHART_")}
    pod = plan_of("parameter-server", tmp_path).pods[0]
    added = {name for name in set(invoke(pod).environ) - set(pod.environment) if name.isupper()}
    assert {name for name in added if not name.startswith(contract.HYPERPARAMETER_PREFIX)} == {
        *contract.PROGRAM_VARIABLES
    }
