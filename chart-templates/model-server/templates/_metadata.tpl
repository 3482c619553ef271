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

{{- /* A number, also a large one from a values file, as text. */}}
{{- define "<%= name %>.number" -}}
{{- if kindIs "float64" . }}{{ int64 . | toString }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{- /* What selects pods: (dict "context" $ "component" "model-server" "track" "stable"); without a track, those of all. */}}
{{- define "<%= name %>.selector" -}}
app.kubernetes.io/name: {{ .context.Chart.Name | quote }}
app.kubernetes.io/instance: {{ .context.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- with .track }}
trainchart/track: {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* Labels of an object: (dict "context" $ "component" "model-server"), perhaps with "track". */}}
{{- define "<%= name %>.labels" -}}
{{- include "<%= name %>.selector" . }}
app.kubernetes.io/part-of: {{ .context.Chart.Name | quote }}
app.kubernetes.io/managed-by: {{ .context.Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name (.context.Chart.Version | replace "+" "_") | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- /* Name and labels of an object of the servers: (dict "context" $), perhaps with "track" and "name". */}}
{{- define "<%= name %>.metadata" -}}
name: {{ .name | default .context.Release.Name | quote }}
labels:
  {{- include "<%= name %>.labels" (dict "context" .context "component" "model-server" "track" .track) | nindent 2 }}
{{- end -}}

{{- /* The models that are served, as a JSON object by track; the canary has its own settings over those of model. */}}
{{- define "<%= name %>.tracks" -}}
{{- $model := .Values.model -}}
{{- $tracks := dict "stable" (dict "model" $model "name" .Release.Name) -}}
{{- with .Values.canary -}}
{{- if .weight -}}
{{- if not (and .version .content) -}}
{{- fail "canary: a canary needs its own version and content" -}}
{{- end -}}
{{- if eq (int64 .version) (int64 $model.version) -}}
{{- fail (printf "canary.version: %d is already the version in model; a version never changes" (int64 .version)) -}}
{{- end -}}
{{- $own := dict "version" .version "content" .content "claim" (.claim | default $model.claim) "path" (.path | default $model.path) -}}
{{- $_ := set $tracks "canary" (dict "model" (merge $own $model) "name" (printf "%s-canary" $.Release.Name)) -}}
{{- end -}}
{{- end -}}
{{- toJson $tracks -}}
{{- end -}}

{{- /* Pods of the canary. Without a Gateway, a Service gives each pod the same share of the requests. */}}
{{- define "<%= name %>.canaryReplicas" -}}
{{- $weight := int .Values.canary.weight -}}
{{- $stable := ternary (int .Values.autoscaling.minReplicas) (int .Values.replicas) .Values.autoscaling.enabled -}}
{{- $replicas := max 1 (div (add (mul $stable $weight) (div (sub 100 $weight) 2)) (sub 100 $weight)) -}}
{{- $share := div (add (mul 100 $replicas) (div (add $stable $replicas) 2)) (add $stable $replicas) -}}
{{- if not .Values.route.parents -}}
{{- if .Values.autoscaling.enabled -}}
{{- fail "canary.weight: without route.parents, the shares follow from the numbers of pods; turn autoscaling off, or set route.parents" -}}
{{- end -}}
{{- if or (gt (sub $share $weight) 3) (gt (sub $weight $share) 3) -}}
{{- fail (printf "canary.weight: of %d and %d pods, the canary would get %d %% of the requests, not %d; set replicas to %d, or set route.parents" $stable $replicas $share $weight (div (sub 100 $weight) $weight)) -}}
{{- end -}}
{{- end -}}
{{- $replicas -}}
{{- end -}}
