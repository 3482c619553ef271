"""Rules about charts of ours: what the launcher counts on, and what keeps a training alive through upgrades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Probe, Severity
from trainchart.check.objects import Pods, find_pods, mapping_at, mappings_at
from trainchart.check.rule import Rule, Scope
from trainchart.check.rules.cases import for_each_rendering
from trainchart.check.rules.quantities import sees_unrequested_gpus
from trainchart.check.sources import chart_values
from trainchart.helm.rendering import Manifest, Rendering
from trainchart_runtime import contract
from trainchart_runtime.cluster import ClusterDescriptionError, Task, dump_tf_config, hosts_by_task_type, parse_cluster

_NEEDED = (
    contract.TASK_TYPE,
    contract.POD_NAME,
    contract.ORDINAL,
    contract.RUN_ID,
    contract.CLUSTER_FILE,
    contract.HYPERPARAMETERS_FILE,
    contract.STATE_DIR,
    contract.TERMINATION_FILE,
    contract.MAX_RESTARTS,
    contract.STOP_GRACE_SECONDS,
    contract.SAVE_WAIT_SECONDS,
    contract.NO_PROGRESS_SECONDS,
)


def check_cluster_size(given: CheckInput) -> Iterator[Finding]:
    """Check that TF_CONFIG fits into one environment string, and that a chart refuses more pods than that."""
    renderings = dict(given.renderings())
    if Probe.many_pods in given.probes:
        renderings[str(Probe.many_pods)] = given.probes[Probe.many_pods]
    for label, rendering in renderings.items():
        for manifest in rendering.manifests:
            text = mapping_at(manifest.document, "data").get(contract.CLUSTER_FILE_NAME)
            if isinstance(text, str) and manifest.kind == "ConfigMap":
                problem = _size_problem(text)
                if problem:
                    yield Finding(
                        problem,
                        path=manifest.source,
                        line=manifest.line,
                        values=label,
                        hint="refuse that many pods in the chart",
                    )


@for_each_rendering
def check_launcher_environment(rendering: Rendering) -> Iterator[Finding]:
    """Check that training containers get every variable that the launcher reads, of the value it expects."""
    for pods in _training_pods(rendering):
        for container in pods.containers:
            if container.document.get("name") != contract.TRAINING_CONTAINER:
                continue
            environment = {str(entry.get("name")): entry for entry in mappings_at(container.document, "env")}
            for name in _NEEDED:
                if name not in environment:
                    yield _finding(pods, f"{container.where} lacks the variable {name}")
            grace = environment.get(contract.STOP_GRACE_SECONDS, {}).get("value")
            allowed = pods.spec.get("terminationGracePeriodSeconds", 30)
            if isinstance(grace, str) and grace.isdigit() and isinstance(allowed, int) and int(grace) > allowed:
                yield _finding(pods, f"the launcher has {grace} seconds to stop, but the pod has {allowed}")


@for_each_rendering
def check_training_sets(rendering: Rendering) -> Iterator[Finding]:
    """Check what keeps pods of a training together and running."""
    for pods in _training_pods(rendering):
        spec = mapping_at(pods.manifest.document, "spec")
        if spec.get("podManagementPolicy") != "Parallel":
            yield _finding(pods, "its pods start one after another, but each waits for its peers", "Parallel")
        if mapping_at(spec, "updateStrategy").get("type") != "OnDelete":
            yield _finding(pods, "an upgrade restarts its pods in the middle of a training run", "OnDelete")
        if pods.spec.get("shareProcessNamespace") is not True:
            yield _finding(
                pods, "the launcher runs as process 1 and loses an early SIGTERM", "shareProcessNamespace: true"
            )
        if pods.spec.get("enableServiceLinks") is not False:
            yield _finding(
                pods, "every Service of the namespace adds variables to its environment", "enableServiceLinks: false"
            )
        for container in pods.containers:
            if container.document.get("name") == contract.TRAINING_CONTAINER and sees_unrequested_gpus(pods, container):
                yield _finding(
                    pods,
                    f"{container.where} requests no GPU but sees those of the node",
                    "NVIDIA_VISIBLE_DEVICES: void",
                )


def check_kept_claims(given: CheckInput) -> Iterator[Finding]:
    """Check that every volume with `keep: true` has a claim that helm uninstall leaves alone."""
    volumes = mapping_at(chart_values(given), "volumes")
    wanted = [name for name, volume in volumes.items() if _is_kept(volume)]
    for case in given.cases[:1]:
        manifests = case.rendering.manifests if case.rendering else ()
        kept = sum(_has_keep(manifest) for manifest in manifests)
        if case.rendering is not None and kept < len(wanted):
            yield Finding(
                f"{len(wanted)} volumes must be kept ({', '.join(wanted)}), but {kept} claims are",
                path="templates/persistentvolumeclaims.yaml",
                hint="helm.sh/resource-policy: keep",
            )


def check_token_image(given: CheckInput) -> Iterator[Finding]:
    """Find a run controller, the only pod with a token, whose image others can replace."""
    # Of the chart's own values: what others install it with is theirs.
    for label, rendering in given.renderings():
        for pods, message, hint in () if label else _find_token_images(rendering):
            yield replace(_finding(pods, message, hint), severity=Severity.info)


def list_token_images(rendering: Rendering) -> tuple[str, ...]:
    """Return a warning for each run controller whose image its builder, or the owner of its tag, can replace."""
    return tuple(dict.fromkeys(f"{message}; {hint}" for _, message, hint in _find_token_images(rendering)))


def _find_token_images(rendering: Rendering) -> Iterator[tuple[Pods, str, str]]:
    """Yield run controllers whose image is the training's or is named by tag, with what that means and a hint."""
    training = {
        str(container.document.get("image"))
        for pods in _training_pods(rendering)
        for container in pods.containers
        if container.document.get("name") == contract.TRAINING_CONTAINER
    }
    for pods in find_pods(rendering):
        if pods.manifest.kind != "Job" or pods.labels.get(contract.COMPONENT_LABEL) != "controller":
            continue
        image = str(pods.containers[0].document.get("image")) if pods.containers else ""
        if image in training:
            message = (
                "the run controller, the only pod with a token, runs the training image: its builders get the token"
            )
            yield pods, message, "name the runtime image by digest in run.controller.image"
        elif image and "@sha256:" not in image:
            message = f"the run controller, the only pod with a token, runs {image}, a tag that its registry can move"
            yield pods, message, "name it by digest in run.controller.image"


def _training_pods(rendering: Rendering) -> Iterator[Pods]:
    return (
        pods
        for pods in find_pods(rendering)
        if pods.manifest.kind == "StatefulSet" and pods.labels.get(contract.TRAINING_LABEL) == "true"
    )


def _size_problem(text: str) -> str:
    try:
        cluster = parse_cluster(text)
        hosts = hosts_by_task_type(cluster, {})
        for task_type, found in hosts.items():
            # The last task's index is the longest.
            dump_tf_config(Task(task_type, len(found) - 1), hosts)
    except ClusterDescriptionError as error:
        return f"{contract.CLUSTER_FILE_NAME}: {error}"
    return ""


def _finding(pods: Pods, message: str, hint: str = "") -> Finding:
    return Finding(f"{pods.called}: {message}", path=pods.manifest.source, line=pods.manifest.line, hint=hint)


def _is_kept(volume: Any) -> bool:
    found: Mapping[str, Any] = mapping_at(volume)
    return bool(found.get("keep")) and not found.get("existingClaim") and not found.get("uri")


def _has_keep(manifest: Manifest) -> bool:
    annotations = mapping_at(manifest.document, "metadata", "annotations")
    return manifest.kind == "PersistentVolumeClaim" and annotations.get(contract.RESOURCE_POLICY_ANNOTATION) == "keep"


RULES = (
    Rule(
        "token-image",
        "The run controller has the only token of a release; anyone who can replace its image gets the token.",
        check_token_image,
        "docs/security.md",
        severity=Severity.info,
        others=Severity.info,
        scope=Scope.trainings,
    ),
    Rule(
        "cluster-size",
        "TF_CONFIG is one environment variable, and Linux refuses those larger than 128 KiB.",
        check_cluster_size,
        "https://man7.org/linux/man-pages/man2/execve.2.html",
        scope=Scope.trainings,
    ),
    Rule(
        "launcher-environment",
        "The launcher stops at once if the chart does not set the variables that the contract requires.",
        check_launcher_environment,
        "docs/decisions/0003-chart-launcher-contract.md",
        scope=Scope.trainings,
    ),
    Rule(
        "training-sets",
        "Peers must start together, and after an upgrade the run controller restarts the pods, not the StatefulSet.",
        check_training_sets,
        "https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies",
        scope=Scope.trainings,
    ),
    Rule(
        "claims-kept",
        "helm uninstall deletes the checkpoints of a claim without the annotation.",
        check_kept_claims,
        "https://helm.sh/docs/howto/charts_tips_and_tricks/#tell-helm-not-to-uninstall-a-resource",
        scope=Scope.trainings,
    ),
)
