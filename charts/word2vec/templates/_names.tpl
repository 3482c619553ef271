{{- /*
The names of all objects are made only here: <release>-<chart>, then the part. Names that would be too long for
Kubernetes, or that contain characters it refuses, are cut and get a hash of the whole name, so that they stay
distinct.
*/}}

{{- /* Shorten .name to .limit characters. */}}
{{- define "word2vec.fit" -}}
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
{{- define "word2vec.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name .Chart.Name -}}
{{- if regexMatch "^[a-z][-a-z0-9]*$" $name -}}
{{- $name -}}
{{- else -}}
{{- printf "r-%s-%s" (regexReplaceAll "[^-a-z0-9]" (lower $name) "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- end -}}

{{- /* A part of the release: (dict "context" $ "part" "worker"). StatefulSets allow 52 characters, so all do. */}}
{{- define "word2vec.partName" -}}
{{- include "word2vec.fit" (dict "name" (printf "%s-%s" (include "word2vec.fullname" .context) .part) "limit" 52) -}}
{{- end -}}

{{- define "word2vec.serviceName" -}}
{{- include "word2vec.fit" (dict "name" (include "word2vec.fullname" .) "limit" 63) -}}
{{- end -}}

{{- /* The Workload by which the run waits in its queue. */}}
{{- define "word2vec.workloadName" -}}
{{- include "word2vec.partName" (dict "context" . "part" "queue") -}}
{{- end -}}

{{- define "word2vec.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "word2vec.serviceName" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- /* ConfigMaps are immutable, so their content is part of their name. */}}
{{- define "word2vec.clusterName" -}}
{{- $hash := include "word2vec.cluster" . | sha256sum | trunc 8 -}}
{{- printf "%s-%s" (include "word2vec.partName" (dict "context" . "part" "cluster")) $hash -}}
{{- end -}}

{{- define "word2vec.hyperparametersName" -}}
{{- $hash := include "word2vec.hyperparameters" . | sha256sum | trunc 8 -}}
{{- printf "%s-%s" (include "word2vec.partName" (dict "context" . "part" "hyperparameters")) $hash -}}
{{- end -}}
