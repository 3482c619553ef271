{{- /* Image of the server. */}}
{{- define "<%= name %>.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ include "<%= name %>.number" .tag | default "latest" }}{{ end -}}
{{- end -}}
{{- end -}}

{{- /* What a container may do: nothing that it does not need. */}}
{{- define "<%= name %>.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* The init container: copies the export, so that nothing can change it afterwards, and verifies the copy. */}}
{{- define "<%= name %>.fetch" -}}
name: fetch
image: {{ .context.Values.fetchImage | default (include "<%= name %>.image" .context) | quote }}
imagePullPolicy: {{ .context.Values.image.pullPolicy }}
command: [python3, -m, trainchart_serving.fetch]
args:
  - {{ ternary (printf "/source/%s" .model.path) .model.path (ne .model.claim "") | quote }}
  - {{ printf "/models/%s/%s" .model.name (include "<%= name %>.number" .model.version) | quote }}
  - {{ .model.content | quote }}
{{- with .context.Values.env }}
env:
  {{- include "<%= name %>.yaml" . | nindent 2 }}
{{- end }}
resources:
  {{- include "<%= name %>.yaml" (omit (deepCopy .context.Values.resources) "claims") | nindent 2 }}
securityContext:
  {{- include "<%= name %>.containerSecurity" . | nindent 2 }}
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  - {name: models, mountPath: /models}
  - {name: tmp, mountPath: /tmp}
  {{- if .model.claim }}
  - {name: source, mountPath: /source, readOnly: true}
  {{- end }}
{{- end -}}

{{- /* How the server gets its model: arguments for our server, or the variables that tensorflow/serving reads. */}}
{{- define "<%= name %>.program" -}}
{{- $version := include "<%= name %>.number" .model.version -}}
{{- if eq .context.Values.server "trainchart" -}}
command: [python3, -m, trainchart_serving]
args:
  - {{ printf "--model_name=%s" .model.name | quote }}
  - {{ printf "--model_base_path=/models/%s" .model.name | quote }}
  - {{ printf "--version=%s" $version | quote }}
  - {{ printf "--content=%s=%s" $version .model.content | quote }}
  - {{ printf "--max_batch_size=%s" (include "<%= name %>.number" .context.Values.batching.maxExamples) | quote }}
  - {{ printf "--batch_timeout_micros=%s" (include "<%= name %>.number" .context.Values.batching.timeoutMicros) | quote }}
  # The pod has left the Service when this program is told to stop: see preStop.
  - --drain_delay_seconds=0
  - {{ printf "--drain_timeout_seconds=%s" (include "<%= name %>.number" .context.Values.drainSeconds) | quote }}
  {{- with .context.Values.args }}
  {{- include "<%= name %>.yaml" . | nindent 2 }}
  {{- end }}
{{- with .context.Values.env }}
env:
  {{- include "<%= name %>.yaml" . | nindent 2 }}
{{- end }}
{{- else -}}
{{- with .context.Values.args -}}
args:
  {{- include "<%= name %>.yaml" . | nindent 2 }}
{{ end -}}
env:
  - {name: MODEL_NAME, value: {{ .model.name | quote }}}
  - {name: MODEL_BASE_PATH, value: /models}
  {{- with .context.Values.env }}
  {{- include "<%= name %>.yaml" . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- /* A server is ready when it has answered a request or, for TensorFlow Serving, loaded the version. */}}
{{- define "<%= name %>.probes" -}}
{{- $model := printf "/v1/models/%s" .model.name -}}
{{- $version := printf "%s/versions/%s/metadata" $model (include "<%= name %>.number" .model.version) -}}
{{- $ready := ternary "/readyz" $version (eq .context.Values.server "trainchart") -}}
startupProbe:
  httpGet: {path: {{ $ready | quote }}, port: http}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: {{ div (add (int .context.Values.startSeconds) 1) 2 }}
readinessProbe:
  httpGet: {path: {{ $ready | quote }}, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
livenessProbe:
  httpGet: {path: {{ ternary "/healthz" $model (eq .context.Values.server "trainchart") | quote }}, port: http}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
{{- end -}}
