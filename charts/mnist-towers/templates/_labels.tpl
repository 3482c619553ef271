{{- /* Labels that never change during a release's life: (dict "context" $ "component" "worker"). */}}
{{- define "mnist-towers.selectorLabels" -}}
app.kubernetes.io/name: {{ .context.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .context.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end -}}

{{- /*
Labels of an object: (dict "context" $ "component" "worker"), perhaps with "own", which win over those for all. The
chart's version is for objects only: in a pod template it would restart training runs.
*/}}
{{- define "mnist-towers.labels" -}}
{{- $own := include "mnist-towers.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "mnist-towers" -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .context.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/version" (include "mnist-towers.labelText" .context.Chart.AppVersion) -}}
{{- $chart := printf "%s-%s" .context.Chart.Name .context.Chart.Version -}}
{{- $_ := set $own "helm.sh/chart" (include "mnist-towers.labelText" $chart) -}}
{{- $shared := include "mnist-towers.shared" (dict "component" .component "layer" .context.Values.commonLabels) | fromJson -}}
{{- range $layer := list .own $shared -}}
{{- range $key, $value := $layer -}}
{{- if not (hasKey $own $key) -}}
{{- $_ := set $own $key (include "mnist-towers.text" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "mnist-towers.filledYaml" (dict "context" .context "value" $own) -}}
{{- end -}}

{{- /*
Those of the common labels or annotations that apply to a component: (dict "component" "tensorboard" "layer"
.Values.commonLabels). Keys that make pods wait for a queue or for each other apply to training pods only.
*/}}
{{- define "mnist-towers.shared" -}}
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
{{- define "mnist-towers.metadata" -}}
name: {{ .name | quote }}
{{- $shared := include "mnist-towers.shared" (dict "component" .component "layer" .context.Values.commonAnnotations) | fromJson }}
{{- with include "mnist-towers.stringMap" (dict "context" .context "layers" (list $shared .annotations)) }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
labels:
  {{- include "mnist-towers.labels" (dict "context" .context "component" .component "own" .labels) | nindent 2 }}
{{- end -}}

{{- /*
A map whose values are strings: (dict "context" $ "layers" (list common own)), later ones win; nothing when it is
empty.
*/}}
{{- define "mnist-towers.stringMap" -}}
{{- $map := dict -}}
{{- range $layer := .layers -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $map $key (include "mnist-towers.text" $value) -}}
{{- end -}}
{{- end -}}
{{- with $map -}}
{{- include "mnist-towers.filledYaml" (dict "context" $.context "value" .) -}}
{{- end -}}
{{- end -}}

{{- define "mnist-towers.labelText" -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]" (toString .) "_" | trunc 63 | regexFind "^[A-Za-z0-9].*[A-Za-z0-9]|^[A-Za-z0-9]" -}}
{{- end -}}
