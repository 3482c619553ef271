{{- /* The cluster as the launcher reads it: it expands the hosts <name>-<ordinal>.<service>:<port> from this. */}}
{{- define "wide-and-deep.cluster" -}}
{{- $context := . -}}
{{- $service := include "wide-and-deep.serviceName" . -}}
{{- $roles := dict -}}
{{- $bytes := 0 -}}
{{- range $role, $settings := .Values.roles -}}
{{- $set := include "wide-and-deep.partName" (dict "context" $context "part" $role) -}}
{{- $_ := set $roles $role (dict "name" $set "replicas" (int64 $settings.replicas)) -}}
{{- $bytes = add $bytes (mul $settings.replicas (add (len $set) (len $service) 16)) -}}
{{- end -}}
{{- if gt (int64 $bytes) 131000 -}}
{{- fail (printf "roles: TF_CONFIG would need %d bytes, but an environment variable has at most 131072; use fewer replicas or a shorter release name" (int64 $bytes)) -}}
{{- end -}}
{{- toJson (dict "strategy" "single" "service" $service "port" (int64 .Values.service.port) "statusPort" (int64 .Values.service.statusPort) "roles" $roles) -}}
{{- end -}}

{{- /* The hyperparameters as one JSON object, each of its declared type. */}}
{{- define "wide-and-deep.hyperparameters" -}}
{
  "learningRate": {{ include "wide-and-deep.number" (dict "key" "hyperparameters.learningRate" "value" .Values.hyperparameters.learningRate "exclusiveMinimum" 0) }},
  "embeddingSize": {{ int64 .Values.hyperparameters.embeddingSize }},
  "maxSteps": {{ int64 .Values.hyperparameters.maxSteps }},
  "batchSize": {{ int64 .Values.hyperparameters.batchSize }}
}
{{- end -}}
