"""What registries say of a chart's images: there, absent, another, or nothing; asked of a real one with a password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.repositories.chart_images import push_image, push_index
from tests.repositories.chart_servers import PASSWORD, USER, serve_registry
from tests.repositories.fault_proxy import Reply, proxied
from tests.support.free_ports import find_free_port
from trainchart.actions.support.image_check import ImageAnswer, ask_for_images, require_images
from trainchart.actions.support.repository_access import Address, ImageAccess
from trainchart.errors import (
    ImageConflict,
    ImageNotFound,
    PublishError,
    RepositoryForbidden,
    RepositoryNotFound,
    RepositoryUnauthorized,
    RepositoryUnreachable,
)
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.publish.io.image import ImageState


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_registry(tmp_path_factory.mktemp("registry") / "data", with_password=True) as host:
        yield host


def access(host: str, **environment: str) -> ImageAccess:
    """Reach images as somebody who publishes to the same host."""
    login = {"TRAINCHART_USERNAME": USER, "TRAINCHART_PASSWORD": PASSWORD, "HOME": "/nonexistent", **environment}
    return ImageAccess(login, beside=Address(f"oci://{host}/charts", plain_http=True))


def rendering(*images: str) -> Rendering:
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    document: dict[str, Any] = {"kind": "Pod", "spec": {"containers": containers}}
    return Rendering("exp", "default", (Manifest("templates/pod.yaml", document),), {})


def ask(host: str, image: str, values: str = "") -> ImageAnswer:
    (answer,) = ask_for_images({"values.yaml": values.encode()}, rendering(image), access(host))
    return answer


def test_no_registry_is_asked_for_more_images_than_a_chart_needs() -> None:
    images = [f"h{number}.example.invalid/a:1" for number in range(101)]
    with pytest.raises(PublishError, match="more than 100 images"):
        ask_for_images({}, rendering(*images), access("localhost:1"))


def test_by_tag_and_by_digest(host: str) -> None:
    digest = push_image(host, "ml/one", "1.0")
    for image in (f"{host}/ml/one:1.0", f"{host}/ml/one@{digest}", f"{host}/ml/one:1.0@{digest}"):
        answer = ask(host, image)
        assert (answer.state, answer.digest, answer.problem) == (ImageState.there, digest, None)
    for image in (f"{host}/ml/one:1.1", f"{host}/ml/none:1.0", f"{host}/ml/one@sha256:{'0' * 64}"):
        assert ask(host, image).state is ImageState.absent


def test_a_tag_must_stand_for_the_digest(host: str) -> None:
    old = push_image(host, "ml/moved", "1.0", "old")
    new = push_image(host, "ml/moved", "1.0", "new")
    answer = ask(host, f"{host}/ml/moved:1.0@{old}")
    assert (answer.state, answer.digest) == (ImageState.other, new)
    assert ask(host, f"{host}/ml/moved@{old}").state is ImageState.there
    # Manifests of our charts have the digest alone; the tag is in the values.
    values = f"image: {{repository: {host}/ml/moved, tag: '1.0', digest: '{old}'}}\n"
    answer = ask(host, f"{host}/ml/moved@{old}", values)
    assert (answer.state, answer.image) == (ImageState.other, f"{host}/ml/moved:1.0@{old}")


def test_a_released_chart_remembers_what_its_tags_stood_for(host: str) -> None:
    old = push_image(host, "ml/kept", "1.0", "old")
    image = f"{host}/ml/kept:1.0"
    pinned = require_images({}, rendering(image), access(host))
    assert pinned == (f"{image}@{old}",)
    files = {"Chart.yaml": f"annotations: {{trainchart/images: '{' '.join(pinned)}'}}\n".encode()}
    assert require_images(files, rendering(image), access(host)) == pinned
    push_image(host, "ml/kept", "1.0", "new")
    with pytest.raises(ImageConflict) as caught:
        require_images(files, rendering(image), access(host))
    assert caught.value.problems[0].where == pinned[0]


def test_tag_moved_to_an_index_that_lists_the_image_is_noticed(host: str) -> None:
    old = push_image(host, "ml/listed", "1.0", "old")
    image = f"{host}/ml/listed:1.0"
    pinned = require_images({}, rendering(image), access(host))
    files = {"Chart.yaml": f"annotations: {{trainchart/images: '{pinned[0]}'}}\n".encode()}
    other = push_image(host, "ml/listed", "other", "other")
    push_index(host, "ml/listed", "1.0", other, old)
    with pytest.raises(ImageConflict):
        require_images(files, rendering(image), access(host))


def test_an_index_of_platforms_carries_what_it_lists(host: str) -> None:
    amd, arm, foreign = (push_image(host, "ml/many", tag, tag) for tag in ("amd64", "arm64", "foreign"))
    index = push_index(host, "ml/many", "1.0", amd, arm)
    for digest in (index, amd, arm):
        answer = ask(host, f"{host}/ml/many:1.0@{digest}")
        assert (answer.state, answer.digest) == (ImageState.there, digest)
    answer = ask(host, f"{host}/ml/many:1.0@{foreign}")
    assert (answer.state, answer.digest) == (ImageState.other, index)


def test_all_problems_are_told_and_what_is_sure_comes_first(host: str) -> None:
    there = push_image(host, "ml/some", "1.0")
    push_image(host, "ml/some", "1.1", "other")
    nowhere = f"127.0.0.1:{find_free_port()}/ml/some:1.0"
    conflict, absent = f"{host}/ml/some:1.1@{there}", f"{host}/ml/absent:1.0"
    for images, kind in (
        ((f"{host}/ml/some:1.0",), None),
        ((nowhere,), RepositoryUnreachable),
        ((nowhere, conflict), ImageConflict),
        ((nowhere, conflict, absent), ImageNotFound),
    ):
        if kind is None:
            require_images({}, rendering(*images), access(host))
            continue
        with pytest.raises(PublishError) as caught:
            require_images({}, rendering(*images), access(host))
        assert type(caught.value) is kind
        assert {problem.where for problem in caught.value.problems} == set(images)


def test_repository_credentials_stay_with_its_host(host: str) -> None:
    push_image(host, "ml/hidden", "1.0")
    image = f"{host}/ml/hidden:1.0"
    assert ask(host, image).state is ImageState.there
    elsewhere = access("charts.example.com")
    (answer,) = ask_for_images({}, rendering(image), elsewhere)
    assert isinstance(answer.error, RepositoryUnauthorized)
    with pytest.raises(RepositoryUnauthorized, match="could not be queried"):
        require_images({}, rendering(image), elsewhere)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, RepositoryForbidden), (404, RepositoryNotFound), (429, RepositoryUnreachable), (500, RepositoryUnreachable)],
)
def test_what_a_registry_does_not_tell_is_not_known(host: str, status: int, kind: type[PublishError]) -> None:
    """404 comes from a server that is no registry at all."""
    with proxied(host) as proxy:
        proxy.restart(lambda seen: Reply(status))
        answer = ask(proxy.host, f"{proxy.host}/ml/one:1.0")
    assert answer.state is None
    assert type(answer.error) is kind
    assert answer.problem is not None
    assert answer.error is not None
    assert answer.problem.message == answer.error.message


def test_what_no_registry_can_hold_is_refused(host: str) -> None:
    with pytest.raises(PublishError, match="is not a valid image reference"):
        require_images({}, rendering(f"{host}/ML/Upper:1.0"), access(host))


def test_values_that_only_helm_reads_do_not_hide_the_image(host: str) -> None:
    digest = push_image(host, "ml/foreign", "1.0")
    assert ask(host, f"{host}/ml/foreign:1.0", "a: 1\n---\nb: 2\n").digest == digest


def test_registry_on_another_machine_is_reached_with_encryption(tmp_path: Path) -> None:
    """A host name that is not loopback's, though it leads here: without the word, TLS is tried."""
    with serve_registry(tmp_path / "data") as host:
        image = f"{host.replace('127.0.0.1', '0.0.0.0')}/ml/one:1.0"
        push_image(host, "ml/one", "1.0")
        plain = ImageAccess({"HOME": "/nonexistent"})
        (answer,) = ask_for_images({}, rendering(image), plain)
        assert isinstance(answer.error, RepositoryUnreachable)
        insecure = ImageAccess({"HOME": "/nonexistent"}, insecure_registries=(image.partition("/")[0],))
        (answer,) = ask_for_images({}, rendering(image), insecure)
        assert answer.state is ImageState.there
