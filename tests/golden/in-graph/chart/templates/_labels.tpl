{{- /* Labels that never change during a release's life: (dict "context" $ "component" "worker"). */}}
{{- define "in-graph.selectorLabels" -}}
app.kubernetes.io/name: {{ .context.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .context.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{- /*
Labels of an object: (dict "context" $ "component" "worker"), perhaps with "own", which win over those for all. The chart's
version is for objects only: in a pod template it would restart trainings.
*/}}
{{- define "in-graph.labels" -}}
{{- $own := include "in-graph.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "in-graph" -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .context.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/version" (include "in-graph.labelText" .context.Chart.AppVersion) -}}
{{- $chart := printf "%s-%s" .context.Chart.Name .context.Chart.Version -}}
{{- $_ := set $own "helm.sh/chart" (include "in-graph.labelText" $chart) -}}
{{- $shared := include "in-graph.shared" (dict "component" .component "layer" .context.Values.commonLabels) | fromJson -}}
{{- range $layer := list .own $shared -}}
{{- range $key, $value := $layer -}}
{{- if not (hasKey $own $key) -}}
{{- $_ := set $own $key (include "in-graph.text" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "in-graph.filledYaml" (dict "context" .context "value" $own) -}}
{{- end -}}

{{- /*
Labels or annotations that a component has of those for all: (dict "component" "tensorboard" "layer" .Values.commonLabels).
What makes pods wait for a queue or for each other is for the training alone.
*/}}
{{- define "in-graph.shared" -}}
{{- $kept := dict -}}
{{- $waits := not (has .component (list "controller" "tensorboard" "test")) -}}
{{- range $key, $value := .layer -}}
{{- if or $waits (not (regexMatch "(?i)queue|(^|[./-])gang|pod-?group|task-?group|scheduling\\.k8s\\.io/group-name|^(.*\\.)?(kueue\\.x-k8s\\.io|volcano\\.sh|yunikorn\\.apache\\.org)/" $key)) -}}
{{- $_ := set $kept $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end -}}

{{- /* Annotations of an object: (dict "context" $ "component" "training"), perhaps with "own". */}}
{{- define "in-graph.objectAnnotations" -}}
{{- $shared := include "in-graph.shared" (dict "component" .component "layer" .context.Values.commonAnnotations) | fromJson -}}
{{- include "in-graph.annotations" (dict "context" .context "layers" (list $shared .own)) -}}
{{- end -}}

{{- /* Annotations as texts: (dict "context" $ "layers" (list common own)), later ones win; nothing when there are none. */}}
{{- define "in-graph.annotations" -}}
{{- $annotations := dict -}}
{{- range $layer := .layers -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $annotations $key (include "in-graph.text" $value) -}}
{{- end -}}
{{- end -}}
{{- with $annotations -}}
{{- include "in-graph.filledYaml" (dict "context" $.context "value" .) -}}
{{- end -}}
{{- end -}}

{{- define "in-graph.labelText" -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]" (toString .) "_" | trunc 63 | regexFind "^[A-Za-z0-9].*[A-Za-z0-9]|^[A-Za-z0-9]" -}}
{{- end -}}
