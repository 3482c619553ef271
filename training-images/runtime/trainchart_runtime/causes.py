"""The closed list of causes why a training program ends: a sentence, a hint and a restart rule for each.

Data only; classify.py picks one. Launcher, run controller, local run and CLI all explain a failure with these
words, so a cause is worded once.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

RESTART_NEVER = "never"
"""Would fail again in the same way, or must not run again."""
RESTART_IN_PLACE = "in-place"
"""The program's own fault: restarted in its pod, counted against the pod's restart budget."""
RESTART_IN_PLACE_PEER = "in-place-peer"
"""Another task went away: restarted in its pod, not counted as this pod's fault."""
RESTART_RECREATED = "recreated"
"""The cluster took the pod away: Kubernetes recreates it, and this is not a failure of the program."""
RESTART_WAITED_FOR = "waited-for"
"""The pod could not be started: Kubernetes goes on trying, and the run waits until its start deadline."""


class Cause(NamedTuple):
    """Why a program ended: its stable name, one plain sentence, the next action, and the restart rule."""

    name: str
    sentence: str
    hint: str
    restart: str


SUCCEEDED = Cause("succeeded", "The program finished.", "", RESTART_NEVER)
TERMINATED = Cause(
    "terminated",
    "The program was asked to stop and ended.",
    "Nothing to do: the pod was stopped on purpose. Training continues from the last checkpoint.",
    RESTART_NEVER,
)
PEER_LOST = Cause(
    "peer-lost",
    "The program lost its connection to another task of the run.",
    "Look at the task that failed first; this one only followed. If no other task failed, the network between their "
    "machines breaks connections: a firewall, or packets larger than a part of it lets through (MTU).",
    RESTART_IN_PLACE_PEER,
)
PEER_UNRESOLVABLE = Cause(
    "peer-unresolvable",
    "The program could not resolve the host name of another task or service.",
    "Check that every pod of the release exists, and that the cluster's DNS answers for its namespace: "
    "kubectl exec POD -- getent hosts NAME; kubectl logs -n kube-system -l k8s-app=kube-dns.",
    RESTART_IN_PLACE_PEER,
)
PEER_MISSING = Cause(
    "peer-missing",
    "The program waited in vain for the other tasks of the run to connect.",
    "If every pod runs, something keeps them from each other's training port: a NetworkPolicy that selects them "
    "(kubectl get networkpolicy; compare with the pods' labels), the cluster's DNS, or a changed selector of the "
    "release's Service.",
    RESTART_IN_PLACE,
)
CERTIFICATE_REFUSED = Cause(
    "certificate-refused",
    "The program does not accept the TLS certificate of a server.",
    "The error says why. Renew a certificate that has expired; give the program the CA that it does not know "
    "(SSL_CERT_FILE or REQUESTS_CA_BUNDLE in `env`); a node whose clock is wrong refuses every certificate.",
    RESTART_IN_PLACE,
)
DOWNLOAD_FAILED = Cause(
    "download-failed",
    "The program could not download a file that it needs.",
    "Put the file into the image or a volume, and let the program read it there (keras.datasets: below KERAS_HOME; "
    "with tf_keras: below HOME); or let the pods reach the server: set a proxy in `env` (http_proxy, "
    "https_proxy), and allow the traffic in the network.",
    RESTART_IN_PLACE,
)
OUT_OF_MEMORY = Cause(
    "out-of-memory",
    "The program ran out of memory.",
    "Give the role more memory (for a GPU: one with more memory), or let the program hold less at once, such as a "
    "smaller batch.",
    RESTART_IN_PLACE,
)
KILLED = Cause(
    "killed",
    "The program was killed from outside.",
    "SIGKILL often means that the pod reached its memory limit: compare its memory use with the limit. Otherwise a "
    "user or another process killed it.",
    RESTART_IN_PLACE,
)
PROBE_FAILED = Cause(
    "probe-failed",
    "The kubelet stopped the container, but not its pod, as it does after a failed liveness or startup probe.",
    "See the pod's events (kubectl describe pod); give livenessProbe more time, or leave it out: run.noProgressTimeout "
    "notices a program that hangs.",
    RESTART_IN_PLACE,
)
CRASHED = Cause(
    "crashed",
    "The program crashed in native code.",
    "Look for a library that does not fit this machine (CPU instructions, CUDA or driver version).",
    RESTART_IN_PLACE,
)
MACHINE_LIMIT = Cause(
    "machine-limit",
    "The machine or the container gave the program no more threads, processes or open files.",
    "Raise the limit (ulimit -u, ulimit -n; in a cluster the kubelet's podPidsLimit), or let the program start fewer"
    " threads: TF_NUM_INTRAOP_THREADS, num_parallel_calls, workers of a data loader.",
    RESTART_IN_PLACE,
)
FILE_LOCKED = Cause(
    "file-locked",
    "Another process has a file open that the program needs to open or lock.",
    "Let only the chief, or worker 0, save the file, or give each task a file of its own; close it in notebooks and "
    "other runs. If the storage does not support locks, set HDF5_USE_FILE_LOCKING=FALSE in `env`.",
    RESTART_IN_PLACE,
)
PROGRAM_MISSING = Cause(
    "program-missing",
    "The program to run does not exist in this image, or cannot be executed.",
    "Check the command of the model spec and that the image contains the code.",
    RESTART_NEVER,
)
WRONG_ARCHITECTURE = Cause(
    "wrong-architecture",
    "The program or the image is built for a different processor architecture than the node's.",
    "Build the image for the node's platform (trainchart image build --platform), or choose nodes by nodeSelector "
    "kubernetes.io/arch.",
    RESTART_NEVER,
)
MODULE_MISSING = Cause(
    "module-missing",
    "The program needs a Python module that is not installed.",
    "Install the module (for pods, in the image), or fix the import.",
    RESTART_NEVER,
)
TENSORFLOW_1 = Cause(
    "needs-tensorflow-1",
    "The program needs TensorFlow 1, or uses a name that this TensorFlow does not have.",
    "Write `import tensorflow.compat.v1 as tf` and `tf.disable_v2_behavior()`. tf.contrib, tensorflow.examples and "
    "estimators are gone: replace them, or use an image with an older TensorFlow.",
    RESTART_NEVER,
)
KERAS_FIT = Cause(
    "keras-fit",
    "The fit, evaluate and train_on_batch of Keras 3 do not work under multi-worker-mirrored and parameter-server.",
    "Install tf_keras and set TF_USE_LEGACY_KERAS=1 in `env`, or train with the training library or a step "
    "of your own (see training and strategies in the documentation).",
    RESTART_NEVER,
)
KERAS_2 = Cause(
    "needs-keras-2",
    "The program is written for Keras 2, and this TensorFlow has Keras 3.",
    "Install tf_keras and set TF_USE_LEGACY_KERAS=1 in `env` (for `import keras`: import tf_keras instead), or change "
    "the line that the error names (https://keras.io/guides/migrating_to_keras_3).",
    RESTART_NEVER,
)
SYNTAX_ERROR = Cause(
    "syntax-error",
    "The program is not valid Python for the interpreter in this image.",
    "Fix the line named in the output, or use an image with a newer Python.",
    RESTART_NEVER,
)
DISK_FULL = Cause(
    "disk-full",
    "There is no space left where the program writes.",
    "Enlarge what is full, or write less there: in a cluster /dev/shm has roles.ROLE.shmSize, a claim its own size; "
    "/tmp and what lies in no volume share the node's disk. Of checkpoints, keep fewer.",
    RESTART_NEVER,
)
DATA_DAMAGED = Cause(
    "data-damaged",
    "A file of records that the program reads is damaged.",
    "Replace the file, or leave it out; the error names it where the program reads by read_tfrecords.",
    RESTART_NEVER,
)
PERMISSION_DENIED = Cause(
    "permission-denied",
    "The program may not read or write a file that it needs.",
    "Write to the checkpoint volume or /tmp only, and check the volume's owner and fsGroup.",
    RESTART_NEVER,
)
READ_ONLY = Cause(
    "read-only",
    "The program writes where its file system is read-only.",
    "Write to the checkpoint volume or /tmp; a volume that is mounted with readOnly, or whose storage has turned "
    "read-only after an error, cannot be written to.",
    RESTART_NEVER,
)
NO_PROGRESS = Cause(
    "no-progress",
    "The training made no progress for too long: no step, or one start after the other at the same step.",
    "Look for a task that hangs or keeps dying; raise run.noProgressTimeout if steps are that slow.",
    RESTART_IN_PLACE,
)
BAD_ARGUMENTS = Cause(
    "bad-arguments",
    "The program refused its command line or its hyperparameters.",
    "Compare both in the model spec, and the values that were set, with what the program accepts.",
    RESTART_NEVER,
)
PROGRAM_ERROR = Cause(
    "program-error",
    "The program ended with an exception.",
    "Read the exception and the last lines of the output.",
    RESTART_IN_PLACE,
)
PROGRAM_EXIT = Cause(
    "program-exit",
    "The program ended with an error code of its own.",
    "Read the last lines of the output.",
    RESTART_IN_PLACE,
)
CONTRACT_BROKEN = Cause(
    "contract-broken",
    "The chart and the launcher do not fit together: nothing was started.",
    "Use a launcher of the same trainchart version as the chart, and install the chart unchanged.",
    RESTART_NEVER,
)
CONTAINER_DIED = Cause(
    "container-died",
    "The container kept exiting, and its launcher reported no cause.",
    "Read the pod's log, and check that the image has Python 3.8 or newer and the launcher "
    "(see images in the documentation).",
    RESTART_IN_PLACE,
)
START_DEADLINE = Cause(
    "start-deadline",
    "Not every pod of the run was running in time, so all of them were stopped.",
    "Read why the named pods did not start; ask for less, free resources, or raise run.startDeadline.",
    RESTART_NEVER,
)

ACTIVE_DEADLINE = Cause(
    "active-deadline",
    "The run took longer than allowed, so all of its pods were stopped.",
    "Raise run.activeDeadline, or train for fewer steps; a new run.id continues from the last checkpoint.",
    RESTART_NEVER,
)
STOPPED = Cause(
    "stopped",
    "The run was stopped on request.",
    "Nothing to do. A new run.id continues from the last checkpoint.",
    RESTART_NEVER,
)
UNSCHEDULABLE = Cause(
    "unschedulable",
    "No node of the cluster has room for the pod.",
    "Read which resource is short; ask for less, add nodes, or free some: trainchart list -A says which runs hold GPUs,"
    " kubectl describe nodes what else does.",
    RESTART_WAITED_FOR,
)
NO_NODE_MATCHES = Cause(
    "no-node-matches",
    "No node satisfies the pod's scheduling constraints.",
    "kubectl get pod POD -o yaml shows what it asks for by nodeSelector, affinity, tolerations and "
    "topologySpreadConstraints; kubectl get nodes --show-labels shows what the nodes offer. Constraints that are not "
    "in the values were added by a policy, a webhook or a default of the namespace. Nodes that are unschedulable are "
    "cordoned (kubectl uncordon NODE); a volume that only one node can reach ties the pod to it: kubectl describe pv.",
    RESTART_WAITED_FOR,
)
SCHEDULING_GATED = Cause(
    "scheduling-gated",
    "Something in the cluster holds the pod back from being scheduled: a scheduling gate.",
    "Find out what set the gate, such as a queue (Kueue): kubectl get pod POD -o jsonpath='{.spec.schedulingGates}'.",
    RESTART_WAITED_FOR,
)
IMAGE_PULL = Cause(
    "image-pull",
    "The image of the pod cannot be pulled.",
    "Check the image's name, tag and digest, that it was pushed, and image.pullSecrets where it was refused. If the "
    "run has pulled another image before: helm history RELEASE shows the upgrades; any other change was made by hand.",
    RESTART_WAITED_FOR,
)
VOLUME_ERROR = Cause(
    "volume-error",
    "A volume of the pod cannot be provided or mounted.",
    "Look at the claim and its StorageClass: kubectl describe pvc.",
    RESTART_WAITED_FOR,
)
CLAIM_DELETED = Cause(
    "claim-deleted",
    "A claim that the pod needs is being deleted, which cannot be undone: its data go with the last pod that uses it.",
    "Do not suspend, stop, rerun or uninstall yet. First keep the data: kubectl patch pv VOLUME (kubectl get pvc names "
    """it) -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}', or copy them from a pod that runs (kubectl cp). """
    "Then end the pods, and helm upgrade creates the claim again, empty.",
    RESTART_WAITED_FOR,
)
CLAIM_IN_USE = Cause(
    "claim-in-use",
    "A pod elsewhere uses a claim that only one pod or node may use at a time.",
    "kubectl describe pvc CLAIM names the pods that use it: end them, or take an access mode and a StorageClass that "
    "allow several.",
    RESTART_WAITED_FOR,
)
CONFIG_MISSING = Cause(
    "config-missing",
    "A Secret, ConfigMap or key that the pod refers to does not exist, or the container cannot be made from it.",
    "Create the named object in the release's namespace, or correct its name in the values.",
    RESTART_WAITED_FOR,
)
QUOTA_EXCEEDED = Cause(
    "quota-exceeded",
    "A quota of the namespace does not allow the pod.",
    "Ask for less, end other releases of the namespace, or have the quota raised: kubectl describe quota.",
    RESTART_WAITED_FOR,
)
ADMISSION_REFUSED = Cause(
    "admission-refused",
    "The cluster refuses to create the pod.",
    "Read the refusal: a LimitRange, Pod Security, a policy's webhook, or a field that the cluster does not allow.",
    RESTART_WAITED_FOR,
)
NAME_CONFLICT = Cause(
    "name-conflict",
    "A pod or object of the same name already exists and does not belong to this release.",
    "Remove the other object, or install under another release name.",
    RESTART_WAITED_FOR,
)
PORT_IN_USE = Cause(
    "port-in-use",
    "A port that is needed is already in use.",
    "Let only one process listen on it, or choose another port (service.port, hostPort).",
    RESTART_IN_PLACE,
)
INIT_FAILED = Cause(
    "init-failed",
    "An init container of the pod fails, so the program is not started.",
    "Correct the init container in the values; its output: kubectl logs POD -c CONTAINER, while the pod is there.",
    RESTART_WAITED_FOR,
)
SIDECAR_FAILED = Cause(
    "sidecar-failed",
    "A container next to the training container keeps exiting.",
    "Correct that container in the values; its output: kubectl logs POD -c CONTAINER --previous.",
    RESTART_WAITED_FOR,
)
OBJECT_MISSING = Cause(
    "object-missing",
    "An object of the release that its run needs is missing, or was changed.",
    "helm rollback RELEASE REVISION, with the newest revision of helm history RELEASE, brings it back, as helm "
    "upgrade with its own chart and values does (Helm 4 needs --force-conflicts if another client changed it); a run "
    "that is over needs trainchart rerun as well. Find out who did it.",
    RESTART_WAITED_FOR,
)
POD_STUCK = Cause(
    "pod-stuck",
    "A deleted pod is still there, so nothing can take its place.",
    "Look at its finalizers, volumes and node: kubectl describe pod POD.",
    RESTART_WAITED_FOR,
)
SANDBOX_ERROR = Cause(
    "sandbox-error",
    "The node cannot make the pod's network or sandbox.",
    "This is a problem of the node: kubectl describe pod, and tell the cluster's administrators.",
    RESTART_WAITED_FOR,
)
EVICTED = Cause(
    "evicted",
    "The pod was evicted from its node.",
    "Look at the node's memory and disk, or who drained it; the pod is recreated. If it held more than its limit, "
    "raise tmpSize, ephemeralStorageLimit or the volume's sizeLimit.",
    RESTART_RECREATED,
)
PREEMPTED = Cause(
    "preempted",
    "The pod had to make room for one of higher priority.",
    "Nothing to do if there is room elsewhere; otherwise raise priorityClassName or wait. kubectl get events "
    "--field-selector reason=Preempted tells for an hour which pod took its place.",
    RESTART_RECREATED,
)
NODE_LOST = Cause(
    "node-lost",
    "The pod's node does not answer any more, or cannot end its pods.",
    "kubectl describe node NODE shows what failed: its kubelet, its network or its container runtime. Wait some "
    "minutes: the pod then continues or is replaced automatically. Only if the node is gone for good: kubectl taint "
    "nodes NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or set run.forceDeleteLostPods=true.",
    RESTART_RECREATED,
)
POD_DELETED = Cause(
    "pod-deleted",
    "A user or a controller deleted the pod.",
    "Nothing to do: the pod is recreated and continues from the last checkpoint.",
    RESTART_RECREATED,
)

SUPERSEDED = Cause(
    "superseded",
    "Another pod has taken over this task, so this one had to stop.",
    "Nothing to do if its node was lost and the pod was replaced; otherwise find out which other pod writes "
    "these checkpoints.",
    RESTART_NEVER,
)
STORAGE_LOST = Cause(
    "storage-lost",
    "The checkpoint storage did not answer for too long, so the program was stopped.",
    "Check the checkpoint volume and its server, and whether other pods on the same node can read it.",
    RESTART_IN_PLACE,
)

CAUSES: Mapping[str, Cause] = {cause.name: cause for cause in list(globals().values()) if isinstance(cause, Cause)}
