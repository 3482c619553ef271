{{- /* Whether a role mounts a volume: (dict "role" "worker" "volume" …); "true" or nothing. */}}
{{- define "wide-and-deep.mounts" -}}
{{- if and (not .volume.uri) (or (not .volume.roles) (has .role .volume.roles)) -}}
true
{{- end -}}
{{- end -}}

{{- /*
Environment of the training container: what the launcher needs, where the volumes are, then the user's own. What is
empty is left out, here and below: Kubernetes does not keep it, so kubectl apply would change it again each time.
*/}}
{{- define "wide-and-deep.env" -}}
- name: TRAINCHART_TASK_TYPE
  value: {{ .role }}
- name: TRAINCHART_POD_NAME
  valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}
- name: TRAINCHART_POD_UID
  valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.uid}}
- name: TRAINCHART_NODE_NAME
  valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}
- name: TRAINCHART_ORDINAL
  valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
- name: TRAINCHART_RUN_ID
  {{- with include "wide-and-deep.text" .context.Values.run.id }}
  value: {{ . | quote }}
  {{- end }}
- name: TRAINCHART_CLUSTER_FILE
  value: /etc/trainchart/cluster.json
- name: TRAINCHART_HYPERPARAMETERS_FILE
  value: /etc/trainchart/hyperparameters.json
- name: TRAINCHART_STATE_DIR
  value: /run/trainchart
- name: TRAINCHART_TERMINATION_FILE
  value: /dev/termination-log
- name: TRAINCHART_MAX_RESTARTS
  value: {{ int64 .context.Values.run.maxRestarts | quote }}
- name: TRAINCHART_STOP_GRACE_SECONDS
  value: {{ sub .settings.stopGraceSeconds .settings.preStopSleepSeconds | quote }}
- name: TRAINCHART_NO_PROGRESS_SECONDS
  value: {{ include "wide-and-deep.seconds" .context.Values.run.noProgressTimeout | quote }}
{{- range $name, $volume := .context.Values.volumes }}
- name: TRAINCHART_{{ $name | upper | replace "-" "_" }}_DIR
  value: {{ include "wide-and-deep.volumeDir" (dict "volume" $volume) | quote }}
{{- end }}
- name: TRAINCHART_LOG_DIR
  value: {{ include "wide-and-deep.logDir" .context | quote }}
{{- $hidden := ternary (dict) (dict "NVIDIA_VISIBLE_DEVICES" "void") (gt (int64 .settings.gpus) 0) }}
{{- with include "wide-and-deep.userEnv" (list $hidden .context.Values.env .settings.env) }}
{{ . }}
{{- end }}
{{- end -}}

{{- /* Environment entries of several mappings, later ones win, each name once: (list chart-wide role). */}}
{{- define "wide-and-deep.userEnv" -}}
{{- $env := dict }}
{{- range $layer := . }}
{{- range $key, $value := $layer }}
{{- $_ := set $env $key $value }}
{{- end }}
{{- end }}
{{- $entries := list }}
{{- range $key, $value := $env }}
{{- if kindIs "map" $value }}
{{- $entries = append $entries (dict "name" $key "valueFrom" $value.valueFrom) }}
{{- else }}
{{- $text := include "wide-and-deep.text" $value }}
{{- $entries = append $entries (ternary (dict "name" $key "value" $text) (dict "name" $key) (ne $text "")) }}
{{- end }}
{{- end }}
{{- with $entries }}
{{- include "wide-and-deep.yaml" . }}
{{- end }}
{{- end -}}

{{- /* Volumes of a training pod. */}}
{{- define "wide-and-deep.podVolumes" -}}
- name: config
  projected:
    sources:
      - configMap:
          name: {{ include "wide-and-deep.clusterName" .context }}
      - configMap:
          name: {{ include "wide-and-deep.hyperparametersName" .context }}
- name: state
  emptyDir: {}
- name: tmp
  emptyDir: {}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ include "wide-and-deep.text" .settings.shmSize | quote }}
{{- $context := .context }}
{{- $role := .role }}
{{- range $name, $volume := .context.Values.volumes }}
{{- if include "wide-and-deep.mounts" (dict "role" $role "volume" $volume) }}
- name: volume-{{ $name }}
  persistentVolumeClaim:
    claimName: {{ $volume.existingClaim | default (include "wide-and-deep.partName" (dict "context" $context "part" $name)) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Mounts of the training container. */}}
{{- define "wide-and-deep.volumeMounts" -}}
- name: config
  mountPath: /etc/trainchart
  readOnly: true
- name: state
  mountPath: /run/trainchart
- name: tmp
  mountPath: /tmp
- name: shm
  mountPath: /dev/shm
{{- $role := .role }}
{{- range $name, $volume := .context.Values.volumes }}
{{- if include "wide-and-deep.mounts" (dict "role" $role "volume" $volume) }}
- name: volume-{{ $name }}
  mountPath: {{ $volume.mountPath | quote }}
  {{- with $volume.subPath }}
  subPath: {{ . | quote }}
  {{- end }}
  {{- if $volume.readOnly }}
  readOnly: true
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}
