"""Builds what plan.py decided, in three results that are cached: base, TensorFlow, and the set that a cluster needs.

Each is made from the one before, by hard links where bytes are the same: a change of a model's code costs seconds.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.images import plan
from tests.cluster.testcluster.images.cache import ImageCache, open_cache
from tests.cluster.testcluster.images.containerd_root import (
    copy_containerd_root,
    import_images,
    link_held_blobs,
    read_held_blobs,
)
from tests.cluster.testcluster.images.layout import (
    add_image,
    blob_path,
    file_digest,
    link_blobs,
    read_layout,
    write_archive,
    write_image,
    write_program_layer,
)
from tests.cluster.testcluster.images.registry_storage import write_registry_storage
from tests.cluster.testcluster.images.tool import run_tool

PROJECT = Path(__file__).resolve().parents[4]
DOCKERFILE = "training-images/tensorflow/Dockerfile"
_RUNTIME_DOCKERFILE = "training-images/controller/Dockerfile"
_ON_TOP = {
    plan.SERVING_IMAGE: "training-images/serving/Dockerfile",
    plan.NOTEBOOK_IMAGE: "training-images/notebook/Dockerfile",
}
"""Images on top of the first model's → Dockerfile."""
_SOURCES = (
    "training-images/launcher",
    "training-images/controller",
    "training-images/runtime",
    "training-images/training",
    "training-images/serving",
    "training-images/notebook",
    "training-images/sbom",
)
_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_PROGRAM_USER = "65535:65535"


@dataclass(frozen=True)
class ImagePrograms:
    """Paths of the static programs that get an image each."""

    pause: Path
    coredns: Path


@dataclass(frozen=True)
class ImageSet:
    """All images of a test cluster. The folders belong to the cache: copy them, write nothing into them."""

    pause: str
    coredns: str
    models: Mapping[str, str]
    """Model → reference, which every node holds and the registry serves."""
    registry_only: Mapping[str, str]
    """Model or "pause" → reference of the same image that only the registry has, so that kubelets must pull it."""
    layout: Path
    """OCI layout of all images, layers not compressed."""
    containerd_root: Path
    """For `copy_containerd_root`."""
    registry_storage: Path
    """For `copy_registry_storage`: rootdirectory of the registry's filesystem driver."""


@dataclass(frozen=True)
class Inputs:
    """Everything that goes into a result, read once."""

    mirror: str
    dockerfile: str
    sources: tuple[plan.SourceFile, ...]
    models: Mapping[str, str]
    code: Mapping[str, str]
    """Model → the folder of its code."""
    programs: Mapping[str, tuple[Path, str]]
    """Name → path and the reference of its image."""
    keys: plan.ImageKeys


def build_images(programs: ImagePrograms, report: Callable[[str], None] = lambda line: None) -> ImageSet:
    """Return the images of a test cluster, building what is not in the cache. Raises ImageBuildError.

    Parallel calls build once. `report` gets a line after every step that did something.
    """
    inputs = _read_inputs(programs, os.environ)
    cache = open_cache(os.environ)
    found = cache.find("set", inputs.keys.image_set)
    if not found:
        with cache.lock():
            found = Builder(inputs, cache, report).build_set()
    registry = [*inputs.models.items(), ("pause", inputs.programs["pause"][1])]
    return ImageSet(
        pause=inputs.programs["pause"][1],
        coredns=inputs.programs["coredns"][1],
        models=inputs.models,
        registry_only={name: _registry_only(reference) for name, reference in registry},
        layout=found / "layout",
        containerd_root=found / "containerd",
        registry_storage=found / "registry",
    )


def _registry_only(reference: str) -> str:
    return f"{reference.rpartition(':')[0]}:{plan.REGISTRY_ONLY_TAG}"


def find_mirror(environment: Mapping[str, str]) -> str:
    """Return where Debian's packages come from."""
    return environment.get("DEBIAN_MIRROR") or "http://deb.debian.org/debian"


def _read_inputs(programs: ImagePrograms, environment: Mapping[str, str]) -> Inputs:
    mirror = find_mirror(environment)
    dockerfile = (PROJECT / DOCKERFILE).read_text()
    specs = {model: yaml.safe_load((PROJECT / "models" / f"{model}.yaml").read_text()) for model in plan.MODELS}
    code = {model: spec["code"]["path"] for model, spec in specs.items()}
    images = {model: spec["image"] for model, spec in specs.items()}
    models = {model: plan.cluster_reference(each["repository"], str(each["tag"])) for model, each in images.items()}
    context = (*_SOURCES, str(PurePosixPath(plan.REQUIREMENTS).parent), *code.values())
    sources = tuple(source for folder in context for source in read_sources(folder))
    known = {}
    for name, path in (("pause", programs.pause), ("coredns", programs.coredns)):
        known[name] = (path, f"{REGISTRY_HOST}/cluster/{name}:{file_digest(path)[:16]}")
    references = (
        *models.values(),
        plan.RUNTIME_IMAGE,
        *_ON_TOP,
        plan.FOREIGN_IMAGE,
        *(reference for _, reference in known.values()),
    )
    return Inputs(
        mirror, dockerfile, sources, models, code, known, plan.resolve_keys(mirror, dockerfile, sources, references)
    )


def read_sources(folder: str) -> list[plan.SourceFile]:
    """Return the files of a folder of the project."""
    paths = sorted(path for path in (PROJECT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [plan.SourceFile(path.relative_to(PROJECT).as_posix(), path.read_bytes()) for path in paths]


class Builder:
    """Builds the results of one set of inputs; the cache's lock is held all the time."""

    def __init__(self, inputs: Inputs, cache: ImageCache, report: Callable[[str], None]) -> None:
        self._inputs = inputs
        self._cache = cache
        self._report = report
        self._work = cache.folder / "work"
        # A socket's path may have 108 characters at most, so containerd's cannot lie in the cache, wherever that is.
        self._scratch = Path("/run", f"trainchart-images-{plan.content_key(str(cache.folder.resolve()))}")
        self._log = cache.folder / "build.log"

    @property
    def work(self) -> Path:
        """A folder for this build alone."""
        return self._work

    def build_set(self) -> Path:
        """Return the set, which may have been built while this process waited for the lock."""
        return self.build("set", self._inputs.keys.image_set, self._fill_set)

    def build(self, kind: str, key: str, fill: Callable[[Path], None]) -> Path:
        """Return a result that `fill` writes with the tools' folders in place."""
        # What goes into images is for any user, and the same for whoever builds it.
        before = os.umask(0o022)
        self._log.write_bytes(b"")
        try:
            for folder in (self._work, self._scratch):
                shutil.rmtree(folder, ignore_errors=True)  # what a killed build has left
                folder.mkdir()
            return self._cache.build(kind, key, fill)
        finally:
            os.umask(before)
            for folder in (self._work, self._scratch):
                shutil.rmtree(folder, ignore_errors=True)

    def _fill_base(self, folder: Path) -> None:
        layer = folder / "base.tar"
        self.run("base image", plan.base_argv(self._inputs.mirror, PurePosixPath(layer)))
        write_image(folder / "layout", self._inputs.keys.base_reference, layer)

    def _fill_foreign(self, folder: Path) -> None:
        layer = folder / "foreign.tar"
        self.run("foreign image", plan.foreign_argv(self._inputs.mirror, PurePosixPath(layer)))
        write_image(folder / "layout", plan.FOREIGN_IMAGE, layer)

    def _fill_tensorflow(self, folder: Path) -> None:
        keys = self._inputs.keys
        # buildah's storage must have the layers of every result of this kind, or the next set would get other ones.
        if self._cache.remove_full("tensorflow"):
            self.run("storage emptied", ("buildah", "rmi", "--all", "--force"))
        self.store_base()
        self.build_dockerfile("TensorFlow layer", keys.tensorflow_reference, target="tensorflow")
        self.export(keys.tensorflow_reference, folder / "layout")
        self._import(folder / "layout", folder / "containerd")

    def _fill_set(self, folder: Path) -> None:
        keys = self._inputs.keys
        tensorflow = self._cache.build("tensorflow", keys.tensorflow, self._fill_tensorflow)
        layout = folder / "layout"
        link_blobs(tensorflow / "layout", layout)
        self.store_base()
        for model, reference in self._inputs.models.items():
            self.build_dockerfile(f"image {model}", reference, model=self._inputs.code[model])
            self.export(reference, layout)
        self.build_dockerfile("runtime image", plan.RUNTIME_IMAGE, dockerfile=_RUNTIME_DOCKERFILE)
        self.export(plan.RUNTIME_IMAGE, layout)
        image = self._inputs.models[plan.MODELS[0]]
        for reference, dockerfile in _ON_TOP.items():
            self.build_dockerfile(f"image {reference}", reference, dockerfile=dockerfile, training_image=image)
            self.export(reference, layout)
        foreign = self._cache.build("foreign", keys.foreign, self._fill_foreign)
        link_blobs(foreign / "layout", layout)
        add_image(layout, *read_layout(foreign / "layout"))
        for name, (path, reference) in self._inputs.programs.items():
            layer = self._work / f"{name}.tar"
            write_program_layer(path, name, layer)
            write_image(layout, reference, layer, (f"/{name}",), _PROGRAM_USER)
        copy_containerd_root(tensorflow / "containerd", folder / "containerd")
        self._import(layout, folder / "containerd")
        images = {image.reference: image for image in read_layout(layout)}
        pause = self._inputs.programs["pause"][1]
        served = [*self._inputs.models.values(), pause]
        names = [(reference, reference) for reference in served]
        names += [(_registry_only(reference), reference) for reference in served]
        in_registry = tuple((name.partition("/")[2], images[reference]) for name, reference in names)
        write_registry_storage(folder / "registry", layout, in_registry)

    def store_base(self) -> None:
        """Bring the base image into buildah's storage."""
        keys = self._inputs.keys
        base = self._cache.build("base", keys.base, self._fill_base)
        self.run("base image stored", plan.store_argv(PurePosixPath(base / "layout"), keys.base_reference))

    def build_dockerfile(
        self,
        step: str,
        reference: str,
        target: str = "",
        model: str = "",
        dockerfile: str = DOCKERFILE,
        training_image: str = "",
        helm_image: str = "",
    ) -> None:
        """Build an image into buildah's storage."""
        context = self._write_context()
        build = plan.DockerfileBuild(
            dockerfile=PurePosixPath(context / dockerfile),
            context=PurePosixPath(context),
            base_image=self._inputs.keys.base_reference,
            reference=reference,
            secrets=self._write_secrets(),
            target=target,
            model=model,
            training_image=training_image,
            helm_image=helm_image,
        )
        self.run(step, plan.build_argv(build))

    def _write_context(self) -> Path:
        """Write the files as they were read: a file that changes during the build must not get under the old key."""
        context = self._work / "context"
        if not context.exists():
            for source in (*self._inputs.sources, plan.SourceFile(DOCKERFILE, self._inputs.dockerfile.encode())):
                path = context / source.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(source.content)
                os.utime(path, (0, 0))
        return context

    def _write_secrets(self) -> plan.BuildSecrets:
        bundle = Path(os.environ.get("SSL_CERT_FILE") or _CA_BUNDLE)
        config = self._work / "pip.conf"
        config.touch(mode=0o600)  # the index's address may hold a password
        config.write_text(plan.pip_config(os.environ))
        return plan.BuildSecrets(PurePosixPath(config), PurePosixPath(bundle))

    def export(self, reference: str, layout: Path) -> None:
        """Add an image of buildah's storage to a layout."""
        self.run("  exported", plan.export_argv(reference, PurePosixPath(layout)))

    def _import(self, layout: Path, root: Path) -> None:
        start = time.monotonic()
        archive = self._work / "archive.tar"
        write_archive(layout, read_held_blobs(root), archive)
        import_images(root, archive, self._scratch, self._log)
        archive.unlink()
        link_held_blobs(root, blob_path(layout, ""))
        self._report(f"  imported into containerd: {time.monotonic() - start:.1f} s")

    def run(self, step: str, argv: tuple[str, ...]) -> None:
        """Run a tool, and report how long it took."""
        start = time.monotonic()
        run_tool(argv, self._tool_environment(), self._log)
        self._report(f"{step}: {time.monotonic() - start:.1f} s")

    def _tool_environment(self) -> Mapping[str, str]:
        """Return an environment in which buildah and skopeo keep everything inside the cache."""
        storage = self._work / "storage.conf"
        storage.write_text(
            plan.storage_config(PurePosixPath(self._cache.folder / "storage"), PurePosixPath(self._work / "run"))
        )
        containers = self._work / "containers.conf"
        containers.write_text(plan.containers_config())
        return {
            **os.environ,
            "BUILDAH_ISOLATION": "chroot",
            "CONTAINERS_CONF": str(containers),
            "CONTAINERS_STORAGE_CONF": str(storage),
            "TMPDIR": str(self._work),
        }
