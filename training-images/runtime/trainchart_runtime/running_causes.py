"""What may be wrong with a program that runs: nothing has failed, the run continues, and its users should know.

Data only; causes.py has the causes why programs end, and CAUSES with all of them.
"""

from __future__ import annotations

from trainchart_runtime.cause import RESTART_GOES_ON, Cause

NOT_A_NUMBER = Cause(
    "not-a-number",
    "A number that the program reports, such as its loss, is NaN.",
    "The training has most likely diverged, and further steps are useless. Stop it, and start again from an earlier "
    "checkpoint with a smaller learning rate or clipped gradients; tf.debugging.enable_check_numerics names the "
    "operation that produces the first NaN. Common causes are a logarithm of 0, and an example that contains NaN.",
    RESTART_GOES_ON,
)
SLOW_TASK = Cause(
    "slow-task",
    "The program of one task is far slower than those of the others.",
    "If the tasks train synchronously, all wait for it. Compare its node with the others' (kubectl top pod, kubectl "
    "describe node: CPU limits, other pods, a slower machine), its resources (kubectl get pod POD -o yaml) and its "
    "share of the data.",
    RESTART_GOES_ON,
)
CPU_THROTTLED = Cause(
    "cpu-throttled",
    "The CPU limit of a container is so low that the kernel stops its program most of the time.",
    "If the limit is that of your values, raise roles.ROLE.cpuLimit, or roles.ROLE.cpu where that is empty, with helm "
    "upgrade: loading TensorFlow alone takes several seconds of a whole CPU. If it is not, a policy, a webhook or an "
    "autoscaler set it, and its owner must exempt these pods.",
    RESTART_GOES_ON,
)
CHILD_KILLED = Cause(
    "child-killed",
    "A process that the program had started ran out of memory and was killed by the kernel; the program waits for it.",
    "Some programs wait for such a process forever: multiprocessing.Pool does, while concurrent.futures raises "
    "BrokenProcessPool. Give the role more memory, or let the program hold less at once (fewer processes of its data "
    "loader, smaller batches); kubectl delete pod POD starts it again from its last checkpoint, and "
    "run.noProgressTimeout starts it again automatically. If certain data is to blame, it fails at the same step "
    "again.",
    RESTART_GOES_ON,
)
STORAGE_SILENT = Cause(
    "storage-silent",
    "The checkpoint storage does not respond, and the program is blocked until it does.",
    "Nothing is lost: the training continues by itself when the storage responds again, and is restarted after two "
    "minutes without a response. Check the storage's servers (GlusterFS: gluster volume status; Ceph: ceph status; how "
    "many replicas exist, and how many are needed to write), and the network between them and the pod's node.",
    RESTART_GOES_ON,
)
NOT_CONNECTED = Cause(
    "not-connected",
    "The leading task makes steps without being connected to peers that its strategy needs: each trains on its own.",
    "If the tasks should train together, check whether the code or `env` removes or replaces TF_CONFIG "
    "(os.environ.pop, as in tutorials), or creates the strategy without it. Until that is fixed, each task trains a "
    "model of its own, and several may write the same files.",
    RESTART_GOES_ON,
)

RUNNING_CAUSES = (NOT_A_NUMBER, SLOW_TASK, CPU_THROTTLED, CHILD_KILLED, STORAGE_SILENT, NOT_CONNECTED)
"""All of them; launchers report them."""
