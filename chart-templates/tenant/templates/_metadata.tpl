{{- /*
YAML of any value. toYaml returns nothing for a string that YAML cannot hold, turns NEL into a space, and writes U+2028
and U+2029 as they are, which Kubernetes reads as line breaks. Several lines of a text alone would be indented more below
a key than in the text.
*/}}
{{- define "<%= name %>.yaml" -}}
{{- $yaml := toYaml . -}}
{{- if or (not $yaml) (contains "\u0085" (toJson .)) (contains "\u2028" $yaml) (contains "\u2029" $yaml) -}}
{{- fail (printf "a string contains a character that YAML does not allow, such as DEL, NEL, U+2028 or U+FFFE: %s" (toJson .)) -}}
{{- end -}}
{{- ternary (toJson .) $yaml (and (kindIs "string" .) (contains "\n" $yaml)) -}}
{{- end -}}

{{- /*
Helm removes "<no value>" from all that it renders, also in quotes, and writes the key << without quotes, so that readers
merge it: (dict "where" "" "value" (index . "Values")), since to check, .Values would mean that the templates use every
value.
*/}}
{{- define "<%= name %>.refuseChanged" -}}
{{- $where := .where -}}
{{- $json := toRawJson .value -}}
{{- if not (or (contains "<no value>" $json) (contains "\"<<\"" $json)) -}}
{{- else if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- $place := printf "%s.%s" $where $key | trimPrefix "." -}}
{{- if eq $key "<<" -}}
{{- fail (printf "%s: YAML readers merge what the key << holds into the mapping around it: name it differently" $place) -}}
{{- end -}}
{{- include "<%= name %>.refuseChanged" (dict "where" $place "value" $key) -}}
{{- include "<%= name %>.refuseChanged" (dict "where" $place "value" $value) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "<%= name %>.refuseChanged" (dict "where" (printf "%s[%d]" $where $index) "value" $value) -}}
{{- end -}}
{{- else if contains "<no value>" $json -}}
{{- fail (printf "%s: %q contains <no value>, which Helm removes from every text: write it in another way" $where .value) -}}
{{- end -}}
{{- end -}}

{{- /* A number, also a large one from a values file, or text as a quantity. */}}
{{- define "<%= name %>.quantity" -}}
{{- if kindIs "float64" . }}{{ int64 . | toString | quote }}{{ else }}{{ toString . | quote }}{{ end -}}
{{- end -}}

{{- /* Labels of an object: (dict "context" $ "component" "quota"). */}}
{{- define "<%= name %>.labels" -}}
app.kubernetes.io/name: {{ .context.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .context.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
app.kubernetes.io/part-of: {{ .context.Chart.Name | quote }}
app.kubernetes.io/managed-by: {{ .context.Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name (.context.Chart.Version | replace "+" "_") | trunc 63 | trimSuffix "-" | quote }}
trainchart/tenant: {{ .context.Release.Name | quote }}
{{- end -}}

{{- /* Name, namespace and labels of an object: (dict "context" $ "component" "quota"), perhaps with "name". */}}
{{- define "<%= name %>.metadata" -}}
name: {{ .name | default (printf "tenant-%s" .component) | quote }}
namespace: {{ .context.Release.Name | quote }}
labels:
  {{- include "<%= name %>.labels" . | nindent 2 }}
{{- end -}}
