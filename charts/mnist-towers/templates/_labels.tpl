{{- /* Labels that never change during a release's life: (dict "context" $ "component" "worker"). */}}
{{- define "mnist-towers.selectorLabels" -}}
app.kubernetes.io/name: {{ .context.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .context.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{- /* Labels of an object. The chart's version is for objects only: in a pod template it would restart trainings. */}}
{{- define "mnist-towers.labels" -}}
{{- $own := include "mnist-towers.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "mnist-towers" -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .context.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/version" (include "mnist-towers.labelText" .context.Chart.AppVersion) -}}
{{- $chart := printf "%s-%s" .context.Chart.Name .context.Chart.Version -}}
{{- $_ := set $own "helm.sh/chart" (include "mnist-towers.labelText" $chart) -}}
{{- range $key, $value := .context.Values.commonLabels -}}
{{- if not (hasKey $own $key) -}}
{{- $_ := set $own $key (include "mnist-towers.text" $value) -}}
{{- end -}}
{{- end -}}
{{- toYaml $own -}}
{{- end -}}

{{- /* Labels of a training pod: the role's own win over the chart-wide ones, neither can change the selector. */}}
{{- define "mnist-towers.podLabels" -}}
{{- $labels := dict "sidecar.istio.io/inject" "false" -}}
{{- range $layer := list .context.Values.podLabels .settings.podLabels -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $labels $key (include "mnist-towers.text" $value) -}}
{{- end -}}
{{- end -}}
{{- $own := include "mnist-towers.selectorLabels" (dict "context" .context "component" .role) | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "mnist-towers" -}}
{{- $_ := set $own "trainchart/training" "true" -}}
{{- toYaml (mergeOverwrite $labels $own) -}}
{{- end -}}

{{- /* Annotations as texts: (list common own), later ones win; nothing when there are none. */}}
{{- define "mnist-towers.annotations" -}}
{{- $annotations := dict -}}
{{- range $layer := . -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $annotations $key (include "mnist-towers.text" $value) -}}
{{- end -}}
{{- end -}}
{{- with $annotations -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- define "mnist-towers.labelText" -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]" (toString .) "_" | trunc 63 | regexFind "^[A-Za-z0-9].*[A-Za-z0-9]|^[A-Za-z0-9]" -}}
{{- end -}}
