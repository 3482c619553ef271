{{- /* Template of a role's pods: (dict "context" $ "role" "worker" "settings" … "component" "worker"). */}}
{{- define "mnist.podTemplate" -}}
metadata:
  labels:
    {{- include "mnist.podLabels" (dict "context" .context "component" .component "settings" .settings "training" "true") | nindent 4 }}
  {{- with include "mnist.podAnnotations" . }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- if and .context.Values.run.queue .context.Values.run.controller.enabled }}
  # The run controller removes it when the queue has room for all pods.
  schedulingGates:
    - name: trainchart/queue
  {{- end }}
  serviceAccountName: {{ include "mnist.serviceAccountName" .context | quote }}
  automountServiceAccountToken: false
  # The launcher must not be process 1: a SIGTERM that came before its handler would be lost.
  shareProcessNamespace: true
  terminationGracePeriodSeconds: {{ int64 .settings.stopGraceSeconds }}
  {{- $patience := include "mnist.seconds" .context.Values.run.lostNodeTimeout }}
  {{- include "mnist.everyPod" (dict "context" .context "component" .component "settings" .settings "patienceSeconds" $patience "hostNetwork" (or .settings.hostNetwork .context.Values.hostNetwork)) | nindent 2 }}
  {{- with .settings.hostNetwork | default .context.Values.hostNetwork }}
  hostNetwork:
    {{- include "mnist.yaml" . | nindent 4 }}
  {{- end }}
  {{- with .settings.resourceClaims | default .context.Values.resourceClaims }}
  resourceClaims:
    {{- include "mnist.filledYaml" (dict "context" $.context "value" .) | nindent 4 }}
  {{- end }}
  {{- $further := .settings.initContainers | default .context.Values.initContainers }}
  {{- if or .context.Values.image.injectLauncher $further }}
  initContainers:
    {{- if .context.Values.image.injectLauncher }}
    {{- include "mnist.launcherContainer" . | nindent 4 }}
    {{- end }}
    {{- with $further }}
    {{- include "mnist.ownContainers" (dict "key" "initContainers" "containers" .) | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    - name: training
      image: {{ include "mnist.image" .context | quote }}
      imagePullPolicy: {{ .context.Values.image.pullPolicy }}
      command: [python3, /opt/trainchart/launcher.pyz, --]
      args:
        {{- include "mnist.command" . | nindent 8 }}
      env:
        {{- include "mnist.env" . | nindent 8 }}
      ports:
        - name: tensorflow
          containerPort: {{ int64 .context.Values.service.port }}
        - name: status
          containerPort: {{ int64 .context.Values.service.statusPort }}
      resources:
        {{- $folders := include "mnist.nodeFolders" . | fromJsonArray }}
        {{- include "mnist.resources" (dict "folders" $folders "settings" .settings "gpuResource" .context.Values.gpu.resourceName "more" (list .context.Values.resources (.settings.resources | default dict)) "volumes" (.settings.extraVolumes | default .context.Values.extraVolumes)) | nindent 8 }}
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: FallbackToLogsOnError
      {{- with include "mnist.merged" (list .context.Values.containerSecurityContext .settings.containerSecurityContext) }}
      securityContext:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with .settings.envFrom | default .context.Values.envFrom }}
      envFrom:
        {{- include "mnist.filledYaml" (dict "context" $.context "value" .) | nindent 8 }}
      {{- end }}
      {{- with .settings.workingDir | default .context.Values.workingDir }}
      workingDir:
        {{- include "mnist.yaml" . | nindent 8 }}
      {{- end }}
      {{- with .settings.livenessProbe | default .context.Values.livenessProbe }}
      livenessProbe:
        {{- include "mnist.yaml" . | nindent 8 }}
      {{- end }}
      {{- with .settings.readinessProbe | default .context.Values.readinessProbe }}
      readinessProbe:
        {{- include "mnist.yaml" . | nindent 8 }}
      {{- end }}
      {{- with .settings.startupProbe | default .context.Values.startupProbe }}
      startupProbe:
        {{- include "mnist.yaml" . | nindent 8 }}
      {{- end }}
      volumeMounts:
        {{- include "mnist.volumeMounts" . | nindent 8 }}
        {{- if .context.Values.image.injectLauncher }}
        {{- include "mnist.launcherMount" .context | nindent 8 }}
        {{- end }}
        {{- with .settings.extraVolumeMounts | default .context.Values.extraVolumeMounts }}
        {{- include "mnist.yaml" . | nindent 8 }}
        {{- end }}
    {{- with .settings.extraContainers | default .context.Values.extraContainers }}
    {{- include "mnist.ownContainers" (dict "key" "extraContainers" "containers" .) | nindent 4 }}
    {{- end }}
  volumes:
    {{- include "mnist.podVolumes" . | nindent 4 }}
    {{- if .context.Values.image.injectLauncher }}
    {{- include "mnist.launcherVolume" .context | nindent 4 }}
    {{- end }}
    {{- with .settings.extraVolumes | default .context.Values.extraVolumes }}
    {{- include "mnist.filledYaml" (dict "context" $.context "value" .) | nindent 4 }}
    {{- end }}
{{- end -}}
