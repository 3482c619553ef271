"""README and docs/ tell the truth: every command runs, every block of YAML resolves, in a copy of the project.

A guide is followed from top to bottom in one folder, as a reader would. What cannot run here is in INSTEAD.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
import yaml
from typer import _click as click

from trainchart.actions.support.family_charts import complete_chart
from trainchart.cli.app import app
from trainchart.families.family import parse_family
from trainchart.importing.detect import read_trainings
from trainchart.packs.pack import parse_pack
from trainchart.packs.project_file import parse_project_file
from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.plan.resolve import resolve
from trainchart.resources import read_builtin_defaults
from trainchart.spec.document import parse_document

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
REGISTRY = "oci://registry.example.com/charts"
NO_IMAGE = "--skip-image-check"
"""The example's image is in no registry."""
TFJOB = json.dumps(
    {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "old"},
        "spec": {
            "tfReplicaSpecs": {
                "Worker": {
                    "template": {
                        "spec": {
                            "containers": [
                                {"name": "tensorflow", "image": "r.example/a:1", "command": ["python", "a.py"]}
                            ]
                        }
                    }
                }
            }
        },
    }
)
INSTEAD = {
    "trainchart import tfjob.yaml": f"echo '{TFJOB}' > tfjob.yaml && trainchart import tfjob.yaml",
    "kubectl get tfjob mnist -o yaml | trainchart import - --name mnist": (
        "cat tfjob.yaml | trainchart import - --name other"
    ),
    "trainchart import tfjob.yaml --code training/mnist": (
        "mkdir -p training/old && echo 'print(1)' > training/old/a.py"
        " && trainchart import tfjob.yaml --name imported --code training/old"
    ),
    "make demo     # generate charts/mnist, check it, and train real digits from it on this machine": "make -n demo",
    "make test     # everything that can be tested on this machine": "make -n test",
    "helm install exp-7 charts/mnist --set hyperparameters.learningRate=0.1": (
        "helm template exp-7 charts/mnist --set hyperparameters.learningRate=0.1"
    ),
    "helm install exp-7 charts/mnist --set run.queue=research,run.queuePriorityClass=urgent": (
        "helm template exp-7 charts/mnist --set run.queue=research,run.queuePriorityClass=urgent"
    ),
    "kubectl create secret generic channel --from-file=url=webhook-url.txt": (
        "grep -q 'secretName' charts/mnist/templates/_controller.tpl"
    ),
    "helm install exp-7 charts/mnist --set run.notify.secret=channel": (
        "helm template exp-7 charts/mnist --set run.notify.secret=channel"
    ),
    "helm install exp-1 charts/first --set hyperparameters.maxSteps=2000": (
        "helm template exp-1 charts/first --set hyperparameters.maxSteps=2000"
    ),
    "trainchart package charts/mnist -d dist && helm install exp-7 dist/mnist-0.1.0.tgz": (
        "trainchart package charts/mnist -d dist && helm template exp-7 dist/mnist-0.1.0.tgz"
    ),
    # Built and installed for real by tests/cli/test_wheel.py.
    "pip install .": f"grep -q '^name = \"trainchart\"' {ROOT}/pyproject.toml",
    "pip wheel --no-deps --wheel-dir dist .": f"grep -q '^version = \"0.1.0\"' {ROOT}/pyproject.toml",
    "pip install 'trainchart[console]'": f"grep -q '^console = ' {ROOT}/pyproject.toml",
    # Opened for real by tests/console/test_browser.py.
    "trainchart console": "trainchart console --help",
    "trainchart console -n team-a --context prod": "trainchart console --help",
    # Run against clusters by tests/cli/test_top.py and tests/cluster/test_top.py.
    "trainchart top": "trainchart top --help",
    "trainchart tensorboard": "trainchart tensorboard --help",
    "trainchart tensorboard --all": "trainchart tensorboard --help",
    "trainchart tensorboard exp-7 exp-8 -n team-a": "trainchart tensorboard --help",
    "trainchart tensorboard --all -n team-a --keep": "trainchart tensorboard --help",
    "trainchart notebook exp-7 --image registry.example.com/ml/mnist-notebook:1.0.0": "trainchart notebook --help",
    "trainchart notebook exp-7 exp-8 -n team-a --set gpus=1 --set notebooksClaim=my-notebooks": (
        "trainchart notebook --help"
    ),
    "trainchart top exp-7 exp-8": "trainchart top --help",
    "trainchart top -A": "trainchart top --help",
    "trainchart console -A --no-browser": "trainchart console --help",
    "trainchart console -A --no-browser --port 8080": "trainchart console --help",
    "pip install helm-python-sdk==0.2.2": f"grep -q '\"helm-python-sdk==0.2.2\"' {ROOT}/pyproject.toml",
    "pip install tensorflow-cpu==2.21.0": f"grep -q '\"tensorflow-cpu==2.21.0\"' {ROOT}/pyproject.toml",
    # Trained and killed for real by tests/local/test_train_mnist.py.
    "trainchart run first --strategy parameter-server --set hyperparameters.maxSteps=3000 "
    "--kill worker-1@10s --kill ps-0@15s": (
        "trainchart run first --strategy parameter-server --kill worker-1@10s --kill ps-0@15s --dry-run"
    ),
    "make cluster-up": "make -n cluster-up",
    "make cluster-shell": "make -n cluster-shell",
    "make cluster-down": "make -n cluster-down",
    # Built for real, by buildah, for the test cluster; there is no Docker to run it with.
    "docker build -f training-images/tensorflow/Dockerfile --build-arg MODEL=examples/mnist -t ml/mnist:1.0.0 .": (
        f"grep -q '^ARG MODEL' {ROOT}/training-images/tensorflow/Dockerfile"
    ),
    "docker build -f training-images/controller/Dockerfile -t ml/trainchart-runtime:1.0.0 .": (
        f"grep -q 'controller.pyz' {ROOT}/training-images/controller/Dockerfile"
    ),
    # Jupyter's configuration is tried by test_notebook.py.
    "docker build -f training-images/notebook/Dockerfile --build-arg TRAINING_IMAGE=registry.example.com/ml/mnist:1.0.0"
    " -t registry.example.com/ml/mnist-notebook:1.0.0 .": (
        f"grep -q '^ARG TRAINING_IMAGE' {ROOT}/training-images/notebook/Dockerfile"
    ),
    # Built for real as well: tests/cluster/test_model_server.py serves from it.
    "docker build -f training-images/serving/Dockerfile --build-arg TRAINING_IMAGE=registry.example.com/ml/mnist:1.0.0"
    " -t registry.example.com/ml/trainchart-serving:1.0.0 .": (
        f"grep -q '^ARG TRAINING_IMAGE' {ROOT}/training-images/serving/Dockerfile"
    ),
    "trainchart init notebook --family notebook": f"cp {ROOT}/chart-templates/notebook/tests/notebook.yaml models",
    "kubectl create secret generic my-notebook --from-literal=token=$(openssl rand -hex 16)": (
        "grep -q 'key: token' charts/notebook/templates/deployment.yaml"
    ),
    "helm install my-notebook charts/notebook": "helm template my-notebook charts/notebook",
    "kubectl port-forward service/my-notebook 8888": (
        "helm template my-notebook charts/notebook | grep -q 'port: 8888, targetPort: http'"
    ),
    # Done for real by tests/cluster/test_users_console.py.
    "docker build -f training-images/console/Dockerfile -t registry.example.com/ml/trainchart-console:0.1.0 .": (
        f"grep -q '^ARG HELM_IMAGE' {ROOT}/training-images/console/Dockerfile"
    ),
    "trainchart init console --family console": f"cp {ROOT}/chart-templates/console/tests/console.yaml models",
    "helm install console charts/console --namespace platform": "helm template console charts/console",
    "kubectl port-forward service/console 8080 --namespace platform": (
        "helm template console charts/console | grep -q 'port: 8080, targetPort: http'"
    ),
    "kubectl create token ada --namespace team-a --duration 8h": "trainchart console --help",
    "trainchart console -n team-a -n team-b --sign-in token --port 8080": "trainchart console --help",
    "trainchart console -n team-a --sign-in token --port 8080": "trainchart console --help",
    # Built and pushed for real, by buildah to a registry, by tests/contract/test_image_builders.py.
    "trainchart image build mnist": "trainchart image build mnist --builder docker --dry-run",
    "trainchart image push mnist": "trainchart image push mnist --builder docker --dry-run",
    "trainchart image inspect mnist": "trainchart image inspect --help",
    "trainchart image push --runtime registry.example.com/ml/trainchart-runtime": (
        "trainchart image push --runtime registry.example.com/ml/trainchart-runtime --builder docker --dry-run"
    ),
    "trainchart image push --runtime registry.example.com/ml/trainchart-runtime --base-image python@sha256:…": (
        "trainchart image push --help"
    ),
    # Installed for real by tests/cluster/test_training.py.
    "helm install exp1 charts/mnist --set image.repository=registry.trainchart.test/ml/mnist": (
        "helm template exp1 charts/mnist --set image.repository=registry.trainchart.test/ml/mnist"
    ),
    # Done for real by tests/cluster/test_run_controller.py.
    "kubectl get configmap exp-7-mnist-state -o 'jsonpath={.data.state\\.json}'": (
        "helm template exp-7 charts/mnist | grep 'name: exp-7-mnist-state'"
    ),
    # Trained for real by tutorial-first-model.md.
    "trainchart init first && trainchart run first": "trainchart init first && trainchart run first --dry-run",
    # TensorFlow's between-graph training takes a test too long.
    "trainchart run net --set hyperparameters.maxSteps=300": (
        "trainchart run net --set hyperparameters.maxSteps=300 --dry-run"
    ),
    # Need a cluster: tests/cli/test_releases.py has a small one, tests/cluster/test_cli_releases.py a real one.
    # Of the run exp-7, on what TensorFlow has written, by tests/cli/test_checkpoints.py.
    "trainchart checkpoints exp-7": "trainchart checkpoints --help",
    "trainchart checkpoints show exp-7 200": "trainchart checkpoints show --help",
    "trainchart checkpoints verify exp-7": "trainchart checkpoints verify --help",
    "trainchart checkpoints export exp-7 200 start": "trainchart checkpoints export --help",
    "trainchart checkpoints prune exp-7 --keep 3 --dry-run": "trainchart checkpoints prune --help",
    # On a cluster, by tests/cluster/test_checkpoints.py.
    "trainchart checkpoints list exp-7 -n team-a": "trainchart checkpoints list --help",
    "trainchart checkpoints export exp-7 200 start -n team-a": "trainchart checkpoints export --help",
    "trainchart list": "trainchart list --help",
    "trainchart status": "trainchart status --help",
    "trainchart run first --resume --release first-1": "trainchart run first --resume --release first-1 --dry-run",
    "trainchart compare exp-7 exp-8 -n team-a": "trainchart compare --help",
    "trainchart list -A": "trainchart list --help",
    "trainchart status exp-7": "trainchart status --help",
    "trainchart status exp-7 -n team-a --watch": "trainchart status --help",
    "trainchart why exp-7 -n team-a": "trainchart why --help",
    "trainchart wait exp-7 -n team-a": "trainchart wait --help",
    # Done for real by tests/cluster/test_doctor.py.
    "trainchart doctor mnist -n team-a": "trainchart doctor --help",
    "trainchart doctor mnist -n team-a --set roles.worker.replicas=8": "trainchart doctor --help",
    "trainchart doctor charts/mnist --set roles.worker.replicas=8 --no-probe": "trainchart doctor --help",
    "trainchart wait exp-7 --timeout 2h": "trainchart wait --help",
    "trainchart logs exp-7 -n team-a": "trainchart logs --help",
    "trainchart suspend exp-7 -n team-a": "trainchart suspend --help",
    "trainchart resume exp-7 -n team-a": "trainchart resume --help",
    "trainchart stop exp-7 -n team-a": "trainchart stop --help",
    "trainchart rerun exp-7 -n team-a --resume 200": "trainchart rerun --help",
    # Done for real by tests/cluster/test_model_server.py.
    **dict.fromkeys(
        (
            "trainchart promote exp-7 --to digits-prod -n team-a --gate 'accuracy>=0.9'",
            "trainchart promote exp-8 --to digits-prod -n team-a --gate 'accuracy>=serving-0.01' --dry-run",
            "trainchart promote exp-8 --to digits-prod -n team-a --gate 'accuracy>=0.9' --gate 'loss<=serving+0.01'",
            "trainchart promote --to digits-prod -n team-a --rollback",
            "trainchart promote --to digits-prod -n team-a --history",
        ),
        "trainchart promote --help",
    ),
    # Installed for real by tests/cluster/test_training.py.
    "helm install exp-8 charts/mnist --set run.resume=latest,run.resumeRelease=exp-7": (
        "helm template exp-8 charts/mnist --set run.resume=latest,run.resumeRelease=exp-7"
    ),
    # Installed for real by tests/cluster/test_tenant.py.
    "helm install vision charts/tenant-vision --namespace tenants --create-namespace": (
        "helm template vision charts/tenant-vision --namespace tenants"
    ),
    # Published for real to registries by tests/contract/test_repositories.py.
    f"trainchart diff mnist --from {REGISTRY}": (
        f"trainchart publish charts/mnist --to registry {NO_IMAGE} && trainchart diff mnist --from registry"
    ),
    f"trainchart publish charts/mnist --to {REGISTRY}": f"trainchart publish charts/mnist --to registry {NO_IMAGE}",
    f"trainchart release mnist --to {REGISTRY}": f"trainchart release mnist --to registry {NO_IMAGE}",
    # Done with real releases by tests/cluster/test_live_upgrade.py.
    "trainchart upgrade --check": "trainchart upgrade && trainchart upgrade --check",
    "trainchart upgrade --check --live -A": "trainchart upgrade --help | grep -q -- --live",
    "trainchart pack publish packs/platform --to oci://registry.example.com/packs": (
        "trainchart pack publish packs/platform --to registry"
    ),
    f'trainchart deprecate mnist --to {REGISTRY} --reason "use digits instead"': (
        'trainchart deprecate mnist --to registry --reason "use digits instead"'
    ),
    f"trainchart versions mnist --from {REGISTRY}": "trainchart versions mnist --from registry",
    "pip install 'trainchart[serving]' && pip install --no-deps tensorflow-serving-api==2.21.0": (
        "python -c 'import trainchart_serving, tensorflow_serving'"
    ),
    # Behind the other commands of its page, once the ports are free; it ends by itself where the page fails.
    "python -m trainchart_serving --model_name half --model_base_path served/half": (
        "for i in $(seq 60); do curl -s localhost:8501 >/dev/null || break; sleep 1; done;"
        " timeout 300 python -m trainchart_serving --model_name half --model_base_path served/half"
        " --drain_delay_seconds=0 >server.log 2>&1 & echo $! >server.pid;"
        " for i in $(seq 300); do curl -sf localhost:8501/readyz && break; sleep 0.2; done"
    ),
    "kill -TERM %1": (
        "kill -TERM $(cat server.pid); for i in $(seq 100); do kill -0 $(cat server.pid) || break; sleep 0.2; done;"
        " grep 'all requests have ended' server.log"
    ),
    # Serves until Ctrl-C; the next commands of its page ask it and end it.
    "trainchart serve first-1": (
        "timeout --foreground 300 trainchart serve first-1 >serve.log 2>&1 & echo $! >serve.pid;"
        " for i in $(seq 300); do grep -q 'trainchart predict' serve.log && break; sleep 0.2; done"
    ),
    "trainchart predict example.json": (
        "trainchart predict example.json | grep -q '^outputs'; code=$?; kill -INT $(cat serve.pid);"
        " for i in $(seq 100); do kill -0 $(cat serve.pid) 2>/dev/null || break; sleep 0.2; done; (exit $code)"
    ),
    # With a real server, by tests/cli/test_serve.py.
    "trainchart serve": "trainchart serve --help",
    "trainchart serve mnist-1": "trainchart serve --help",
    "trainchart serve mnist-3 --step 200": "trainchart serve --help",
    "trainchart serve charts/digits-prod --model ./saved_model": "trainchart serve --help",
    "trainchart predict digit.json": "trainchart predict --help",
    "trainchart predict digits.npy --format json": "trainchart predict --help",
    "echo '[1.0]' | trainchart predict - --url http://localhost:9000": "trainchart predict --help",
    "helm install monitoring charts/monitoring --namespace monitoring": (
        "helm template monitoring charts/monitoring --namespace monitoring"
    ),
    # Needs a run that failed; tests/cli/test_logs.py has one.
    "trainchart logs mnist-3 --since-failure": "trainchart logs mnist-3",
}
"""What a guide says → what runs here instead, since a cluster or too much time would be needed."""
PROPS = {
    "cluster-a.yaml": "tensorboard: {enabled: false}\n",
    "small.yaml": "hyperparameters: {maxSteps: 10}\n",
    "code/train.py": "print('trained')\n",
    "net/train.py": "print('trained')\n",
    # The real program takes half a minute a run; its own tests train with it.
    "examples/mnist/mnist/train.py": (
        "import os, signal\nprint('step 1')\n"
        "if os.environ['TRAINCHART_STRATEGY'] == 'parameter-server' and os.environ['TASK_TYPE'] in ('worker', 'ps'):\n"
        "    signal.pause()\n"
    ),
}
PACK = b"apiVersion: trainchart/v1\nkind: Pack\nname: shown\nversion: 0.1.0\n"
BASE = """\
apiVersion: trainchart/v1
kind: Model
name: base
description: A base for fragments.
image: {repository: registry.example.com/base, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: single
"""


def _load_blocks() -> ModuleType:
    # Test modules are imported by path (importmode=importlib), so siblings are not importable by name.
    import importlib.util

    spec = importlib.util.spec_from_file_location("docs_blocks", HERE / "blocks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["docs_blocks"] = module
    spec.loader.exec_module(module)
    return module


blocks = _load_blocks()
GUIDES = {guide.name: blocks.read_guide(guide) for guide in blocks.GUIDES}


@pytest.fixture
def follow(
    tmp_path: Path, helm4: Path, copy_sources: Callable[..., Path]
) -> Iterator[Callable[[str], subprocess.CompletedProcess[str]]]:
    """Return a function that runs a command in a copy of the project, each where the one before it left off."""
    project = copy_sources(tmp_path / "project", "models", "charts", "examples", "Makefile", "pyproject.toml")
    for name, text in PROPS.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "helm").symlink_to(helm4)
    for name, words in (("trainchart", "-m trainchart"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (programs / name).chmod(0o755)
    place = tmp_path / "place"
    place.write_text(str(project))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    environment |= {"HOME": str(tmp_path), "PATH": f"{programs}:{os.environ['PATH']}", "NO_COLOR": "1"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        script = f'cd "$(cat {place})" && {{ {command}\n}} && pwd > {place}'
        return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)

    assert run("trainchart package charts/mnist -d .").returncode == 0
    yield run


# The command reference alone has a hundred commands, each a process.
@pytest.mark.timeout(900)
@pytest.mark.tensorflow
@pytest.mark.parametrize("guide", [name for name, items in GUIDES.items() if items])
def test_a_guide_can_be_followed(
    guide: str, follow: Callable[[str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for item in GUIDES[guide]:
        if isinstance(item, blocks.Command):
            done = follow(INSTEAD.get(item.text, item.text))
            printed = done.stdout + done.stderr
            is_refused = item.text.endswith(blocks.REFUSED)
            assert (done.returncode != 0) == is_refused, f"{guide}:{item.line}: {item.text}\n{printed}"
            for line in item.output:
                assert line in printed, f"{guide}:{item.line}: {item.text} does not print {line!r} but\n{printed}"
        elif named := re.match(r"(?:<%)?# (\S+\.(?:py|yaml|tpl))(?: %>)?\n", item.text):
            path = Path((tmp_path / "place").read_text().strip(), named[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(item.text)


BLOCKS = [
    pytest.param(item, id=f"{name}:{item.line}")
    for name, items in GUIDES.items()
    for item in items
    if isinstance(item, blocks.Block)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_what_its_language_says(block: object) -> None:
    language, text = block.language, block.text  # type: ignore[attr-defined]
    if language == "python":
        ast.parse(textwrap.dedent(text))
    elif language == "yaml":
        told = yaml.safe_load(text) or {}
        if told.get("kind") == "Project":
            parse_project_file(text, "block.yaml")
            return
        if "receivers" in told:
            return  # tests/monitoring/test_alerts.py starts an Alertmanager with it
        if told.get("kind") == "TFJob":
            assert read_trainings(text, "block.yaml")
            return
        if told.get("kind") == "Family":
            parse_family({"family.yaml": text.encode()}, "shown", "shown", "the guide")
            return
        if told.get("kind") == "Chart":
            complete_chart(Path("block.yaml"), text, parse_document(text, file="block.yaml", layer="model spec"), ())
            return
        if set(told) == {"families"}:
            parse_pack({"pack.yaml": PACK, "defaults.yaml": text.encode()}, "block")
            return
        if text.startswith("# packs/"):
            return  # the guide writes it, and checks the pack
        # A fragment shows some keys of a spec: they must hold in one that is whole.
        whole = told if "kind" in told else {**yaml.safe_load(BASE), **told}
        name, defaults = read_builtin_defaults()
        layer = parse_document(defaults, file=name, layer=BUILTIN_LAYER)
        resolve(parse_document(yaml.safe_dump(whole), file="block.yaml", layer="model spec"), [layer])
    elif language == "json":
        json.loads(text)
    else:
        assert language in ("", "text"), f"nothing checks {language} blocks"


def test_the_tutorial_shows_the_spec_that_init_writes(
    follow: Callable[[str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    items = GUIDES["tutorial-own-script.md"]
    script, shown = (
        next(item.text for item in items if getattr(item, "language", "") == x) for x in ("python", "yaml")
    )
    (tmp_path / "project" / "net" / "train.py").write_text(script)
    assert follow("trainchart init net --from-script net/train.py").returncode == 0
    written = yaml.safe_load((tmp_path / "project" / "models" / "net.yaml").read_text())
    assert yaml.safe_load(shown).items() <= written.items()


def test_the_schema_comment_is_the_one_that_init_writes(
    follow: Callable[[str], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    written = (item for item in GUIDES["editor-and-shell.md"] if isinstance(item, blocks.Block))
    (shown,) = (item.text for item in written if item.language == "yaml")
    assert follow("trainchart init new").returncode == 0
    spec = tmp_path / "project" / "models" / "new.yaml"
    assert spec.read_text().startswith(shown)
    assert (spec.parent / shown.strip().rpartition("=")[2]).is_file()


def test_only_what_must_be_is_replaced() -> None:
    said = [item.text for items in GUIDES.values() for item in items if isinstance(item, blocks.Command)]
    assert set(INSTEAD) <= set(said), "an exception that no guide needs any more"
    assert len(INSTEAD) == 111, "an exception more or less: think twice, then change this number"


def _find_in_prose(guide: Path) -> Iterator[list[str]]:
    """Yield the words of each `trainchart COMMAND …` in running text that says on what."""
    prose = re.sub(r"^```.*?^```$", "", guide.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for typed in re.findall(r"`trainchart ([^`>]+)", prose):
        words = shlex.split(typed.partition("&&")[0])
        is_whole = not {"[OPTIONS]", "…", "COMMAND"} & {*words}
        if is_whole and len([word for word in words if not word.startswith("-")]) > 1 + (words[0] == "image"):
            yield words


def test_a_command_in_running_text_has_all_that_it_needs() -> None:
    group: Any = typer.main.get_command(app)
    for guide in blocks.GUIDES:
        for words in _find_in_prose(guide):
            with group.make_context("trainchart", list(words)) as context:
                name, command, rest = group.resolve_command(context, words)
            while hasattr(command, "commands"):
                name, command, rest = command.resolve_command(context, rest)
            try:
                command.make_context(name, rest, parent=context)
            except click.exceptions.UsageError as error:
                pytest.fail(f"{guide.name}: trainchart {shlex.join(words)}: {error.format_message()}")


def test_links_lead_somewhere() -> None:
    for guide in _all_pages():
        for target, anchor in _list_links(guide):
            page = guide.parent / target if target else guide
            assert page.exists(), f"{guide.name} links {target}"
            assert not anchor or anchor in _list_anchors(page), f"{guide.name} links {target}#{anchor}"


def test_every_page_is_listed_in_the_overview() -> None:
    docs = blocks.OVERVIEW.parent
    listed = {(docs / target).resolve() for target, _ in _list_links(blocks.OVERVIEW)}
    assert {*docs.rglob("*.md")} - {blocks.OVERVIEW} <= listed


def _all_pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]


def _list_links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the anchor of each link to a file of the project."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http:", "https:")):
            path, _, anchor = target.partition("#")
            yield path, anchor


def _list_anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
