{{- /* Labels that never change during a release's life: (dict "context" $ "component" "worker"). */}}
{{- define "wide-and-deep.selectorLabels" -}}
app.kubernetes.io/name: {{ .context.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .context.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{- /* Labels of an object. The chart's version is for objects only: in a pod template it would restart trainings. */}}
{{- define "wide-and-deep.labels" -}}
{{- $own := include "wide-and-deep.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "wide-and-deep" -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .context.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/version" (include "wide-and-deep.labelText" .context.Chart.AppVersion) -}}
{{- $chart := printf "%s-%s" .context.Chart.Name .context.Chart.Version -}}
{{- $_ := set $own "helm.sh/chart" (include "wide-and-deep.labelText" $chart) -}}
{{- range $key, $value := .context.Values.commonLabels -}}
{{- if not (hasKey $own $key) -}}
{{- $_ := set $own $key (include "wide-and-deep.text" $value) -}}
{{- end -}}
{{- end -}}
{{- toYaml $own -}}
{{- end -}}

{{- /* Labels of a training pod: the role's own win over the chart-wide ones, neither can change the selector. */}}
{{- define "wide-and-deep.podLabels" -}}
{{- $labels := dict "sidecar.istio.io/inject" "false" -}}
{{- range $layer := list .context.Values.podLabels .settings.podLabels -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $labels $key (include "wide-and-deep.text" $value) -}}
{{- end -}}
{{- end -}}
{{- $own := include "wide-and-deep.selectorLabels" (dict "context" .context "component" .role) | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "wide-and-deep" -}}
{{- $_ := set $own "trainchart/training" "true" -}}
{{- toYaml (mergeOverwrite $labels $own) -}}
{{- end -}}

{{- /* Annotations as texts: (list common own), later ones win; nothing when there are none. */}}
{{- define "wide-and-deep.annotations" -}}
{{- $annotations := dict -}}
{{- range $layer := . -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $annotations $key (include "wide-and-deep.text" $value) -}}
{{- end -}}
{{- end -}}
{{- with $annotations -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- define "wide-and-deep.labelText" -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]" (toString .) "_" | trunc 63 | regexFind "^[A-Za-z0-9].*[A-Za-z0-9]|^[A-Za-z0-9]" -}}
{{- end -}}
