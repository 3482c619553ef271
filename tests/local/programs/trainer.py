"""The training program of these tests: plays the part that its first argument names."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHECKPOINTS = Path(os.environ["TRAINCHART_CHECKPOINTS_DIR"])


def report(step, **metrics):
    target = Path(os.environ["TRAINCHART_PROGRESS_FILE"])
    temporary = target.with_suffix(".new")
    temporary.write_text(json.dumps({"step": step, "examples_per_second": 100.0, "metrics": metrics}))
    temporary.replace(target)


def wait_for(path):
    while not path.exists():
        time.sleep(0.02)


def finish():
    """Train ten steps, going on from the checkpoint, and save."""
    checkpoint = CHECKPOINTS / "step"
    step = int(checkpoint.read_text()) if checkpoint.exists() else 0
    print(f"starts at step {step}", flush=True)
    step += 10
    checkpoint.write_text(str(step))
    report(step, accuracy=0.97)
    (CHECKPOINTS / "environment.json").write_text(json.dumps({**os.environ, "ARGV": sys.argv}))


def descend():
    """Report a loss that falls to what the second argument says, until it has been sampled a few times."""
    for step in range(1, 26):
        report(step, loss=float(sys.argv[2]) + 1 / step)
        time.sleep(0.08)
    (CHECKPOINTS / "step").write_text("25")


def serve():
    print("serving", flush=True)
    while True:
        time.sleep(60)


def fail():
    raise ValueError("the learning rate is too fast")


def fail_once():
    """Fail by its own fault the first time, succeed the second."""
    if os.environ["TRAINCHART_ATTEMPT"] == "1":
        fail()
    finish()


def hang_with_children():
    """Leave a child in the session and a daemon outside of it, and say so."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code])
    daemon = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    ready = CHECKPOINTS / f"pids-{os.environ['TRAINCHART_TASK_TYPE']}-{os.environ['TASK_INDEX']}.new"
    ready.write_text(json.dumps([os.getpid(), os.getppid(), child.pid, daemon.pid]))
    ready.replace(ready.with_suffix(".json"))
    serve()


def save_on_term():
    """Take half a second to save when asked to stop, and note whether the ps is still there."""

    def save(number, frame):
        time.sleep(0.5)
        others_alive = not (CHECKPOINTS / "stopped-ps").exists()
        (CHECKPOINTS / "saved").write_text(str(others_alive))
        sys.exit(0)

    signal.signal(signal.SIGTERM, save)
    (CHECKPOINTS / "ready").touch()
    serve()


def talk():
    """Say something when asked to, and serve."""
    wait_for(CHECKPOINTS / "talk")
    serve()


def note_term():
    """Say when it is stopped."""

    def note(number, frame):
        (CHECKPOINTS / f"stopped-{os.environ['TRAINCHART_TASK_TYPE']}").touch()
        sys.exit(0)

    signal.signal(signal.SIGTERM, note)
    (CHECKPOINTS / f"ready-{os.environ['TRAINCHART_TASK_TYPE']}").touch()
    serve()


def wait_for_restart():
    """Succeed once the first worker has been started twice."""
    wait_for(CHECKPOINTS / "second-attempt")
    finish()


def note_attempt():
    if os.environ["TRAINCHART_ATTEMPT"] != "1":
        (CHECKPOINTS / "second-attempt").touch()
    serve()


def evaluate():
    """Finish when the chief has saved."""
    wait_for(CHECKPOINTS / "environment.json")
    report(10, accuracy=0.98)


globals()[sys.argv[1]]()
