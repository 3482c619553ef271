{{- /*
The names of all objects are made only here: <release>-<chart>, then the part. Names that would be too long for
Kubernetes, or that contain characters it refuses, are cut and get a hash of the whole name, so that they stay
distinct.
*/}}

{{- /* Shorten .name to .limit characters. */}}
{{- define "digits.fit" -}}
{{- if le (len .name) (int .limit) -}}
{{- .name -}}
{{- else -}}
{{- printf "%s-%s" (.name | trunc (int (sub .limit 9)) | trimSuffix "-") (sha256sum .name | trunc 8) -}}
{{- end -}}
{{- end -}}

{{- /*
Release and chart, as a DNS label of any length: a release may contain dots or start with a digit, but a Service may
not.
*/}}
{{- define "digits.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name .Chart.Name -}}
{{- if regexMatch "^[a-z][-a-z0-9]*$" $name -}}
{{- $name -}}
{{- else -}}
{{- printf "r-%s-%s" (regexReplaceAll "[^-a-z0-9]" (lower $name) "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- end -}}

{{- /* A part of the release: (dict "context" $ "part" "worker"). StatefulSets allow 52 characters, so all do. */}}
{{- define "digits.partName" -}}
{{- include "digits.fit" (dict "name" (printf "%s-%s" (include "digits.fullname" .context) .part) "limit" 52) -}}
{{- end -}}

{{- define "digits.serviceName" -}}
{{- include "digits.fit" (dict "name" (include "digits.fullname" .) "limit" 63) -}}
{{- end -}}

{{- /* The Workload by which the run waits in its queue. */}}
{{- define "digits.workloadName" -}}
{{- include "digits.partName" (dict "context" . "part" "queue") -}}
{{- end -}}

{{- define "digits.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "digits.serviceName" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- /* ConfigMaps are immutable, so their content is part of their name. */}}
{{- define "digits.clusterName" -}}
{{- $hash := include "digits.cluster" . | sha256sum | trunc 8 -}}
{{- printf "%s-%s" (include "digits.partName" (dict "context" . "part" "cluster")) $hash -}}
{{- end -}}

{{- define "digits.hyperparametersName" -}}
{{- $hash := include "digits.hyperparameters" . | sha256sum | trunc 8 -}}
{{- printf "%s-%s" (include "digits.partName" (dict "context" . "part" "hyperparameters")) $hash -}}
{{- end -}}
