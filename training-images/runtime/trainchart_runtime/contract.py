"""The contract between a chart and what runs in its pods: names of variables, files, ports and exit codes.

The chart templates write these names, launcher and run controller read them and programs may rely on them. Changing one
is a breaking change of every published chart: see docs/decisions/0003-chart-launcher-contract.md.
"""

from __future__ import annotations

# --- what the chart tells the launcher -------------------------------------------------------------------
TASK_TYPE = "TRAINCHART_TASK_TYPE"
"""TensorFlow's task type, which is also the role: chief, worker, ps or evaluator."""
POD_NAME = "TRAINCHART_POD_NAME"
"""The pod's name (downward API); the launcher falls back to the host name."""
POD_UID = "TRAINCHART_POD_UID"
"""The pod's uid (downward API), by which messages name it; may be absent."""
NODE_NAME = "TRAINCHART_NODE_NAME"
"""The name of the pod's node (downward API), for messages; may be absent."""
ORDINAL = "TRAINCHART_ORDINAL"
"""The StatefulSet ordinal from the label apps.kubernetes.io/pod-index; else the pod name's suffix."""
RUN_ID = "TRAINCHART_RUN_ID"
"""Identity of the run that a success marker belongs to; empty means "this pod's own lifetime"."""
MODEL = "TRAINCHART_MODEL"
"""Name of the model, by which a program knows its own checkpoints (docs/checkpoints.md)."""
IMAGE = "TRAINCHART_IMAGE"
"""The training image's reference. The chart's version is not passed: a new one alone would restart trainings."""
RELEASE = "TRAINCHART_RELEASE"
"""The release; the run controller has it, too."""
NAMESPACE = "TRAINCHART_NAMESPACE"
"""The release's namespace (downward API); the run controller has it, too."""
RESUME = "TRAINCHART_RESUME"
"""How a new run begins: never, latest or the number of a step (docs/checkpoints.md)."""
RESUME_DIR = "TRAINCHART_RESUME_DIR"
"""Where the checkpoints of the release are that the run is to begin from; absent where it is its own folder."""
RESUME_RELEASE = "TRAINCHART_RESUME_RELEASE"
"""That release's name."""
CLUSTER_FILE = "TRAINCHART_CLUSTER_FILE"
"""Path of the cluster description: strategy, service, ports, per role the StatefulSet and its replicas."""
HYPERPARAMETERS_FILE = "TRAINCHART_HYPERPARAMETERS_FILE"
"""Path of the hyperparameters as one JSON object."""
STATE_DIR = "TRAINCHART_STATE_DIR"
"""Folder (an emptyDir) that lives as long as the pod: success marker, attempts, progress."""
TERMINATION_FILE = "TRAINCHART_TERMINATION_FILE"
"""Where the termination message goes: JSON of at most TERMINATION_MESSAGE_LIMIT bytes."""
MAX_RESTARTS = "TRAINCHART_MAX_RESTARTS"
"""How often the program of this pod may fail by its own fault before the launcher gives up."""
STOP_GRACE_SECONDS = "TRAINCHART_STOP_GRACE_SECONDS"
"""The pod's terminationGracePeriodSeconds; the launcher kills the program one second before it ends."""
SAVE_WAIT_SECONDS = "TRAINCHART_SAVE_WAIT_SECONDS"
"""How long a stopped program goes on at most while the leading task still runs, which can save meanwhile."""
NO_PROGRESS_SECONDS = "TRAINCHART_NO_PROGRESS_SECONDS"
"""Watchdog: end a program whose progress file did not change for so long; 0 switches it off."""
FENCE_SECONDS = "TRAINCHART_FENCE_SECONDS"
"""How often a pod looks whether another one has taken over its task (docs/fencing.md); 0 switches fencing off."""
CHECKPOINTS_DIR = "TRAINCHART_CHECKPOINTS_DIR"
"""Shared folder or object-store URI for checkpoints; absent where the model keeps none."""
LOGS_DIR = "TRAINCHART_LOGS_DIR"
"""Where the volume `logs` is mounted, in which the launcher keeps its pod's output; absent without such a volume."""
TENSORBOARD_DIR = "TRAINCHART_TENSORBOARD_DIR"
"""Where TensorBoard summaries go; absent where the model keeps no checkpoints."""
CONTAINER_VARIABLES = (
    TASK_TYPE,
    POD_NAME,
    POD_UID,
    NODE_NAME,
    ORDINAL,
    RUN_ID,
    MODEL,
    IMAGE,
    RELEASE,
    NAMESPACE,
    RESUME,
    CLUSTER_FILE,
    HYPERPARAMETERS_FILE,
    STATE_DIR,
    TERMINATION_FILE,
    MAX_RESTARTS,
    STOP_GRACE_SECONDS,
    SAVE_WAIT_SECONDS,
    NO_PROGRESS_SECONDS,
)
"""What the chart sets in every training container, beside TENSORBOARD_DIR, RESUME_DIR with RESUME_RELEASE, and one
variable for each volume."""
ADDRESSES = "TRAINCHART_ADDRESSES"
"""JSON map from "host:port" as the cluster knows it to the "host:port" used here. Set by local runs only."""
LOCAL_PARENT = "TRAINCHART_LOCAL_PARENT"
"""Number of the process that the launcher and its program must not outlive. Set by local runs only."""

# --- labels and annotations of the chart's objects -------------------------------------------------------
NAME_LABEL = "app.kubernetes.io/name"
"""The chart's name, which is the model's."""
INSTANCE_LABEL = "app.kubernetes.io/instance"
"""The release."""
COMPONENT_LABEL = "app.kubernetes.io/component"
"""The role, or another part such as controller."""
CHART_LABEL = "helm.sh/chart"
"""The chart's name and version."""
VERSION_LABEL = "app.kubernetes.io/version"
TRAINING_LABEL = "trainchart/training"
"""Marks what belongs to a training, whatever the chart's name."""
REPLICAS_ANNOTATION = "trainchart/replicas"
"""Pods that a StatefulSet has while its run goes on; the controller sets spec.replicas."""
QUEUE_ANNOTATION = "trainchart/queue"
"""The queue that the run waits in; absent where there is none."""
KUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""By which Kueue queues one object; charts refuse it, since run.queue names the queue of a whole run."""
STRATEGY_ANNOTATION = "trainchart/strategy"
FAMILY_ANNOTATION = "trainchart/family"
"""Of charts that are no trainings: what kind of chart they are."""
START_DEADLINE_ANNOTATION = "trainchart/start-deadline-seconds"
EVALUATOR_GRACE_ANNOTATION = "trainchart/evaluator-grace-seconds"
IMAGE_ANNOTATION = "trainchart/image"
"""Of kept claims: an image with Python, by which their checkpoints can be read when the release is gone."""
RESOURCE_POLICY_ANNOTATION = "helm.sh/resource-policy"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
"""A StatefulSet's ordinal of a pod, set by Kubernetes 1.28 and newer."""
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"

CONTROLLER_AGENT = "trainchart-controller"
"""The run controller as a client of the API server, which keeps it as the manager of the fields that it sets."""

# --- what the launcher tells the program -----------------------------------------------------------------
TF_CONFIG = "TF_CONFIG"
STRATEGY = "TRAINCHART_STRATEGY"
"""The model's strategy, since one TF_CONFIG can be trained in several ways."""
EVALUATORS = "TRAINCHART_EVALUATORS"
"""How many evaluators the run has: TF_CONFIG never lists them."""
HYPERPARAMETERS = "TRAINCHART_HYPERPARAMETERS"
"""All hyperparameters as one JSON object."""
HYPERPARAMETER_PREFIX = "TRAINCHART_HP_"
"""One variable per hyperparameter: learningRate becomes TRAINCHART_HP_LEARNING_RATE."""
PROGRESS_FILE = "TRAINCHART_PROGRESS_FILE"
"""The program may write {"step", "examples_per_second", "metrics"} here (atomically, by rename)."""
ATTEMPT = "TRAINCHART_ATTEMPT"
"""1 for the first start of the program in this pod, counted up by every restart."""
CLASSIC_TASK_TYPE = "TASK_TYPE"
CLASSIC_TASK_INDEX = "TASK_INDEX"
CLASSIC_HOSTS_SUFFIX = "_HOSTS"
"""PS_HOSTS, WORKER_HOSTS, CHIEF_HOSTS: comma-separated, for programs with --ps_hosts and --worker_hosts."""
PROGRAM_VARIABLES = (
    TF_CONFIG,
    STRATEGY,
    EVALUATORS,
    HYPERPARAMETERS,
    PROGRESS_FILE,
    ATTEMPT,
    CLASSIC_TASK_TYPE,
    CLASSIC_TASK_INDEX,
    "PS_HOSTS",
    "WORKER_HOSTS",
    "CHIEF_HOSTS",
)
"""What the launcher adds and fills into the command, beside one variable for each hyperparameter."""

# --- what the launcher tells others, in its /status and in the log ---------------------------------------
LAUNCHER_PREFIX = "trainchart-launcher: "
"""How each of its lines in the log begins."""
PEER_UNASKED = "not asked yet"
PEER_UNRESOLVED = "name does not resolve"
PEER_REFUSES = "refuses connections"
"""Its pod answers: the program has not opened its port yet."""
PEER_SILENT = "does not answer"
HALTED = "the program is halted (SIGSTOP, for example from a debugger)"
"""In the launcher's line about a program that a signal has stopped."""
WAITS_IN = "; the program waits in "
"""In the launcher's line about a program that does nothing, before where that is."""
STACK_LINE = "stack: "
"""Begins the launcher's lines before that one: the stacks of all threads."""
BUSY_IN = "; the program is busy in "
"""In the launcher's line about a program that computes without a step or output, before where that is."""
UNREAD_PIPE = "waits until its output is read"
"""In the launcher's words about a process that writes to a full pipe."""
PROCESSES_DIED = "of its processes died"
"""In the launcher's words about children of a program that have died and are not waited for, before their signals."""
NO_INODES = "no inodes are left on "
"""In the launcher's addition to an error, before the folder."""
USE_QUERY = "use"
"""With it, `/status?use` also says what the container uses, which is measured then."""

# --- what the chart tells the run controller -------------------------------------------------------------
STATE_NAME = "TRAINCHART_STATE_NAME"
"""Name of the ConfigMap that holds the run's state; the chart creates it without data."""
RUN_SETTINGS = "TRAINCHART_RUN_SETTINGS"
"""JSON: how the run is to be treated (RunPlan), and the labels of the training pods."""
PLAN_ID = "TRAINCHART_PLAN_ID"
"""Hash of all that the run depends on. A controller whose plan is not that of the record's ConfigMap was replaced."""
PLAN_ANNOTATION = "trainchart/plan"
"""Annotation of the record's ConfigMap with the plan in force."""
JOB_NAME = "TRAINCHART_JOB_NAME"
"""Name of the controller's Job (downward API), which fails when the run does; absent: the Job is left alone."""
QUEUE_GATE = "trainchart/queue"
"""Scheduling gate of training pods that wait in a queue; the run controller takes it away."""
METRICS_ADDRESS = "TRAINCHART_METRICS_ADDRESS"
"""Where the run controller answers GET /metrics: "host:port", ":port" for every address; absent: nowhere."""
SERVICE_ACCOUNT_DIR = "TRAINCHART_SERVICE_ACCOUNT_DIR"
"""Folder with token and ca.crt; unset in a pod, where Kubernetes mounts them at a fixed place."""
STATE_KEY = "state.json"
"""Key of the state in its ConfigMap."""
LOGS_KEY = "logs.json"
"""Key of the last lines of the pods, kept at the verdict: pod name → {"at", "lines"}."""

# --- places and numbers ----------------------------------------------------------------------------------
CONFIG_MOUNT = "/etc/trainchart"
CLUSTER_FILE_NAME = "cluster.json"
HYPERPARAMETERS_FILE_NAME = "hyperparameters.json"
STATE_MOUNT = "/run/trainchart"
PROGRESS_FILE_NAME = "progress.json"
LAUNCHER_PATH = "/opt/trainchart/launcher.pyz"
"""Where a training image holds the launcher."""
CODE_PATH = "/app"
"""Working directory of a training image, which holds the training code."""
TRAINING_CONTAINER = "training"
"""Name of the container that runs the launcher in every training pod."""
LAUNCHER_CONTAINER = "launcher"
"""Name of the init container that copies the launcher into the pod, where image.injectLauncher is set."""
TF_PORT = 2222
STATUS_PORT = 2223
LOG_LINES_KEPT = 200
"""Last lines of a pod that are kept when the run is decided."""
TERMINATION_MESSAGE_LIMIT = 4096
"""Bytes of a termination message that Kubernetes keeps for one container."""
ENVIRONMENT_STRING_LIMIT = 131072
"""Linux refuses a single environment string (name, "=", value, NUL) longer than this: MAX_ARG_STRLEN."""

# --- exit codes of the launcher --------------------------------------------------------------------------
EXIT_TERMINATED = 143
"""A SIGTERM was forwarded: not a success, whatever the program returned."""
EXIT_PEER_LOST = 75
"""EX_TEMPFAIL. A program that ends because a peer went away may return it; the launcher then restarts it."""
EXIT_STORAGE_LOST = 74
"""EX_IOERR. The checkpoint storage did not answer for too long, so the owner of the task was unknown."""
EXIT_SUPERSEDED = 77
"""EX_NOPERM. Another pod has taken over the task."""
EXIT_CONFIG = 78
"""EX_CONFIG. The chart and the launcher disagree: nothing was started."""

# --- exit codes of the run controller --------------------------------------------------------------------
EXIT_TOKEN_REFUSED = 77
"""EX_NOPERM. The controller's token is not accepted any more: only another pod has another one."""
EXIT_TRAINING_FAILED = 42
"""The training failed and its verdict is recorded: a new controller would change nothing. 0 is its success."""


def volume_variable(name: str) -> str:
    """Return the environment variable that tells where the volume `name` is."""
    return f"TRAINCHART_{name.upper().replace('-', '_')}_DIR"


def hyperparameter_variable(name: str) -> str:
    """Return the environment variable that carries hyperparameter `name` (camelCase or snake_case)."""
    snake = "".join("_" + letter if letter.isupper() else letter for letter in name).lstrip("_")
    return HYPERPARAMETER_PREFIX + snake.upper()
