{{- /* The cluster as the launcher reads it: it expands the hosts <name>-<ordinal>.<service>:<port> from this. */}}
{{- define "mnist-multi-gpu.cluster" -}}
{{- $context := . -}}
{{- $service := include "mnist-multi-gpu.serviceName" . -}}
{{- $roles := dict -}}
{{- $bytes := 0 -}}
{{- range $role, $settings := .Values.roles -}}
{{- $set := include "mnist-multi-gpu.partName" (dict "context" $context "part" $role) -}}
{{- $_ := set $roles $role (dict "name" $set "replicas" (int64 $settings.replicas)) -}}
{{- $bytes = add $bytes (mul $settings.replicas (add (len $set) (len $service) 16)) -}}
{{- end -}}
{{- if gt (int64 $bytes) 131000 -}}
{{- fail (printf "roles: TF_CONFIG would need %d bytes, but an environment variable has at most 131072; use fewer replicas or a shorter release name" (int64 $bytes)) -}}
{{- end -}}
{{- toJson (dict "strategy" "mirrored" "service" $service "port" (int64 .Values.service.port) "statusPort" (int64 .Values.service.statusPort) "roles" $roles) -}}
{{- end -}}

{{- /* The hyperparameters as one JSON object, each of its declared type. */}}
{{- define "mnist-multi-gpu.hyperparameters" -}}
{
  "learningRate": {{ include "mnist-multi-gpu.number" (dict "key" "hyperparameters.learningRate" "value" .Values.hyperparameters.learningRate "exclusiveMinimum" 0) }},
  "decaySteps": {{ int64 .Values.hyperparameters.decaySteps }},
  "maxSteps": {{ int64 .Values.hyperparameters.maxSteps }},
  "batchSize": {{ int64 .Values.hyperparameters.batchSize }},
  "checkpointSteps": {{ int64 .Values.hyperparameters.checkpointSteps }},
  "logSteps": {{ int64 .Values.hyperparameters.logSteps }},
  "histogramSteps": {{ int64 .Values.hyperparameters.histogramSteps }}
}
{{- end -}}
