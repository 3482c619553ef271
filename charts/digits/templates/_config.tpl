{{- /* The cluster as the launcher reads it: it expands the hosts <name>-<ordinal>.<service>:<port> from this. */}}
{{- define "digits.cluster" -}}
{{- $context := . -}}
{{- $service := include "digits.serviceName" . -}}
{{- $roles := dict -}}
{{- $bytes := 0 -}}
{{- range $role, $settings := .Values.roles -}}
{{- $set := include "digits.partName" (dict "context" $context "part" $role) -}}
{{- $_ := set $roles $role (dict "name" $set "replicas" (int64 $settings.replicas)) -}}
{{- $bytes = add $bytes (mul $settings.replicas (add (len $set) (len $service) 16)) -}}
{{- end -}}
{{- if gt (int64 $bytes) 131000 -}}
{{- fail (printf "roles: TF_CONFIG would need %d bytes, but an environment variable has at most 131072; use fewer replicas or a shorter release name" (int64 $bytes)) -}}
{{- end -}}
{{- toJson (dict "strategy" "single" "service" $service "port" (int64 .Values.service.port) "statusPort" (int64 .Values.service.statusPort) "roles" $roles) -}}
{{- end -}}

{{- /* The hyperparameters as one JSON object, each of its declared type. */}}
{{- define "digits.hyperparameters" -}}
{
  "learningRate": {{ include "digits.number" (dict "key" "hyperparameters.learningRate" "value" .Values.hyperparameters.learningRate "exclusiveMinimum" 0) }},
  "epochs": {{ int64 .Values.hyperparameters.epochs }},
  "batchSize": {{ int64 .Values.hyperparameters.batchSize }},
  "seed": {{ int64 .Values.hyperparameters.seed }}
}
{{- end -}}
