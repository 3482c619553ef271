"""What a pod can be told: fields passed through to Kubernetes, and the settings of one role.

To let users set one more pod or container field, add it to PodSettings, or to EveryPodSettings where it suits the run
controller and TensorBoard too: the templates, values.yaml, the schema, the README table and the spec follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from trainchart.spec.section import (
    OWN_CONTAINERS,
    OWN_VOLUMES,
    STRING_MAP,
    Annotations,
    Count,
    Env,
    Labels,
    ObjectName,
    OptionalQuantity,
    PassThrough,
    Quantity,
    Resources,
    Section,
    kubernetes,
    list_of,
)

AnyMap = dict[str, Any]
AnyList = list[Any]


DnsPolicy = Literal["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
DNS_POLICIES: tuple[str, ...] = get_args(DnsPolicy)
_REFUSED = {"dnsPolicy": ("Default",)}
"""Choices of Kubernetes that training pods cannot have."""


def useful_choices(key: str, choices: Iterable[str]) -> list[str]:
    """Return the choices that a message about `key` names: none that is empty, or that is refused as well."""
    return [choice for choice in choices if choice and choice not in _REFUSED.get(key, ())]


def _empty_map() -> AnyMap:
    return {}


def _empty_list() -> AnyList:
    return []


class EveryPodSettings(Section):
    """Fields of every pod of the chart: training, run controller, TensorBoard and `helm test`.

    What a role, run.controller or tensorboard sets for its own pods has precedence.
    """

    pod_labels: Labels = Field(default_factory=_empty_map)
    """Labels added to the pods; those of queues (see commonLabels) are added to training pods only. See also
    extraManifests."""
    pod_annotations: Annotations = Field(default_factory=_empty_map)
    """Annotations added to the pods; those of queues are treated as in podLabels."""
    container_security_context: Annotated[
        AnyMap, PassThrough(kubernetes("SecurityContext"), "securityContext", "container", merge=True)
    ] = Field(default_factory=_empty_map)
    """Security context of the containers; a role's keys override the chart's."""
    node_selector: Annotated[AnyMap, PassThrough(STRING_MAP, "nodeSelector", "pod")] = Field(default_factory=_empty_map)
    """Labels that a node must have."""
    tolerations: Annotated[AnyList, PassThrough(list_of("Toleration"), "tolerations", "pod")] = Field(
        default_factory=_empty_list
    )
    """Node taints that the pods tolerate."""
    affinity: Annotated[AnyMap, PassThrough(kubernetes("Affinity"), "affinity", "pod", fills=True)] = Field(
        default_factory=_empty_map
    )
    """Affinity to nodes and to other pods."""
    topology_spread_constraints: Annotated[
        AnyList, PassThrough(list_of("TopologySpreadConstraint"), "topologySpreadConstraints", "pod")
    ] = Field(default_factory=_empty_list)
    """Spread over nodes or zones. A constraint without labelSelector counts the pods of its own role."""
    priority_class_name: Annotated[str, PassThrough({"type": "string"}, "priorityClassName", "pod")] = ""
    """Priority class of the pods."""
    runtime_class_name: Annotated[str, PassThrough({"type": "string"}, "runtimeClassName", "pod")] = ""
    """Container runtime class, for example nvidia."""
    scheduler_name: Annotated[str, PassThrough({"type": "string"}, "schedulerName", "pod")] = ""
    """Scheduler to use instead of the default one."""
    host_aliases: Annotated[AnyList, PassThrough(list_of("HostAlias"), "hostAliases", "pod")] = Field(
        default_factory=_empty_list
    )
    """Additional lines of /etc/hosts."""
    dns_policy: Annotated[DnsPolicy, PassThrough({"enum": list(DNS_POLICIES)}, "dnsPolicy", "pod")] = ""
    """DNS policy of the pods. Training pods find each other by the DNS names of a Service, so theirs cannot be Default,
    and None needs the cluster's nameservers and searches in dnsConfig."""
    dns_config: Annotated[AnyMap, PassThrough(kubernetes("PodDNSConfig"), "dnsConfig", "pod")] = Field(
        default_factory=_empty_map
    )
    """DNS settings of the pods."""
    pod_security_context: Annotated[
        AnyMap, PassThrough(kubernetes("PodSecurityContext"), "securityContext", "pod", merge=True)
    ] = Field(default_factory=_empty_map)
    """Security context of the pods; a role's keys override the chart's."""


class PodSettings(EveryPodSettings):
    """Fields of every training pod; set for the whole chart or, with precedence, for one role."""

    env: Env = Field(default_factory=_empty_map)
    """Environment of the training container: name to value, or to {valueFrom: …} for Secrets and ConfigMaps. A value
    may contain $(NAME) of any other variable here or of the chart, such as $(TRAINCHART_CHECKPOINTS_DIR); write $$ for
    $."""
    env_from: Annotated[AnyList, PassThrough(list_of("EnvFromSource"), "envFrom", "container", fills=True)] = Field(
        default_factory=_empty_list
    )
    """Secrets or ConfigMaps whose keys all become environment variables."""
    working_dir: Annotated[str, PassThrough({"type": "string"}, "workingDir", "container")] = ""
    """Working directory of the program; empty means the image's own."""
    liveness_probe: Annotated[AnyMap, PassThrough(kubernetes("Probe"), "livenessProbe", "container")] = Field(
        default_factory=_empty_map
    )
    """Liveness probe of the training container. None by default, because a slow step does not mean that the program
    hangs."""
    readiness_probe: Annotated[AnyMap, PassThrough(kubernetes("Probe"), "readinessProbe", "container")] = Field(
        default_factory=_empty_map
    )
    """Readiness probe of the training container. Peers find each other without one."""
    startup_probe: Annotated[AnyMap, PassThrough(kubernetes("Probe"), "startupProbe", "container")] = Field(
        default_factory=_empty_map
    )
    """Startup probe of the training container."""
    resources: Resources = Field(default_factory=_empty_map)
    """Requests and limits of the training container other than cpu, memory, ephemeralStorage and gpus, such as
    rdma/hca, and the claims that it uses. Those of a role are added to the chart's."""
    host_network: Annotated[bool, PassThrough({"type": "boolean"}, "hostNetwork", "pod")] = False
    """Use the network of the nodes, as RDMA requires. Then each training pod needs its own node, because it uses the
    node's ports, and NetworkPolicies do not apply to it."""
    resource_claims: Annotated[
        AnyList, PassThrough(list_of("PodResourceClaim"), "resourceClaims", "pod", fills=True)
    ] = Field(default_factory=_empty_list)
    """Claims for dynamic resource allocation."""
    init_containers: Annotated[AnyList, PassThrough(OWN_CONTAINERS, "initContainers", "pod")] = Field(
        default_factory=_empty_list
    )
    """Containers that run before the training container."""
    extra_containers: Annotated[AnyList, PassThrough(OWN_CONTAINERS, "containers", "append")] = Field(
        default_factory=_empty_list
    )
    """Additional containers of the pods."""
    extra_volumes: Annotated[AnyList, PassThrough(OWN_VOLUMES, "volumes", "append", fills=True)] = Field(
        default_factory=_empty_list
    )
    """Additional volumes of the pods."""
    extra_volume_mounts: Annotated[AnyList, PassThrough(list_of("VolumeMount"), "volumeMounts", "append")] = Field(
        default_factory=_empty_list
    )
    """Additional mounts of the training container."""


EVERY_POD_SETTINGS = frozenset(field.alias or name for name, field in EveryPodSettings.model_fields.items())
POD_SETTINGS = frozenset(field.alias or name for name, field in PodSettings.model_fields.items())
"""Keys that are set for all pods at the top level of the values, and may be set for some of them below."""


class RoleSettings(PodSettings):
    """One role of the training: how many pods, how large, and how they stop."""

    replicas: Count
    """Number of pods."""
    labels: Labels = Field(default_factory=_empty_map)
    """Labels added to the role's StatefulSet."""
    cpu: Quantity
    """CPU request of each pod."""
    memory: Quantity
    """Memory request of each pod."""
    cpu_limit: OptionalQuantity = ""
    """CPU limit of each pod; empty means the request."""
    memory_limit: OptionalQuantity = ""
    """Memory limit of each pod; empty means the request."""
    ephemeral_storage: OptionalQuantity
    """Request for the node's disk, for /tmp, the log and emptyDirs; the ephemeral volumes on the disk are added to it.
    Empty means neither request nor limit, for nodes that do not account for it."""
    ephemeral_storage_limit: OptionalQuantity = ""
    """Limit for the node's disk, above which the pod is evicted. Empty means 1Gi more than tmpSize, the ephemeral
    volumes on the node's disk and the sizeLimits of extraVolumes together, or no limit if one of their emptyDirs has no
    sizeLimit."""
    tmp_size: Quantity
    """Maximum size of /tmp; a pod that exceeds it is evicted."""
    gpus: Count
    """Number of GPUs of each pod, as the resource gpu.resourceName."""
    shm_size: Quantity
    """Size of /dev/shm, which counts against the memory limit."""
    stop_grace_seconds: Annotated[int, Field(ge=1)]
    """Seconds between SIGTERM and SIGKILL: as long as saving a checkpoint takes, with some margin."""
    save_wait_seconds: Count
    """Maximum number of seconds for which a stopping pod continues while the leading task is running, so that the task
    can save. 0 means no wait."""
    command: list[str] = Field(default_factory=_empty_list)
    """Program of this role; empty means the chart's command."""
    args: list[str] = Field(default_factory=_empty_list)
    """Arguments of this role's program; empty means the chart's args."""


class VolumeSettings(Section):
    """One folder of the pods: a claim that the chart makes, an existing claim, an ephemeral volume, or an object-store
    URI."""

    existing_claim: ObjectName
    """Name of an existing PersistentVolumeClaim to use instead of creating one."""
    uri: Annotated[str, Field(pattern=r"^([a-z][a-z0-9+.-]*://[^\s\x00-\x1f\x7f-\x9f]+)?$")]
    """Object-store address (gs://…, s3://…) that the program gets instead of a claim."""
    ephemeral: bool
    """Whether each pod gets its own empty volume, which is removed with the pod: with a storageClass, a claim of the
    pod, otherwise a folder on the node's disk, which counts towards ephemeralStorage."""
    size: OptionalQuantity
    """Size of the claim that the chart creates, or of each pod's ephemeral volume."""
    storage_class: str
    """StorageClass of the claim; empty means the cluster's default, "-" means none. For an ephemeral volume, both mean
    the node's disk."""
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany"]
    """Access mode of the claim. Default: ReadWriteMany if more than one pod mounts it, otherwise ReadWriteOnce. An
    ephemeral volume is always ReadWriteOnce."""
    mount_path: Annotated[str, Field(pattern=r"^(/[^:]*)?$")]
    """Mount path in the pods. It may be empty only with a uri."""
    sub_path: str
    """Folder inside the volume to mount instead of its root, created if it does not exist. $(TRAINCHART_RELEASE) in it
    gives each release its own folder."""
    read_only: bool
    """Whether the pods only read."""
    keep: bool
    """Whether `helm uninstall` keeps the claim. Not for ephemeral volumes."""
    roles: list[str]
    """Roles that mount it; empty means all."""
    annotations: Annotations
    """Annotations of the claim."""
