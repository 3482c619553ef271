"""The causes why a pod cannot run, or was taken away: what the cluster does, whatever the program is.

Data only; pod_problems.py picks one. causes.py has those of programs, and the list of all.
"""

from __future__ import annotations

from trainchart_runtime.cause import RESTART_GOES_ON, RESTART_QUEUED, RESTART_RECREATED, RESTART_WAITED_FOR, Cause

UNSCHEDULABLE = Cause(
    "unschedulable",
    "No node of the cluster has room for the pod.",
    "The message names the resource that is short. Request less, add nodes, or free some: trainchart list -A shows "
    "which runs hold GPUs, and kubectl describe nodes shows what else uses the nodes.",
    RESTART_WAITED_FOR,
)
NO_NODE_MATCHES = Cause(
    "no-node-matches",
    "No node satisfies the pod's scheduling constraints.",
    "kubectl get pod POD -o yaml shows its nodeSelector, affinity, tolerations and topologySpreadConstraints; kubectl "
    "get nodes --show-labels shows the labels of the nodes, and kubectl describe nodes shows their taints. Constraints "
    "that are not in the values were added by a policy, a webhook or a default of the namespace. Unschedulable nodes "
    "are cordoned (kubectl uncordon NODE); a taint repels pods that do not tolerate it; a volume that only one node "
    "can reach ties the pod to that node (kubectl describe pv).",
    RESTART_WAITED_FOR,
)
PLACEMENT_RULES = Cause(
    "placement-rules",
    "No node satisfies the rules on where the pod may run relative to other pods: affinity, anti-affinity or spread.",
    "No resource is short. kubectl get pod POD -o yaml shows the rules, spec.affinity and "
    "spec.topologySpreadConstraints. A required podAntiAffinity by kubernetes.io/hostname gives each pod its own node: "
    "compare the number of pods with the nodes that kubectl get nodes shows as Ready. Add nodes, lower "
    "roles.ROLE.replicas, or make the rule soft: preferredDuringSchedulingIgnoredDuringExecution, or "
    "whenUnsatisfiable: ScheduleAnyway. Pods of other releases have such rules too, and a policy or a webhook may add "
    "some.",
    RESTART_WAITED_FOR,
)
SCHEDULING_GATED = Cause(
    "scheduling-gated",
    "A scheduling gate keeps the pod from being scheduled.",
    "Find out what set the gate, such as a queue (Kueue): kubectl get pod POD -o jsonpath='{.spec.schedulingGates}'.",
    RESTART_WAITED_FOR,
)
QUEUED = Cause(
    "queued",
    "The run waits in its queue until there is quota for all of its pods.",
    "Wait, or free some quota: trainchart list -A shows which runs hold GPUs, and trainchart status shows how many "
    "runs are ahead of this one, if your account may see that. run.queuePriorityClass moves it forward.",
    RESTART_QUEUED,
)
QUEUE_CLOSED = Cause(
    "queue-closed",
    "The queue does not exist, or admits no workloads.",
    "kubectl get localqueues lists the queues of the namespace: name one in run.queue. If it is stopped, or its "
    "ClusterQueue is missing or inactive, ask the administrators of the queues: kubectl describe localqueue QUEUE. "
    'If a Workload was deactivated: kubectl patch workload NAME --type=merge -p \'{"spec":{"active":true}}\'.',
    RESTART_QUEUED,
)
QUEUE_UNUSABLE = Cause(
    "queue-unusable",
    "The run controller cannot use the queue.",
    "If Kueue is not installed, leave run.queue empty or have Kueue installed. If a request was forbidden, an "
    "administrator must let run controllers read flavors and priority classes, once per cluster: kubectl create "
    "clusterrole trainchart-queues --verb=get "
    "--resource=resourceflavors.kueue.x-k8s.io,workloadpriorityclasses.kueue.x-k8s.io && kubectl create "
    "clusterrolebinding trainchart-queues --clusterrole=trainchart-queues --group=system:serviceaccounts.",
    RESTART_QUEUED,
)
IMAGE_PULL = Cause(
    "image-pull",
    "The image of the pod cannot be pulled.",
    "Check the image's name, tag and digest, whether it was pushed, and, if access was denied, image.pullSecrets. If "
    "the run pulled another image before: helm history RELEASE shows the upgrades; any other change was made outside "
    "Helm.",
    RESTART_WAITED_FOR,
)
VOLUME_ERROR = Cause(
    "volume-error",
    "A volume of the pod cannot be provided or mounted.",
    "Check the claim and its StorageClass: kubectl describe pvc. A subPath must lead to a folder of the volume; a file "
    "or a link cannot be mounted.",
    RESTART_WAITED_FOR,
)
STORAGE_CLASS_MISSING = Cause(
    "storage-class-missing",
    "A claim of the pod names a StorageClass that the cluster does not have.",
    "kubectl get storageclass lists the existing ones. The class of a claim cannot be changed: have the cluster's "
    "administrators create it, or name another one in the values, delete the claim, and run helm upgrade, which "
    "creates it again.",
    RESTART_WAITED_FOR,
)
MOUNT_UNSUPPORTED = Cause(
    "mount-unsupported",
    "The node has no client for the file system of a volume.",
    "Neither the claim nor the server is at fault: have the cluster's administrators install the client on the nodes "
    "(nfs-common, glusterfs-client, ceph-common or the like, and the kernel module that it needs), or choose nodes "
    "that have it (nodeSelector). The kubelet then mounts the volume by itself.",
    RESTART_WAITED_FOR,
)
STORAGE_DRIVER_MISSING = Cause(
    "storage-driver-missing",
    "The storage driver (CSI) of a volume does not answer, or is not installed on the pod's node.",
    "The message names the driver. kubectl get csidrivers lists those of the cluster, and kubectl get csinode NODE -o "
    "yaml shows those of the node: have the cluster's administrators install or restart the driver there. The claim is "
    "not at fault; a StorageClass with another driver only helps new claims.",
    RESTART_WAITED_FOR,
)
NODE_FILE_MISSING = Cause(
    "node-file-missing",
    "The node lacks a file or a profile (seccomp, AppArmor) that the pod needs, or cannot use it.",
    "The message names it. Nothing is missing in the namespace: have the cluster's administrators put it on the node, "
    "as on nodes where such pods run. Until then, keep new pods away (kubectl cordon NODE) and delete the pod. If the "
    "values do not set it, a policy or a webhook added it, and its owner can remove it.",
    RESTART_WAITED_FOR,
)
DEVICE_ERROR = Cause(
    "device-error",
    "The node cannot give the container the GPU or other device that it requests.",
    "The message says why. 'unsatisfied condition: cuda>=VERSION' means that the node's driver is too old for the "
    "image: use an image with an earlier CUDA version, or choose nodes with a newer driver (nodeSelector). Anything "
    "else is a problem of the node's driver or device plugin: have the cluster's administrators check it (nvidia-smi "
    "on the node). Until then, keep new pods away (kubectl cordon NODE) and delete the pod.",
    RESTART_WAITED_FOR,
)
CLAIM_DELETED = Cause(
    "claim-deleted",
    "A claim that the pod needs is being deleted, which cannot be undone: its data is deleted with the last pod that "
    "uses it.",
    "Do not suspend, stop, rerun or uninstall yet. First keep the data: kubectl patch pv VOLUME (kubectl get pvc names "
    """it) -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}', or copy the data from a running pod """
    "(kubectl cp). Then delete the pods, and run helm upgrade to recreate the claim, empty.",
    RESTART_WAITED_FOR,
)
RESUME_CLAIM_MISSING = Cause(
    "resume-claim-missing",
    "run.resumeRelease names a release whose checkpoint claim does not exist in this namespace.",
    "Name a release of the same chart in the same namespace whose checkpoints still exist: kubectl get pvc shows their "
    "claims, RELEASE-CHART-checkpoints. To start from the beginning, set run.resumeRelease to an empty string.",
    RESTART_WAITED_FOR,
)
CLAIM_MISSING = Cause(
    "claim-missing",
    "A claim that the pod mounts does not exist.",
    "If the chart created the claim, it was deleted, and its checkpoints are most likely gone: kubectl get pv shows "
    "whether its volume still exists (Released). If so, first have an administrator save its data. helm rollback "
    "RELEASE REVISION, with the newest revision of helm history RELEASE, recreates the claim, empty, and the run "
    "starts from the beginning. If existingClaim names the claim: create it in the release's namespace, "
    "or correct its name.",
    RESTART_WAITED_FOR,
)
CLAIM_IN_USE = Cause(
    "claim-in-use",
    "A pod elsewhere uses a claim that only one pod or node may use at a time.",
    "kubectl describe pvc CLAIM names the pods that use it: delete them, or use an access mode and a StorageClass that "
    "allow several.",
    RESTART_WAITED_FOR,
)
CONFIG_MISSING = Cause(
    "config-missing",
    "A Secret, ConfigMap, ServiceAccount or key that the pod refers to does not exist, or the container cannot be "
    "created from it.",
    "Create the named object in the release's namespace, or correct its name in the values. If a key is missing: add "
    "it to the Secret or ConfigMap, or name another key in the values. Then the pod starts by itself. helm rollback "
    "RELEASE REVISION, with the newest revision of helm history RELEASE, restores what the chart itself creates.",
    RESTART_WAITED_FOR,
)
IMAGE_USER = Cause(
    "image-user",
    "The container would run as root or as a user that is not a number, which the pod's settings do not allow, or as a "
    "user or group that the image does not define.",
    "The message names the container. Use an image whose USER is a number other than 0, such as USER 1000:1000 in its "
    "Dockerfile, or set podSecurityContext.runAsUser to a user other than 0 that can run the program. For the run "
    "controller (container controller), set run.controller.image to the runtime image (trainchart image push "
    "--runtime), or leave it empty to use the training image.",
    RESTART_WAITED_FOR,
)
QUOTA_EXCEEDED = Cause(
    "quota-exceeded",
    "A quota of the namespace does not allow the pod.",
    "Request less, stop or delete what else uses the quota, or have it raised: kubectl describe quota. Once there is "
    "room, the StatefulSet may take minutes to try again: kubectl annotate statefulset NAME retry=now --overwrite "
    "makes it try at once.",
    RESTART_WAITED_FOR,
)
QUOTA_NEEDS_AMOUNT = Cause(
    "quota-needs-amount",
    "A quota of the namespace counts a resource for which a container sets no request or limit.",
    "Give the named container a request or limit for that resource: in resources of its entry in initContainers or "
    "extraContainers, or for a role in roles.ROLE; or have a LimitRange set a default (kubectl describe quota).",
    RESTART_WAITED_FOR,
)
ADMISSION_REFUSED = Cause(
    "admission-refused",
    "The cluster refuses to create the pod.",
    "Read the refusal: a LimitRange, Pod Security, a policy or its webhook, or a field that the cluster does not "
    "allow. Set what it requires of the pod in the values: podLabels, podAnnotations, podSecurityContext, "
    "containerSecurityContext, resources, image. "
    "A policy that fails, or a webhook that cannot be called, must be fixed by its owner; kubectl get "
    "validatingadmissionpolicies,mutatingadmissionpolicies,validatingwebhookconfigurations,"
    "mutatingwebhookconfigurations lists them. Once the problem is fixed, the "
    "StatefulSet may take minutes to try again: kubectl annotate statefulset NAME retry=now --overwrite makes it try "
    "at once.",
    RESTART_WAITED_FOR,
)
LIMIT_RANGE = Cause(
    "limit-range",
    "A LimitRange of the namespace does not allow what the pod requests or its limits.",
    "The refusal says which amount, and what is allowed; kubectl describe limitrange shows all of it. Change the "
    "amount in the values (for a role below roles.ROLE: cpu and cpuLimit, memory, ephemeralStorage), or have the "
    "LimitRange changed.",
    RESTART_WAITED_FOR,
)
CLASS_MISSING = Cause(
    "class-missing",
    "The pod names a PriorityClass or RuntimeClass that the cluster does not have.",
    "kubectl get priorityclass,runtimeclass lists the existing ones. Name one of them (priorityClassName, "
    "runtimeClassName) or none, or have the cluster's administrators create the one that is missing.",
    RESTART_WAITED_FOR,
)
NAME_CONFLICT = Cause(
    "name-conflict",
    "A pod or object of the same name already exists and does not belong to this release.",
    "Remove the other object, or install under another release name.",
    RESTART_WAITED_FOR,
)
INIT_FAILED = Cause(
    "init-failed",
    "An init container of the pod fails, so the program does not start.",
    "Correct the init container in the values. To see its output while the pod exists: kubectl logs POD -c CONTAINER.",
    RESTART_WAITED_FOR,
)
SIDECAR_FAILED = Cause(
    "sidecar-failed",
    "A container next to the training container keeps exiting.",
    "Correct that container in the values. To see its output: kubectl logs POD -c CONTAINER --previous.",
    RESTART_WAITED_FOR,
)
OBJECT_MISSING = Cause(
    "object-missing",
    "An object of the release that its run needs is missing, or was changed.",
    "helm rollback RELEASE REVISION, with the newest revision of helm history RELEASE, restores it, as helm upgrade "
    "with its own chart and values does (Helm 4 needs --force-conflicts if another client changed it); a run that is "
    "over also needs trainchart rerun. Find out who deleted or changed it.",
    RESTART_WAITED_FOR,
)
CHANGE_REFUSED = Cause(
    "change-refused",
    "The cluster refuses a change that the run controller has to make, so pods that should be removed remain, or "
    "pods that are needed are not created.",
    "The refusal names its source: an admission policy or a webhook, which must let the run controller's "
    "ServiceAccount change the release's StatefulSets and pods; or a Role that was changed: helm rollback RELEASE "
    "REVISION restores it. The run controller keeps trying until then. helm uninstall removes the pods.",
    RESTART_GOES_ON,
)
POD_STUCK = Cause(
    "pod-stuck",
    "A deleted pod is still there, so nothing can take its place.",
    "Check its finalizers, volumes and node: kubectl describe pod POD.",
    RESTART_WAITED_FOR,
)
SANDBOX_ERROR = Cause(
    "sandbox-error",
    "The node cannot create the pod's network, sandbox or containers.",
    "This is a problem of the node, such as a full disk: see kubectl describe pod, and report it to the cluster's "
    "administrators.",
    RESTART_WAITED_FOR,
)
EVICTED = Cause(
    "evicted",
    "The pod was evicted from its node.",
    "If the message says that it exceeded its limit, raise tmpSize, ephemeralStorageLimit or the volume's sizeLimit, "
    "or let the program write less. Otherwise, the node ran short of memory, disk or PIDs, or was shut down. "
    "The message says which; kubectl describe node NODE may show more.",
    RESTART_RECREATED,
)
EVICTED_BY_TAINT = Cause(
    "evicted-by-taint",
    "A NoExecute taint on its node evicted the pod.",
    "kubectl describe node NODE shows the node's taints and conditions. Kubernetes adds such a taint while a node is "
    "not ready, and removes it once the node's kubelet, container runtime and network work again. A taint that an "
    "administrator added stays until it is removed: move the pods to other nodes (nodeSelector, affinity), or let them "
    "tolerate it (tolerations).",
    RESTART_RECREATED,
)
EVICTED_BY_CLIENT = Cause(
    "evicted-by-client",
    "A client of Kubernetes' Eviction API evicted the pod: kubectl drain, a descheduler, an autoscaler or the like.",
    "The node did not evict the pod, so the eviction does not mean that the node has a fault. Events may name the "
    "client (kubectl get events --field-selector involvedObject.name=POD); kubectl get nodes shows SchedulingDisabled "
    "for a node that is being drained. Ask the client's owner to exempt training pods. If pods are evicted before they "
    "have saved a checkpoint, the run makes no progress: save more often.",
    RESTART_RECREATED,
)
POD_DEADLINE = Cause(
    "pod-deadline",
    "The pod was ended because it had run longer than its activeDeadlineSeconds.",
    "The chart sets no such limit: a policy, a webhook or a person did (kubectl get pod POD -o yaml). Have its owner "
    "exempt training pods. Until then, they continue from the last checkpoint and are ended again.",
    RESTART_RECREATED,
)
PREEMPTED = Cause(
    "preempted",
    "The pod had to make room for one of higher priority.",
    "Nothing to do if there is room elsewhere; otherwise set priorityClassName to a class of higher priority, or "
    "wait. The message has the UID of the pod that took its place: kubectl get pods -A -o "
    "custom-columns=:.metadata.uid,:.metadata.namespace,:.metadata.name | grep UID names it.",
    RESTART_RECREATED,
)
NODE_LOST = Cause(
    "node-lost",
    "The pod's node no longer responds, or cannot terminate its pods.",
    "kubectl describe node NODE shows what failed: its kubelet, its network or its container runtime. When the node "
    "responds again, the pod continues or is replaced. Only if the node is gone for good: kubectl taint nodes NODE "
    "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or set run.forceDeleteLostPods=true.",
    RESTART_RECREATED,
)
POD_DELETED = Cause(
    "pod-deleted",
    "A user or a controller deleted the pod.",
    "Nothing to do: the pod is recreated and continues from the last checkpoint.",
    RESTART_RECREATED,
)
