"""`trainchart promote` against a small API: what it refuses, its history, and what it says when it is cut off."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import trainchart.actions.promote as action
from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    make_job,
    make_pods,
    make_record,
    make_sets,
    make_state,
    make_verdict,
)
from tests.small_cluster.helm_records import make_helm_record
from tests.small_cluster.small_api import SmallApi, serve_small_api
from tests.support.command_line import call
from trainchart.actions.support.promotion_watch import Watched
from trainchart.checkpoints.saved_model import SavedModel
from trainchart.cli.app import app
from trainchart.helm.io.upgrade import HelmUpgrade
from trainchart.promotion.record import Model
from trainchart.promotion.rollout import Rollout

FAMILY = Path(__file__).parents[2] / "chart-templates" / "model-server"
HASH = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
CLAIM = "exp1-mnist-checkpoints"
EXPORT = SavedModel(HASH, 300, "", "ml/mnist:1", {"accuracy": 0.93})


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("project")
    (project / "models").mkdir()
    shutil.copy(FAMILY / "tests" / "digits-prod.yaml", project / "models" / "digits-prod.yaml")
    assert call(project, "generate", "digits-prod").returncode == 0
    return project / "charts" / "digits-prod"


def make_server_record(chart: Path, revision: int, version: int, status: str = "deployed", **values: Any) -> Any:
    given = {"model": {"version": version, "content": HASH, "claim": CLAIM}, **values}
    return make_helm_record(chart, "digits", NAMESPACE, given, status=status, revision=revision)


def record_of(version: int, by: str = "alice", **more: Any) -> dict[str, Any]:
    model = {"version": version, "content": HASH, "claim": CLAIM, "path": "saved_model"}
    source = {"release": "exp1", "step": version, "metrics": {"accuracy": 0.9}}
    return {"promotion": {"at": "2026-11-28T18:00:00Z", "by": by, "model": model, "from": source, **more}}


@pytest.fixture
def api(chart: Path) -> Iterator[SmallApi]:
    """A server that serves version 200, and exp1, whose run has succeeded."""
    with serve_small_api() as server:
        server.objects = {
            "statefulsets": make_sets(0),
            "jobs": [make_job("Complete")],
            "configmaps": [make_record(make_state("Succeeded", verdict=make_verdict("Succeeded")))],
            "secrets": [make_server_record(chart, 1, 200)],
        }
        yield server


def run_to(api: SmallApi, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment = {**kept, "KUBECONFIG": str(api.write_kubeconfig(folder / "kubeconfig"))}
    return call(folder, "promote", *arguments, environment=environment)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name the model server: --to SERVER"),
        (("--to", "digits"), "name the release to promote, or add --rollback or --history"),
        (("exp1", "--to", "digits", "--rollback"), "cannot be combined with a release, gate, step or version"),
        (("--to", "digits", "--rollback", "--history"), "--rollback and --history cannot be used together"),
        (("exp1", "--to", "digits", "--gate", "accuracy=1"), "'accuracy=1' is not a gate; write 'accuracy>=0.9'"),
        (("exp1", "--to", "digits", "--timeout", "soon"), "'soon' is not a duration such as 30m"),
        (("exp1", "--to", ""), "is a variable unset?"),
    ],
)
def test_what_is_meant_must_be_clear(arguments: tuple[str, ...], words: str) -> None:
    done = CliRunner().invoke(app, ["promote", *arguments])
    assert done.exit_code == 2
    assert words in " ".join(done.output.replace("│", " ").split())


def test_a_server_that_is_missing_or_elsewhere(api: SmallApi, tmp_path: Path) -> None:
    api.objects["secrets"] = []
    done = run_to(api, tmp_path, "exp1", "--to", "digits")
    assert done.returncode == 9
    assert "Helm knows no release digits in namespace team-a" in done.stderr
    assert "install one first: trainchart init NAME --family model-server" in done.stderr
    labels = {"app.kubernetes.io/component": "model-server", "app.kubernetes.io/instance": "digits"}
    api.objects["deployments"] = [{"metadata": {"name": "digits", "namespace": "shop", "labels": labels}}]
    assert (
        "it is in shop; pods can only mount claims of their own"
        in run_to(api, tmp_path, "exp1", "--to", "digits").stderr
    )
    labels["app.kubernetes.io/instance"] = "letters"
    api.objects["deployments"][0]["metadata"]["namespace"] = NAMESPACE
    assert "model servers there: letters" in run_to(api, tmp_path, "exp1", "--to", "digits").stderr


@pytest.mark.parametrize("name", ["../x", "a,owner", "digits)", "-v", "Digits", "a" * 54])
def test_names_that_no_release_has(api: SmallApi, tmp_path: Path, name: str) -> None:
    done = run_to(api, tmp_path, "exp1", f"--to={name}")
    assert done.returncode == 9
    assert f"{name!r} is not a valid release name" in done.stderr
    assert not api.requests


def test_a_release_that_is_not_a_model_server(api: SmallApi, tmp_path: Path) -> None:
    charts = Path(__file__).parents[2] / "charts"
    api.objects["secrets"] = [make_helm_record(charts / "digits", "exp1", NAMESPACE, {})]
    done = run_to(api, tmp_path, "exp1", "--to", "exp1")
    assert done.returncode == 9
    assert "exp1 is not a model server: its chart digits is not of a chart family" in done.stderr


def test_a_run_that_is_not_over_or_has_failed(api: SmallApi, tmp_path: Path) -> None:
    api.objects |= {"statefulsets": make_sets(), "pods": make_pods(), "configmaps": [], "jobs": []}
    done = run_to(api, tmp_path, "exp1", "--to", "digits")
    assert done.returncode == 9
    assert "the run of exp1 is not over: Running" in done.stderr
    assert "trainchart wait exp1 -n team-a" in done.stderr
    state = make_state("Failed", verdict=make_verdict("Failed"))
    api.objects |= {"statefulsets": make_sets(0), "pods": [], "configmaps": [make_record(state)]}
    done = run_to(api, tmp_path, "exp1", "--to", "digits", "--format", "json")
    assert json.loads(done.stderr)["message"] == "the run of exp1 has not succeeded: Failed"


def test_a_release_that_is_not_there(api: SmallApi, tmp_path: Path) -> None:
    done = run_to(api, tmp_path, "exp9", "--to", "digits")
    assert done.returncode == 9
    assert "there is no training run 'exp9' in namespace team-a" in done.stderr
    assert "the release must be in the namespace of the server, team-a" in done.stderr


def test_a_line_break_in_a_record_makes_no_line(api: SmallApi, chart: Path, tmp_path: Path) -> None:
    record = record_of(300, "bob\n3         2026-11-28T18:00:00Z")
    record["promotion"]["from"]["release"] = "exp1\nerror: forged"
    api.objects["secrets"] = [make_server_record(chart, 2, 300, **record)]
    lines = run_to(api, tmp_path, "--to", "digits", "--history").stdout.splitlines()
    assert len(lines) == 2
    assert "forged" in lines[1]


def test_the_history_as_text_and_json(api: SmallApi, chart: Path, tmp_path: Path) -> None:
    done = run_to(api, tmp_path, "--to", "digits", "--history")
    assert (done.returncode, done.stdout) == (0, "")
    assert "version 200 is served now; it was not promoted" in done.stderr
    back = {"revision": 3, "version": 300, "why": "the pods failed", "promotedAt": "2026-11-28T18:00:00Z"}
    api.objects["secrets"] = [
        make_server_record(chart, 2, 250, "superseded", **record_of(250)),
        make_server_record(chart, 3, 300, "superseded", **record_of(300, by="bob")),
        make_server_record(chart, 4, 250, **record_of(250, rolledBack=back)),
    ]
    shown = run_to(api, tmp_path, "--to", "digits", "--history").stdout.splitlines()
    assert shown[0].split() == ["REVISION", "PROMOTED", "VERSION", "FROM", "BY", "STATE", "METRICS"]
    assert shown[1].split("  ")[-2:] == ["rolled back", "accuracy=0.9"]
    assert shown[2].strip() == "the pods failed"
    assert "250      exp1 step 250  alice  serving" in shown[3]
    entries = json.loads(run_to(api, tmp_path, "--to", "digits", "--history", "--format=json").stdout)
    assert [(each["model"]["version"], each["state"]) for each in entries] == [(300, "rolled back"), (250, "serving")]


def test_there_is_nothing_to_go_back_to(api: SmallApi, tmp_path: Path) -> None:
    done = run_to(api, tmp_path, "--to", "digits", "--rollback")
    assert done.returncode == 9
    assert "digits has no earlier model to roll back to" in done.stderr


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("trainchart promote e", ["exp1"]),
        ("trainchart promote exp1 --to d", ["digits"]),
        ("trainchart promote exp1 -n other --to d", []),
    ],
)
def test_names_that_a_shell_offers(
    api: SmallApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, words: list[str]
) -> None:
    labels = {"app.kubernetes.io/component": "model-server", "app.kubernetes.io/instance": "digits"}
    api.objects["deployments"] = [{"metadata": {"name": "digits", "namespace": NAMESPACE, "labels": labels}}]
    monkeypatch.setenv("KUBECONFIG", str(api.write_kubeconfig(tmp_path / "kubeconfig")))
    number = str(len(typed.split(" ")) - 1)
    environ = {"_TRAINCHART_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": number}
    done = CliRunner().invoke(app, prog_name="trainchart", env=environ)
    assert done.stdout.split() == words
    # A run that has not succeeded has nothing to promote.
    api.objects |= {"statefulsets": make_sets(), "pods": make_pods(), "configmaps": [], "jobs": []}
    if words == ["exp1"]:
        assert CliRunner().invoke(app, prog_name="trainchart", env=environ).stdout.split() == []


class Upgrades(list[HelmUpgrade]):
    """What helm would have been asked for."""

    def keep(self, upgrade: HelmUpgrade, unchanged: HelmUpgrade, stored: object) -> tuple[str, ...]:
        del unchanged, stored
        self.append(upgrade)
        return ()


@pytest.fixture
def upgrades(api: SmallApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upgrades:
    """The command in this process, without helm, the pod that reads the claim, and the pods of the server."""
    made = Upgrades()
    model = Model(300, HASH, CLAIM, "saved_model")
    monkeypatch.setenv("KUBECONFIG", str(api.write_kubeconfig(tmp_path / "kubeconfig")))
    monkeypatch.setattr("trainchart.cli.promote.end_in_order", lambda: None)
    monkeypatch.setattr(action, "_read_export", lambda *_: (EXPORT, model))
    monkeypatch.setattr(action, "read_deployment", lambda *_: ({}, ()))
    monkeypatch.setattr(action, "read_user", lambda _: "alice")
    monkeypatch.setattr(action, "upgrade_and_keep", made.keep)
    monkeypatch.setattr(action, "render_upgrade", lambda _: None)
    monkeypatch.setattr(action, "watch_promotion", lambda *_: Watched())
    monkeypatch.setattr(action, "watch_rollout", lambda *_: (Rollout(2, 2, is_done=True), False))
    return made


def promote(*arguments: str) -> tuple[int, str, str]:
    from trainchart.errors import TrainchartError

    done = CliRunner().invoke(app, ["promote", "--to", "digits", *arguments])
    message = done.exception.message if isinstance(done.exception, TrainchartError) else ""
    code = done.exception.exit_code if isinstance(done.exception, TrainchartError) else done.exit_code
    return code, done.stdout, done.stderr + message


def test_a_promotion_pins_the_model_and_says_what_it_is_from(upgrades: Upgrades) -> None:
    code, printed, progress = promote("exp1", "--gate", "accuracy>=0.9")
    assert (code, printed.splitlines()[-1]) == (
        0,
        "digits serves version 300 instead of version 200 (revision 2)",
    )
    assert "model.version: 200 -> 300" in progress
    (upgrade,) = upgrades
    assert upgrade.values is not None
    assert upgrade.values["model"] == {"version": 300, "content": HASH, "claim": CLAIM, "path": "saved_model"}
    record = upgrade.values["promotion"]
    assert (record["by"], record["gates"]) == ("alice", ["accuracy>=0.9"])
    assert record["from"]["metrics"]["accuracy"] == 0.93
    assert upgrade.description == "trainchart promote: exp1 as version 300"


def test_a_dry_run_changes_nothing(upgrades: Upgrades) -> None:
    code, printed, _ = promote("exp1", "--dry-run", "--format", "json")
    body = json.loads(printed)
    assert (code, body["state"], body["revision"], upgrades) == (0, "planned", None, [])
    assert body["changes"][0] == {"key": "model.version", "before": 200, "after": 300}


def test_a_gate_that_is_not_met_changes_nothing(upgrades: Upgrades) -> None:
    code, _, message = promote("exp1", "--gate", "accuracy>=0.95", "--gate", "accuracy>=0.9")
    assert (code, upgrades) == (6, [])
    assert "exp1 is not promoted to digits: a gate is not met" in message


def test_a_gate_beside_what_was_not_promoted_reads_no_claim(
    upgrades: Upgrades, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action, "_read_export", lambda *_: pytest.fail("it reads the claim"))
    code, _, message = promote("exp1", "--gate", "accuracy>=serving", "--gate", "accuracy>=0.9")
    assert (code, upgrades) == (6, [])
    assert "exp1 is not promoted to digits: a gate is not met" in message


def test_what_serves_already_is_left_alone(upgrades: Upgrades, api: SmallApi, chart: Path) -> None:
    api.objects["secrets"] = [make_server_record(chart, 1, 300)]
    code, printed, _ = promote("exp1")
    assert (code, upgrades) == (0, [])
    assert "digits already serves version 300; nothing was changed" in printed


def test_ctrl_c_during_the_upgrade_says_how_to_go_back(upgrades: Upgrades, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> tuple[str, ...]:
        raise KeyboardInterrupt

    monkeypatch.setattr(action, "upgrade_and_keep", interrupt)
    code, _, said = promote("exp1")
    assert (code != 0, upgrades) == (True, [])
    assert "interrupted while helm upgraded digits; see its state: helm history digits -n team-a" in said
    assert "roll back to version 200: helm rollback digits 1 -n team-a" in said


@pytest.mark.parametrize(("is_late", "code"), [(False, 9), (True, 11)])
def test_a_model_that_fails_is_taken_back(
    upgrades: Upgrades, monkeypatch: pytest.MonkeyPatch, is_late: bool, code: int
) -> None:
    monkeypatch.setattr(action, "watch_promotion", lambda *_: Watched("fetch of a ended", is_late))
    found, _, message = promote("exp1")
    assert found == code
    assert "version 300 does not serve: fetch of a ended. digits was rolled back: version 200 serves again" in message
    _, back = upgrades
    assert back.values is not None
    assert back.values["model"] == {"version": 200, "content": HASH, "claim": CLAIM}
    assert back.values["promotion"]["rolledBack"] | {"at": ""} == {
        "at": "",
        "by": "alice",
        "revision": 2,
        "version": 300,
        "why": "fetch of a ended",
        "promotedAt": upgrades[0].values["promotion"]["at"] if upgrades[0].values else "",
    }
    assert back.description == "trainchart promote: rolled back version 300 of revision 2: fetch of a ended"


def test_ctrl_c_says_what_is_left(upgrades: Upgrades, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> Watched:
        raise KeyboardInterrupt

    monkeypatch.setattr(action, "watch_promotion", interrupt)
    code, _, said = promote("exp1")
    assert code in (1, 130)
    assert len(upgrades) == 1
    assert "revision 2 with version 300 stays installed, and its rollout continues unwatched" in said
    assert "roll back to version 200: trainchart promote --to digits -n team-a --rollback" in said


def test_rollback_brings_back_the_model_alone(upgrades: Upgrades, api: SmallApi, chart: Path) -> None:
    api.objects["secrets"] = [
        make_server_record(chart, 1, 200, "superseded", **record_of(200), replicas=2),
        make_server_record(chart, 2, 300, **record_of(300), replicas=5),
    ]
    code, printed, _ = promote("--rollback")
    assert (code, printed.strip()) == (0, "digits serves version 200 instead of version 300 (revision 3)")
    (upgrade,) = upgrades
    assert upgrade.values is not None
    assert (upgrade.values["model"]["version"], upgrade.values["replicas"]) == (200, 5)
    record = upgrade.values["promotion"]
    assert record["from"]["step"] == 200
    assert (record["rolledBack"]["revision"], record["rolledBack"]["why"]) == (2, "requested with --rollback")
