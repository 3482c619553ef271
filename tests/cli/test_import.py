"""import as a user calls it: what it writes generates and passes checks, and the rest is named with its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.public_inputs import INPUTS
from trainchart.actions.generate import generate_charts
from trainchart.actions.import_ import ImportedModel, ImportRequest, import_models
from trainchart.errors import SpecError, TrainchartError

JOB = INPUTS["one-worker"].text


def trainchart(cwd: Path, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainchart", *arguments],
        cwd=cwd,
        env={**os.environ, "XDG_DATA_HOME": str(cwd / ".data"), "NO_COLOR": "1"},
        input=given,
        capture_output=True,
        text=True,
    )


def import_text(text: str, name: str = "") -> ImportedModel:
    Path("input").write_text(text)
    (model,) = import_models(ImportRequest(Path("input"), name)).models
    return model


@pytest.mark.parametrize("key", INPUTS)
def test_public_inputs_give_specs(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    public = INPUTS[key]
    model = import_text(public.text, public.name)
    spec = yaml.safe_load(model.spec.read_text())
    assert spec["strategy"] == model.strategy == public.strategy
    assert {role: settings["replicas"] for role, settings in spec["roles"].items()} == public.replicas
    assert any(public.says in text for text in (*map(str, model.left), *model.notes))


def test_imported_charts_pass_the_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [import_text(INPUTS[key].text).name for key in ("chief-and-ps", "arena-estimator")]
    done = trainchart(tmp_path, "generate")
    assert done.returncode == 0, done.stderr
    checked = trainchart(tmp_path, "check", *(f"charts/{name}" for name in names))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 errors, 0 warnings" in checked.stdout + checked.stderr


def test_a_job_from_standard_input_is_reported_as_json(tmp_path: Path) -> None:
    done = trainchart(tmp_path, "import", "-", "--name", "digits", "--format", "json", given=JOB)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["files"] == ["models/.trainchart-schema.json", "models/digits.yaml"]
    (model,) = result["models"]
    assert (model["name"], model["kind"], model["strategy"]) == ("digits", "TFJob", "single")
    assert {"source": "Worker.replicas", "target": "roles.worker.replicas"} in model["carried"]
    (clean,) = [left for left in model["left"] if left["what"] == "spec.cleanPodPolicy"]
    assert clean["where"] == "standard input:5"
    spec = yaml.safe_load((tmp_path / "models" / "digits.yaml").read_text())
    assert spec["hyperparameters"]["learningRate"] == {"type": "number", "default": 0.01}
    assert "--batch_size=$(TRAINCHART_HP_BATCH_SIZE)" in spec["code"]["command"]
    assert spec["volumes"] == {"checkpoints": {"existingClaim": "tfevent-volume", "mountPath": "/train"}}


def test_text_says_what_was_carried_over_and_what_was_not(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    done = trainchart(tmp_path, "import", "job.yaml")
    assert done.stdout == "models/.trainchart-schema.json\nmodels/mnist.yaml\n"
    assert "mnist: imported from a TFJob, strategy single" in done.stderr
    assert "  Worker.replicas → roles.worker.replicas" in done.stderr
    assert "  job.yaml:5: spec.cleanPodPolicy: a finished run frees all pods and their GPUs; " in done.stderr
    assert "TF_CONFIG comes from the launcher" in done.stderr
    assert done.stderr.endswith("next: trainchart generate mnist\n")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mnist.yaml").write_text("mine\n")
    done = trainchart(tmp_path, "import", "job.yaml")
    assert done.returncode == 7
    assert "never overwritten" in done.stderr
    assert (tmp_path / "models" / "mnist.yaml").read_text() == "mine\n"


def test_several_jobs_become_one_spec_each(tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(JOB + "---\n" + INPUTS["keras-workers"].text)
    named = trainchart(tmp_path, "import", "jobs.yaml", "--name", "both")
    assert named.returncode == 2
    assert "the input holds 2 training jobs (mnist, multi-worker), and --name can name only one" in named.stderr
    done = trainchart(tmp_path, "import", "jobs.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == ["models/mnist.yaml", "models/multi-worker.yaml"]


def test_packs_say_which_runtime_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pack").mkdir()
    head = "apiVersion: trainchart/v1\nkind: "
    Path("trainchart.yaml").write_text(f"{head}Project\nextends: [pack]\n")
    Path("pack/pack.yaml").write_text(f"{head}Pack\nname: ours\nversion: 0.1.0\ndescription: Ours.\n")
    Path("pack/defaults.yaml").write_text('run: {controller: {image: "registry.corp/runtime:1.2.0"}}\n')
    model = import_text(JOB)
    assert "controller" not in yaml.safe_load(model.spec.read_text())["run"]
    assert not any("runtime image" in note for note in model.notes)


def test_the_code_shows_the_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("code").mkdir()
    Path("code/mnist_with_summaries.py").write_text("import tensorflow as tf\ntf.distribute.MirroredStrategy()\n")
    Path("job.yaml").write_text(JOB)
    (model,) = import_models(ImportRequest(Path("job.yaml"), code=Path("code"))).models
    spec = yaml.safe_load(model.spec.read_text())
    assert (model.strategy, spec["code"]["path"]) == ("mirrored", "code")
    assert spec["code"]["command"][:2] == ["python", "mnist_with_summaries.py"]
    assert "the strategy is mirrored, which the code in code uses" in model.notes


def test_a_chart_needs_the_code_only_where_it_is_built_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = import_text(INPUTS["chart-values"].text, "digits").spec
    assert [chart.name for chart in generate_charts((spec,), Path("charts"), overwrite=False)] == ["digits"]
    spec.write_text(spec.read_text().replace("injectLauncher: true", "injectLauncher: false"))
    with pytest.raises(SpecError, match="the training code is not there"):
        generate_charts((spec,), Path("charts"), overwrite=False)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("", 7, "it is empty"),
        ("a: [", 7, "input:2"),
        ("kind: Deployment\nmetadata: {name: x}", 7, "it contains Deployment"),
        ("kind: PyTorchJob", 7, "trains with PyTorch"),
        ("name: {{ .Release.Name }}", 7, "render it first"),
        ("kind: TFJob\nspec: {replicaSpecs: []}", 7, "as in v1alpha1"),
        ("arena submit mpijob --name x 'run'", 7, "arena submit mpijob is not a TensorFlow job"),
        ("arena submit tf --name 'x", 7, "no closing quotation"),
        ("arena submit tf" + " -e A=B" * 10_000, 7, "longer than 65536 characters"),
        ("arena list \\\n" * 30_000, 7, "more than 200 arena command lines"),
        (INPUTS["chart-values"].text, 2, "has no name"),
        ("---\n".join(JOB.replace("mnist,", f"m{n},") for n in range(101)), 2, "at most 100 are imported at once"),
        (JOB.replace("{name: mnist,", "{name: '***',"), 2, "'***' cannot be a model's name"),
    ],
)
def test_bad_input_is_an_error_with_a_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TrainchartError) as refusal:
        import_text(text)
    error = refusal.value
    assert error.exit_code == code
    assert error.hint
    assert says in "; ".join((error.message, error.hint, *map(str, error.problems)))
    assert not (tmp_path / "models").exists()
