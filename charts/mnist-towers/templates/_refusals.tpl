{{- /* Refuses values that need a run controller where there is none, and labels that queue each StatefulSet separately. */}}
{{- define "mnist-towers.refuseQueues" -}}
{{- if and .Values.run.queue (not .Values.run.controller.enabled) -}}
{{- fail "run.queue: the run controller waits in the queue; set run.controller.enabled to true" -}}
{{- end -}}
{{- if and .Values.run.notify.secret (not .Values.run.controller.enabled) -}}
{{- fail "run.notify: the run controller sends the messages; set run.controller.enabled to true" -}}
{{- end -}}
{{- if and .Values.run.queuePriorityClass (not .Values.run.queue) -}}
{{- fail "run.queuePriorityClass: name the queue as well, in run.queue" -}}
{{- end -}}
{{- $layers := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels -}}
{{- range $role, $settings := .Values.roles -}}
{{- $layers = merge $layers (dict (printf "roles.%s.labels" $role) $settings.labels (printf "roles.%s.podLabels" $role) $settings.podLabels) -}}
{{- end -}}
{{- range $where, $labels := $layers -}}
{{- if and $.Values.run.controller.enabled (hasKey (default dict $labels) "kueue.x-k8s.io/queue-name") -}}
{{- fail (printf "%s.kueue.x-k8s.io/queue-name: with this label, Kueue queues each StatefulSet separately, and part of the training waits for the rest; name the queue in run.queue instead" $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Values that the schema cannot refuse, because several of them together are wrong. Included by the StatefulSets. */}}
{{- define "mnist-towers.refuse" -}}
{{- include "mnist-towers.refuseChanged" (dict "where" "" "value" (omit (index . "Values") "global")) -}}
{{- include "mnist-towers.refusePods" . -}}
{{- include "mnist-towers.refuseSizes" . -}}
{{- include "mnist-towers.refuseVolumes" . -}}
{{- if eq (int64 .Values.service.port) (int64 .Values.service.statusPort) -}}
{{- fail (printf "service.statusPort: port %d cannot serve both TensorFlow and the status" (int64 .Values.service.port)) -}}
{{- end -}}
{{- if and .Values.run.controller.enabled (not .Values.rbac.create) (not .Values.run.controller.serviceAccountName) -}}
{{- fail "rbac.create: if false, set run.controller.serviceAccountName to a ServiceAccount with the run controller's permissions" -}}
{{- end -}}
{{- include "mnist-towers.refuseQueues" . -}}
{{- include "mnist-towers.refuseResume" . -}}
{{- with .Values.networkPolicy -}}
{{- if and .enabled .restrictEgress $.Values.run.controller.enabled (not .apiServer) -}}
{{- fail "networkPolicy.apiServer: with restrictEgress, list the API server's addresses, or the run controller cannot reach it" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.image.injectLauncher (not .Values.run.controller.image) -}}
{{- fail "image.injectLauncher: set run.controller.image to the runtime image, which contains the launcher" -}}
{{- end -}}
{{- range $key, $value := .Values.env -}}
{{- if regexMatch "^(TRAINCHART_.*|TF_CONFIG)$" $key -}}
{{- fail (printf "env.%s: this variable is set by trainchart itself" $key) -}}
{{- end -}}
{{- end -}}
{{- range $role, $settings := .Values.roles -}}
{{- range $key, $value := $settings.env -}}
{{- if regexMatch "^(TRAINCHART_.*|TF_CONFIG)$" $key -}}
{{- fail (printf "roles.%s.env.%s: this variable is set by trainchart itself" $role $key) -}}
{{- end -}}
{{- end -}}
{{- if ge (int64 $settings.saveWaitSeconds) (int64 $settings.stopGraceSeconds) -}}
{{- fail (printf "roles.%s.saveWaitSeconds: the wait of %d s must be shorter than stopGraceSeconds, %d s" $role (int64 $settings.saveWaitSeconds) (int64 $settings.stopGraceSeconds)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.tensorboard -}}
{{- if and .enabled .ingress.enabled $.Values.networkPolicy.enabled (not $.Values.networkPolicy.tensorboardFrom) -}}
{{- fail "networkPolicy.tensorboardFrom: list the ingress controller's namespace, or the NetworkPolicy allows no traffic to TensorBoard" -}}
{{- end -}}
{{- end -}}
{{- end -}}
