{{- /* Template of a role's pods: (dict "context" $ "role" "worker" "settings" … "component" "worker"). */}}
{{- define "<%= name %>.podTemplate" -}}
metadata:
<% block pod_metadata %>
  labels:
    {{- include "<%= name %>.podLabels" (dict "context" .context "component" .component "settings" .settings "training" "true") | nindent 4 }}
  {{- with include "<%= name %>.podAnnotations" . }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
<% endblock %>
spec:
  {{- if and .context.Values.run.queue .context.Values.run.controller.enabled }}
  # The run controller removes it when the queue has room for all pods.
  schedulingGates:
    - name: trainchart/queue
  {{- end }}
<% block pod_spec %>
  serviceAccountName: {{ include "<%= name %>.serviceAccountName" .context | quote }}
  automountServiceAccountToken: false
  # The launcher must not be process 1: a SIGTERM that came before its handler would be lost.
  shareProcessNamespace: true
  terminationGracePeriodSeconds: {{ int64 .settings.stopGraceSeconds }}
  {{- $patience := include "<%= name %>.seconds" .context.Values.run.lostNodeTimeout }}
  {{- include "<%= name %>.everyPod" (dict "context" .context "component" .component "settings" .settings "patienceSeconds" $patience "hostNetwork" (or .settings.hostNetwork .context.Values.hostNetwork)) | nindent 2 }}
<% endblock %>
<% for field in pod_fields if not field.is_everywhere %>
<% if field.key == "initContainers" %>
  {{- $further := .settings.<%= field.value %> | default .context.Values.<%= field.value %> }}
  {{- if or .context.Values.image.injectLauncher $further }}
  initContainers:
    {{- if .context.Values.image.injectLauncher }}
    {{- include "<%= name %>.launcherContainer" . | nindent 4 }}
    {{- end }}
    {{- with $further }}
    {{- include "<%= name %>.ownContainers" (dict "key" "<%= field.value %>" "containers" .) | nindent 4 }}
    {{- end }}
  {{- end }}
<% else %>
  {{- with .settings.<%= field.value %> | default .context.Values.<%= field.value %> }}
  <%= field.key %>:
<% if field.fills %>
    {{- include "<%= name %>.filledYaml" (dict "context" $.context "value" .) | nindent 4 }}
<% else %>
    {{- include "<%= name %>.yaml" . | nindent 4 }}
<% endif %>
  {{- end }}
<% endif %>
<% endfor %>
  containers:
    - name: training
      image: {{ include "<%= name %>.image" .context | quote }}
      imagePullPolicy: {{ .context.Values.image.pullPolicy }}
<% block training_command %>
      command: [python3, /opt/trainchart/launcher.pyz, --]
      args:
        {{- include "<%= name %>.command" . | nindent 8 }}
<% endblock %>
      env:
<% block training_env %>
        {{- include "<%= name %>.env" . | nindent 8 }}
<% endblock %>
      ports:
        - name: tensorflow
          containerPort: {{ int64 .context.Values.service.port }}
        - name: status
          containerPort: {{ int64 .context.Values.service.statusPort }}
      resources:
        {{- $folders := include "<%= name %>.nodeFolders" . | fromJsonArray }}
        {{- include "<%= name %>.resources" (dict "folders" $folders "settings" .settings "gpuResource" .context.Values.gpu.resourceName "more" (list .context.Values.resources (.settings.resources | default dict)) "volumes" (.settings.extraVolumes | default .context.Values.extraVolumes)) | nindent 8 }}
<% block training_container %>
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: FallbackToLogsOnError
<% endblock %>
<% for field in container_fields %>
<% if field.merge %>
      {{- with include "<%= name %>.merged" (list .context.Values.<%= field.value %> .settings.<%= field.value %>) }}
      <%= field.key %>:
        {{- . | nindent 8 }}
      {{- end }}
<% else %>
      {{- with .settings.<%= field.value %> | default .context.Values.<%= field.value %> }}
      <%= field.key %>:
<% if field.fills %>
        {{- include "<%= name %>.filledYaml" (dict "context" $.context "value" .) | nindent 8 }}
<% else %>
        {{- include "<%= name %>.yaml" . | nindent 8 }}
<% endif %>
      {{- end }}
<% endif %>
<% endfor %>
      volumeMounts:
<% block training_mounts %>
        {{- include "<%= name %>.volumeMounts" . | nindent 8 }}
        {{- if .context.Values.image.injectLauncher }}
        {{- include "<%= name %>.launcherMount" .context | nindent 8 }}
        {{- end }}
        {{- with .settings.<%= appended.volumeMounts.value %> | default .context.Values.<%= appended.volumeMounts.value %> }}
        {{- include "<%= name %>.yaml" . | nindent 8 }}
        {{- end }}
<% endblock %>
<% block containers %>
    {{- with .settings.<%= appended.containers.value %> | default .context.Values.<%= appended.containers.value %> }}
    {{- include "<%= name %>.ownContainers" (dict "key" "<%= appended.containers.value %>" "containers" .) | nindent 4 }}
    {{- end }}
<% endblock %>
  volumes:
<% block volumes %>
    {{- include "<%= name %>.podVolumes" . | nindent 4 }}
    {{- if .context.Values.image.injectLauncher }}
    {{- include "<%= name %>.launcherVolume" .context | nindent 4 }}
    {{- end }}
    {{- with .settings.<%= appended.volumes.value %> | default .context.Values.<%= appended.volumes.value %> }}
    {{- include "<%= name %>.filledYaml" (dict "context" $.context "value" .) | nindent 4 }}
    {{- end }}
<% endblock %>
{{- end -}}
