"""Which cluster a command means: files of KUBECONFIG merged as kubectl does, contexts, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from trainchart.cluster.io import kubeconfig
from trainchart.cluster.io.kubeconfig import is_configured, read_entry
from trainchart.errors import ClusterError


def write(path: Path, *, server: str = "https://a:6443", current: str = "a", **more: Any) -> Path:
    """A kubeconfig with one context, named as its cluster and user are."""
    document = {
        "current-context": current,
        "clusters": [{"name": current, "cluster": {"server": server, "certificate-authority": "ca.crt"}}],
        "users": [{"name": current, "user": {"tokenFile": "/run/token", "client-key": "keys/me"}}],
        "contexts": [{"name": current, "context": {"cluster": current, "user": current, "namespace": "team-a"}}],
        **more,
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_paths_are_those_of_the_file_that_says_them(tmp_path: Path) -> None:
    file = write(tmp_path / "sub" / "config")
    entry = read_entry("", {"KUBECONFIG": str(file)})
    assert (entry.context_name, entry.namespace) == ("a", "team-a")
    assert entry.cluster["certificate-authority"] == str(tmp_path / "sub" / "ca.crt")
    assert entry.user == {"tokenFile": "/run/token", "client-key": str(tmp_path / "sub" / "keys/me")}


def test_of_several_files_the_first_to_say_something_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "1", server="https://first")
    second = write(tmp_path / "2", server="https://second", current="b")
    third = write(tmp_path / "3", server="https://third")
    environment = {"KUBECONFIG": f"{first}:{tmp_path}/missing:{second}::{third}"}
    assert read_entry("", environment).cluster["server"] == "https://first"
    assert read_entry("b", environment).cluster["server"] == "https://second"


@pytest.mark.parametrize(
    ("change", "context", "words"),
    [
        ({}, "nope", "has no context 'nope'"),
        ({"current-context": ""}, "", "has no current context"),
        ({"clusters": []}, "", "names the cluster 'a', which"),
        ({"clusters": [{"name": "a", "cluster": {}}]}, "", "names no cluster with a server"),
        ({"clusters": [None]}, "", "is damaged"),
        ({"clusters": 5}, "", "is damaged: clusters is not a list"),
        ({"users": {"a": 1}}, "", "is damaged: users is not a list"),
        ({"contexts": "a"}, "", "is damaged: contexts is not a list"),
        ({"contexts": [{"name": "a", "context": {"cluster": ["a"]}}]}, "", "names the cluster"),
        ({"contexts": [{"name": "a", "context": {"cluster": "a", "user": "b"}}]}, "", "names the user 'b', which"),
        ({"users": [{"name": "a", "user": {"as": "boss"}}]}, "", "sets 'as', which trainchart does not support"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, change: dict[str, Any], context: str, words: str) -> None:
    file = write(tmp_path / "config", **change)
    with pytest.raises(ClusterError, match=words):
        read_entry(context, {"KUBECONFIG": str(file)})


@pytest.mark.parametrize("text", ["[1]", "a: [", "\x00", "- - -"])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ClusterError, match="config cannot be read"):
        read_entry("", {"KUBECONFIG": str(tmp_path / "config")})


@pytest.mark.timeout(20)
def test_a_pipe_or_device_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(ClusterError, match="neither a file nor a folder"):
            read_entry("", {"KUBECONFIG": name})


def test_a_home_that_nobody_has_is_not_there() -> None:
    with pytest.raises(ClusterError, match="~nobody-of-that-name/config is not there"):
        read_entry("", {"KUBECONFIG": "~nobody-of-that-name/config"})
    assert not is_configured({"KUBECONFIG": "~nobody-of-that-name/config"})


def test_a_pod_uses_its_own_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig, "POD_ACCOUNT", tmp_path)
    monkeypatch.setattr(kubeconfig, "DEFAULT_FILE", str(tmp_path / "none"))
    with pytest.raises(ClusterError, match="there is no kubeconfig"):
        read_entry("", {})
    assert not is_configured({})
    (tmp_path / "token").write_text("secret")
    (tmp_path / "namespace").write_text("team-b\n")
    entry = read_entry("", {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert (entry.cluster["server"], entry.namespace) == ("https://[fd00::1]:443", "team-b")
    assert is_configured({})
    with pytest.raises(ClusterError, match="there is no kubeconfig") as caught:
        read_entry("a-context", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert caught.value.hint == "set KUBECONFIG to a kubeconfig, or put one in ~/.kube/config"
