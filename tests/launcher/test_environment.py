"""What the program finds: TF_CONFIG, classic words, hyperparameters; and what a broken contract looks like."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from trainchart_launcher.environment import resolve_invocation
from trainchart_launcher.settings import ContractError, read_settings
from trainchart_runtime import contract

SHOW = "import json, os, sys; json.dump([dict(os.environ), sys.argv[1:]], open('seen', 'w'))"


def see(pod, *arguments):
    code, _, stderr = pod.run(pod.python, "-c", SHOW, *arguments)
    assert code == 0, stderr
    return json.loads((pod.folder / "seen").read_text())


def test_cluster_in_tf_config_and_in_classic_words(pod):
    environ, arguments = see(
        pod, "--job_name=$(TASK_TYPE)", "$(TASK_INDEX)", "$(PS_HOSTS)/$(WORKER_HOSTS)", "[$(CHIEF_HOSTS)]", "$(MY_VAR)"
    )
    ps, workers = f"127.0.0.1:{pod.ps_port}", ["exp-worker-0.exp:2222", "exp-worker-1.exp:2222"]
    assert json.loads(environ["TF_CONFIG"]) == {
        "cluster": {"worker": workers, "ps": [ps]},
        "task": {"type": "worker", "index": 1},
    }
    assert arguments == ["--job_name=worker", "1", f"{ps}/{','.join(workers)}", "[]", "$(MY_VAR)"]
    assert environ["WORKER_HOSTS"] == ",".join(workers)
    assert (environ[contract.STRATEGY], environ[contract.EVALUATORS]) == ("between-graph-async", "0")
    assert environ[contract.ATTEMPT] == "1"
    assert environ[contract.PROGRESS_FILE] == str(pod.folder / "state" / "progress.json")


PROXIED = "GRPC_ADDRESS_HTTP_PROXY_ENABLED_ADDRESSES"
DIRECT = "localhost,127.0.0.1,exp-worker-0.exp,exp-worker-1.exp"


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ({}, {"no_proxy": DIRECT, "no_grpc_proxy": DIRECT, PROXIED: None}),
        (
            {"no_proxy": "a.b, exp-worker-1.exp,"},
            {"no_proxy": "a.b,exp-worker-1.exp,localhost,127.0.0.1,exp-worker-0.exp"},
        ),
        ({"NO_PROXY": "a.b"}, {"no_proxy": f"a.b,{DIRECT}", "no_grpc_proxy": f"a.b,{DIRECT}", "NO_PROXY": "a.b"}),
        ({"no_proxy": "", "NO_PROXY": "a.b"}, {"no_proxy": DIRECT}),
        ({"no_proxy": "a.b", "no_grpc_proxy": ""}, {"no_proxy": f"a.b,{DIRECT}", "no_grpc_proxy": DIRECT}),
        # Python and curl know "*" only alone, gRPC does not know it.
        ({"no_proxy": "*"}, {"no_proxy": "*", "no_grpc_proxy": f"*,{DIRECT}"}),
        ({PROXIED: "10.0.0.0/8"}, {PROXIED: ""}),
        ({"https_proxy": "http://proxy:3128"}, {"https_proxy": "http://proxy:3128"}),
        # With "none", TensorFlow's server aborts: "Attempted a blocking poll when declared non-polling".
        ({"GRPC_POLL_STRATEGY": "none"}, {"GRPC_POLL_STRATEGY": "all"}),
        ({"GRPC_POLL_STRATEGY": "poll"}, {"GRPC_POLL_STRATEGY": "poll"}),
    ],
)
def test_no_proxy_stands_between_the_tasks(pod, users, expected):
    environ = resolve_invocation(read_settings(pod.variables), ["true"], users, "progress.json", 1).environ
    assert {name: environ.get(name) for name in expected} == expected


def test_a_variable_may_be_as_long_as_linux_allows(pod):
    name = contract.PROGRESS_FILE

    def resolve(path):
        return resolve_invocation(read_settings(pod.variables), ["true"], {}, path, 1).environ[name]

    longest = "p" * (contract.ENVIRONMENT_STRING_LIMIT - len(name) - len("=") - len("\0"))
    assert subprocess.run(["true"], env={name: resolve(longest)}, check=True)
    with pytest.raises(ContractError, match="longer than Linux allows"):
        resolve(longest + "p")
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["true"], env={name: longest + "p"}, check=True)


def test_every_variable_of_the_launcher_goes_into_the_command(pod):
    environ, arguments = see(pod, *(f"$({name})" for name in contract.PROGRAM_VARIABLES))
    assert arguments == [environ[name] for name in contract.PROGRAM_VARIABLES]


def test_single_process_training_gets_no_tf_config(make_pod):
    pod = make_pod(strategy="single")
    environ, _ = see(pod)
    assert "TF_CONFIG" not in environ
    assert environ[contract.STRATEGY] == "single"


def test_program_learns_of_evaluator_that_tf_config_omits(pod):
    pod.write_cluster(worker=2, ps=1, evaluator=1)
    environ, _ = see(pod)
    assert "evaluator" not in json.loads(environ["TF_CONFIG"])["cluster"]
    assert environ[contract.EVALUATORS] == "1"


@pytest.mark.parametrize(
    ("variables", "index"),
    [
        ({contract.ORDINAL: "0", contract.POD_NAME: "exp-worker-1"}, 0),
        ({contract.ORDINAL: "", contract.POD_NAME: "exp-worker-1"}, 1),
    ],
)
def test_the_ordinal_comes_from_the_label_else_from_the_pod_name(make_pod, variables, index):
    environ, _ = see(make_pod(variables=variables))
    assert environ["TASK_INDEX"] == str(index)


def test_hyperparameters_as_json_and_one_by_one(pod):
    values = {"learningRate": 0.05, "maxSteps": 2000000, "optimizer": "adam", "nesterov": True, "layers": [1, 2]}
    path = pod.folder / "hyperparameters.json"
    path.write_text(json.dumps(values))
    pod.variables[contract.HYPERPARAMETERS_FILE] = str(path)
    environ, _ = see(pod)
    assert json.loads(environ[contract.HYPERPARAMETERS]) == values
    named = {name: value for name, value in environ.items() if name.startswith(contract.HYPERPARAMETER_PREFIX)}
    assert named == {
        "TRAINCHART_HP_LEARNING_RATE": "0.05",
        "TRAINCHART_HP_MAX_STEPS": "2000000",
        "TRAINCHART_HP_OPTIMIZER": "adam",
        "TRAINCHART_HP_NESTEROV": "true",
        "TRAINCHART_HP_LAYERS": "[1,2]",
    }


def test_hyperparameters_fill_the_flags_of_a_program(pod):
    path = pod.folder / "hyperparameters.json"
    path.write_text(json.dumps({"learningRate": 0.05, "optimizer": "adam $(TASK_TYPE)", "nesterov": True}))
    pod.variables[contract.HYPERPARAMETERS_FILE] = str(path)
    _, arguments = see(
        pod,
        "--lr=$(TRAINCHART_HP_LEARNING_RATE)",
        "$(TRAINCHART_HP_OPTIMIZER)",
        "--nesterov=$(TRAINCHART_HP_NESTEROV)",
        "$(TRAINCHART_HP_UNKNOWN)",
    )
    # Text is filled in once: what a hyperparameter holds is never read as a reference.
    assert arguments == ["--lr=0.05", "adam $(TASK_TYPE)", "--nesterov=true", "$(TRAINCHART_HP_UNKNOWN)"]


def test_modules_of_the_training_code_do_not_reach_the_launcher(pod):
    for name in ("json", "socket", "signal", "typing", "threading"):
        (pod.folder / f"{name}.py").write_text("raise SystemExit('the launcher imported the training code')")
    pod.variables["PYTHONPATH"] = str(pod.folder)
    code, stdout, stderr = pod.run("sh", "-c", "echo $PYTHONPATH")
    assert (code, stdout) == (0, f"{pod.folder}\n"), stderr


BROKEN = [
    ({contract.TASK_TYPE: ""}, contract.TASK_TYPE + " is not set"),
    ({contract.CLUSTER_FILE: ""}, contract.CLUSTER_FILE + " is not set"),
    ({contract.CLUSTER_FILE: "/nowhere/cluster.json"}, "cannot read /nowhere/cluster.json"),
    ({contract.CLUSTER_FILE: "/etc/hosts"}, "the cluster description is not JSON"),
    ({contract.STATE_DIR: ""}, contract.STATE_DIR + " is not set"),
    ({contract.TASK_TYPE: "chief"}, "task type 'chief' has no role; the cluster has: worker, ps"),
    ({contract.POD_NAME: "exp-worker-2"}, "ordinal 2 is outside role 'worker' with 2 replicas"),
    ({contract.ORDINAL: "one"}, "must be a number, not 'one'"),
    ({contract.POD_NAME: "exp"}, "nor the pod name 'exp' holds an ordinal"),
    ({contract.MAX_RESTARTS: "-1"}, "must be a number of at least 0, not '-1'"),
    ({contract.STOP_GRACE_SECONDS: "soon"}, "must be a number of at least 0, not 'soon'"),
    ({contract.ADDRESSES: "[]"}, "the address map must be a JSON object of strings"),
    ({contract.HYPERPARAMETERS_FILE: "/etc/hosts"}, "hyperparameters in /etc/hosts are not JSON"),
]


@pytest.mark.parametrize(("variables", "problem"), BROKEN, ids=[problem[:30] for _, problem in BROKEN])
def test_a_broken_contract_starts_nothing_and_says_why(make_pod, variables, problem):
    pod = make_pod(variables=variables)
    code, stdout, stderr = pod.run("echo", "started")
    assert (code, stdout) == (contract.EXIT_CONFIG, "")
    assert stderr.startswith("trainchart-launcher: ") and stderr.count("\n") == 1
    assert problem in stderr
    assert pod.message.cause == "contract-broken" and problem in pod.message.error


def test_no_program_is_a_broken_contract(pod):
    code, _, stderr = pod.run()
    assert code == contract.EXIT_CONFIG and "no program given" in stderr


def test_a_cluster_too_large_for_tf_config_is_explained(pod):
    pod.write_cluster(worker=1000, ps=1000)
    path = pod.folder / "cluster.json"
    path.write_text(path.read_text().replace('"service": "exp"', f'"service": "{"e" * 63}"'))
    code, stdout, stderr = pod.run("echo", "started")
    assert (code, stdout) == (contract.EXIT_CONFIG, "")
    assert "TF_CONFIG for 2000 tasks needs" in stderr


def test_a_hyperparameter_that_no_variable_can_hold_is_explained(pod):
    path = pod.folder / "hyperparameters.json"
    path.write_text(json.dumps({"name": "a\0b"}))
    pod.variables[contract.HYPERPARAMETERS_FILE] = str(path)
    code, _, stderr = pod.run("true")
    assert code == contract.EXIT_CONFIG and "TRAINCHART_HP_NAME holds a character" in stderr


def test_the_zipapp_is_the_same_every_time_and_executable(launcher, tmp_path):
    from trainchart_launcher.bundle import build_installed_launcher, build_launcher

    sources = Path(__file__).parents[2] / "training-images"
    body = launcher.read_bytes()
    assert body == build_installed_launcher() == build_launcher(sources / "launcher", sources / "runtime")
    assert body.startswith(b"#!/usr/bin/env python3\n")
    copy = tmp_path / "launcher.pyz"
    copy.write_bytes(body)
    copy.chmod(0o755)
    environ = {"PATH": "/usr/bin:/bin", contract.TERMINATION_FILE: str(tmp_path / "termination")}
    assert subprocess.run([copy, "--", "true"], env=environ, capture_output=True).returncode == contract.EXIT_CONFIG


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"seed": None, "fast": False, "sizes": ""}, ["--slow"]),
        (
            {"seed": 3, "fast": True, "sizes": "64 32"},
            ["--seed=3", "--fast", "--sizes", "64", "32", "--size=64", "--size=32"],
        ),
        ({}, []),
    ],
)
def test_marks_leave_words_out_and_repeat_them(pod, values, expected):
    path = pod.folder / "hyperparameters.json"
    path.write_text(json.dumps(values))
    pod.variables[contract.HYPERPARAMETERS_FILE] = str(path)
    words = ("--seed=$({}SEED?)", "--fast$({}FAST+)", "--slow$({}FAST-)", "--sizes $({}SIZES*)", "--size=$({}SIZES*)")
    environ, arguments = see(pod, *(word.format(contract.HYPERPARAMETER_PREFIX) for word in words))
    assert arguments == expected
    assert None not in json.loads(environ[contract.HYPERPARAMETERS]).values()
