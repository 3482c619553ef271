"""The closed list of causes why a training program ends, and CAUSES, with those of all modules of causes.

Data only; classify.py picks one. Launcher, run controller, local run and CLI all explain a failure with these
words, so a cause is worded once.
"""

from __future__ import annotations

from typing import Mapping

from trainchart_runtime import data_causes, pod_causes, running_causes
from trainchart_runtime.cause import RESTART_IN_PLACE, RESTART_IN_PLACE_PEER, RESTART_NEVER, Cause

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
    "If another task failed first, look at that one: this one only followed. If none did, the network between their "
    "nodes breaks connections: look for a firewall, and for packets larger than a link allows (MTU). To test the "
    "latter, run ping -M do -s SIZE on one node, with the IP of a pod on the other and, as SIZE, the pod's MTU (cat "
    "/sys/class/net/eth0/mtu) less 28. If it gets no answer, and ping -s 56 does, the MTU is too large.",
    RESTART_IN_PLACE_PEER,
)
WORKERS_DIFFER = Cause(
    "workers-differ",
    "The workers do not train the same model, or their batches differ in shape: a collective operation got tensors of "
    "different shapes.",
    "The error names both shapes. Restarting does not help. Check what each worker derives from its own share of the "
    "data or from its machine, such as the number of classes, a vocabulary or a smaller last batch: take it from a "
    "hyperparameter or from all of the data, and drop the incomplete last batch (drop_remainder). If models and "
    "batches are the same, one worker runs different operations from the rest: look for code that depends on the "
    "task's index. trainchart logs shows what each worker prints when it starts.",
    RESTART_IN_PLACE,
)
PEER_UNRESOLVABLE = Cause(
    "peer-unresolvable",
    "The program could not resolve the host name of another task or service.",
    "Check that every pod of the release exists, and that the cluster's DNS resolves names of its namespace: kubectl "
    "exec POD -- getent hosts NAME; kubectl logs -n kube-system -l k8s-app=kube-dns.",
    RESTART_IN_PLACE_PEER,
)
PEER_MISSING = Cause(
    "peer-missing",
    "The other tasks of the run did not connect in time.",
    "If all pods are running, something keeps them from reaching each other's training port: a NetworkPolicy that "
    "selects them (kubectl get networkpolicy; compare with the pods' labels), the cluster's DNS, or a changed selector "
    "of the release's Service.",
    RESTART_IN_PLACE,
)
SERVICE_UNREACHABLE = Cause(
    "service-unreachable",
    "Nothing answered at the address of a service or of another task that the program called.",
    "Check which address the program calls, and whether the server there is running: a Service without ready pods "
    "refuses connections, and a name may resolve to an old address (hostAliases in the values, which override DNS; a "
    "variable in `env`). If it is running, a NetworkPolicy, a firewall, a missing route or a failed kube-proxy on the "
    "node keeps this pod from reaching it. To reach a server outside the cluster, the program may need a proxy in "
    "`env` (http_proxy, https_proxy). If it only downloads a file, put the file into the image or a volume instead.",
    RESTART_IN_PLACE,
)
CERTIFICATE_REFUSED = Cause(
    "certificate-refused",
    "The program does not accept the TLS certificate of a server.",
    "The error says why. Renew a certificate that has expired; give the program the CA that it does not know "
    "(SSL_CERT_FILE or REQUESTS_CA_BUNDLE in `env`); a node whose clock is wrong refuses every certificate.",
    RESTART_IN_PLACE,
)
ACCESS_REFUSED = Cause(
    "access-refused",
    "A server refused the program, which sent no credentials, or wrong or expired ones.",
    "Check the credentials that the program uses (variables in `env` and `envFrom`, a Secret, the ServiceAccount): put "
    "the right key there, or have its permissions extended. In a cluster, variables keep the old value of a Secret "
    "as long as the container lives, even if the launcher restarts the program in it: delete the pod, or use "
    "trainchart rerun if the run is over. Files in volumes get the new value within minutes, except with subPath.",
    RESTART_IN_PLACE,
)
MESSAGE_TOO_LARGE = Cause(
    "message-too-large",
    "A gRPC message of the program is larger than the receiver or the sender allows.",
    "Raise the limit on the side that the error names (channel and server options grpc.max_receive_message_length and "
    "grpc.max_send_message_length; the default for receiving is 4 MiB), or send less at once: a smaller batch, or "
    "parts. More memory does not help, and a restarted program fails at the same step.",
    RESTART_IN_PLACE,
)
DOWNLOAD_FAILED = Cause(
    "download-failed",
    "The program could not download a file that it needs.",
    "Put the file into the image or a volume, and let the program read it there (keras.datasets: below KERAS_HOME; "
    "with tf_keras: below HOME); or let the pods reach the server: set a proxy in `env` (http_proxy, https_proxy), and "
    "allow the traffic in the network. A 404 means that the address is wrong.",
    RESTART_IN_PLACE,
)
OUT_OF_MEMORY = Cause(
    "out-of-memory",
    "The program ran out of memory.",
    "Give the role more memory (or a GPU with more memory), or let the program hold less at once, such as a smaller "
    "batch. If it fails after about the same number of steps each time, it keeps what it no longer needs (a list or "
    "cache that grows, a tf.function that is retraced), and more memory only delays the failure.",
    RESTART_IN_PLACE,
)
KILLED = Cause(
    "killed",
    "The program was killed by a signal.",
    "SIGKILL often means that the pod reached its memory limit: compare its memory use with the limit. Otherwise a "
    "user, another process or the program itself sent the signal.",
    RESTART_IN_PLACE,
)
PROBE_FAILED = Cause(
    "probe-failed",
    "The kubelet stopped the container, but not its pod, as it does after a failed probe (liveness, startup) "
    "or postStart hook.",
    "See the pod's events (kubectl describe pod). Give livenessProbe more time, or remove it: run.noProgressTimeout "
    "detects a program that hangs.",
    RESTART_IN_PLACE,
)
CRASHED = Cause(
    "crashed",
    "The program crashed in native code.",
    "Look for a library that is not compatible with this machine (CPU instructions, CUDA or driver version).",
    RESTART_IN_PLACE,
)
BUS_ERROR = Cause(
    "bus-error",
    "The program accessed memory of a mapped file for which there was no space left, or which has become shorter.",
    "Usually /dev/shm is full, for example with the buffers of a data loader: raise roles.ROLE.shmSize, or let the "
    "program use less. Otherwise, another process has truncated a file that the program has mapped.",
    RESTART_IN_PLACE,
)
SHARED_MEMORY_LOST = Cause(
    "shared-memory-lost",
    "Shared memory that the program uses is gone, most likely because the process that created it has died.",
    "Processes of a data loader die without a message if /dev/shm is full (SIGBUS), and their buffers (/psm_...) are "
    "removed with them: raise roles.ROLE.shmSize, or use smaller batches or fewer processes. Otherwise, a process has "
    "ended before others had read its buffers, which is a fault of the program.",
    RESTART_IN_PLACE,
)
MACHINE_LIMIT = Cause(
    "machine-limit",
    "The program has reached a limit of the machine or the container on threads, processes or open files.",
    "Raise the limit (ulimit -u, ulimit -n; in a cluster, the kubelet's podPidsLimit), or let the program start fewer "
    "threads (TF_NUM_INTRAOP_THREADS, num_parallel_calls, workers of a data loader).",
    RESTART_IN_PLACE,
)
FILE_WATCHES = Cause(
    "file-watches",
    "The program has reached the node's limit on file watches (inotify).",
    "If it fails after about the same number of steps each time, it does not close its file watchers. Otherwise ask "
    "the node's administrator to raise fs.inotify.max_user_instances (instance limit) or fs.inotify.max_user_watches "
    "(watch limit) with sysctl: all processes of one user on the node share these limits.",
    RESTART_IN_PLACE,
)
OPEN_FILES = Cause(
    "open-files",
    "The program has reached its limit of open files and connections.",
    "If it fails after about the same number of steps each time, it does not close what it opens: files, HTTP "
    "responses, sockets (Python: `with open(...)`, `with urlopen(...)`, one session for all requests); `ls -l "
    "/proc/PID/fd` in the pod shows what is open. A higher limit (`ulimit -n` in the command) helps only if that many "
    "are needed at once.",
    RESTART_IN_PLACE,
)
FILE_LOCKED = Cause(
    "file-locked",
    "Another process has a file open that the program needs to open or lock.",
    "Let only the chief, or worker 0, save the file, or give each task its own file; close the file in notebooks and "
    "other runs. If the storage does not support locks, set HDF5_USE_FILE_LOCKING=FALSE in `env`.",
    RESTART_IN_PLACE,
)
PROGRAM_MISSING = Cause(
    "program-missing",
    "The program to run does not exist in this image, or cannot be executed.",
    "Check the command and workingDir of the model spec, and that the image contains the code. A script must be "
    "executable (chmod +x; in a ConfigMap, defaultMode: 0755), name an interpreter of the image in its first line, and "
    "have Linux line endings (dos2unix).",
    RESTART_NEVER,
)
WRONG_ARCHITECTURE = Cause(
    "wrong-architecture",
    "The program or the image is built for a processor architecture other than the node's.",
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
MODULE_SHADOWED = Cause(
    "module-shadowed",
    "A file or folder of the program has the name of a module that the program or a library imports, and Python "
    "imports it instead.",
    "The error names the module, such as random, and often the file: rename the file (random.py beside the program, or "
    "in a folder of PYTHONPATH), and delete its compiled copy in __pycache__. If it names tensorflow, and no such file "
    "exists, TensorFlow is not fully installed.",
    RESTART_NEVER,
)
NO_TERMINAL = Cause(
    "no-terminal",
    "The program waits for input from a terminal, which a pod does not have.",
    "Remove the calls that ask: input(), or a breakpoint of the debugger (breakpoint(), pdb.set_trace()). Turn what "
    "the user has to decide into a hyperparameter.",
    RESTART_NEVER,
)
TENSORFLOW_1 = Cause(
    "needs-tensorflow-1",
    "The program needs TensorFlow 1, or uses a name that this TensorFlow does not have.",
    "Write `import tensorflow.compat.v1 as tf` and `tf.disable_v2_behavior()`. tf.contrib, tensorflow.examples and "
    "estimators no longer exist: replace them, or use an image with an older TensorFlow.",
    RESTART_NEVER,
)
KERAS_FIT = Cause(
    "keras-fit",
    "In Keras 3, fit, evaluate and train_on_batch do not work with multi-worker-mirrored and parameter-server.",
    "Install tf_keras and set TF_USE_LEGACY_KERAS=1 in `env`, or train with the training library or a custom training "
    "step (see training and strategies in the documentation).",
    RESTART_NEVER,
)
KERAS_2 = Cause(
    "needs-keras-2",
    "The program is written for Keras 2, and this TensorFlow has Keras 3.",
    "Install tf_keras and set TF_USE_LEGACY_KERAS=1 in `env` (for `import keras`: import tf_keras instead), or change "
    "the line that the error names (https://keras.io/guides/migrating_to_keras_3).",
    RESTART_NEVER,
)
KERAS_MISSING = Cause(
    "keras-missing",
    "TensorFlow cannot find Keras: TF_USE_LEGACY_KERAS requires tf_keras, which is not installed.",
    "Install tf_keras in the same version as TensorFlow (for pods, in the image: list it in requirements.txt of the "
    "code folder), or remove TF_USE_LEGACY_KERAS from `env`. If that variable is not set, install keras.",
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
    "No space is left where the program writes.",
    "Enlarge what is full, or write less there. In a cluster, the size of /dev/shm is roles.ROLE.shmSize, and a claim "
    "has its own size; /tmp and everything outside volumes share the node's disk. Keep fewer checkpoints.",
    RESTART_NEVER,
)
PERMISSION_DENIED = Cause(
    "permission-denied",
    "The program has no permission to read or write a file that it needs.",
    "If the file is in a volume and belongs to another user: let that user, or root, change its owner or permissions "
    "(chown, or chmod -R g+rX, or g+rwX for writing), or set podSecurityContext.fsGroupChangePolicy to Always: then "
    "the kubelet gives all files of the volume to the pod's fsGroup at each start. Outside volumes, a program may "
    "write only to /tmp.",
    RESTART_NEVER,
)
READ_ONLY = Cause(
    "read-only",
    "The program writes where its file system is read-only.",
    "Write to the checkpoint volume or /tmp; a volume that is mounted with readOnly, or whose storage has become "
    "read-only after an error, cannot be written to.",
    RESTART_NEVER,
)
NO_PROGRESS = Cause(
    "no-progress",
    "The training made no progress for too long: it made no step, or kept restarting at the same step.",
    "Look for a task that hangs or keeps failing; raise run.noProgressTimeout if steps are that slow. If the "
    "error says that the container was throttled, raise roles.ROLE.cpuLimit first.",
    RESTART_IN_PLACE,
)
BAD_ARGUMENTS = Cause(
    "bad-arguments",
    "The program refused its command line, its hyperparameters or an environment variable.",
    "The error names it: compare args, hyperparameters and `env`, in the model spec and in the values that were set, "
    "with what the program accepts.",
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
    "The program exited with its own error code.",
    "Read the last lines of the output.",
    RESTART_IN_PLACE,
)
CONTRACT_BROKEN = Cause(
    "contract-broken",
    "The chart and the launcher are not compatible: nothing was started.",
    "Use a launcher of the same trainchart version as the chart, and install the chart unchanged.",
    RESTART_NEVER,
)
CONTAINER_DIED = Cause(
    "container-died",
    "The container kept exiting, and its launcher reported no cause.",
    "Read the pod's log, and check that the image has Python 3.8 or newer and the launcher (see images in the "
    "documentation), and that no variable of `env` keeps Python from starting (PYTHONHOME, PYTHONPATH, "
    "LD_LIBRARY_PATH, LD_PRELOAD).",
    RESTART_IN_PLACE,
)
LAUNCHER_MISSING = Cause(
    "launcher-missing",
    "The image has no launcher: it was not built for this chart.",
    "Name an image that trainchart image build has made (image.repository, image.tag), or let the pods take the "
    "launcher from the runtime image: image.injectLauncher=true, with run.controller.image. Your program "
    "must be in the image either way.",
    RESTART_IN_PLACE,
)
START_DEADLINE = Cause(
    "start-deadline",
    "Not every pod of the run was running in time, so all of them were stopped.",
    "The message says why the named pods did not start. Request less, free resources, or raise run.startDeadline.",
    RESTART_NEVER,
)

ACTIVE_DEADLINE = Cause(
    "active-deadline",
    "The run took longer than allowed, so all of its pods were stopped.",
    "Raise run.activeDeadline, or train for fewer steps. trainchart rerun continues from the last checkpoint.",
    RESTART_NEVER,
)
STOPPED = Cause(
    "stopped",
    "The run was stopped on request.",
    "Nothing to do. trainchart rerun continues from the last checkpoint.",
    RESTART_NEVER,
)
PORT_IN_USE = Cause(
    "port-in-use",
    "A port that is needed is already in use.",
    "Let only one process listen on that port, or choose another one (service.port, hostPort).",
    RESTART_IN_PLACE,
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
    "The checkpoint storage did not respond for too long, so the program was stopped.",
    "Check the checkpoint volume and its server, and whether other pods on the same node can read it.",
    RESTART_IN_PLACE,
)
STORAGE_FAILED = Cause(
    "storage-failed",
    "The storage failed to read or write a file: it is unavailable, or has dropped this client.",
    "The error names the file. Check the storage's servers, or the status page of the object store, and the network to "
    "them. A stale file handle, or an endpoint that is shut down, means that a server or volume was replaced: delete "
    "the pod, and its successor mounts the volume again.",
    RESTART_IN_PLACE,
)

CAUSES: Mapping[str, Cause] = {
    cause.name: cause
    for each in (globals(), vars(data_causes), vars(running_causes), vars(pod_causes))
    for cause in list(each.values())
    if isinstance(cause, Cause)
}
