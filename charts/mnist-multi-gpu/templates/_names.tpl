{{- /*
The names of all objects are made only here: <release>-<chart>, then the part. Names that would be too long for
Kubernetes, or that contain characters it refuses, are cut and get a hash of the whole name, so that they stay
distinct.
*/}}

{{- /* Shorten .name to .limit characters. */}}
{{- define "mnist-multi-gpu.fit" -}}
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
{{- define "mnist-multi-gpu.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name .Chart.Name -}}
{{- if regexMatch "^[a-z][-a-z0-9]*$" $name -}}
{{- $name -}}
{{- else -}}
{{- printf "r-%s-%s" (regexReplaceAll "[^-a-z0-9]" (lower $name) "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- end -}}

{{- /* A part of the release: (dict "context" $ "part" "worker"). StatefulSets allow 52 characters, so all do. */}}
{{- define "mnist-multi-gpu.partName" -}}
{{- include "mnist-multi-gpu.fit" (dict "name" (printf "%s-%s" (include "mnist-multi-gpu.fullname" .context) .part) "limit" 52) -}}
{{- end -}}

{{- define "mnist-multi-gpu.serviceName" -}}
{{- include "mnist-multi-gpu.fit" (dict "name" (include "mnist-multi-gpu.fullname" .) "limit" 63) -}}
{{- end -}}

{{- /* The Workload by which the run waits in its queue. */}}
{{- define "mnist-multi-gpu.workloadName" -}}
{{- include "mnist-multi-gpu.partName" (dict "context" . "part" "queue") -}}
{{- end -}}

{{- define "mnist-multi-gpu.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "mnist-multi-gpu.serviceName" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- /* ConfigMaps are immutable, so their content is part of their name. */}}
{{- define "mnist-multi-gpu.clusterName" -}}
{{- $hash := include "mnist-multi-gpu.cluster" . | sha256sum | trunc 8 -}}
{{- printf "%s-%s" (include "mnist-multi-gpu.partName" (dict "context" . "part" "cluster")) $hash -}}
{{- end -}}

{{- define "mnist-multi-gpu.hyperparametersName" -}}
{{- $hash := include "mnist-multi-gpu.hyperparameters" . | sha256sum | trunc 8 -}}
{{- printf "%s-%s" (include "mnist-multi-gpu.partName" (dict "context" . "part" "hyperparameters")) $hash -}}
{{- end -}}
