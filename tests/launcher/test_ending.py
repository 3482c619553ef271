"""How a program's end becomes exit code and termination message, restarts, and giving up."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from trainchart_runtime import causes, contract
from trainchart_runtime.restart import Attempts

COUNT = "print('x', file=open('attempts', 'a'))\n"
PEER_LOST = "raise ConnectionResetError('Connection reset by peer')\n"


@pytest.mark.parametrize(
    ("program", "code", "by_signal", "cause"),
    [
        ("import sys; sys.exit(3)", 3, None, "program-exit"),
        ("raise KeyError('x')", 1, None, "program-error"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, signal.SIGKILL, "killed"),
        ("import os; os.abort()", 134, signal.SIGABRT, "crashed"),
        ("import tensorflow_of_tomorrow", 1, None, "module-missing"),
        ("def", 1, None, "syntax-error"),
        ("raise MemoryError", 1, None, "out-of-memory"),
        ("open('/dev/full', 'wb', 0).write(b'x')", 1, None, "disk-full"),
        ("import argparse; argparse.ArgumentParser().parse_args(['--x'])", 2, None, "bad-arguments"),
    ],
)
def test_an_end_is_passed_on_and_explained(pod, program, code, by_signal, cause):
    assert pod.run(program)[0] == code
    message = pod.message
    assert (message.cause, message.exit_code, message.signal) == (cause, code, by_signal)
    assert (message.task_type, message.task_index, message.run_id) == ("worker", 1, "run-1")
    assert (message.attempt, message.own_failures, message.peer_failures) == (1, 1, 0)
    assert message.finished_at > message.started_at > 1.6e9
    assert message.finished_at % 1


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("no-such-program", "x"), 127, "cannot start 'no-such-program': no such program in PATH"),
        (("/no/such/program", "x"), 127, "cannot start '/no/such/program': no such program"),
        (("/dev/null", "x"), 126, "cannot start '/dev/null': Permission denied"),
        (("python3", "/no/such/train.py"), 2, "can't open file"),
        (("python3", "-m", "no_such_package.train"), 1, "no_such_package"),
    ],
)
def test_a_missing_program_is_named_and_not_tried_again(make_pod, command, code, words):
    pod = make_pod(variables={contract.MAX_RESTARTS: "5"})
    found, _, stderr = pod.run(*command)
    assert found == code
    assert words in stderr
    assert (pod.message.cause, pod.message.attempt) == ("program-missing", 1)
    assert words in pod.message.error


NAMED = "its first line names the interpreter"


@pytest.mark.parametrize(
    ("content", "mode", "code", "words"),
    [
        (b"#!/bin/sh\r\necho\r\n", 0o755, 127, f"{NAMED} '/bin/sh\\r', which does not exist: the file has Windows"),
        (b"#! /no/python2 -u\necho\n", 0o755, 127, f"{NAMED} '/no/python2', which does not exist in this image"),
        (b"#!/no/python2", 0o755, 127, f"{NAMED} '/no/python2', which does not exist in this image"),
        (b"#!/dev/null\n", 0o755, 126, f"Permission denied: {NAMED} '/dev/null', which cannot be executed"),
        (b"#!/bin/sh\n", 0o644, 126, "Permission denied: the file is not executable (mode 0644)"),
        (b"", 0o755, 126, "the file is empty"),
        (b"echo x\n", 0o755, 126, "its first line names no interpreter, such as #!/bin/sh"),
        (b"\xef\xbb\xbf#!/bin/sh\n", 0o755, 126, "the file begins with a byte order mark (BOM)"),
    ],
)
@pytest.mark.parametrize("in_path", [False, True])
def test_refused_script_says_what_it_lacks(pod, content, mode, code, words, in_path):
    script = pod.folder / "train.sh"
    script.write_bytes(content)
    script.chmod(mode)
    named = f"'train.sh' ({script})" if in_path else f"'{script}'"
    pod.variables["PATH"] = f"/no/such/folder:{pod.folder}"
    assert pod.run("train.sh" if in_path else str(script), "x")[0] == code
    assert pod.message.cause == "program-missing"
    assert pod.message.error.startswith(f"cannot start {named}: {words}")


@pytest.mark.parametrize(
    ("name", "code", "cause", "words"),
    [
        ("folder", 126, "program-missing", "it is a folder"),
        ("link", 127, "program-missing", "it is a link to 'nowhere', which does not exist"),
        ("binary", 126, "wrong-architecture", "Exec format error"),
    ],
)
def test_refused_folder_link_or_binary_is_named(pod, name, code, cause, words):
    (pod.folder / "folder").mkdir()
    (pod.folder / "link").symlink_to("nowhere")
    (pod.folder / "binary").write_bytes(b"\x7fELF\0\0\0")
    (pod.folder / "binary").chmod(0o755)
    assert pod.run(f"./{name}", "x")[0] == code
    assert (pod.message.cause, pod.message.error) == (cause, f"cannot start './{name}': {words}")


def test_local_launcher_says_what_a_script_lacks(pod):
    script = pod.folder / "train.sh"
    script.write_bytes(b"#!/bin/sh\r\necho\r\n")
    script.chmod(0o755)
    pod.variables[contract.LOCAL_PARENT] = str(os.getpid())
    assert pod.run(str(script), "x")[0] == 126
    assert pod.message.error.startswith(f"cannot start '{script}': {NAMED} '/bin/sh\\r'")


def test_a_file_that_is_not_permitted_is_told_with_its_owner(pod):
    folder = pod.folder / "run"
    folder.mkdir(mode=0o700)
    assert pod.run(f"raise PermissionError(13, 'Permission denied', {str(folder / 'a' / 'model.json')!r})")[0] == 1
    assert pod.message.cause == "permission-denied"
    owner = f"({folder} belongs to {os.geteuid()}:{os.getegid()}, mode 0700; the program runs as {os.geteuid()}:"
    assert owner in pod.message.error


def test_step_and_metrics_are_in_the_message(pod):
    program = (
        "import json, os\n"
        "report = {'step': 40, 'examples_per_second': 5.5, 'metrics': {'accuracy': 0.96}}\n"
        "open(os.environ['TRAINCHART_PROGRESS_FILE'], 'w').write(json.dumps(report))\n"
        "print('done')"
    )
    assert pod.run(program)[0] == 0
    assert (pod.message.step, pod.message.metrics, pod.message.lines) == (40, {"accuracy": 0.96}, ("done",))


def test_own_faults_are_restarted_in_place_up_to_the_budget(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "2"})
    code, _, stderr = pod.run(COUNT + "raise ValueError(len(open('attempts').readlines()))")
    assert (code, pod.attempts()) == (1, 3)
    assert "starting again in 0.2 s" in stderr and "starting again in 0.4 s" in stderr
    assert "giving up: failures: 3, restarts allowed: 2" in stderr
    assert (pod.message.attempt, pod.message.own_failures) == (3, 3)


def test_same_error_at_the_same_step_is_final(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "5"})
    code, _, stderr = pod.run(COUNT + "open('no-such-file')")
    assert (code, pod.attempts(), pod.message.cause) == (1, 2, "file-missing")
    assert "giving up: the same error occurred 2 times in a row, at the same step" in stderr


def test_same_error_at_a_later_step_is_started_again(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "2"})
    step = "import os\nstep = len(open('attempts').readlines())\n"
    report = "open(os.environ['TRAINCHART_PROGRESS_FILE'], 'w').write('{\"step\": %d}' % step)\n"
    assert pod.run(COUNT + step + report + "raise KeyError('x')")[0] == 1
    assert pod.attempts() == 3


def test_a_program_that_recovers_has_succeeded(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "1"})
    code, stdout, _ = pod.run(
        "import os, sys\nprint(os.environ['TRAINCHART_ATTEMPT'])\nsys.exit(os.environ['TRAINCHART_ATTEMPT'] == '1')"
    )
    assert (code, stdout) == (0, "1\n2\n")
    assert (pod.message.cause, pod.message.attempt, pod.message.own_failures) == ("succeeded", 2, 1)


@pytest.mark.parametrize("loss", [PEER_LOST, "raise SystemExit(75)"])
def test_lost_peers_do_not_touch_the_budget(pod, loss):
    code, _, _ = pod.run(COUNT + f"if len(open('attempts').readlines()) < 3:\n    {loss}")
    assert (code, pod.attempts()) == (0, 3)
    assert (pod.message.own_failures, pod.message.peer_failures) == (0, 2)


def test_having_given_up_outlives_the_container(pod):
    program = COUNT + "raise SystemExit(9)"
    assert pod.run(program)[0] == 9
    first = pod.message
    (pod.folder / "termination").unlink()
    process = pod.start(program)
    # It stays for a while, so that the log of the one before it can be read, but not for those who want it to end.
    pod.wait_for_file("termination")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=10)
    assert (process.returncode, pod.attempts()) == (9, 1)
    assert pod.message == first
    assert "gave up on this run before (program-exit)" in stderr.decode()


def test_half_a_character_in_what_is_kept_does_no_harm(pod):
    program = COUNT + "raise SystemExit(9)"
    assert pod.run(program)[0] == 9
    kept = pod.folder / "state" / "outcome.json"
    kept.write_text(kept.read_text().replace("program-exit", "program-exit\\ud800", 1))
    (pod.folder / "termination").unlink()
    process = pod.start(program)
    pod.wait_for_file("termination")
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=10)
    assert "Traceback" not in stderr.decode() and process.returncode != 70


def test_another_run_starts_with_a_fresh_budget(pod):
    program = COUNT + "raise SystemExit(9)"
    assert pod.run(program)[0] == 9
    pod.variables[contract.RUN_ID] = "run-2"
    assert pod.run(program)[0] == 9
    assert pod.attempts() == 2
    assert (pod.message.run_id, pod.message.attempt) == ("run-2", 1)


def test_a_launcher_killed_with_its_program_counts_as_a_failure(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "1"})
    program = COUNT + "import os, time\nprint(os.getpid(), file=open('pid', 'w'), flush=True)\ntime.sleep(60)"
    for _ in range(2):
        (pod.folder / "pid").unlink(missing_ok=True)
        process = pod.start(program)
        pid = int(pod.wait_for_file("pid"))
        process.kill()
        process.wait()
        # In a container the program dies with its launcher.
        pod.kill(pid)
    code, _, stderr = pod.run(program)
    assert (code, pod.attempts()) == (137, 2)
    assert (pod.message.cause, pod.message.own_failures) == ("killed", 2), stderr


def test_a_watchdog_ends_a_program_that_reports_no_more(make_pod):
    pod = make_pod(variables={contract.NO_PROGRESS_SECONDS: "0.4"})
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "open(os.environ['TRAINCHART_PROGRESS_FILE'], 'w').write('{\"step\": 7}')\n"
        "time.sleep(60)"
    )
    assert pod.run(program)[0] == 1
    assert (pod.message.cause, pod.message.step) == ("no-progress", 7)


def test_last_lines_are_left_without_tokens(pod):
    assert pod.run("raise ValueError(b'Bearer tk-4411-please')")[0] == 1
    assert pod.message.error == "ValueError: b'Bearer ***'"
    assert pod.message.lines[-1] == "ValueError: b'Bearer ***'"


def test_watchdog_ends_later_start_that_hangs_before_reporting(make_pod):
    pod = make_pod(variables={contract.NO_PROGRESS_SECONDS: "0.4", contract.MAX_RESTARTS: "1"})
    program = (
        "import os, time\n"
        "if os.environ['TRAINCHART_ATTEMPT'] == '2': time.sleep(60)\n"
        "open(os.environ['TRAINCHART_PROGRESS_FILE'], 'w').write('{\"step\": 7}')\n"
        "raise SystemExit(9)"
    )
    assert pod.run(program)[0] == 143
    assert (pod.message.cause, pod.message.attempt, pod.message.step) == ("no-progress", 2, 7)


def test_a_watchdog_leaves_programs_alone_that_never_report(make_pod):
    pod = make_pod(variables={contract.NO_PROGRESS_SECONDS: "0.2"})
    assert pod.run("import time; time.sleep(1)")[0] == 0


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_no_message_is_written_into_a_pipe_or_through_a_link(make_pod, kind):
    pod = make_pod()
    program = (
        f"import os; path = {str(pod.folder / 'termination')!r}; open(path + '.other', 'w').write('precious')\n"
        f"os.mkfifo(path) if {kind == 'pipe'} else os.symlink(path + '.other', path)"
    )
    code, _, stderr = pod.run(program)
    assert code == 0
    assert "cannot write the termination message: [Errno 22] " in stderr
    assert (pod.folder / "termination.other").read_text() == "precious"


def test_an_unwritable_state_folder_costs_no_training(make_pod):
    pod = make_pod(variables={contract.STATE_DIR: "/proc/nowhere", contract.TERMINATION_FILE: "/proc/nowhere"})
    code, stdout, stderr = pod.run("print('trained')")
    assert (code, stdout) == (0, "trained\n")
    assert "cannot write /proc/nowhere/attempts.json, continuing without it" in stderr
    assert "cannot write the termination message" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"runId": "run-1", "started": "x"}', '{"runId": "run-1"}', "\x00\xff"]
)
@pytest.mark.parametrize("name", ["attempts.json", "outcome.json"])
def test_damaged_state_is_as_none(pod, name, damage):
    (pod.folder / "state").mkdir()
    (pod.folder / "state" / name).write_text(damage)
    code, stdout, stderr = pod.run("echo", "trained")
    assert (code, stdout) == (0, "trained\n")
    assert "Traceback" not in stderr


@pytest.mark.parametrize("number", ["-1", "9" * 400, f"-{10**400}", "1e400", str(2**31)])
@pytest.mark.parametrize("field", ["started", "failures_in_a_row", "own_failures"])
def test_counts_that_cannot_be_are_as_none(pod, field, number):
    counts = {name: value for name, value in Attempts(started=1)._asdict().items() if name != field}
    document = json.dumps({"runId": "run-1", "running": True, **counts})
    (pod.folder / "state").mkdir()
    (pod.folder / "state" / "attempts.json").write_text(f'{document[:-1]}, "{field}": {number}}}')
    code, stdout, stderr = pod.run("echo", "trained")
    assert (code, stdout) == (0, "trained\n")
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    "words",
    ["'too much: ' + 'x' * 1_500_000", "'too much: ' + 'row\\n' * 300_000", "'too much: 1%\\r2%\\0'"],
    ids=["one endless line", "many lines", "control characters"],
)
def test_the_exceptions_own_line_is_found_however_much_it_says(make_pod, words):
    pod = make_pod(variables={contract.MAX_RESTARTS: "0"})
    assert pod.run(f"print('before')\nraise ValueError({words})")[0] == 1
    assert pod.message.cause == causes.PROGRAM_ERROR.name
    assert pod.message.error.startswith("ValueError: too much: ")
