"""Rules about resources: requests and limits are there, are quantities, and fit each other; GPUs are limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from trainchart.check.finding import Finding, Severity
from trainchart.check.objects import Container, Pods, called, find_pods, mapping_at, mappings_at
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Rendering
from trainchart.quantities import find_amount_problems, is_too_small, read_amount


@for_each_rendering
def check_quantities(rendering: Rendering) -> Iterator[Finding]:
    """Check every quantity of every container and claim, requests against limits, and where GPUs stand."""
    for pods in find_pods(rendering):
        for container in pods.containers:
            for problem, hint in _resource_problems(container):
                yield Finding(
                    f"{pods.called}: {container.where}: {problem}",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    hint=hint,
                )
        for volume in mappings_at(pods.spec, "volumes"):
            template = mapping_at(volume, "ephemeral", "volumeClaimTemplate")
            if template and (problem := _size_problem(template)):
                where = f"{pods.called}: volume {volume.get('name')}"
                yield Finding(f"{where}: {problem}", path=pods.manifest.source, line=pods.manifest.line)
    for manifest in rendering.manifests:
        if manifest.kind == "PersistentVolumeClaim" and (problem := _size_problem(manifest.document)):
            yield Finding(f"{called(manifest)}: {problem}", path=manifest.source, line=manifest.line)


@for_each_rendering
def check_resources_set(rendering: Rendering) -> Iterator[Finding]:
    """Find containers without requests or limits of CPU and memory."""
    for pods in find_pods(rendering):
        for container in pods.containers:
            missing = list(_missing(container))
            if missing:
                yield Finding(
                    f"{pods.called}: {container.where} has no {', '.join(missing)}",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    hint="set requests and limits of cpu and memory",
                )


def sees_unrequested_gpus(pods: Pods, container: Container) -> bool:
    """Tell whether the container would see a node's GPUs without having asked for any."""
    limits = mapping_at(container.document, "resources", "limits")
    environment = {
        str(variable.get("name")): variable.get("value") for variable in mappings_at(container.document, "env")
    }
    asks = any("/" in str(name) for name in limits) or bool(pods.spec.get("resourceClaims"))
    return not asks and environment.get("NVIDIA_VISIBLE_DEVICES") not in ("void", "none", "")


def _size_problem(claim: Mapping[str, object]) -> str:
    """Return what is wrong with the size of a claim; "" where nothing is."""
    size = mapping_at(claim, "spec", "resources", "requests").get("storage")
    if size is None:
        return "requests no storage (spec.resources.requests.storage)"
    if read_amount(size) in (None, Decimal(0)):
        return f"storage {size!r} is not a valid size"
    return f"storage {size!r} is less than 1Mi" if is_too_small(size) else ""


def _missing(container: Container) -> Iterator[str]:
    for section in ("requests", "limits"):
        given = mapping_at(container.document, "resources", section)
        # A request that is not said is the limit.
        other = mapping_at(container.document, "resources", "limits") if section == "requests" else {}
        yield from (f"{section}.{name}" for name in ("cpu", "memory") if name not in given and name not in other)


def _resource_problems(container: Container) -> Iterator[tuple[str, str]]:
    resources = container.document.get("resources")
    for section in ("requests", "limits"):
        given = mapping_at(resources).get(section)
        if given is not None and not isinstance(given, Mapping):
            yield f"resources.{section} is {given!r}, not a map of resources to amounts", "nvidia.com/gpu: 1"
    requests, limits = mapping_at(resources, "requests"), mapping_at(resources, "limits")
    for section, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in amounts.items():
            if read_amount(amount) is None:
                yield f"resources.{section}.{name}: {amount!r} is not a quantity", "for example 500m, 2, 1.5Gi"
    for name in sorted({*requests, *limits}, key=str):
        yield from find_amount_problems(str(name), requests.get(name), limits.get(name))


_RESOURCES = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/"
RULES = (
    Rule(
        "quantities",
        "A GPU limit that is a string, or a request above its limit, is refused when the pod is created, not at "
        "install.",
        check_quantities,
        _RESOURCES,
    ),
    Rule(
        "resources-set",
        "A container without requests and limits is the first to be evicted, and takes resources from its neighbours.",
        check_resources_set,
        _RESOURCES,
        others=Severity.info,
    ),
)
