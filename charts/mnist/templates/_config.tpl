{{- /* The cluster as the launcher reads it: it expands the hosts <name>-<ordinal>.<service>:<port> from this. */}}
{{- define "mnist.cluster" -}}
{{- $context := . -}}
{{- $service := include "mnist.serviceName" . -}}
{{- $roles := dict -}}
{{- $bytes := 0 -}}
{{- range $role, $settings := .Values.roles -}}
{{- $set := include "mnist.partName" (dict "context" $context "part" $role) -}}
{{- $_ := set $roles $role (dict "name" $set "replicas" (int64 $settings.replicas)) -}}
{{- $bytes = add $bytes (mul $settings.replicas (add (len $set) (len $service) 16)) -}}
{{- end -}}
{{- if gt (int64 $bytes) 131000 -}}
{{- fail (printf "roles: TF_CONFIG would need %d bytes, but an environment variable has at most 131072; use fewer replicas or a shorter release name" (int64 $bytes)) -}}
{{- end -}}
{{- toJson (dict "strategy" "parameter-server" "service" $service "port" (int64 .Values.service.port) "statusPort" (int64 .Values.service.statusPort) "roles" $roles) -}}
{{- end -}}

{{- /* The hyperparameters as one JSON object, each of its declared type. */}}
{{- define "mnist.hyperparameters" -}}
{
  "learningRate": {{ include "mnist.number" (dict "key" "hyperparameters.learningRate" "value" .Values.hyperparameters.learningRate "exclusiveMinimum" 0) }},
  "maxSteps": {{ int64 .Values.hyperparameters.maxSteps }},
  "batchSize": {{ int64 .Values.hyperparameters.batchSize }},
  "checkpointSteps": {{ int64 .Values.hyperparameters.checkpointSteps }},
  "logSteps": {{ int64 .Values.hyperparameters.logSteps }},
  "seed": {{ int64 .Values.hyperparameters.seed }}
}
{{- end -}}
