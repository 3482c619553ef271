"""trainchart doctor without a cluster: this machine, and what is wrong with the command itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import call
from trainchart.cli import doctor
from trainchart.doctor.result import Result

ROOT = Path(__file__).parent.parent.parent
MODERN = 'echo "3.12 2.21.0"'


def make_python(folder: Path, script: str) -> str:
    """Make a program that stands in for a Python."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def examine(*arguments: str, code: int = 0) -> dict[str, tuple[str, str]]:
    done = call(ROOT, "doctor", "--format=json", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return {each["check"]: (each["outcome"], each["message"]) for each in json.loads(done.stdout)["results"]}


def test_this_machine_is_examined() -> None:
    found = examine()
    assert list(found) == ["python", "tensorflow", "helm", "disk", "memory", "ports", "builder"]
    assert {found[check][0] for check in ("python", "tensorflow", "helm", "ports")} == {"ok"}


def test_a_line_break_in_a_name_makes_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    doctor._print(Result("storage", "ok", "the class a\nok       rights: yes", "use b\nFAILED   c"))
    assert capsys.readouterr().out == (
        "ok       storage: the class a\n         ok       rights: yes\n         hint: use b\n         FAILED   c\n"
    )


def test_text_marks_what_is_not_ok(tmp_path: Path) -> None:
    done = call(ROOT, "doctor", "--python", make_python(tmp_path, 'echo "3.7 2.5.0"'))
    assert done.returncode == 6
    assert "\nok       tensorflow: TensorFlow 2.5.0\n" in done.stdout
    assert done.stdout.startswith("FAILED   python: Python 3.7 ")
    assert "         hint: the launcher needs 3.8\n" in done.stdout
    assert "checks failed" in done.stderr


@pytest.mark.parametrize(
    ("script", "check", "outcome", "words"),
    [
        ('echo "3.12 -"', "tensorflow", "warning", "has no TensorFlow"),
        ("echo broken >&2; exit 3", "python", "failed", "fails: broken"),
        (MODERN, "tensorflow", "ok", "TensorFlow 2.21.0"),
    ],
)
def test_a_python_is_examined(tmp_path: Path, script: str, check: str, outcome: str, words: str) -> None:
    found = examine("--python", make_python(tmp_path, script), code=6 if outcome == "failed" else 0)
    assert found[check][0] == outcome
    assert words in found[check][1]


def test_no_module_of_the_current_folder_is_run(tmp_path: Path) -> None:
    for module in ("csv", "email", "functools", "importlib", "tensorflow"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'witness')!r}, 'w')\n")
    done = call(tmp_path, "doctor")
    assert not (tmp_path / "witness").exists()
    assert "ok       python: " in done.stdout, done.stdout


def test_a_python_that_is_not_there_is_named() -> None:
    assert "/none/python does not run" in examine("--python", "/none/python", code=6)["python"][1]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    assert examine("--runs-dir", str(tmp_path / "runs"), code=6)["disk"] == ("failed", f"{tmp_path} cannot be written")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("mnist", "--timeout", "soon"), 2, "--timeout"),
        (("mnist", "--timeout", "1"), 2, "expected 10 seconds at least"),
        (("none",), 7, "there is no model, chart or archive 'none'"),
        (("mnist", "--release", "Exp"), 2, "Exp"),
        (("mnist",), 9, "there is no kubeconfig"),
    ],
)
def test_bad_input_is_one_clear_error(
    arguments: tuple[str, ...], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/none/kubeconfig")
    done = call(ROOT, "doctor", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("option", [("-n", "team-a"), ("--context", "lab"), ("--release", "exp1"), ("--set", "a=1")])
def test_what_needs_a_target_is_refused_without_one(option: tuple[str, str]) -> None:
    done = call(ROOT, "doctor", *option)
    assert (done.returncode, done.stdout) == (2, "")
    assert "without a target, doctor examines this machine" in done.stderr
    assert f"trainchart doctor mnist {' '.join(option)}" in done.stderr
