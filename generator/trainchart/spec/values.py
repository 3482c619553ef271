"""The values of a generated chart, section by section: its public interface beside the names of its objects.

values.yaml, its comments, values.schema.json and the README table derive from `Values`; the model spec offers the
same sections (`SharedValues`), so that a key has one name, one meaning and one place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trainchart.spec.section import (
    EXACT,
    Annotations,
    Count,
    Duration,
    JsonSchema,
    Labels,
    ObjectName,
    OptionalQuantity,
    Port,
    Quantity,
    Section,
    kubernetes,
)
from trainchart.spec.settings import EveryPodSettings, PodSettings, RoleSettings, VolumeSettings

_PEERS: dict[str, Any] = {"type": "array", "items": kubernetes("NetworkPolicyPeer", "networking.v1")}
_EGRESS: dict[str, Any] = {"type": "array", "items": kubernetes("NetworkPolicyEgressRule", "networking.v1")}
EgressRules = Annotated[list[Any], JsonSchema(_EGRESS)]
Peers = Annotated[list[Any], JsonSchema(_PEERS)]
DigestText = Annotated[str, Field(pattern=r"^(sha256:[a-f0-9]{64})?$")]


TAG_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"
Tag = Annotated[
    str | int,
    JsonSchema(
        {"type": ["string", "integer"], "pattern": TAG_PATTERN, **EXACT, "minimum": 0, "not": {"const": "latest"}}
    ),
]
RESUME_PATTERN = r"^(never|latest|0|[1-9][0-9]{0,14})$"
RELEASE_PATTERN = r"^([a-z0-9]([-a-z0-9.]{0,51}[a-z0-9])?)?$"
RUN_ID_PATTERN = r"^([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?)?$"


class Image(Section):
    """The training image. The digest takes precedence over the tag."""

    repository: Annotated[
        str, Field(pattern=r"^([a-zA-Z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$")
    ]
    """Registry and name of the image, without tag."""
    tag: Tag
    """Tag of the image; never a moving one such as latest."""
    digest: DigestText
    """Digest (sha256:…) of the image. It identifies exactly one image and takes precedence over the tag."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"]
    """When the kubelet pulls the image."""
    pull_secrets: list[str]
    """Names of the image pull secrets."""
    inject_launcher: bool
    """Whether the launcher is copied into the pods from the runtime image, run.controller.image. Then the training
    image needs only Python 3.8 or newer as python3, and nothing from trainchart."""


ImageReference = Annotated[str, Field(pattern=r"^(.+(:[A-Za-z0-9_][A-Za-z0-9_.-]*|@sha256:[a-f0-9]{64}))?$")]


class Controller(EveryPodSettings):
    """The run controller: ends a training run that has finished or cannot continue, frees its resources, and records
    the verdict."""

    enabled: bool
    """Whether a Job supervises the run and scales the roles. Without it, a finished training run holds its resources
    until the release is uninstalled."""
    image: ImageReference
    """The runtime image, with tag or digest. It contains /opt/trainchart/controller.pyz, and the launcher for
    image.injectLauncher. Empty means that the controller runs from the training image."""
    service_account_name: ObjectName
    """ServiceAccount with the controller's permissions, for use if rbac.create is false."""
    cpu: Quantity
    """CPU request of the controller."""
    memory: Quantity
    """Memory request of the controller."""
    cpu_limit: OptionalQuantity
    """CPU limit of the controller; empty means the request."""
    memory_limit: OptionalQuantity
    """Memory limit of the controller; empty means the request."""
    ephemeral_storage: OptionalQuantity
    """Request for the node's disk, for the controller's log. Empty means neither request nor limit, here and in `helm
    test`."""
    ephemeral_storage_limit: OptionalQuantity
    """Limit for the node's disk. Empty means 1Gi."""


Phase = Literal[
    "Queued",
    "Starting",
    "Running",
    "Finishing",
    "Restarting",
    "Suspended",
    "Stopping",
    "Succeeded",
    "Failed",
    "Stopped",
    "StateLost",
]


class Notify(Section):
    """Messages about the run's phases, from the run controller to a webhook that accepts Slack's JSON."""

    secret: ObjectName
    """Secret of the namespace that contains the webhook's URL. Empty means no messages. A missing Secret never stops a
    training run."""
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]
    """Key of the Secret that contains the URL."""
    phases: list[Phase]
    """Phases that send a message when they start."""


class Run(Section):
    """One training run from start to verdict."""

    id: Annotated[
        str | int, JsonSchema({"type": ["string", "integer"], "pattern": RUN_ID_PATTERN, **EXACT, "minimum": 0})
    ]
    """Identity of the run. A pod of a run that has succeeded parks (stays idle) instead of training again, even if it
    is recreated. If the id is empty, success is remembered only as long as the pod exists."""
    max_restarts: Count
    """How many times, per pod, a program that fails through its own fault is restarted."""
    start_deadline: Duration
    """How long all pods may take to start before the run controller gives up (30m, 1h30m, or seconds); 0 means no
    limit."""
    evaluator_grace: Duration
    """How long the evaluator may continue after the training has succeeded (10m, or seconds)."""
    resume: Annotated[
        str | int, JsonSchema({"type": ["string", "integer"], "pattern": RESUME_PATTERN, **EXACT, "minimum": 0})
    ]
    """From which checkpoint a new run starts. never: from none; latest: from the newest; a number: from the one of that
    step. Checkpoints of other releases, and a claim that an earlier release of this name has left behind, are used only
    with latest or a step."""
    resume_release: Annotated[
        str | int, JsonSchema({"type": ["string", "integer"], "pattern": RELEASE_PATTERN, **EXACT, "minimum": 0})
    ]
    """Another release of this chart in the namespace, from whose checkpoints a new run starts. They are copied. Needs
    resume: latest, or a step."""
    desired_state: Literal["running", "suspended", "stopped"]
    """State to which the run controller brings the run. suspended: programs get SIGTERM (those that use the training
    library save first), all resources are freed, and the run continues when desiredState is running again. stopped:
    the same, but permanently."""
    queue: ObjectName
    """The Kueue LocalQueue of the namespace whose quota the run waits for: all pods start together when there is room
    for all of them, and a preempted run saves, waits again and continues. Empty: the pods start as soon as nodes have
    room."""
    queue_priority_class: ObjectName
    """WorkloadPriorityClass of the run in its queue. Empty means priority 0. priorityClassName has no effect in the
    queue."""
    on_change: Literal["restart-group", "finish-first"]
    """What happens after an upgrade that changes pods. restart-group: all pods restart from the last checkpoint.
    finish-first: the training continues until a pod has to be recreated. Two versions of the pods never train
    together."""
    active_deadline: Duration
    """How long the run may take before the run controller ends it as failed (48h, or seconds); 0 means no limit."""
    lost_node_timeout: Duration
    """How long a node may be unresponsive before its pods count as lost."""
    force_delete_lost_pods: bool
    """Whether the run controller replaces the pods of a node that does not respond, although their programs may still
    be running there. If false, the training waits for the node, or for an administrator who marks it as out of
    service."""
    no_progress_timeout: Duration
    """How long a program may report no step before it is restarted. 0 turns the watchdog off."""
    notify: Notify
    controller: Controller


class Gpu(Section):
    """The extended resource that represents a GPU."""

    resource_name: Annotated[
        str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    ]
    """Resource that roles.*.gpus counts, for example nvidia.com/gpu, amd.com/gpu or nvidia.com/mig-1g.10gb."""


class Service(Section):
    """The headless Service that gives every pod its DNS name."""

    port: Port
    """Port of TensorFlow's gRPC server in every training pod."""
    status_port: Port
    """Port of the launcher's /status and /metrics in every training pod."""
    annotations: Annotations
    """Annotations of the Service."""


class NetworkPolicy(Section):
    """Who may connect to the pods. The release's own pods may always connect to each other on all ports."""

    enabled: bool
    """Whether to create NetworkPolicies, which restrict traffic."""
    status_from: Peers
    """Peers that may reach the status port, for example the monitoring namespace."""
    tensorboard_from: Peers
    """Peers that may reach TensorBoard, for example the ingress controller's namespace."""
    restrict_egress: bool
    """Whether the pods may connect only to each other, DNS, and what egress and apiServer list."""
    egress: EgressRules
    """What all pods may connect to with restrictEgress, for example the object store with the data."""
    api_server: Peers
    """The API server's addresses, which the run controller must reach with restrictEgress."""


class PodDisruptionBudget(Section):
    """Limits voluntary disruptions."""

    enabled: bool
    """Whether to limit evictions to one training pod at a time (a PodDisruptionBudget). It never blocks a drain."""


class ServiceAccount(Section):
    """The identity of the pods. It has no token and no permissions."""

    create: bool
    """Whether the chart creates the ServiceAccount."""
    name: ObjectName
    """Name of the ServiceAccount; empty means the chart's own, or the namespace's default if the chart creates none."""
    annotations: Annotations
    """Annotations of the ServiceAccount."""


class Rbac(Section):
    """Permissions that the chart grants."""

    create: bool
    """Whether the chart creates the run controller's ServiceAccount, Role and RoleBinding. If false, a user without
    permission to create Roles can install the chart, and must set run.controller.serviceAccountName to a ServiceAccount
    that has these permissions."""


class Ingress(Section):
    """Access to TensorBoard from outside the cluster."""

    enabled: bool
    """Whether TensorBoard gets an Ingress."""
    class_name: str
    """Ingress class; empty means the cluster's default."""
    host: str
    """Host name of TensorBoard."""
    path: Annotated[str, Field(pattern=r"^/")]
    """URL path of TensorBoard."""
    tls_secret: ObjectName
    """Secret with the certificate; empty means plain HTTP."""
    annotations: Annotations
    """Annotations of the Ingress."""


class TensorBoard(EveryPodSettings):
    """TensorBoard over the summaries of this release, read-only."""

    enabled: bool
    """Whether TensorBoard runs beside the training."""
    image: ImageReference
    """Image with TensorBoard, with tag or digest; empty means the training image, which must then contain the package
    tensorboard (TensorFlow 2.21 does not include it)."""
    cpu: Quantity
    """CPU request of TensorBoard."""
    memory: Quantity
    """Memory request of TensorBoard."""
    cpu_limit: OptionalQuantity
    """CPU limit of TensorBoard; empty means the request."""
    memory_limit: OptionalQuantity
    """Memory limit of TensorBoard; empty means the request."""
    ephemeral_storage: OptionalQuantity
    """Request for the node's disk, for /tmp and the log. Empty means neither request nor limit."""
    ephemeral_storage_limit: OptionalQuantity
    """Limit for the node's disk. Empty means 1Gi more than tmpSize."""
    tmp_size: Quantity
    """Maximum size of /tmp."""
    port: Port
    """Port of TensorBoard's pod and Service."""
    ingress: Ingress


class SharedValues(PodSettings):
    """Sections that the spec and the chart's values have in common."""

    image: Image
    args: list[str]
    """Arguments appended to the command."""
    roles: dict[str, RoleSettings]
    """The roles of the training. Each is one StatefulSet."""
    volumes: dict[str, VolumeSettings]
    """Folders that the pods share; TRAINCHART_<NAME>_DIR tells the program where each one is."""
    run: Run
    gpu: Gpu
    service: Service
    network_policy: NetworkPolicy
    pod_disruption_budget: PodDisruptionBudget
    service_account: ServiceAccount
    rbac: Rbac
    tensorboard: TensorBoard
    common_labels: Labels
    """Labels added to every object. Those of queues and gang schedulers (keys that contain queue, gang, pod-group or
    task-group, those of Kueue, Volcano, YuniKorn and KAI, and of Koordinator's quotas) are not added to the run
    controller, TensorBoard and helm test, which must not wait."""
    common_annotations: Annotations
    """Annotations added to every object; those of queues are treated as in commonLabels."""
    extra_manifests: Annotated[
        list[dict[str, Any]],
        JsonSchema(
            {
                "type": "array",
                "items": {"type": "object", "required": ["apiVersion", "kind", "metadata"]},
            }
        ),
    ]
    """Additional Kubernetes objects to install. They are unchanged except for $(TRAINCHART_RELEASE) and
    $(TRAINCHART_NAMESPACE), which are replaced with those of the release, as they are in labels, annotations, affinity,
    extraVolumes and the subPath of volumes."""


class Values(SharedValues):
    """Everything that `helm install --set` can change in a generated chart."""

    command: Annotated[list[str], Field(min_length=1)]
    """Program that every role runs, under the launcher."""
    hyperparameters: dict[str, float | int | str | bool]
    """Hyperparameters of the training, typed and bounded by the model's author."""
