{{- /* Labels that never change during a release's life: (dict "context" $ "component" "worker"). */}}
{{- define "wide-and-deep.selectorLabels" -}}
app.kubernetes.io/name: {{ .context.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .context.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{- /*
Labels of an object: (dict "context" $ "component" "worker"), perhaps with "own", which win over those for all. The
chart's version is for objects only: in a pod template it would restart training runs.
*/}}
{{- define "wide-and-deep.labels" -}}
{{- $own := include "wide-and-deep.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "wide-and-deep" -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .context.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/version" (include "wide-and-deep.labelText" .context.Chart.AppVersion) -}}
{{- $chart := printf "%s-%s" .context.Chart.Name .context.Chart.Version -}}
{{- $_ := set $own "helm.sh/chart" (include "wide-and-deep.labelText" $chart) -}}
{{- $shared := include "wide-and-deep.shared" (dict "component" .component "layer" .context.Values.commonLabels) | fromJson -}}
{{- range $layer := list .own $shared -}}
{{- range $key, $value := $layer -}}
{{- if not (hasKey $own $key) -}}
{{- $_ := set $own $key (include "wide-and-deep.text" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "wide-and-deep.filledYaml" (dict "context" .context "value" $own) -}}
{{- end -}}

{{- /*
Those of the common labels or annotations that apply to a component: (dict "component" "tensorboard" "layer"
.Values.commonLabels). Keys that make pods wait for a queue or for each other apply to training pods only.
*/}}
{{- define "wide-and-deep.shared" -}}
{{- $kept := dict -}}
{{- $waits := not (has .component (list "controller" "tensorboard" "test")) -}}
{{- range $key, $value := .layer -}}
{{- if or $waits (not (regexMatch "(?i)queue|(^|[./-])gang|pod-?group|task-?group|scheduling\\.k8s\\.io/group-name|^(.*\\.)?(kueue\\.x-k8s\\.io|volcano\\.sh|yunikorn\\.apache\\.org|kai\\.scheduler|quota\\.scheduling\\.koordinator\\.sh)/|^koordinator\\.sh/quota|^applicationId$" $key)) -}}
{{- $_ := set $kept $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end -}}

{{- /*
Name, annotations and labels of an object: (dict "context" $ "component" "training" "name" …), perhaps with "labels" and
"annotations" of its own, which win over those for all. Labels come last, since an object may end with them: Helm
changes blank lines and spaces at the end of a document, which annotations may have.
*/}}
{{- define "wide-and-deep.metadata" -}}
name: {{ .name | quote }}
{{- $shared := include "wide-and-deep.shared" (dict "component" .component "layer" .context.Values.commonAnnotations) | fromJson }}
{{- with include "wide-and-deep.stringMap" (dict "context" .context "layers" (list $shared .annotations)) }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
labels:
  {{- include "wide-and-deep.labels" (dict "context" .context "component" .component "own" .labels) | nindent 2 }}
{{- end -}}

{{- /*
A map whose values are strings: (dict "context" $ "layers" (list common own)), later ones win; nothing when it is
empty.
*/}}
{{- define "wide-and-deep.stringMap" -}}
{{- $map := dict -}}
{{- range $layer := .layers -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $map $key (include "wide-and-deep.text" $value) -}}
{{- end -}}
{{- end -}}
{{- with $map -}}
{{- include "wide-and-deep.filledYaml" (dict "context" $.context "value" .) -}}
{{- end -}}
{{- end -}}

{{- define "wide-and-deep.labelText" -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]" (toString .) "_" | trunc 63 | regexFind "^[A-Za-z0-9].*[A-Za-z0-9]|^[A-Za-z0-9]" -}}
{{- end -}}
