"""trainchart checkpoints on releases of a real cluster: through a helper pod, of which nothing is left."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.images.plan import RUNTIME_IMAGE
from tests.cluster.testcluster.releases import IDLE, PROJECT, Release, digits_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED
from tests.cluster.testcluster.users import make_user

pytestmark = pytest.mark.cluster

FIXTURE = PROJECT / "tests" / "fixtures" / "checkpoints"
CLAIM = "exp-digits-checkpoints"
DATA = "ckpt-40.data-00000-of-00001"
WRITE = """
import base64, io, os, signal, sys, tarfile
tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.argv[1]))).extractall(os.environ["TRAINCHART_CHECKPOINTS_DIR"])
signal.pause()
"""
KINDS = "pods,jobs,configmaps,secrets,services"


@dataclasses.dataclass(frozen=True)
class Commands:
    """Runs trainchart checkpoints on the release exp."""

    access: Access
    namespace: str

    def argv(self, verb: str, *arguments: str, release: str = "exp") -> list[str]:
        argv = [sys.executable, "-m", "trainchart", "checkpoints", verb, release, *arguments]
        context = [f"--context={self.access.context}"] if self.access.context else []
        return [*argv, f"--namespace={self.namespace}", *context]

    def call(self, verb: str, *arguments: str, code: int = 0, **options: str) -> subprocess.CompletedProcess[str]:
        done = self.access.run(self.argv(verb, *arguments, **options), check=False)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def read(self, verb: str, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.call(verb, *arguments, "--format=json", code=code).stdout.partition('\n{\n "error')[0])

    def objects(self) -> set[str]:
        return set(self.access.kubectl("get", KINDS, "-n", self.namespace, "-o", "name").split())


@pytest.fixture(scope="module")
def commands(admin: Access, module_namespace: str) -> Commands:
    return Commands(admin, module_namespace)


@pytest.fixture(scope="module")
def release(commands: Commands) -> Iterator[Release]:
    """A release that has written the checkpoints of the fixture and does nothing more."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path in sorted(FIXTURE.iterdir()):
            archive.add(path, path.name)
    command = {"command": ["python3", "-c", WRITE, base64.b64encode(packed.getvalue()).decode()]}
    values = merge_values(merge_values(digits_values(), CONTROLLED), {**IDLE, **command})
    release = Release(commands.access, commands.namespace, "exp", PROJECT / "charts" / "digits", values)
    release.install()
    release.wait_until_running(2)
    yield release


def test_a_release_is_listed_like_a_folder(commands: Commands, release: Release) -> None:
    before = commands.objects()
    found = commands.read("list")
    assert commands.objects() == before
    assert [found.pop(key) for key in ("release", "namespace", "claim")] == ["exp", commands.namespace, CLAIM]
    shown = json.loads(
        commands.access.run([sys.executable, "-m", "trainchart", "checkpoints", FIXTURE, "--format=json"]).stdout
    )
    for document in (found, shown):
        for each in document["checkpoints"]:
            each.pop("writtenAt")
    assert found == {**shown, "folder": f"claim {CLAIM}"}


def test_an_export_has_the_same_bytes(commands: Commands, release: Release, tmp_path: Path) -> None:
    before = commands.objects()
    user = make_user(commands.access, commands.namespace, "editor", "edit", tmp_path)
    editor = Commands(user, commands.namespace)
    done = editor.call("export", "40", str(tmp_path / "start"))
    assert done.stdout == f"copied step 40 (3.8 KiB) to {tmp_path / 'start'}\n"
    assert {each for each in commands.objects() - before if "editor" not in each} == set()
    names = {"ckpt-40.index", "ckpt-40.json", DATA, "origin.json"}
    assert {path.name for path in (tmp_path / "start").iterdir()} == {*names, "checkpoint"}
    for name in names:
        assert (tmp_path / "start" / name).read_bytes() == (FIXTURE / name).read_bytes()


def test_who_may_only_look_is_refused(commands: Commands, release: Release, tmp_path: Path) -> None:
    user = make_user(commands.access, commands.namespace, "viewer", "view", tmp_path)
    done = Commands(user, commands.namespace).call("list", code=9)
    assert 'cannot create resource "jobs"' in done.stderr


def test_a_command_that_is_ended_leaves_nothing(commands: Commands, release: Release) -> None:
    before = commands.objects()
    argv = commands.argv("verify")
    process = subprocess.Popen(argv, env=commands.access.environment, stdout=subprocess.PIPE, text=True)
    commands.access.wait_for(
        lambda _: any("pod/trainchart-checkpoints" in name for name in commands.objects()),
        "a helper pod",
        namespace=commands.namespace,
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode == 128 + signal.SIGINT
    assert commands.objects() == before


def test_what_runs_is_not_pruned(commands: Commands, release: Release) -> None:
    done = commands.call("prune", "--keep=1", "--yes", code=7)
    assert done.stderr.startswith("error: exp is running\n")


def run_in_pod(commands: Commands, script: str) -> None:
    commands.access.kubectl("exec", "-n", commands.namespace, "exp-digits-worker-0", "--", "sh", "-c", script)


def test_a_changed_byte_is_found_and_not_exported(commands: Commands, release: Release, tmp_path: Path) -> None:
    run_in_pod(commands, f"printf x | dd of=$TRAINCHART_CHECKPOINTS_DIR/{DATA} bs=1 seek=9 conv=notrunc")
    done = commands.call("verify", code=6)
    assert "step 20: every byte is as it was written\na restart restores step 20" in done.stdout
    assert f"1 of 2 checkpoints in claim {CLAIM} cannot be restored" in done.stderr
    assert f"step 40: {DATA}: the bytes 8 to 16" in done.stderr
    done = commands.call("export", "40", str(tmp_path / "start"), code=6)
    assert DATA in done.stderr and not list(tmp_path.iterdir())


def test_a_claim_that_a_release_left_is_pruned(commands: Commands, release: Release) -> None:
    run_in_pod(commands, "touch $TRAINCHART_CHECKPOINTS_DIR/ckpt-5.index")
    release.uninstall()
    release.access.wait_for(
        lambda client: not release.pods(client), "no pods of the release", namespace=commands.namespace
    )
    assert [each["step"] for each in commands.read("list")["checkpoints"]] == [40, 20, 5]
    release.access.kubectl("annotate", "pvc", CLAIM, "trainchart/image-", f"--namespace={commands.namespace}")
    assert "--image" in commands.call("list", code=7).stderr
    image = f"--image={RUNTIME_IMAGE}"
    # The damaged one does not count, so that step 20 stays; of step 5, a killed pod has left a part.
    pruned = commands.read("prune", "--keep=1", "--yes", image)
    assert (pruned["kept"], pruned["removed"]) == ([20], [5])
    assert [each["step"] for each in commands.read("list", image)["checkpoints"]] == [40, 20]
    commands.call("list", code=9, release="other")
