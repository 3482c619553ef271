"""One contract for every kind of repository: a published version means one thing for ever, and real helm reads it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Barrier

import pytest

from tests.repositories.chart_archives import upload
from tests.repositories.chart_images import push_image, push_index
from tests.repositories.chart_servers import find_new_registry, serve_museum, serve_registry, serve_web_folder
from trainchart.actions.publish import PublishOptions, publish_chart
from trainchart.actions.support.repository_access import Address, open_repository
from trainchart.errors import (
    PublishError,
    RepositoryNotFound,
    RepositoryUnreachable,
    ToolError,
    TrainchartError,
    VersionConflict,
)
from trainchart.publish.io.registry import ANY_MANIFEST
from trainchart.publish.repository import Publication, Repository, Upload, publish_upload

KINDS = ("folder", "web folder", "web folder without locks", "ChartMuseum", "registry", "new registry")
DECIDING = tuple(kind for kind in KINDS if kind != "web folder without locks" and "registry" not in kind)
"""Those that can decide which of two publishers wins."""


def _serve(kind: str, folder: Path, stack: ExitStack) -> str:
    """Start a server; returns the repository's address."""
    if kind == "folder":
        return f"file://{folder}/www/charts"
    if kind == "ChartMuseum":
        return f"chartmuseum+http://{stack.enter_context(serve_museum())}"
    if "registry" in kind:
        program = find_new_registry() if kind == "new registry" else ""
        return f"oci://{stack.enter_context(serve_registry(folder, program=program))}/team/charts"
    locks = kind == "web folder"
    return f"http://{stack.enter_context(serve_web_folder(folder, with_locks=locks))}/charts"


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def served(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        yield _serve(kind, tmp_path_factory.mktemp("served") / "data", stack)


@contextmanager
def opened(url: str) -> Iterator[Repository]:
    with open_repository(Address(url, plain_http=True), {"HOME": "/nonexistent"}) as repository:
        yield repository


@pytest.fixture
def repository(served: str) -> Iterator[Repository]:
    with opened(served) as repository:
        yield repository


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A chart of the test's own: servers are shared."""
    return "demo-" + request.node.originalname.removeprefix("test_").replace("_", "-")[:40].rstrip("-")


def test_what_is_not_there_is_an_answer(repository: Repository, name: str) -> None:
    assert repository.list_versions(name) == ()
    assert repository.find_versions(name) == ()
    assert repository.fetch(name, "1.0.0") is None


def test_a_version_is_read_back_as_it_was_published(repository: Repository, name: str) -> None:
    one = upload("1.0.0", name=name)
    done = publish_upload(repository, one)
    assert done.is_new
    fetched = repository.fetch(name, "1.0.0")
    assert fetched is not None
    assert (fetched.data, fetched.digest, fetched.provenance) == (one.archive.data, done.digest, None)
    assert done.digest.startswith("sha256:")
    assert len(done.digest) == 71


def test_the_same_content_again_is_success_and_changes_nothing(repository: Repository, name: str) -> None:
    first = publish_upload(repository, upload("1.0.0", name=name))
    before = repository.list_versions(name)
    again = publish_upload(repository, upload("1.0.0", name=name))
    assert again == Publication(False, first.digest, first.reference)
    assert repository.list_versions(name) == before


def test_other_content_is_refused_with_both_identities(repository: Repository, name: str) -> None:
    one, other = upload("1.0.0", "one", name=name), upload("1.0.0", "other", name=name)
    publish_upload(repository, one)
    with pytest.raises(VersionConflict) as caught:
        publish_upload(repository, other)
    assert one.archive.identity in str(caught.value.problems[0])
    assert other.archive.identity in str(caught.value.problems[0])
    assert "run trainchart generate" in caught.value.hint
    fetched = repository.fetch(name, "1.0.0")
    assert fetched is not None
    assert fetched.data == one.archive.data


def test_adding_leaves_alone_what_is_there(repository: Repository, name: str) -> None:
    publish_upload(repository, upload("1.0.0", "one", name=name))
    repository.add(upload("1.0.0", "other", name=name))
    fetched = repository.fetch(name, "1.0.0")
    assert fetched is not None
    assert fetched.data == upload("1.0.0", "one", name=name).archive.data


def test_versions_are_listed_with_what_is_known(repository: Repository, name: str) -> None:
    versions = ("1.0.0", "1.1.0-dev.12+g1a2b3c", "0.9.0")
    done = {version: publish_upload(repository, upload(version, version, name=name)) for version in versions}
    listed = {found.version: found for found in repository.list_versions(name)}
    assert set(listed) == set(versions) == set(repository.find_versions(name))
    for version, publication in done.items():
        assert listed[version].digest == publication.digest
        assert listed[version].created.startswith("2026-01-01T00:00:00")
        assert listed[version].identity == upload(version, version, name=name).archive.identity
        assert not listed[version].is_deprecated


def test_a_signature_comes_with_the_version(repository: Repository, name: str) -> None:
    publish_upload(repository, upload("1.0.0", name=name, provenance=b"signed"))
    fetched = repository.fetch(name, "1.0.0")
    assert fetched is not None
    assert fetched.provenance == b"signed"


def test_a_signature_that_is_too_large_is_not_read(repository: Repository, name: str) -> None:
    repository.add(upload("1.0.0", name=name, provenance=b"s" * (1024 * 1024 + 1)))
    with pytest.raises(PublishError, match=r"prov.* is larger than 1 MiB"):
        repository.fetch(name, "1.0.0")


def _race(publishers: list[Callable[[], object]]) -> list[object]:
    barrier = Barrier(len(publishers))

    def run(publish: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return publish()
        except TrainchartError as error:
            return error

    with ThreadPoolExecutor(len(publishers)) as pool:
        return list(pool.map(run, publishers))


def _publisher(url: str, version: str, note: str, name: str) -> Callable[[], object]:
    def publish() -> object:
        with opened(url) as repository:
            return publish_upload(repository, upload(version, note, name=name))

    return publish


def test_of_two_publishers_one_wins(kind: str, served: str, name: str) -> None:
    for number in range(5):
        version = f"1.{number}.0"
        results = _race([_publisher(served, version, note, name) for note in ("one", "other", "third")])
        won = [result for result in results if isinstance(result, Publication)]
        lost = [result for result in results if isinstance(result, PublishError)]
        assert len(won) + len(lost) == 3
        if kind in DECIDING:
            assert len(won) == 1
            assert {type(error) for error in lost} == {VersionConflict}
        with opened(served) as repository:
            _require_that_it_shows(repository, [upload(version, note, name=name) for note in ("one", "other", "third")])


def _require_that_it_shows(repository: Repository, uploads: list[Upload]) -> None:
    """Whatever the race has left: whoever publishes again is told, unless it is the one whose content is there."""
    told: list[type[TrainchartError]] = []
    for mine in uploads:
        try:
            assert not publish_upload(repository, mine).is_new
        except PublishError as error:
            told.append(type(error))
    # Without locks an archive can be replaced before the index names it; then all are told that it is damaged.
    assert told in ([VersionConflict, VersionConflict], [PublishError, PublishError, PublishError])


def test_publishers_of_different_versions_do_not_lose_each_other(kind: str, served: str, name: str) -> None:
    versions = [f"1.0.{number}" for number in range(8)]
    results = _race([_publisher(served, version, "", name) for version in versions])
    with opened(served) as repository:
        if kind == "web folder without locks":
            # Where nothing locks, an entry can be lost; running the job again brings it back.
            results = [publish_upload(repository, upload(version, name=name)) for version in versions]
        assert all(isinstance(result, Publication) for result in results), results
        assert {found.version for found in repository.list_versions(name)} == set(versions)


@pytest.mark.helm
@pytest.mark.parametrize("major", [3, 4])
def test_real_helm_finds_pulls_and_renders_it(
    kind: str, served: str, name: str, major: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    helm = request.getfixturevalue(f"helm{major}")
    name = f"{name}-{major}"
    one = upload("1.2.3", "hello", name=name)
    with opened(served) as repository:
        publish_upload(repository, one)
        newest = publish_upload(repository, upload("1.3.0", "newer", name=name))
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": "",
        "XDG_CACHE_HOME": "",
        "XDG_DATA_HOME": "",
    }

    def run(*arguments: str) -> str:
        done = subprocess.run([helm, *arguments], env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    if "registry" in kind:
        chart, options = f"{served}/{name}", ["--plain-http"]
        assert "newer" in run("show", "values", f"{chart}@{newest.digest}", *options)
        assert "note: newer" in run("template", "exp", f"{chart}@{newest.digest}", *options).replace('"', "")
        run("pull", chart, "--version", "1.2.3", *options)
        assert (tmp_path / f"{name}-1.2.3.tgz").read_bytes() == one.archive.data
        assert "note: hello" in run("template", "exp", chart, "--version", "1.2.3", *options).replace('"', "")
    elif kind == "folder":
        # helm reads folders by HTTP only.
        with serve_web_folder(tmp_path / "web") as host:
            shutil.copytree(served.removeprefix("file://"), tmp_path / "web/www/charts", dirs_exist_ok=True)
            _pull_from(run, f"http://{host}/charts", name, one.archive.data, tmp_path)
    else:
        _pull_from(run, served.removeprefix("chartmuseum+"), name, one.archive.data, tmp_path)


def _pull_from(run: Callable[..., str], url: str, name: str, data: bytes, folder: Path) -> None:
    run("repo", "add", "team", url)
    run("repo", "update")
    found = run("search", "repo", f"team/{name}", "--versions")
    assert "1.2.3" in found
    assert "1.3.0" in found
    run("pull", f"team/{name}", "--version", "1.2.3")
    assert (folder / f"{name}-1.2.3.tgz").read_bytes() == data
    assert "note: hello" in run("template", "exp", f"team/{name}", "--version", "1.2.3").replace('"', "")


@pytest.mark.parametrize("is_index", [False, True], ids=["image", "index of platforms"])
def test_an_image_under_the_tag_of_a_version_is_left_alone(is_index: bool, tmp_path: Path) -> None:
    """As where images and charts share a path: registries say 404 to who accepts another type of manifest."""
    with serve_registry(tmp_path / "data") as host, opened(f"oci://{host}/ml") as repository:
        digest = push_image(host, "ml/demo", "0.9.0" if is_index else "1.0.0")
        if is_index:
            digest = push_index(host, "ml/demo", "1.0.0", digest)
        with pytest.raises(PublishError, match="is not a Helm chart but") as caught:
            publish_upload(repository, upload("1.0.0"))
        assert "separate paths" in caught.value.hint
        repository.add(upload("1.0.0"))
        asked = urllib.request.Request(f"http://{host}/v2/ml/demo/manifests/1.0.0", headers={"Accept": ANY_MANIFEST})
        with urllib.request.urlopen(asked) as answer:
            assert answer.headers["Docker-Content-Digest"] == digest


def test_an_address_where_nothing_listens(kind: str, served: str) -> None:
    if kind == "folder":
        return
    scheme = served.partition("://")[0]
    with opened(f"{scheme}://127.0.0.1:1/charts") as repository, pytest.raises(RepositoryUnreachable):
        publish_upload(repository, upload("1.0.0"))


@pytest.mark.parametrize("scheme", ["oci", "chartmuseum+http"])
def test_a_server_of_another_kind_is_not_an_empty_repository(scheme: str, tmp_path: Path) -> None:
    with serve_web_folder(tmp_path / "web") as host, opened(f"{scheme}://{host}/charts") as repository:
        with pytest.raises(RepositoryNotFound):
            repository.list_versions("demo")
        with pytest.raises(RepositoryNotFound):
            publish_upload(repository, upload("1.0.0"))


def test_artifact_hub_is_told_whose_a_folder_is(tmp_path: Path) -> None:
    archive, owners, folder = tmp_path / "demo-1.0.0.tgz", tmp_path / "owners.yml", tmp_path / "charts"
    archive.write_bytes(upload("1.0.0").archive.data)
    owners.write_text("owners: [{name: Ada, email: ada@example.com}]\n")
    options = PublishOptions(None, owners=owners)
    for text in (owners.read_text(), "repositoryID: 1b2c\n"):
        owners.write_text(text)
        publish_chart(archive, Address(str(folder)), options)
        assert (folder / "artifacthub-repo.yml").read_text() == text
    assert sorted(path.name for path in folder.iterdir()) == ["artifacthub-repo.yml", archive.name, "index.yaml"]
    with pytest.raises(PublishError, match="no place for"):
        publish_chart(archive, Address("chartmuseum+https://127.0.0.1:1"), options)
    owners.write_text("name: Ada\n")
    with pytest.raises(ToolError, match="says neither repositoryID nor owners"):
        publish_chart(archive, Address(str(tmp_path / "other")), options)
    assert not (tmp_path / "other").exists()


def test_artifact_hub_is_told_whose_a_chart_in_a_registry_is(kind: str, served: str, name: str, tmp_path: Path) -> None:
    if "registry" not in kind:
        return
    archive, owners = tmp_path / f"{name}-1.0.0.tgz", tmp_path / "owners.yml"
    archive.write_bytes(upload("1.0.0", name=name).archive.data)
    options = PublishOptions(None, owners=owners, environment={"HOME": "/nonexistent"})
    for text in ("owners: [{name: Ada, email: ada@example.com}]\n", "repositoryID: 1b2c\n", "repositoryID: 1b2c\n"):
        owners.write_text(text)
        publish_chart(archive, Address(served, plain_http=True), options)
        # What Artifact Hub reads: the layer of this type under this tag.
        place = f"http://{served.removeprefix('oci://').replace('/', '/v2/', 1)}/{name}"
        asked = urllib.request.Request(f"{place}/manifests/artifacthub.io", headers={"Accept": ANY_MANIFEST})
        with urllib.request.urlopen(asked) as answer:
            (layer,) = json.load(answer)["layers"]
        assert layer["mediaType"] == "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"
        with urllib.request.urlopen(f"{place}/blobs/{layer['digest']}") as answer:
            assert answer.read().decode() == text
    with opened(served) as repository:
        assert repository.find_versions(name) == ("1.0.0",)
