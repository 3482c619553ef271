"""What is attached to a chart in a registry: there before the version is, found again, and never in the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.repositories.chart_archives import upload
from tests.repositories.chart_servers import find_new_registry, serve_registry
from tests.repositories.fault_proxy import CUT_AFTER, CUT_BEFORE, Fault, Proxy, Reply, Seen, proxied
from trainchart.actions.diff import Against, diff_model
from trainchart.actions.release import ReleaseOptions, release_model
from trainchart.actions.support.repository_access import Address, open_repository
from trainchart.actions.verify import VerifyOptions, verify_chart
from trainchart.archive.attestation import (
    MATERIALS_TYPE,
    STATEMENT_TYPE,
    Attestation,
    Subject,
    build_attestations,
    parse_statement,
)
from trainchart.errors import ChecksFailed, PublishError, RepositoryForbidden, RepositoryNotFound, RepositoryUnreachable
from trainchart.publish.io.http import HttpClient
from trainchart.publish.io.oci import OciRepository
from trainchart.publish.io.referrers import attach
from trainchart.publish.io.registry import Registry
from trainchart.publish.oci_manifest import (
    INDEX_TYPE,
    MANIFEST_TYPE,
    build_artifact,
    build_referrer,
    describe_upload,
    referrers_tag,
)
from trainchart.publish.repository import publish_upload

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module", params=["registry", "new registry"])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = find_new_registry() if request.param == "new registry" else ""
    with serve_registry(tmp_path_factory.mktemp("registry") / "data", program=program) as host:
        yield host


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with serve_registry(tmp_path_factory.mktemp("behind") / "data") as host, proxied(host) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def _nothing_goes_wrong_yet(proxy: Proxy) -> None:
    proxy.restart(lambda seen: None)
    proxy.added_headers = {}


@contextmanager
def opened(host: str) -> Iterator[OciRepository]:
    with open_repository(Address(f"oci://{host}/team", plain_http=True), {"HOME": "/nonexistent"}) as repository:
        assert isinstance(repository, OciRepository)
        yield repository


def test_a_generated_chart_says_where_it_comes_from(host: str) -> None:
    mine = upload("1.0.0", name="demo-attached", is_generated=True)
    with opened(host) as repository:
        done = publish_upload(repository, mine)
        (statement,) = repository.read_attached("demo-attached", done.digest, STATEMENT_TYPE)
        (materials,) = repository.read_attached("demo-attached", done.digest, MATERIALS_TYPE)
        assert repository.read_attached("demo-attached", done.digest, "text/plain") == ()
        # The list of what is attached has a tag beside the versions.
        assert repository.find_versions("demo-attached") == ("1.0.0",)
        assert [found.version for found in repository.list_versions("demo-attached")] == ["1.0.0"]
    assert done.refused == ""
    origin = parse_statement(statement)
    assert origin is not None
    assert done.digest.removeprefix("sha256:") in origin.subjects
    assert origin.annotations["trainchart/spec-sha256"] == "0" * 64
    assert json.loads(materials)["components"][0]["name"] == "registry.example.com/ml/demo"


def test_a_chart_of_somebody_else_gets_nothing(host: str) -> None:
    with opened(host) as repository:
        done = publish_upload(repository, upload("1.0.0", name="demo-plain"))
        assert repository.read_attached("demo-plain", done.digest, STATEMENT_TYPE) == ()


def test_what_others_have_attached_stays(host: str) -> None:
    mine = upload("1.0.0", name="demo-others", is_generated=True)
    theirs = Attestation("application/vnd.example+json", b"{}", {"by": "them"})
    manifest = build_artifact(mine).manifest
    with opened(host) as repository, HttpClient(f"http://{host}") as client:
        registry = Registry(client)
        assert attach(registry, "team/demo-others", manifest, (theirs,)) == ""
        done = publish_upload(repository, mine)
        assert repository.read_attached("demo-others", done.digest, theirs.media_type) == (b"{}",)
        assert len(repository.read_attached("demo-others", done.digest, STATEMENT_TYPE)) == 1
        kept = registry.read_manifest("team/demo-others", referrers_tag(done.digest), "the list")
        assert attach(registry, "team/demo-others", manifest, describe_upload(mine, build_artifact(mine))) == ""
        assert registry.read_manifest("team/demo-others", referrers_tag(done.digest), "the list") == kept


@pytest.mark.parametrize("kept", range(4), ids=["first", "second", "list", "version"])
@pytest.mark.parametrize("cut", [CUT_BEFORE, CUT_AFTER])
def test_nobody_sees_a_version_before_what_is_attached_to_it(proxy: Proxy, cut: str, kept: int) -> None:
    """Each of the four manifests is cut once; whatever is there then, running it again makes it whole."""
    name = f"demo-cut-{kept}-{'before' if cut == CUT_BEFORE else 'after'}"
    mine = upload("1.0.0", name=name, is_generated=True)
    left = iter(range(4))
    is_put = "/manifests/"
    proxy.restart(lambda seen: cut if seen.method == "PUT" and is_put in seen.path and next(left) == kept else None)
    with opened(proxy.host) as repository:
        with pytest.raises(RepositoryUnreachable):
            publish_upload(repository, mine)
        proxy.restart(lambda seen: None)
        seen = repository.fetch(name, "1.0.0")
        assert (seen is not None) == (kept == 3 and cut == CUT_AFTER)
        if seen is not None:
            assert len(repository.read_attached(name, seen.digest, STATEMENT_TYPE)) == 1
        done = publish_upload(repository, mine)
        for media_type in (STATEMENT_TYPE, MATERIALS_TYPE):
            assert len(repository.read_attached(name, done.digest, media_type)) == 1


@pytest.mark.parametrize("status", [400, 403, 404, 415])
@pytest.mark.parametrize("what", ["/manifests/sha256:", "/manifests/sha256-"], ids=["manifest", "list"])
def test_a_registry_that_takes_no_referrers_gets_the_chart(proxy: Proxy, what: str, status: int) -> None:
    def decide(seen: Seen) -> Fault:
        is_attaching = seen.method == "PUT" and what in seen.path
        return Reply(status, body=b"MANIFEST_INVALID: unknown media type") if is_attaching else None

    proxy.restart(decide)
    mine = upload("1.0.0", name=f"demo-{status}-{'list' if what.endswith('-') else 'manifest'}", is_generated=True)
    with opened(proxy.host) as repository:
        done = publish_upload(repository, mine)
        assert done.is_new
        assert "MANIFEST_INVALID" in done.refused
        assert publish_upload(repository, mine).refused == ""


def test_who_may_not_publish_learns_it_from_the_chart(proxy: Proxy) -> None:
    proxy.restart(lambda seen: Reply(403) if seen.method == "PUT" and "/manifests/" in seen.path else None)
    with opened(proxy.host) as repository, pytest.raises(RepositoryForbidden):
        publish_upload(repository, upload("1.0.0", name="demo-forbidden", is_generated=True))


def test_a_registry_that_lists_referrers_itself_is_asked(proxy: Proxy) -> None:
    """As OCI 1.1 has it, in pages; neither of the real registries does."""
    mine = upload("1.0.0", name="demo-listed", is_generated=True)
    artifact = build_artifact(mine)
    referrers = [build_referrer(artifact.manifest, each) for each in describe_upload(mine, artifact)]

    def decide(seen: Seen) -> Fault:
        path, _, page = seen.path.partition("?page=")
        if "/referrers/" not in path:
            return None
        index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [referrers[int(page or 0)].described]}
        headers = {"Content-Type": INDEX_TYPE} | ({} if page else {"Link": f'<{path}?page=1>; rel="next"'})
        return Reply(200, headers, json.dumps(index).encode())

    proxy.restart(decide)
    proxy.added_headers = {"OCI-Subject": f"sha256:{'0' * 64}"}
    with opened(proxy.host) as repository:
        done = publish_upload(repository, mine)
        for media_type in (STATEMENT_TYPE, MATERIALS_TYPE):
            assert len(repository.read_attached("demo-listed", done.digest, media_type)) == 1
    assert not [seen for seen in proxy.seen if "/manifests/sha256-" in seen.path]


def test_documents_without_number_are_not_all_read(proxy: Proxy) -> None:
    digests = [f"sha256:{number:064x}" for number in range(5_000)]
    listed = [{"digest": digest, "artifactType": STATEMENT_TYPE} for digest in digests]
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": listed}).encode()
    proxy.restart(lambda seen: Reply(200, body=index) if "/referrers/" in seen.path else None)
    with opened(proxy.host) as repository, pytest.raises(PublishError, match="more than 100 documents"):
        repository.read_attached("demo", f"sha256:{'0' * 64}", STATEMENT_TYPE)
    assert len(proxy.seen) < 500


def test_a_list_that_is_none(proxy: Proxy) -> None:
    proxy.restart(lambda seen: Reply(200, body=b"<html>") if "/referrers/" in seen.path else None)
    with opened(proxy.host) as repository, pytest.raises(PublishError, match="is not an index of manifests"):
        repository.read_attached("demo", f"sha256:{'0' * 64}", STATEMENT_TYPE)


def test_hints_about_a_missing_version_repeat_plain_http(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    address = Address(f"oci://{host}/team", plain_http=True)
    release_model("digits", address, ReleaseOptions(None))
    wanted = f"trainchart versions digits --from oci://{host}/team --plain-http"
    with pytest.raises(RepositoryNotFound) as caught:
        verify_chart(f"oci://{host}/team/digits:99.0.0", VerifyOptions(plain_http=True))
    assert caught.value.hint == wanted
    with pytest.raises(RepositoryNotFound) as caught:
        diff_model("digits", Against("99.0.0", address), engine="auto", environment={})
    assert caught.value.hint == f"see: {wanted}"


def test_verified_chart_is_named_by_digest_once_its_tag_moved(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    released = release_model("digits", Address(f"oci://{host}/moved", plain_http=True), ReleaseOptions(None))
    options = VerifyOptions(plain_http=True)
    tag = f"oci://{host}/moved/digits:{released.version}"
    pinned = verify_chart(tag, options).pinned
    assert pinned.startswith(f"oci://{host}/moved/digits@sha256:")
    other = build_artifact(upload(released.version, note="another chart", name="digits"))
    with HttpClient(f"http://{host}") as client:
        registry = Registry(client)
        for blob in other.blobs.values():
            registry.push_blob("moved/digits", blob, "push")
        registry.push_manifest("moved/digits", other.tag, other.manifest, MANIFEST_TYPE, "push")
    with pytest.raises(ChecksFailed):
        verify_chart(tag, options)
    digest = pinned.partition("@")[2]
    for reference in (pinned, f"{tag}@{digest}"):
        assert verify_chart(reference, options).pinned == pinned
    with pytest.raises(ChecksFailed, match="does not verify") as caught:
        verify_chart(f"oci://{host}/moved/digits:9.9.9@{digest}", options)
    assert "it holds digits" in str(caught.value.problems[0])


def test_verify_holds_a_chart_against_its_statement(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    released = release_model("digits", Address(f"oci://{host}/team", plain_http=True), ReleaseOptions(None))
    reference, options = f"oci://{host}/team/digits:{released.version}", VerifyOptions(plain_http=True)
    verified = verify_chart(reference, options)
    assert verified.has_provenance
    assert not verified.is_signed
    with HttpClient(f"http://{host}") as client:
        registry = Registry(client)
        found = registry.read_manifest("team/digits", released.version, "the chart")
        assert found is not None
        untrue = json.loads(found[1])["annotations"] | {"trainchart/spec-sha256": "9" * 64}
        for digest in (found[0], f"sha256:{'0' * 64}"):
            subject = Subject("digits", released.version, digest.removeprefix("sha256:"), "1" * 64)
            attach(registry, "team/digits", found[1], build_attestations(untrue, subject))
    with pytest.raises(ChecksFailed) as caught:
        verify_chart(reference, options)
    said = sorted(str(problem) for problem in caught.value.problems)
    assert said[0].startswith(f"{reference}: the provenance is about another chart")
    assert said[1].startswith(f"trainchart/spec-sha256: the provenance says {'9' * 64}, but the chart says ")
    assert len(said) == 2
