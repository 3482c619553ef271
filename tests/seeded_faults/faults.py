"""The table of seeded faults: a name, the template, what is replaced by what, and the rule of check that finds it."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    rule: str


FAULTS = (
    Fault("a fixed namespace", "service.yaml", "metadata:\n", "metadata:\n  namespace: default\n", "no-namespace"),
    Fault("a label is lost", "_labels.tpl", '"app.kubernetes.io/managed-by"', '"app.kubernetes.io/manager"', "labels"),
    Fault(
        "the chart's version in a pod template",
        "_labels.tpl",
        '{{- $_ := set $own "trainchart/training" "true" -}}',
        '{{- $_ := set $own "trainchart/training" "true" -}}{{- $_ := set $own "helm.sh/chart" "x" -}}',
        "stable-selectors",
    ),
    Fault("names of 63 characters", "_names.tpl", '"limit" 52', '"limit" 63', "names-fit"),
    Fault(
        "names cut without a hash",
        "_names.tpl",
        'printf "%s-%s" (.name | trunc (int (sub .limit 9)) | trimSuffix "-") (sha256sum .name | trunc 8)',
        ".name | trunc (int .limit)",
        "names-fit",
    ),
    Fault(
        "a container without security context",
        "statefulset.yaml",
        "<% for field in container_fields %>",
        '<% for field in container_fields if field.key != "securityContext" %>',
        "pod-security",
    ),
    Fault(
        "a token in training pods",
        "statefulset.yaml",
        "automountServiceAccountToken: false",
        "automountServiceAccountToken: true",
        "token-unused",
    ),
    Fault("limits misspelt", "_values.tpl", "limits:\n", "limitz:\n", "kubernetes-schema"),
    Fault(
        "the GPU limit is a text",
        "_values.tpl",
        "  {{ .gpuResource }}: {{ int64 .settings.gpus | quote }}",
        "  {{ .gpuResource }}:{{ int64 .settings.gpus | quote }}",
        "renders",
    ),
    Fault(
        "limits are a text",
        "_values.tpl",
        "limits:\n",
        "limits: nvidia.com/gpu:1\nunused:\n",
        "quantities",
    ),
    Fault(
        "the GPU in requests only",
        "_values.tpl",
        "requests:\n",
        "requests:\n  nvidia.com/mig-7g: 1\n",
        "quantities",
    ),
    Fault(
        "requests above limits",
        "_values.tpl",
        "requests:\n  cpu: {{ $cpu | quote }}",
        'requests:\n  cpu: "99"',
        "quantities",
    ),
    Fault(
        "no CPU limit",
        "_values.tpl",
        '  cpu: {{ include "<%= name %>.text" .settings.cpuLimit | default $cpu | quote }}\n',
        "",
        "resources-set",
    ),
    Fault(
        "roles without GPU see those of the node",
        "_pod.tpl",
        '"NVIDIA_VISIBLE_DEVICES" "void"',
        '"NVIDIA_X" "void"',
        "training-sets",
    ),
    Fault(
        "strangers are let in",
        "networkpolicy.yaml",
        "    - from:\n        - podSelector:\n            matchLabels:\n"
        "              app.kubernetes.io/name: {{ .Chart.Name | quote }}\n"
        "              app.kubernetes.io/instance: {{ .Release.Name | quote }}\n",
        "    - {}\n",
        "network-policy",
    ),
    Fault(
        "the policy forgets pods",
        "networkpolicy.yaml",
        "  podSelector:\n    matchLabels:\n",
        '  podSelector:\n    matchLabels:\n      trainchart/training: "true"\n',
        "network-policy",
    ),
    Fault("the policy names no port", "networkpolicy.yaml", "- port: status", "- port: state", "network-policy"),
    Fault(
        "a budget that blocks drains",
        "poddisruptionbudget.yaml",
        "maxUnavailable: 1",
        "minAvailable: 100%",
        "budget-blocks",
    ),
    Fault("peers that start are hidden", "service.yaml", "  publishNotReadyAddresses: true\n", "", "hosts-match"),
    Fault(
        "the Service misses the pods",
        "service.yaml",
        'trainchart/training: "true"',
        'trainchart/training: "yes"',
        "service-targets",
    ),
    Fault(
        "the Service misses the port", "service.yaml", "targetPort: tensorflow", "targetPort: grpc", "service-targets"
    ),
    Fault(
        "pods start in order",
        "statefulset.yaml",
        "podManagementPolicy: Parallel",
        "podManagementPolicy: OrderedReady",
        "training-sets",
    ),
    Fault("upgrades restart trainings", "statefulset.yaml", "type: OnDelete", "type: RollingUpdate", "training-sets"),
    Fault(
        "one replica in the cluster",
        "_config.tpl",
        '"replicas" (int64 $settings.replicas)',
        '"replicas" (int64 1)',
        "hosts-match",
    ),
    Fault(
        "checkpoints are not kept",
        "persistentvolumeclaims.yaml",
        '"helm.sh/resource-policy" "keep"',
        '"helm.sh/resource-policy" "delete"',
        "resource-policy",
    ),
    Fault(
        "claims for one node",
        "persistentvolumeclaims.yaml",
        "- {{ $volume.accessMode }}",
        "- ReadWriteOnce",
        "access-modes",
    ),
    Fault(
        "a moving tag",
        "_values.tpl",
        '{{- printf "%s:%s" .repository (include "<%= name %>.text" .tag) -}}',
        '{{- printf "%s:latest" .repository -}}',
        "images-pinned",
    ),
    Fault("the test's pod stays behind", "tests/test-status.yaml", "before-hook-creation,", "", "hooks"),
    Fault("a misspelt hook", "tests/test-status.yaml", '"helm.sh/hook" "test"', '"helm.sh/hook" "tests"', "hooks"),
    Fault("an old flag in the notes", "NOTES.txt", "Strategy:", "Use --atomic. Strategy:", "notes"),
    Fault(
        "a name that ignores the content",
        "_names.tpl",
        '{{- $hash := include "<%= name %>.cluster" . | sha256sum | trunc 8 -}}',
        '{{- $hash := "12345678" -}}',
        "immutable-names",
    ),
    Fault(
        "a number without int64",
        "service.yaml",
        "{{ int64 .Values.service.port }}",
        "{{ .Values.service.port }}",
        "numbers-printed",
    ),
    Fault(
        "a number that prints as 2e+06",
        "_pod.tpl",
        "value: {{ int64 .context.Values.run.maxRestarts | quote }}",
        "value: {{ .context.Values.run.maxRestarts | toString | quote }}",
        "numbers-plain",
    ),
    Fault(
        "a variable twice",
        "_pod.tpl",
        "- name: TRAINCHART_STATE_DIR",
        "- name: TRAINCHART_RUN_ID\n  value: x\n- name: TRAINCHART_STATE_DIR",
        "entries-unique",
    ),
    Fault(
        "a variable is missing",
        "_pod.tpl",
        "- name: TRAINCHART_ORDINAL",
        "- name: TRAINCHART_ORDER",
        "launcher-environment",
    ),
    Fault(
        "a Service of another name",
        "statefulset.yaml",
        'serviceName: {{ include "<%= name %>.serviceName" $ }}',
        'serviceName: {{ include "<%= name %>.fullname" $ }}x',
        "service-names",
    ),
    Fault("no limit of TF_CONFIG", "_config.tpl", "131000", "13100000", "cluster-size"),
    Fault(
        "a value that nothing reads",
        "networkpolicy.yaml",
        "{{- with .Values.networkPolicy.statusFrom }}",
        "{{- with list }}",
        "values-used",
    ),
    Fault(
        "a misspelt value",
        "networkpolicy.yaml",
        ".Values.networkPolicy.enabled",
        ".Values.networkPolicy.enable",
        "values-defined",
    ),
    Fault(
        "a mount without its volume",
        "_pod.tpl",
        "- name: shm\n  emptyDir:",
        "- name: memory\n  emptyDir:",
        "mounts-exist",
    ),
    Fault(
        "a claim by another name",
        "_pod.tpl",
        '"part" $name)) | quote }}',
        '"part" "claim")) | quote }}',
        "references-exist",
    ),
    Fault(
        "crooked indentation",
        "service.yaml",
        "| nindent 4",
        "| nindent 7",
        "rendered-style",
    ),
    Fault(
        "a volume type that is gone",
        "_pod.tpl",
        "- name: tmp\n  emptyDir: {}",
        "- name: tmp\n  glusterfs: {endpoints: a, path: b}",
        "volume-types",
    ),
    Fault(
        "the selector misses the pods",
        "_labels.tpl",
        "mergeOverwrite $labels $own",
        'merge (dict "app.kubernetes.io/component" "x") $labels $own',
        "selectors-own",
    ),
    Fault(
        "an annotation that asks the clock",
        "service.yaml",
        "metadata:\n",
        "metadata:\n  annotations: {generated: {{ now | quote }}}\n",
        "repeatable",
    ),
    Fault(
        "a name that Kubernetes refuses",
        "service.yaml",
        'name: {{ include "<%= name %>.serviceName" . }}',
        'name: {{ include "<%= name %>.serviceName" . }}_x',
        "names-valid",
    ),
    Fault(
        "pods without containers",
        "statefulset.yaml",
        "      containers:\n",
        "      containers: []\n      unused:\n",
        "objects-specified",
    ),
    Fault(
        "the revision in a field that stays",
        "statefulset.yaml",
        'serviceName: {{ include "<%= name %>.serviceName" $ }}',
        'serviceName: {{ include "<%= name %>.serviceName" $ }}-{{ $.Release.Revision }}',
        "stable-selectors",
    ),
    Fault(
        "the chart's version in a selector",
        "statefulset.yaml",
        "  selector:\n    matchLabels:\n",
        "  selector:\n    matchLabels:\n      version: {{ $.Chart.AppVersion | quote }}\n",
        "stable-selectors",
    ),
)
