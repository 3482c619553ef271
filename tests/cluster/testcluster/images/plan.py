"""What is built, under which key, by which command: decided here from texts and bytes, before anything runs.

A key is a hash of all that goes into a result, so a result with its key in the cache is never built again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.cluster.testcluster.config import REGISTRY_HOST

MODELS = ("mnist", "digits", "mnist-classic")
"""Specs in models/ whose images are built."""
RUNTIME_IMAGE = f"{REGISTRY_HOST}/ml/trainchart-runtime:1.0.0"
"""The small image from which a run controller may run."""
SERVING_IMAGE = f"{REGISTRY_HOST}/ml/trainchart-serving:1.0.0"
"""The model server, on the image of the first model."""
NOTEBOOK_IMAGE = f"{REGISTRY_HOST}/ml/mnist-notebook:1.0.0"
"""JupyterLab, on the image of the first model."""
FOREIGN_IMAGE = f"{REGISTRY_HOST}/elsewhere/python:3.13"
"""An image of another Debian and Python than the training images', which has never heard of trainchart."""
REQUIREMENTS = "training-images/tensorflow/requirements/cpu.txt"
"""The only source that the Dockerfile's first stage takes: TensorFlow's packages."""
REGISTRY_ONLY_TAG = "registry-only"
"""Tag of images that no node holds, so that a kubelet has to pull them."""

_BASE = ("bookworm", ("ca-certificates", "python3-minimal", "python3-venv"))
_FOREIGN = ("trixie", ("python3",))
"""Suite and packages of the two images that are made of Debian alone."""
_CACHE_FORMAT = "1"
"""Change it when the layout of a cached folder changes."""
_TOOL_PREFIX = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
)


@dataclass(frozen=True)
class SourceFile:
    """One file of a build context; `path` is relative to the project's folder."""

    path: str
    content: bytes


@dataclass(frozen=True)
class BuildSecrets:
    """Files that RUN instructions see but the image does not hold."""

    pip_config: PurePosixPath
    ca_bundle: PurePosixPath


@dataclass(frozen=True)
class DockerfileBuild:
    """One `buildah build`: a target of the Dockerfile, or the whole of it for a model."""

    dockerfile: PurePosixPath
    context: PurePosixPath
    base_image: str
    reference: str
    secrets: BuildSecrets
    target: str = ""
    model: str = ""
    training_image: str = ""
    """What is built on top of, where that is not the base image."""
    helm_image: str = ""
    """Where helm comes from, if it is needed."""


@dataclass(frozen=True)
class ImageKeys:
    """The keys of the cached results: base, TensorFlow and set, each part of the next; the set has the foreign too."""

    base: str
    foreign: str
    tensorflow: str
    image_set: str

    @property
    def base_reference(self) -> str:
        return f"{REGISTRY_HOST}/cluster/base:{self.base}"

    @property
    def tensorflow_reference(self) -> str:
        return f"{REGISTRY_HOST}/cluster/tensorflow:{self.tensorflow}"


def content_key(*parts: str | bytes) -> str:
    """Return a short hash of `parts`; where one ends and the next begins matters."""
    digest = hashlib.sha256(_CACHE_FORMAT.encode())
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()[:16]


def sources_key(sources: tuple[SourceFile, ...]) -> str:
    """Return the key of a build context; the order of its files does not matter."""
    ordered = sorted(sources, key=lambda source: source.path)
    return content_key(*(part for source in ordered for part in (source.path, source.content)))


def resolve_keys(mirror: str, dockerfile: str, sources: tuple[SourceFile, ...], others: tuple[str, ...]) -> ImageKeys:
    """Return the keys. `others` names what else is in the set: references, and the hashes of the static programs.

    `sources` has the list of TensorFlow's packages, which the Dockerfile's first stage installs.
    """
    base = content_key(*base_argv(mirror, PurePosixPath("base.tar")))
    foreign = content_key(*foreign_argv(mirror, PurePosixPath("foreign.tar")))
    packages = sources_key(tuple(source for source in sources if source.path == REQUIREMENTS))
    tensorflow = content_key(base, first_stage(dockerfile), packages)
    image_set = content_key(tensorflow, foreign, dockerfile, sources_key(sources), *others)
    return ImageKeys(base, foreign, tensorflow, image_set)


def first_stage(dockerfile: str) -> str:
    """Return the text of a Dockerfile up to its second FROM, comments left out."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.startswith("#")]
    starts = [index for index, line in enumerate(lines) if line.startswith("FROM ")]
    return "\n".join(lines[: starts[1]] if len(starts) > 1 else lines)


def cluster_reference(repository: str, tag: str) -> str:
    """Return the name under which the test cluster knows the image of a model spec: another registry, else the same."""
    return f"{REGISTRY_HOST}/{repository.partition('/')[2]}:{tag}"


def isolated_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return `argv` in namespaces of its own, so that its children and mounts end with it, and it with its parent."""
    return (*_TOOL_PREFIX, *argv)


def base_argv(mirror: str, target: PurePosixPath) -> tuple[str, ...]:
    """Return the command that writes the base image's only layer."""
    return _debian_argv(*_BASE, mirror, target)


def foreign_argv(mirror: str, target: PurePosixPath) -> tuple[str, ...]:
    """Return the command that writes the foreign image's only layer."""
    return _debian_argv(*_FOREIGN, mirror, target)


def _debian_argv(suite: str, packages: tuple[str, ...], mirror: str, target: PurePosixPath) -> tuple[str, ...]:
    return (
        *("mmdebstrap", "--variant=minbase", "--mode=root", f"--include={','.join(packages)}"),
        *("--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright"),
        *("--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/man/*"),
        *(suite, str(target), mirror),
    )


def build_argv(build: DockerfileBuild) -> tuple[str, ...]:
    """Return the command that builds an image; its layers stay in buildah's storage for the next build."""
    argv = ["buildah", "build", "--layers", "--pull-never", "--network=host", f"--file={build.dockerfile}"]
    argv.append(f"--secret=id=pip-config,src={build.secrets.pip_config}")
    argv.append(f"--secret=id=ca-bundle,src={build.secrets.ca_bundle}")
    argv.append(f"--build-arg=BASE_IMAGE={build.base_image}")
    if build.model:
        argv.append(f"--build-arg=MODEL={build.model}")
    if build.training_image:
        argv.append(f"--build-arg=TRAINING_IMAGE={build.training_image}")
    if build.helm_image:
        argv.append(f"--build-arg=HELM_IMAGE={build.helm_image}")
    if build.target:
        argv.append(f"--target={build.target}")
    return (*argv, f"--tag={build.reference}", str(build.context))


def store_argv(layout: PurePosixPath, reference: str) -> tuple[str, ...]:
    """Return the command that brings an image from an OCI layout into buildah's storage."""
    return ("skopeo", "copy", "--quiet", f"oci:{layout}:{reference}", f"containers-storage:{reference}")


def export_argv(reference: str, layout: PurePosixPath) -> tuple[str, ...]:
    """Return the command that adds an image to an OCI layout, not compressed: nobody has to unpack gzip later."""
    return (
        *("skopeo", "copy", "--quiet", "--dest-oci-accept-uncompressed-layers"),
        *(f"containers-storage:{reference}", f"oci:{layout}:{reference}"),
    )


def push_argv(reference: str, layout: PurePosixPath, registry: str) -> tuple[str, ...]:
    """Return the command that brings an image of an OCI layout, as it is, into a registry without TLS."""
    target = f"docker://{registry}/{reference.partition('/')[2]}"
    return (
        *("skopeo", "copy", "--quiet", "--preserve-digests", "--dest-tls-verify=false"),
        *(f"oci:{layout}:{reference}", target),
    )


def pip_config(environment: Mapping[str, str]) -> str:
    """Return the pip.conf of a build, with this machine's package index."""
    options = {"disable-pip-version-check": "true", "no-input": "true"}
    for option in ("index-url", "extra-index-url", "trusted-host", "timeout"):
        for variable in (f"PIP_{option.upper().replace('-', '_')}", f"PIP_DEFAULT_{option.upper()}"):
            if environment.get(variable):
                options[option] = environment[variable]
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in options.items())


def containers_config() -> str:
    """Return containers.conf for a machine without systemd and with low limits on processes and files."""
    return (
        "[containers]\n"
        'default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]\n'
        "[engine]\n"
        'cgroup_manager = "cgroupfs"\n'
        'events_logger = "file"\n'
        'runtime = "runc"\n'
    )


def storage_config(storage: PurePosixPath, run: PurePosixPath) -> str:
    """Return storage.conf: images live in the cache, apart from those of the user's own buildah or podman."""
    return f'[storage]\ndriver = "overlay"\ngraphroot = "{storage}"\nrunroot = "{run}"\n'
