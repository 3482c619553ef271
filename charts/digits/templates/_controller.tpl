{{- /* ServiceAccount of the run controller. */}}
{{- define "digits.controllerAccount" -}}
{{- if .Values.rbac.create -}}
{{- include "digits.partName" (dict "context" . "part" "controller") -}}
{{- else -}}
{{- .Values.run.controller.serviceAccountName -}}
{{- end -}}
{{- end -}}

{{- define "digits.stateName" -}}
{{- include "digits.partName" (dict "context" . "part" "state") -}}
{{- end -}}

{{- /* The run's record on the cluster; an empty object also where the cluster cannot be asked. */}}
{{- define "digits.state" -}}
{{- $record := lookup "v1" "ConfigMap" .Release.Namespace (include "digits.stateName" .) -}}
{{- get (get $record "data" | default dict) "state.json" | default "{}" -}}
{{- end -}}

{{- /* Whether the run has ended, by its record on the cluster; empty also where the cluster cannot be asked. */}}
{{- define "digits.isOver" -}}
{{- $state := include "digits.state" . | fromJson -}}
{{- $isSame := eq (toString (get $state "runId")) (include "digits.text" .Values.run.id) -}}
{{- if and $isSame (has (get $state "phase") (list "Succeeded" "Failed" "Stopped")) -}}
true
{{- end -}}
{{- end -}}

{{- /* What the controller decides by; the cluster itself is in its ConfigMap. */}}
{{- define "digits.runSettings" -}}
{{- $objects := list (printf "Service %s" (include "digits.serviceName" .)) -}}
{{- if .Values.networkPolicy.enabled -}}
{{- $objects = append $objects (printf "NetworkPolicy %s" (include "digits.serviceName" .)) -}}
{{- end -}}
{{- $queue := dict -}}
{{- with .Values.run.queue -}}
{{- $queue = dict "queue" . "queuePriorityClass" $.Values.run.queuePriorityClass "workload" (include "digits.workloadName" $) -}}
{{- end -}}
{{- toJson (merge $queue (dict
  "objects" $objects
  "maxRestarts" (int64 .Values.run.maxRestarts)
  "startDeadlineSeconds" (include "digits.seconds" .Values.run.startDeadline | int64)
  "evaluatorGraceSeconds" (include "digits.seconds" .Values.run.evaluatorGrace | int64)
  "activeDeadlineSeconds" (include "digits.seconds" .Values.run.activeDeadline | int64)
  "desiredState" .Values.run.desiredState
  "onChange" .Values.run.onChange
  "forceDeleteLostPods" .Values.run.forceDeleteLostPods
  "selector" (dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name "trainchart/training" "true")
)) -}}
{{- end -}}

{{- /*
Hash of all that the run depends on: the pods, the cluster, and how it is to be treated. It changes the Job's name, so that
a new controller follows a new plan, and stands in the record's ConfigMap, so that an old one knows that it was replaced.
*/}}
{{- define "digits.planId" -}}
{{- $parts := list (include "digits.runSettings" .) (include "digits.cluster" .) -}}
{{- range $role, $settings := .Values.roles -}}
{{- $arguments := dict "context" $ "role" $role "settings" $settings "component" $role -}}
{{- $parts = append $parts (include "digits.podTemplate" $arguments) -}}
{{- end -}}
{{- /* A letter first: some readers of YAML take 12e3456 for a number. */}}
{{- printf "p%s" (join "\n" $parts | sha256sum | trunc 15) -}}
{{- end -}}

{{- /*
The name holds the hash of the Job's text: a Job cannot be changed, only replaced. (dict "context" $ "spec" what
controllerSpec gives)
*/}}
{{- define "digits.jobName" -}}
{{- printf "%s-%s" (include "digits.partName" (dict "context" .context "part" "controller")) (.spec | sha256sum | trunc 8) -}}
{{- end -}}

{{- /* The controller's Job: (dict "context" $ "plan" what planId gives, which takes long). */}}
{{- define "digits.controllerSpec" -}}
{{- $plan := .plan -}}
{{- with .context -}}
# No podFailurePolicy, with which a controller on a lost node would not be replaced. The controller itself sets backoffLimit:
# high at its start, so that it may crash, and low when the run has failed, so that the Job fails.
template:
  {{- /* Given up soon by a node that does not answer; what becomes of the run then is in docs/lifecycle.md. */}}
  {{- $arguments := dict "context" . "component" "controller" "settings" .Values.run.controller "training" "false" "patienceSeconds" 10 }}
  metadata:
    labels:
      {{- include "digits.podLabels" $arguments | nindent 6 }}
    {{- with include "digits.podAnnotations" $arguments }}
    annotations:
      {{- . | nindent 6 }}
    {{- end }}
  spec:
    restartPolicy: Never
    serviceAccountName: {{ include "digits.controllerAccount" . | quote }}
    automountServiceAccountToken: true
    terminationGracePeriodSeconds: 5
    {{- include "digits.everyPod" $arguments | nindent 4 }}
    containers:
      - name: controller
        image: {{ .Values.run.controller.image | default (include "digits.image" .) | quote }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        command: [python3, /opt/trainchart/controller.pyz]
        env:
          - name: TRAINCHART_RELEASE
            value: {{ .Release.Name | quote }}
          - name: TRAINCHART_NAMESPACE
            valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}
          - name: TRAINCHART_POD_NAME
            valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}
          - name: TRAINCHART_JOB_NAME
            valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}
          - name: TRAINCHART_RUN_ID
            {{- with include "digits.text" .Values.run.id }}
            value: {{ . | quote }}
            {{- end }}
          - name: TRAINCHART_STATE_NAME
            value: {{ include "digits.stateName" . }}
          - name: TRAINCHART_CLUSTER_FILE
            value: /etc/trainchart/cluster.json
          - name: TRAINCHART_PLAN_ID
            value: {{ $plan | quote }}
          - name: TRAINCHART_RUN_SETTINGS
            value: {{ include "digits.runSettings" . | quote }}
          - name: TRAINCHART_METRICS_ADDRESS
            value: ":{{ int64 .Values.service.statusPort }}"
          - name: NVIDIA_VISIBLE_DEVICES
            value: void
        ports:
          - name: status
            containerPort: {{ int64 .Values.service.statusPort }}
        resources:
          {{- include "digits.resources" (dict "settings" .Values.run.controller) | nindent 10 }}
        terminationMessagePolicy: FallbackToLogsOnError
        {{- with include "digits.merged" (list .Values.containerSecurityContext .Values.run.controller.containerSecurityContext) }}
        securityContext:
          {{- . | nindent 10 }}
        {{- end }}
        volumeMounts:
          - name: config
            mountPath: /etc/trainchart
            readOnly: true
    volumes:
      - name: config
        configMap:
          name: {{ include "digits.clusterName" . }}
{{- end -}}
{{- end -}}
