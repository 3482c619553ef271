"""Two real runs, one of them on a terminal: the curve of its loss, what `list` says of both, and `compare`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent


def start(folder: Path, release: str, loss: str, *options: str, stream: int) -> subprocess.Popen[bytes]:
    role = {"chief": {"replicas": 1, "args": ["descend", loss]}, "worker": {"replicas": 0}, "ps": {"replicas": 0}}
    command = [
        *(sys.executable, "-m", "trainchart", "run", str(_HERE / "charts/trainer"), "--release", release),
        *("--code", str(_HERE / "programs"), f"--set-json=roles={json.dumps(role)}", *options),
    ]
    environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(command, cwd=folder, stdout=stream, stderr=stream, env=environment, start_new_session=True)


def read_terminal(ours: int) -> str:
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the last writer has closed its end
            break
        if not part:
            break
        text += part
    os.close(ours)
    return text.decode()


def call(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "trainchart", *arguments]
    environment = {**{name: value for name, value in os.environ.items() if name != "KUBECONFIG"}, "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_runs_are_watched_listed_and_compared(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    watched = start(tmp_path, "good", "0.5", "--no-color", stream=theirs)
    os.close(theirs)
    log = tmp_path / "log"
    with log.open("wb") as file:
        other = start(tmp_path, "bad", "2.5", stream=file.fileno())
    screen = read_terminal(ours)
    assert (watched.wait(40), other.wait(40)) == (0, 0), screen + log.read_text()

    drawn = screen.partition("loss by step")[2].splitlines()
    assert "╮" in screen and drawn[7].lstrip().startswith("0.54 ┤"), screen
    assert "\x1b[3" not in screen
    assert "loss by step" not in log.read_text()
    listed = call(tmp_path, "list")
    assert "loss 2.54" in listed and 'roles.chief.args=["descend", "0.5"]' in listed
    compared = json.loads(call(tmp_path, "compare", "good", "bad", "--format", "json"))
    rows = {row["name"]: row for part in ("settings", "results", "metrics") for row in compared[part]}
    assert [cell["value"] for cell in rows["loss"]["cells"]] == [0.54, 2.54]
    assert [cell["best"] for cell in rows["loss"]["cells"]] == [True, False]
    assert rows["roles.chief.args"]["differs"] and not rows["code"]["differs"]
    assert [cell["value"] for cell in rows["last step"]["cells"]] == [25, 25]
