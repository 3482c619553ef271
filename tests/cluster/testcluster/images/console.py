"""Builds the console's image, apart from the set that each cluster needs: it holds all of trainchart's code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.images import plan
from tests.cluster.testcluster.images.build import DOCKERFILE, PROJECT, Builder, Inputs, find_mirror, read_sources
from tests.cluster.testcluster.images.cache import open_cache
from tests.cluster.testcluster.images.layout import file_digest, write_image, write_program_layer
from tests.cluster.testcluster.images.tool import run_tool

_DOCKERFILE = "training-images/console/Dockerfile"
_CONTEXT = (
    *(f"training-images/{name}" for name in ("console", "controller", "launcher", "runtime", "sbom", "serving")),
    *("training-images/training", "chart-templates", "generator/trainchart"),
)


def push_console_image(helm: Path, registry: str, report: Callable[[str], None] = lambda line: None) -> str:
    """Build the image where it is not in the cache, bring it into a registry, and return its reference."""
    mirror, dockerfile = find_mirror(os.environ), (PROJECT / DOCKERFILE).read_text()
    sources = tuple(source for folder in _CONTEXT for source in read_sources(folder))
    keys = plan.resolve_keys(mirror, dockerfile, sources, ())
    helm_digest = file_digest(helm)
    key = plan.content_key(keys.base, helm_digest, plan.sources_key(sources))
    reference = f"{REGISTRY_HOST}/ml/trainchart-console:{key}"
    cache = open_cache(os.environ)
    found = cache.find("console", key)
    if not found:
        with cache.lock():
            builder = Builder(Inputs(mirror, dockerfile, sources, {}, {}, {}, keys), cache, report)
            helm_reference = f"{REGISTRY_HOST}/cluster/helm:{helm_digest[:16]}"

            def fill(folder: Path) -> None:
                builder.store_base()
                layer, layout = builder.work / "helm.tar", builder.work / "helm"
                write_program_layer(helm, "usr/bin/helm", layer)
                write_image(layout, helm_reference, layer)
                builder.run("helm stored", plan.store_argv(PurePosixPath(layout), helm_reference))
                builder.build_dockerfile("console image", reference, dockerfile=_DOCKERFILE, helm_image=helm_reference)
                builder.export(reference, folder / "layout")

            found = builder.build("console", key, fill)
    run_tool(
        plan.push_argv(reference, PurePosixPath(found / "layout"), registry), os.environ, cache.folder / "push.log"
    )
    return reference
