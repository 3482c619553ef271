{{- /* ServiceAccount of the run controller. */}}
{{- define "mnist-towers.controllerAccount" -}}
{{- if .Values.rbac.create -}}
{{- include "mnist-towers.partName" (dict "context" . "part" "controller") -}}
{{- else -}}
{{- .Values.run.controller.serviceAccountName -}}
{{- end -}}
{{- end -}}

{{- define "mnist-towers.stateName" -}}
{{- include "mnist-towers.partName" (dict "context" . "part" "state") -}}
{{- end -}}

{{- /* What the controller decides by; the cluster itself is in its ConfigMap. */}}
{{- define "mnist-towers.runSettings" -}}
{{- toJson (dict
  "maxRestarts" (int64 .Values.run.maxRestarts)
  "startDeadlineSeconds" (include "mnist-towers.seconds" .Values.run.startDeadline | int64)
  "evaluatorGraceSeconds" (include "mnist-towers.seconds" .Values.run.evaluatorGrace | int64)
  "activeDeadlineSeconds" (include "mnist-towers.seconds" .Values.run.activeDeadline | int64)
  "desiredState" .Values.run.desiredState
  "onChange" .Values.run.onChange
  "forceDeleteLostPods" .Values.run.forceDeleteLostPods
  "selector" (dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name "trainchart/training" "true")
) -}}
{{- end -}}

{{- /*
Hash of all that the run depends on: the pods, the cluster, and how it is to be treated. It changes the Job's name, so that
a new controller follows a new plan, and stands in the record's ConfigMap, so that an old one knows that it was replaced.
*/}}
{{- define "mnist-towers.planId" -}}
{{- $parts := list (include "mnist-towers.runSettings" .) (include "mnist-towers.cluster" .) -}}
{{- range $role, $settings := .Values.roles -}}
{{- $arguments := dict "context" $ "role" $role "settings" $settings "component" $role -}}
{{- $parts = append $parts (include "mnist-towers.podTemplate" $arguments) -}}
{{- end -}}
{{- join "\n" $parts | sha256sum | trunc 16 -}}
{{- end -}}

{{- /* The name holds the hash of the Job's text: a Job cannot be changed, only replaced. */}}
{{- define "mnist-towers.jobName" -}}
{{- printf "%s-%s" (include "mnist-towers.partName" (dict "context" . "part" "controller")) (include "mnist-towers.controllerSpec" . | sha256sum | trunc 8) -}}
{{- end -}}

{{- /* The controller's Job. */}}
{{- define "mnist-towers.controllerSpec" -}}
# No podFailurePolicy, with which a controller on a lost node would not be replaced. The controller itself sets backoffLimit:
# high at its start, so that it may crash, and low when the run has failed, so that the Job fails.
template:
  metadata:
    labels:
      {{- include "mnist-towers.selectorLabels" (dict "context" . "component" "controller") | nindent 6 }}
      app.kubernetes.io/part-of: "mnist-towers"
      # Belongs to a training, so that it is looked at like the training pods, and is none of them.
      trainchart/training: "false"
  spec:
    restartPolicy: Never
    serviceAccountName: {{ include "mnist-towers.controllerAccount" . | quote }}
    automountServiceAccountToken: true
    enableServiceLinks: false
    terminationGracePeriodSeconds: 5
    {{- with .Values.nodeSelector }}
    nodeSelector:
      {{- include "mnist-towers.annotations" (list .) | nindent 6 }}
    {{- end }}
    {{- with .Values.affinity }}
    affinity:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.hostAliases }}
    hostAliases:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.dnsPolicy }}
    dnsPolicy:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.dnsConfig }}
    dnsConfig:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.podSecurityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    tolerations:
      # Given up soon by a node that does not answer; what becomes of the run then is in docs/lifecycle.md.
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
      {{- with .Values.tolerations }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with .Values.image.pullSecrets }}
    imagePullSecrets:
      {{- range . }}
      - name: {{ . | quote }}
      {{- end }}
    {{- end }}
    containers:
      - name: controller
        image: {{ .Values.run.controller.image | default (include "mnist-towers.image" .) | quote }}
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
            {{- with include "mnist-towers.text" .Values.run.id }}
            value: {{ . | quote }}
            {{- end }}
          - name: TRAINCHART_STATE_NAME
            value: {{ include "mnist-towers.stateName" . }}
          - name: TRAINCHART_CLUSTER_FILE
            value: /etc/trainchart/cluster.json
          - name: TRAINCHART_PLAN_ID
            value: {{ include "mnist-towers.planId" . | quote }}
          - name: TRAINCHART_RUN_SETTINGS
            value: {{ include "mnist-towers.runSettings" . | quote }}
          - name: TRAINCHART_METRICS_ADDRESS
            value: ":{{ int64 .Values.service.statusPort }}"
          - name: NVIDIA_VISIBLE_DEVICES
            value: void
        ports:
          - name: status
            containerPort: {{ int64 .Values.service.statusPort }}
        resources:
          {{- include "mnist-towers.resources" (dict "settings" .Values.run.controller) | nindent 10 }}
        terminationMessagePolicy: FallbackToLogsOnError
        {{- with .Values.containerSecurityContext }}
        securityContext:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        volumeMounts:
          - name: config
            mountPath: /etc/trainchart
            readOnly: true
    volumes:
      - name: config
        configMap:
          name: {{ include "mnist-towers.clusterName" . }}
{{- end -}}
