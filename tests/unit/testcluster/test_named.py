"""Why no cluster can be had is said once: a machine that cannot, a named one that is not there, one that fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.testcluster.choice import Named
from tests.cluster.testcluster.named import NotUsable, open_cluster

ROOT = Path(__file__).parents[3]
KUBECTL = """#!/bin/sh
case "$*" in
  *config*view*--minify*) {view} ;;
  *auth*can-i*create*namespaces*) {ask} ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac
"""
CONFIG = """echo '{"users": [{}]}'"""
REFUSED = "echo E1122 memcache.go >&2; echo The connection to 10.0.0.9:6443 was refused >&2; exit 1"


FAILING = """
from tests.cluster.testcluster import choice, cluster, ingredients, machine
machine.find_choice = lambda context: choice.Own()
ingredients.prepare_ingredients = lambda: None
def fail(*arguments):
    raise cluster.ClusterError("the test cluster did not start: etcd ended with 1")
cluster.start_cluster = fail
"""
"""A pytest plugin: a machine on which the tests' own cluster does not start."""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's kubectl has to be written; there is no other."""
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", str(program.parent))
    return program


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("view", "ask", "reason"),
    [
        ("echo error: no context kind-x >&2; exit 1", "", "cannot be tested: error: no context kind-x"),
        (CONFIG, REFUSED, "cannot be tested: The connection to 10.0.0.9:6443 was refused"),
        (CONFIG, "echo no; exit 1", "cannot be tested: its user may not create namespaces, and every test has its own"),
        (CONFIG, "exit 1", "cannot be tested: kubectl said nothing"),
    ],
    ids=["unknown context", "unreachable", "forbidden", "silent"],
)
def test_a_named_cluster_that_cannot_be_used_says_why(
    tmp_path: Path, kubectl: Path, view: str, ask: str, reason: str
) -> None:
    write_program(kubectl, KUBECTL.format(view=view, ask=ask))
    config = tmp_path / "config"
    config.touch()

    with pytest.raises(NotUsable) as caught:
        open_cluster(Named(str(config), "kind-x"), (), tmp_path / "pinned")

    assert str(caught.value) == f"the cluster of --kube-context kind-x with KUBECONFIG={config} {reason}"


def test_a_named_cluster_is_opened_with_a_kubeconfig_of_its_own(tmp_path: Path, kubectl: Path) -> None:
    write_program(kubectl, KUBECTL.format(view=CONFIG, ask="echo yes"))
    config = tmp_path / "config"
    config.touch()

    access = open_cluster(Named(f"{tmp_path / 'none'}{os.pathsep}{config}", None), (), tmp_path / "pinned")

    assert (access.kubeconfig, access.context) == (tmp_path / "pinned", None)


def test_without_kubectl_or_a_file_that_is_said(tmp_path: Path, kubectl: Path) -> None:
    named = Named("/nowhere", None)

    with pytest.raises(
        NotUsable, match=r"^the cluster of KUBECONFIG=/nowhere is to be tested, and there is no kubectl on"
    ):
        open_cluster(named, (), tmp_path / "pinned")
    write_program(kubectl, "")
    with pytest.raises(NotUsable, match=r"and there is no file /nowhere$"):
        open_cluster(named, (), tmp_path / "pinned")


@pytest.mark.parametrize(
    ("kubeconfig", "plugin", "code", "line"),
    [
        ("", "", pytest.ExitCode.OK, r"SKIPPED \[\d+\] tests/cluster: no test cluster: missing .+"),
        ("/nowhere", "", pytest.ExitCode.USAGE_ERROR, r"!+ .*Exit: the cluster of KUBECONFIG=/nowhere is to be .+"),
        ("", FAILING, pytest.ExitCode.TESTS_FAILED, r"!+ .*Exit: the test cluster did not start: etcd ended with 1 !+"),
    ],
    ids=["none", "not there", "failing"],
)
def test_many_tests_say_it_once(
    tmp_path: Path, helm4: Path, kubectl: Path, kubeconfig: str, plugin: str, code: int, line: str
) -> None:
    """The inner session finds helm in the cache, where the outer one has it from; there is no Go to build it with."""
    (tmp_path / "machine_plugin.py").write_text(plugin)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"KUBECONFIG": kubeconfig, "PYTHONPATH": f"{tmp_path}:{ROOT / 'tests' / 'cluster'}"}
    modules = ("tests/cluster/test_own_pods.py", "tests/cluster/test_own_network_policies.py")
    options = ("-p", "no:cacheprovider", "-p", "machine_plugin", f"--basetemp={tmp_path / 'inner'}")
    argv = [sys.executable, "-m", "pytest", *options, *modules]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)

    assert done.returncode == code, done.stdout
    again = "UserWarning: started a second time: the test cluster did not start: etcd ended with 1"
    assert done.stdout.count(again) == (plugin == FAILING)
    lines = [text for text in done.stdout.splitlines() if "cluster" in text and again not in text]
    told = [text for text in lines if "tests/cluster/test_" not in text]
    assert len(told) == 1
    assert re.fullmatch(line, told[0])
