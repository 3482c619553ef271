"""Combinations that are well-formed but cannot train, each with its reason and the way out. Pure.

One function a concern; each yields what it finds, and nothing is raised here.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from trainchart.plan.queues import find_queue_problems
from trainchart.plan.scheduling import find_scheduling_problems
from trainchart.plan.strategies import STRATEGIES
from trainchart.plan.volumes import find_volume_problems
from trainchart.quantities import find_amount_problems, is_cpu, is_too_small, parse_quantity, suggest_quantity
from trainchart.spec.document import Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.section import ENV_NAME_PATTERN, RESERVED_ENV_PATTERN
from trainchart.spec.settings import EveryPodSettings, RoleSettings
from trainchart_runtime.cluster import MAX_REPLICAS, ROLES

_SCHEDULING = {"affinity", "dns_config", "dns_policy", "host_aliases", "tolerations", "topology_spread_constraints"}


@dataclass(frozen=True)
class Impossibility:
    path: Path
    message: str
    hint: str = ""


def find_impossibilities(spec: ModelSpec) -> Iterator[Impossibility]:
    """Yield every reason why `spec` cannot become a chart that trains."""
    yield from _roles(spec)
    for role, settings in spec.roles.items():
        yield from _resources(spec, role, settings)
        yield from _more_resources(spec, role, settings)
        yield from _environment(("roles", role, "env"), settings.env)
        yield from _scheduling(spec, ("roles", role), settings)
        yield from _name_resolution(spec, role, settings)
    yield from _environment(("env",), spec.env)
    yield from _scheduling(spec, (), spec)
    yield from _scheduling(spec, ("run", "controller"), spec.run.controller)
    yield from _scheduling(spec, ("tensorboard",), spec.tensorboard)
    for name, volume in spec.volumes.items():
        if volume.size != "":
            yield from _quantity(("volumes", name, "size"), volume.size)
    for path, pod in ((("tensorboard",), spec.tensorboard), (("run", "controller"), spec.run.controller)):
        amounts = {"cpu": pod.cpu, "memory": pod.memory, "cpuLimit": pod.cpu_limit, "memoryLimit": pod.memory_limit}
        yield from _amounts(path, amounts)
    yield from (Impossibility(*each) for each in find_volume_problems(spec))
    yield from _ports_and_addresses(spec)
    yield from _controller(spec)
    yield from (Impossibility(*each) for each in find_queue_problems(spec))
    yield from _image(spec)
    yield from _code(spec)


def _roles(spec: ModelSpec) -> Iterator[Impossibility]:
    strategy = STRATEGIES[spec.strategy]
    for role, settings in spec.roles.items():
        path: Path = ("roles", role)
        if role not in ROLES:
            close = difflib.get_close_matches(role, ROLES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"roles are {', '.join(ROLES)}"
            yield Impossibility(path, f"unknown role {role}", hint)
            continue
        allowed = strategy.roles[role]
        if not allowed.minimum <= settings.replicas <= allowed.maximum:
            yield Impossibility((*path, "replicas"), *_replicas_reason(spec.strategy, role, settings.replicas))


def _replicas_reason(strategy: str, role: str, replicas: int) -> tuple[str, str]:
    """Return message and hint for a number of pods that the strategy cannot have."""
    if replicas == 0:
        return f"{strategy} needs at least one {role}", f"set roles.{role}.replicas to 1 or more"
    if replicas > MAX_REPLICAS:
        return (
            f"{replicas} pods of {role}: their addresses do not fit into TF_CONFIG, an environment variable of at most "
            "128 KiB",
            f"use at most {MAX_REPLICAS}",
        )
    if role == "chief":
        return f"{replicas} chiefs: exactly one chief leads a training run", "add workers instead"
    return f"{replicas} evaluators: they would evaluate the same checkpoints", "use one evaluator"


def _dotted(*path: str | int) -> str:
    return ".".join(map(str, path))


def _quantity(path: Path, value: str | int | float) -> Iterator[Impossibility]:
    """Check one quantity, which is a size unless it is of CPUs."""
    key, quantity = str(path[-1]), parse_quantity(value)
    if quantity is None or quantity <= 0:
        what = "is not a positive quantity"
    elif not is_cpu(key) and is_too_small(value):
        what = "is less than 1Mi"
    else:
        return
    yield Impossibility(path, f"{_dotted(*path)}: {value!r} {what}", suggest_quantity(key, value))


def _amounts(path: Path, amounts: dict[str, str | int | float]) -> Iterator[Impossibility]:
    """Check quantities, and that no request is above its limit."""
    parsed = {key: parse_quantity(value) for key, value in amounts.items() if value != ""}
    for key in parsed:
        yield from _quantity((*path, key), amounts[key])
    for request, limit in (
        ("cpu", "cpuLimit"),
        ("memory", "memoryLimit"),
        ("ephemeralStorage", "ephemeralStorageLimit"),
    ):
        wanted, allowed = parsed.get(request), parsed.get(limit)
        if wanted and allowed and wanted > allowed:
            yield Impossibility(
                (*path, limit),
                f"{path[-1]} requests {amounts[request]} {request} but is limited to {amounts[limit]}",
                f"raise {limit}, or leave it out to use the request",
            )


def _resources(spec: ModelSpec, role: str, settings: RoleSettings) -> Iterator[Impossibility]:
    yield from _amounts(
        ("roles", role),
        {
            "cpu": settings.cpu,
            "memory": settings.memory,
            "cpuLimit": settings.cpu_limit,
            "memoryLimit": settings.memory_limit,
            "ephemeralStorage": settings.ephemeral_storage,
            "ephemeralStorageLimit": settings.ephemeral_storage_limit,
            "tmpSize": settings.tmp_size,
            "shmSize": settings.shm_size,
        },
    )
    memory = parse_quantity(settings.memory_limit or settings.memory)
    shared = parse_quantity(settings.shm_size)
    if memory and shared and shared >= memory:
        yield Impossibility(
            ("roles", role, "shmSize"),
            f"/dev/shm of {settings.shm_size} does not fit into the memory of "
            f"{settings.memory_limit or settings.memory}",
            "shmSize counts against the memory limit",
        )
    if settings.gpus and spec.framework.flavour == "cpu":
        yield Impossibility(
            ("roles", role, "gpus"),
            f"{role} asks for {settings.gpus} GPUs, but the image contains TensorFlow for CPUs",
            "set framework.flavour to gpu",
        )
    if settings.save_wait_seconds >= settings.stop_grace_seconds:
        yield Impossibility(
            ("roles", role, "saveWaitSeconds"),
            f"{role} may wait {settings.save_wait_seconds} s, but has only {settings.stop_grace_seconds} s to stop",
            "raise stopGraceSeconds, which includes the wait, or lower saveWaitSeconds",
        )


def _amounts_of(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    amounts = resources.get(kind)
    return amounts if isinstance(amounts, dict) else {}


def _more_resources(spec: ModelSpec, role: str, settings: RoleSettings) -> Iterator[Impossibility]:
    """Check the resources beside cpu, memory and gpus, the chart's and the role's together."""
    path: Path = ("roles", role, "resources") if settings.resources else ("resources",)
    requests, limits = (
        {**_amounts_of(spec.resources, kind), **_amounts_of(settings.resources, kind)}
        for kind in ("requests", "limits")
    )
    for name in {**requests, **limits}:
        if name in ("cpu", "memory"):
            yield Impossibility(path, f"{name} has its own keys", f"set roles.{role}.{name} and {name}Limit")
        elif name == "ephemeral-storage":
            yield Impossibility(path, f"{name} has its own keys", f"set roles.{role}.ephemeralStorage and its Limit")
        elif name == spec.gpu.resource_name:
            yield Impossibility(path, f"{name} has its own key", f"set roles.{role}.gpus")
        for problem, hint in find_amount_problems(name, requests.get(name), limits.get(name)):
            yield Impossibility(path, problem, hint)


def _scheduling(spec: ModelSpec, path: Path, settings: EveryPodSettings) -> Iterator[Impossibility]:
    """Check what the API server checks in tolerations, affinity, spread constraints and DNS settings of one layer."""
    pod = settings.model_dump(by_alias=True, include=_SCHEDULING)
    if not settings.dns_config and spec.dns_config.get("nameservers"):
        del pod["dnsPolicy"]  # None is fine: the nameservers are those of all pods.
    for field, problem in find_scheduling_problems(pod):
        yield Impossibility((*path, field), problem)


def _name_resolution(spec: ModelSpec, role: str, settings: RoleSettings) -> Iterator[Impossibility]:
    """Check that the pods of a role can resolve the names of their peers."""
    path: Path = ("roles", role, "dnsPolicy") if settings.dns_policy else ("dnsPolicy",)
    policy, config = settings.dns_policy or spec.dns_policy, settings.dns_config or spec.dns_config
    if policy == "ClusterFirst" and (settings.host_network or spec.host_network):
        yield Impossibility(
            path,
            "with hostNetwork, dnsPolicy ClusterFirst means Default: the pods cannot resolve the names of their peers",
            "leave it empty, or use ClusterFirstWithHostNet",
        )
    if policy == "Default" or (policy == "None" and not (config.get("nameservers") and config.get("searches"))):
        yield Impossibility(
            path,
            f"dnsPolicy {policy}: the pods cannot resolve the names of their peers",
            "use ClusterFirst, or None with the cluster's nameservers and searches in dnsConfig",
        )


def _environment(path: Path, env: dict[str, object]) -> Iterator[Impossibility]:
    for name, value in env.items():
        if not re.fullmatch(ENV_NAME_PATTERN, name):
            yield Impossibility((*path, name), f"{name!r} is not a valid name of an environment variable")
        elif re.fullmatch(RESERVED_ENV_PATTERN, name):
            yield Impossibility((*path, name), f"{name} is set by trainchart itself", "choose another name")
        elif not isinstance(value, (str, int, float, bool)) and not (
            isinstance(value, dict) and set(value) == {"valueFrom"}
        ):
            yield Impossibility(
                (*path, name), f"{name} is neither a string nor a valueFrom", f"for example {name}: text"
            )


def _ports_and_addresses(spec: ModelSpec) -> Iterator[Impossibility]:
    if spec.service.port == spec.service.status_port:
        yield Impossibility(
            ("service", "statusPort"), f"port {spec.service.port} cannot serve both TensorFlow and the status"
        )
    policy = spec.network_policy
    if policy.enabled and policy.restrict_egress and spec.run.controller.enabled and not policy.api_server:
        yield Impossibility(
            ("networkPolicy", "restrictEgress"),
            "the NetworkPolicy keeps the run controller from reaching the API server",
            "list the API server's addresses in networkPolicy.apiServer",
        )
    board = spec.tensorboard
    if (
        board.enabled
        and board.ingress.enabled
        and spec.network_policy.enabled
        and not spec.network_policy.tensorboard_from
    ):
        yield Impossibility(
            ("tensorboard", "ingress"),
            "the NetworkPolicy allows no traffic to TensorBoard",
            "list the ingress controller's namespace in networkPolicy.tensorboardFrom",
        )


def _controller(spec: ModelSpec) -> Iterator[Impossibility]:
    controller = spec.run.controller
    if controller.enabled and not spec.rbac.create and not controller.service_account_name:
        yield Impossibility(
            ("rbac", "create"),
            "the run controller would have no rights",
            "name a ServiceAccount that has them in run.controller.serviceAccountName",
        )
    if spec.run.notify.secret and not controller.enabled:
        yield Impossibility(
            ("run", "notify"), "the run controller sends the messages", "set run.controller.enabled to true"
        )


def _image(spec: ModelSpec) -> Iterator[Impossibility]:
    tag = str(spec.image.tag)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", tag):
        yield Impossibility(("image", "tag"), f"image.tag: {tag!r} is not an image tag", 'for example tag: "1.4.0"')
    elif tag == "latest" and not spec.image.digest:
        yield Impossibility(("image", "tag"), "latest is a moving tag", "use a fixed tag or image.digest")
    if spec.image.inject_launcher and not spec.run.controller.image:
        yield Impossibility(
            ("image", "injectLauncher"),
            "there is no runtime image to copy the launcher from",
            "name it in run.controller.image: it contains the launcher as well as the run controller",
        )


def _code(spec: ModelSpec) -> Iterator[Impossibility]:
    path = PurePosixPath(posixpath.normpath(spec.code.path))
    if path.is_absolute() or ".." in path.parts:
        yield Impossibility(
            ("code", "path"),
            f"code.path: {spec.code.path!r} is outside the project, the folder that holds models/",
            "all of code.path goes into the image: move the code into the project, or models/ into a folder above it",
        )
