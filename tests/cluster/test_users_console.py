"""The console as a release: its image is built, users sign in with tokens, and none has more than their own rights."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.cluster.conftest import make_namespace
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import REGISTRY_PORT
from tests.cluster.testcluster.images.console import push_console_image
from tests.cluster.testcluster.releases import PROJECT, Release, digits_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY
from tests.cluster.testcluster.users import make_user
from tests.console.conftest import browser as browser
from tests.console.conftest import wait_until
from tests.support.family_charts import make_family_chart
from tests.support.free_ports import find_free_port

pytestmark = pytest.mark.cluster

WAIT_MS = 90_000
WAITING = {"command": ["sleep", "600"], "roles": {"worker": {**TINY, "saveWaitSeconds": 0}}}
VALUES = merge_values(digits_values(), merge_values(CONTROLLED, WAITING))
LOOK = """
import json, os, pathlib
def read(path):
    try:
        return path.read_bytes().replace(b"\\0", b" ").decode(errors="replace")
    except OSError:
        return ""
print(json.dumps({
    "accounts": os.path.exists("/var/run/secrets/kubernetes.io"),
    "processes": [read(each) for each in pathlib.Path("/proc").glob("[0-9]*/cmdline")],
    "environments": [read(each) for each in pathlib.Path("/proc").glob("[0-9]*/environ")],
    "files": {str(each): oct(each.stat().st_mode & 0o777) for each in pathlib.Path("/tmp").rglob("kubeconfig")},
    "memory": [line.split()[2] for line in open("/proc/mounts") if line.split()[1] == "/tmp"],
}))
"""
"""Looks around in the console's pod."""


SELF_REVIEWS = {
    "selfsubjectreviews.authentication.k8s.io",
    "selfsubjectaccessreviews.authorization.k8s.io",
    "selfsubjectrulesreviews.authorization.k8s.io",
}
"""What every authenticated account may: ask about itself."""


@dataclass
class Opened:
    """The console, as users reach it, and what they may."""

    release: Release
    address: str
    users: dict[str, str]
    """Name → token."""
    other: str
    """The namespace of another team."""

    def look(self) -> dict[str, Any]:
        inside = ("exec", "-n", self.release.namespace, "deployment/con", "--")
        found: dict[str, Any] = json.loads(self.release.access.kubectl(*inside, "python3", "-c", LOOK))
        return found


def read_token(user: Access) -> str:
    token: str = json.loads(user.kubeconfig.read_text())["users"][0]["user"]["token"]
    return token


@pytest.fixture
def opened(lasting_cluster: Cluster, admin: Access, namespace: str, helm4: Path, tmp_path: Path) -> Iterator[Opened]:
    """A console over two namespaces, each with a release, and users of one of them."""
    image = push_console_image(helm4, f"{lasting_cluster.config.address}:{REGISTRY_PORT}", print)
    repository, _, tag = image.rpartition(":")
    port = find_free_port()
    for other in make_namespace(admin, f"{namespace[:50]}-other"):
        values = {
            "image": {"repository": repository, "tag": tag},
            "addresses": [f"http://localhost:{port}"],
            "namespaces": [namespace, other],
            "resources": {"requests": {"cpu": "50m", "memory": "192Mi"}},
        }
        release = Release(admin, namespace, "con", make_family_chart("console", tmp_path), values)
        release.install()
        for place, name in ((namespace, "exp1"), (other, "exp2")):
            Release(admin, place, name, PROJECT / "charts" / "digits", VALUES).install()
        users = {
            name: read_token(make_user(admin, place, name, role, tmp_path))
            for name, place, role in (("ada", namespace, "admin"), ("rea", namespace, "view"), ("bob", other, "edit"))
        }
        admin.kubectl("rollout", "status", "deployment/con", "-n", namespace, "--timeout=3m")
        with forward(admin, namespace, port):
            yield Opened(release, f"http://localhost:{port}", users, other)


@contextmanager
def forward(admin: Access, namespace: str, port: int) -> Iterator[None]:
    command = ["kubectl", "port-forward", "service/con", f"{port}:8080", "-n", namespace]
    process = subprocess.Popen(command, env=admin.environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "Forwarding" in process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.wait(20)


def sign_in(browser: Browser, opened: Opened, token: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(opened.address)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    return page


def ask(opened: Opened, token: str) -> str:
    """Return the page that a proxy gets with a user's token."""
    request = urllib.request.Request(opened.address, headers={"Authorization": f"Bearer {token}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.read().decode())


def test_users_of_a_cluster_have_their_own_rights(
    opened: Opened, admin: Access, browser: Browser, request: pytest.FixtureRequest
) -> None:
    expect.set_options(timeout=WAIT_MS)
    namespace, folder = opened.release.namespace, request.config.getoption("--screenshots")
    page = sign_in(browser, opened, "not-a-token-of-this-cluster")
    expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
    page.goto(f"{opened.address}/runs/cluster/{namespace}/exp1/digits")
    expect(page.locator("main")).to_contain_text("Paste your Kubernetes token")
    assert "exp1" not in page.content()
    if folder:
        page.screenshot(path=Path(folder) / "sign-in-token.png")

    ada = sign_in(browser, opened, opened.users["ada"])
    expect(ada.get_by_role("link", name="exp1")).to_be_visible()
    expect(ada.locator(".note")).to_contain_text(f"{opened.other} is not shown")
    assert "exp2" not in ada.content()
    expect(ada.get_by_role("heading", name="On this machine")).to_have_count(0)
    ada.goto(f"{opened.address}/runs/cluster/{opened.other}/exp2/digits")
    expect(ada.locator("main")).to_contain_text('ada" cannot list resource')
    ada.goto(f"{opened.address}/runs/cluster/{namespace}/exp1/digits")
    act(ada, "Suspend")
    expect(ada.locator(".notice")).to_have_text("exp1: set run.desiredState=suspended")

    rea = sign_in(browser, opened, opened.users["rea"])
    rea.get_by_role("link", name="exp1").click()
    act(rea, "Stop")
    expect(rea.locator(".stale")).to_contain_text("stop was refused")
    expect(rea.locator(".stale")).to_contain_text('rea" cannot list resource "secrets"')

    page = ask(opened, opened.users["bob"])
    assert "exp2" in page
    assert "/exp1/" not in page
    check_pod(opened)

    ada.get_by_role("button", name="Sign out").click()
    expect(ada.locator("main")).to_contain_text("Paste your Kubernetes token")
    admin.kubectl("delete", "serviceaccount", "rea", "-n", namespace)
    wait_until(lambda: len(opened.look()["files"]) == 1, "the token that is not accepted any more is dropped")
    assert "cannot read" in ask(opened, opened.users["rea"]) or "does not accept" in ask(opened, opened.users["rea"])


def act(page: Page, verb: str) -> None:
    page.get_by_text(f"{verb} …").click()
    page.get_by_role("button", name=f"{verb} exp1").click()


def check_pod(opened: Opened) -> None:
    """Check that the pod may do nothing, and that tokens are in private files of its memory alone."""
    release = opened.release
    access, namespace = release.access, release.namespace
    found = opened.look()
    assert found["accounts"] is False
    assert found["memory"] == ["tmpfs"]
    assert list(found["files"].values()) == ["0o600"] * 3
    log = access.kubectl("logs", "deployment/con", "-n", namespace)
    for token in opened.users.values():
        assert token not in json.dumps([found["processes"], found["environments"], log])
    user = f"--as=system:serviceaccount:{namespace}:con"
    groups = ("--as-group=system:serviceaccounts", "--as-group=system:authenticated")
    for verb, kind in (("list", "pods"), ("get", "secrets"), ("impersonate", "users"), ("create", "deployments")):
        answer = access.kubectl("auth", "can-i", verb, kind, user, *groups, "-n", namespace, check=False)
        assert answer.strip() == "no"
    rights = access.kubectl("auth", "can-i", "--list", user, *groups, "-n", namespace)
    print(rights)
    kinds = {line.split()[0] for line in rights.splitlines()[1:] if not line.startswith(" ")}
    assert kinds == SELF_REVIEWS, rights
    access.run([release.helm, "test", "con", "--namespace", namespace, "--timeout=2m"])
