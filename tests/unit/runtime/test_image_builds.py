"""Builds of one image: how runtimes name them, which are compared, and how many are remembered."""

from __future__ import annotations

import json

import pytest

from trainchart_runtime.image_builds import (
    BUILDS_KEPT,
    IMAGES_KEPT,
    NAME_LIMIT,
    Build,
    add_builds,
    describe_build,
    read_build,
)

IMAGE = "registry.trainchart.test/ml/mnist:1.0.1"
SOURCE = "registry.trainchart.test/ml/mnist"
OLD = "ce5aa261d4d7ca278f4db03cf077bc0cc820deae861cdb4e192da16dd01a8aac"
NEW = "97e7fa046a240181087a1be51c5013758bff5a07adf5b06d3997bb5511b2b228"


def make_pod(image_id, image=IMAGE):
    others = {"name": "sidecar", "image": "other:1", "imageID": f"other@sha256:{'0' * 64}"}
    training = {"name": "training", "image": image}
    statuses = [others, training | {"imageID": image_id}]
    return {"spec": {"containers": [others, training]}, "status": {"containerStatuses": statuses}}


@pytest.mark.parametrize(
    ("image_id", "source"),
    [
        (f"{SOURCE}@sha256:{OLD}", SOURCE),
        (f"docker-pullable://{SOURCE}@sha256:{OLD}", SOURCE),
        (f"localhost:5000/ml/mnist@sha256:{OLD}", "localhost:5000/ml/mnist"),
        (f"docker://sha256:{OLD}", ""),
        (f"sha256:{OLD}", ""),
        (OLD, ""),
    ],
)
def test_every_runtime_names_the_same_digest(image_id, source):
    assert read_build(make_pod(image_id)) == Build(IMAGE, source, OLD)


@pytest.mark.parametrize("image_id", ["", "sha256:1", f"{SOURCE}:1.0.1", None])
def test_unknown_digest_is_not_compared(image_id):
    assert read_build(make_pod(image_id)) is None


def test_pod_with_a_pinned_image_or_no_status_has_no_build():
    assert read_build({"spec": make_pod("")["spec"]}) is None
    assert read_build({}) is None
    assert read_build(make_pod(f"{SOURCE}@sha256:{OLD}", f"{IMAGE}@sha256:{OLD}")) is None


def test_long_name_of_an_image_is_cut():
    build = read_build(make_pod(f"{SOURCE}{'a' * 1_100_000}@sha256:{OLD}", f"r/{'a' * 1_100_000}"))
    assert (len(build.image), len(build.source), build.digest) == (NAME_LIMIT, NAME_LIMIT, OLD)


def test_only_builds_from_one_source_differ():
    old = Build(IMAGE, SOURCE, OLD)
    known = add_builds({}, [(old, "node2"), (Build(IMAGE, "", NEW), "node3"), (Build("ml/b:1", SOURCE, NEW), "node4")])
    assert describe_build(old, "node2", known) == ""
    known = add_builds(known, [(Build(IMAGE, SOURCE, NEW), "node1")])
    assert describe_build(old, "node5", known) == (
        f"sha256:ce5aa261d4d7 of {IMAGE} on node5; under the same tag, other pods ran sha256:97e7fa046a24 on node1"
    )


def test_a_thousand_pods_leave_few_builds():
    known = add_builds({}, ((Build(IMAGE, SOURCE, OLD), f"node{number}") for number in range(1000)))
    assert known == {IMAGE: {f"{SOURCE}@sha256:ce5aa261d4d7": "node0"}}
    many = ((Build(IMAGE, SOURCE, f"{number:064x}"[::-1]), f"node{number}") for number in range(1000))
    known = add_builds(known, many)
    assert len(known[IMAGE]) == BUILDS_KEPT and len(json.dumps(known)) < 500
    assert len(add_builds(known, ((Build(f"ml/b:{n}", "", OLD), "node1") for n in range(1000)))) == IMAGES_KEPT
