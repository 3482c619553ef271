{{- /*
The training container's environment begins with what the launcher needs, and where the volumes are. Empty values are
left out, here and below: Kubernetes does not keep them, so kubectl apply would find a difference each time.
*/}}
{{- define "mnist-multi-gpu.ownEnv" -}}
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
  {{- with include "mnist-multi-gpu.text" .context.Values.run.id }}
  value: {{ . | quote }}
  {{- end }}
- {name: TRAINCHART_MODEL, value: "mnist-multi-gpu"}
- name: TRAINCHART_IMAGE
  value: {{ include "mnist-multi-gpu.image" .context | quote }}
- name: TRAINCHART_RELEASE
  value: {{ .context.Release.Name | quote }}
- name: TRAINCHART_NAMESPACE
  valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}
{{ include "mnist-multi-gpu.resumeEnv" .context }}
- {name: TRAINCHART_CLUSTER_FILE, value: /etc/trainchart/cluster.json}
- name: TRAINCHART_HYPERPARAMETERS_FILE
  value: /etc/trainchart/hyperparameters.json
- name: TRAINCHART_STATE_DIR
  value: /run/trainchart
- name: TRAINCHART_TERMINATION_FILE
  value: /dev/termination-log
- name: TRAINCHART_MAX_RESTARTS
  value: {{ int64 .context.Values.run.maxRestarts | quote }}
- name: TRAINCHART_STOP_GRACE_SECONDS
  value: {{ int64 .settings.stopGraceSeconds | quote }}
- name: TRAINCHART_SAVE_WAIT_SECONDS
  value: {{ int64 .settings.saveWaitSeconds | quote }}
- name: TRAINCHART_NO_PROGRESS_SECONDS
  value: {{ include "mnist-multi-gpu.seconds" .context.Values.run.noProgressTimeout | quote }}
{{- range $name, $volume := .context.Values.volumes }}
- name: TRAINCHART_{{ $name | upper | replace "-" "_" }}_DIR
  value: {{ include "mnist-multi-gpu.volumeDir" (dict "volume" $volume) | quote }}
{{- end }}
- name: TRAINCHART_TENSORBOARD_DIR
  value: {{ include "mnist-multi-gpu.logDir" .context | quote }}
{{- end -}}

{{- /* Environment of the training container: the chart's own variables, then the user's, which may refer to them. */}}
{{- define "mnist-multi-gpu.env" -}}
{{- $own := include "mnist-multi-gpu.ownEnv" . }}
{{- $known := list -}}
{{- range $own | fromYamlArray -}}
{{- $known = append $known .name -}}
{{- end -}}
{{- $hidden := ternary (dict) (dict "NVIDIA_VISIBLE_DEVICES" "void") (gt (int64 .settings.gpus) 0) -}}
{{- $layers := list (dict "path" "env" "env" $hidden) (dict "path" "env" "env" .context.Values.env) (dict "path" (printf "roles.%s.env" .role) "env" .settings.env) -}}
{{- $more := .settings.envFrom | default .context.Values.envFrom -}}
{{- $own }}
{{- with include "mnist-multi-gpu.userEnv" (dict "layers" $layers "known" $known "bringsMore" (not (empty $more))) }}
{{ . }}
{{- end }}
{{- end -}}

{{- /*
Environment entries of several mappings: later ones win, and each name occurs once. Kubernetes fills in $(NAME) only
from earlier entries, so a variable comes after those that it refers to, and otherwise in the order of names: (dict
"layers" (list (dict "path" "env" "env" …) …) "known" names-before "bringsMore" is-there-envFrom "drops" true). A
variable that refers to something unknown is refused; with "drops" it is left out, for pods that do not train.
*/}}
{{- define "mnist-multi-gpu.userEnv" -}}
{{- $env := dict -}}
{{- $paths := dict -}}
{{- range $layer := .layers -}}
{{- range $key, $value := $layer.env -}}
{{- $_ := set $env $key $value -}}
{{- $_ := set $paths $key (printf "%s.%s" $layer.path $key) -}}
{{- end -}}
{{- end -}}
{{- $state := dict "env" $env "paths" $paths "placed" (dict) "entries" (list) "known" (.known | default list) "bringsMore" .bringsMore "drops" .drops -}}
{{- range $name := keys $env | sortAlpha -}}
{{- include "mnist-multi-gpu.placeVariable" (dict "state" $state "name" $name "path" (list)) -}}
{{- end -}}
{{- with $state.entries }}
{{- include "mnist-multi-gpu.yaml" . }}
{{- end }}
{{- end -}}

{{- /* Append a variable to the entries of "state", after those that it refers to: (dict "state" … "name" … "path" open-names). */}}
{{- define "mnist-multi-gpu.placeVariable" -}}
{{- $state := .state -}}
{{- $name := .name -}}
{{- $path := append .path $name -}}
{{- if has $name .path -}}
{{- fail (printf "%s: variables refer to each other in a circle: %s" (get $state.paths $name) (join " → " $path)) -}}
{{- end -}}
{{- if not (hasKey $state.placed $name) -}}
{{- $value := get $state.env $name -}}
{{- range include "mnist-multi-gpu.references" $value | fromJsonArray -}}
{{- include "mnist-multi-gpu.placeReference" (dict "state" $state "name" $name "reference" . "path" $path) -}}
{{- end -}}
{{- if not (hasKey $state.placed $name) -}}
{{- $_ := set $state "entries" (append $state.entries (include "mnist-multi-gpu.variable" (dict "name" $name "value" $value) | fromJson)) -}}
{{- $_ := set $state.placed $name true -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Place what a variable refers to, or refuse it. A variable that is left out is placed as false. */}}
{{- define "mnist-multi-gpu.placeReference" -}}
{{- $state := .state -}}
{{- $isBrought := and $state.bringsMore (not (hasPrefix "TRAINCHART_" .reference)) -}}
{{- if and (eq .reference .name) $isBrought -}}
{{- else if hasKey $state.env .reference -}}
{{- include "mnist-multi-gpu.placeVariable" (dict "state" $state "name" .reference "path" .path) -}}
{{- if not (get $state.placed .reference) -}}
{{- $_ := set $state.placed .name false -}}
{{- end -}}
{{- else if not (or $isBrought (has .reference $state.known) (hasPrefix "KUBERNETES_" .reference)) -}}
{{- if not $state.drops -}}
{{- fail (printf "%s: the pod has no variable %s to fill in for $(%s); write $$(%s) for the text itself" (get $state.paths .name) .reference .reference .reference) -}}
{{- end -}}
{{- $_ := set $state.placed .name false -}}
{{- end -}}
{{- end -}}

{{- /* The names in $(NAME) of a value, as a JSON list; $$ is a dollar sign. */}}
{{- define "mnist-multi-gpu.references" -}}
{{- $names := list -}}
{{- if kindIs "string" . -}}
{{- range regexFindAll "[$][(][A-Za-z_][A-Za-z0-9_.-]*[?+*-]?[)]" (replace "$$" " " .) -1 -}}
{{- $names = append $names (. | trimPrefix "$(" | trimSuffix ")") -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{- /* One environment entry as JSON: (dict "name" … "value" …). */}}
{{- define "mnist-multi-gpu.variable" -}}
{{- if kindIs "map" .value -}}
{{- dict "name" .name "valueFrom" .value.valueFrom | toJson -}}
{{- else -}}
{{- $text := include "mnist-multi-gpu.text" .value -}}
{{- ternary (dict "name" .name "value" $text) (dict "name" .name) (ne $text "") | toJson -}}
{{- end -}}
{{- end -}}
