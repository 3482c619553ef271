"""The example organisation, taken through what happens to one: updates, attacks on locked values, waivers that end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import trainchart.actions.support.models
from tests.support.commands import invoke, refuse
from trainchart.resources import read_family

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "organisation"
MODELS = ("classify", "detect", "embed", "ranker", "segment")
POLICY = Path("packs/platform/policy.yaml")
POD_TEMPLATE = "templates/_pod_template.tpl"


@pytest.fixture(autouse=True)
def organisation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "organisation"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("charts"))
    monkeypatch.chdir(folder)
    return folder


def succeed(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def replace(path: str | Path, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


def test_all_charts_are_generated_and_pass_every_check() -> None:
    succeed("pack", "check")
    succeed("generate")
    charts = sorted(path.name for path in Path("charts").iterdir())
    assert charts == sorted((*MODELS, "nightly-classify", "tenant-ranking", "tenant-vision"))
    succeed("check", *(f"charts/{chart}" for chart in charts))


def test_an_update_of_a_pack_is_shown_once_for_all_charts() -> None:
    succeed("generate")
    replace("packs/platform/templates/_pod_template.tpl", "http://proxy.acme", "https://proxy.acme")
    replace("packs/platform/pack.yaml", "1.4.0", "1.5.0")
    shown = invoke("upgrade", "--check").output
    assert shown.count("+ https://proxy.acme.example:3128") == 1
    assert "https://proxy" not in Path("charts/classify", POD_TEMPLATE).read_text()
    succeed("upgrade")
    for model in MODELS:
        assert "https://proxy.acme.example" in Path("charts", model, POD_TEMPLATE).read_text()
    succeed("generate", "--check")


def test_a_change_of_our_templates_below_an_override_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("generate")
    family = dict(read_family("training-job"))
    family[POD_TEMPLATE] = family[POD_TEMPLATE].replace(
        "<% block training_env %>\n", "<% block training_env %>\n# new\n"
    )
    monkeypatch.setattr(trainchart.actions.support.models, "read_family", lambda name: family)
    (problem,) = refuse("generate", "--no-cache").problems
    assert problem.message.startswith("the overridden block training_env has changed")
    assert "    | # new" in problem.message
    assert problem.hint.endswith("trainchart pack accept packs/platform")


def test_a_block_of_another_name_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    family = dict(read_family("training-job"))
    family[POD_TEMPLATE] = family[POD_TEMPLATE].replace("block training_env", "block training_environment")
    monkeypatch.setattr(trainchart.actions.support.models, "read_family", lambda name: family)
    (problem,) = refuse("generate").problems
    assert problem.message == "unknown block training_env"
    assert problem.hint == "did you mean training_environment?"
    assert problem.where.startswith("packs/platform/templates/_pod_template.tpl:")


def test_a_spec_cannot_override_a_locked_value() -> None:
    with Path("models/classify.yaml").open("a") as spec:
        spec.write("run: {controller: {image: 'registry.acme.example/mine:1'}}\n")
    assert refuse("generate").problems[0].where.startswith("models/classify.yaml:")
    assert not Path("charts").exists()


def test_another_pack_cannot_override_a_locked_value() -> None:
    with Path("packs/vision/defaults.yaml").open("a") as defaults:
        defaults.write("run: {controller: {image: 'registry.acme.example/mine:1'}}\n")
    assert refuse("generate").problems[0].where.startswith("packs/vision/defaults.yaml:")


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("run.controller.image=registry.acme.example/mine:1", "image"),
        ("roles.worker.gpus=5", "gpus"),
        ("volumes.checkpoints.storageClass=local-path", "storageClass"),
    ],
)
def test_values_given_to_helm_cannot_break_a_lock(setting: str, key: str, helm3: Path, helm4: Path) -> None:
    succeed("generate", "classify")
    path, value = setting.split("=")
    nested = "".join(f"{part}: {{" for part in path.split(".")[:-1])
    Path("mine.yaml").write_text(f"{nested}{path.split('.')[-1]}: {value}{'}' * path.count('.')}\n")
    for helm in (helm3, helm4):
        for given in (("--set", setting), ("-f", "mine.yaml")):
            refused = subprocess.run(
                [helm, "template", "exp-1", "charts/classify", "--kube-version=1.36", *given],
                capture_output=True,
                text=True,
                check=False,
            )
            assert refused.returncode != 0
            assert key in refused.stderr


def test_an_edited_manifest_breaks_a_rule(helm3: Path) -> None:
    succeed("generate", "classify")
    shown = subprocess.run(
        [helm3, "template", "exp-1", "charts/classify", "--kube-version=1.36"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    Path("edited.yaml").write_text(shown.replace("registry.acme.example/ml/classify", "registry.example.com/mine"))
    result = invoke("check", "edited.yaml", "--select", "pack-policy")
    assert result.exit_code != 0
    assert "the rule registries of pack platform 1.4.0" in result.output


def test_an_expired_waiver_has_no_effect() -> None:
    succeed("generate", "ranker")
    succeed("check", "charts/ranker", "--select", "pack-policy")
    replace(POLICY, "until: 2099-03-31", "until: 2020-03-31")
    assert "ranking@acme.example" in str(refuse("pack", "check").problems[0])
    result = invoke("check", "charts/ranker", "--select", "pack-policy")
    assert result.exit_code != 0
    assert "the waiver of ranking@acme.example ended on 2020-03-31" in result.output


def test_a_waiver_is_for_its_model_alone() -> None:
    replace("models/embed.yaml", "registry.acme.example", "registry.example.com")
    succeed("generate", "embed")
    assert invoke("check", "charts/embed", "--select", "pack-policy").exit_code != 0
