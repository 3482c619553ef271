{{- /* The settings by which the controller decides; the cluster itself is in its ConfigMap. */}}
{{- define "mnist-towers.runSettings" -}}
{{- $objects := list (printf "Service %s" (include "mnist-towers.serviceName" .)) -}}
{{- if .Values.networkPolicy.enabled -}}
{{- $objects = append $objects (printf "NetworkPolicy %s" (include "mnist-towers.serviceName" .)) -}}
{{- end -}}
{{- $queue := dict -}}
{{- with .Values.run.queue -}}
{{- $queue = dict "queue" . "queuePriorityClass" $.Values.run.queuePriorityClass "workload" (include "mnist-towers.workloadName" $) -}}
{{- end -}}
{{- $notify := dict -}}
{{- with .Values.run.notify -}}
{{- if .secret -}}
{{- $notify = dict "notify" (dict "phases" .phases "file" "/etc/trainchart-notify/url" "secret" .secret "key" .key) -}}
{{- end -}}
{{- end -}}
{{- toJson (merge $queue $notify (dict
  "objects" $objects
  "maxRestarts" (int64 .Values.run.maxRestarts)
  "startDeadlineSeconds" (include "mnist-towers.seconds" .Values.run.startDeadline | int64)
  "evaluatorGraceSeconds" (include "mnist-towers.seconds" .Values.run.evaluatorGrace | int64)
  "activeDeadlineSeconds" (include "mnist-towers.seconds" .Values.run.activeDeadline | int64)
  "desiredState" .Values.run.desiredState
  "onChange" .Values.run.onChange
  "forceDeleteLostPods" .Values.run.forceDeleteLostPods
  "selector" (dict "app.kubernetes.io/name" .Chart.Name "app.kubernetes.io/instance" .Release.Name "trainchart/training" "true")
)) -}}
{{- end -}}

{{- /*
Hash of all that the run depends on: the pods, the cluster, and the run's settings. It changes the Job's name, so that
a new plan gets a new controller, and it is in the record's ConfigMap, so that an old controller knows that it was
replaced.
*/}}
{{- define "mnist-towers.planId" -}}
{{- $parts := list (include "mnist-towers.runSettings" .) (include "mnist-towers.cluster" .) -}}
{{- range $role, $settings := .Values.roles -}}
{{- $arguments := dict "context" $ "role" $role "settings" $settings "component" $role -}}
{{- $parts = append $parts (include "mnist-towers.podTemplate" $arguments) -}}
{{- end -}}
{{- /* A letter first: some readers of YAML take 12e3456 for a number. */}}
{{- printf "p%s" (join "\n" $parts | sha256sum | trunc 15) -}}
{{- end -}}
