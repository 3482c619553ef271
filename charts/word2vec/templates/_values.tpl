{{- /*
Values as Kubernetes and the training program need them, whatever form Helm gave them: --set delivers 0.01 as a string
and 20261121 as a number, and after --reuse-values every number is a float that would print as 2.0261121e+07.
*/}}

{{- define "word2vec.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else if not (kindIs "invalid" .) -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{- /*
YAML of any value. Helm's toYaml returns nothing for a string that YAML cannot hold, so the whole block would be
missing; it turns NEL into a space, and writes U+2028 and U+2029 as they are, which Kubernetes reads as line breaks.
Several lines of a text alone would be indented more below a key than in the text.
*/}}
{{- define "word2vec.yaml" -}}
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
{{- define "word2vec.refuseChanged" -}}
{{- $where := .where -}}
{{- $json := toRawJson .value -}}
{{- if not (or (contains "<no value>" $json) (contains "\"<<\"" $json)) -}}
{{- else if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- $place := printf "%s.%s" $where $key | trimPrefix "." -}}
{{- if eq $key "<<" -}}
{{- fail (printf "%s: YAML readers merge what the key << holds into the mapping around it: name it differently" $place) -}}
{{- end -}}
{{- include "word2vec.refuseChanged" (dict "where" $place "value" $key) -}}
{{- include "word2vec.refuseChanged" (dict "where" $place "value" $value) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "word2vec.refuseChanged" (dict "where" (printf "%s[%d]" $where $index) "value" $value) -}}
{{- end -}}
{{- else if contains "<no value>" $json -}}
{{- fail (printf "%s: %q contains <no value>, which Helm removes from every text: write it in another way" $where .value) -}}
{{- end -}}
{{- end -}}

{{- /* YAML of any value whose texts may name the release: (dict "context" $ "value" …). */}}
{{- define "word2vec.filledYaml" -}}
{{- $json := include "word2vec.filled" (dict "context" .context "text" (toJson (dict "value" .value))) -}}
{{- $value := get (fromJson $json) "value" -}}
{{- include "word2vec.refuseComposed" (dict "before" (toRawJson .value) "after" (toRawJson $value)) -}}
{{- include "word2vec.yaml" $value -}}
{{- end -}}

{{- /* A string with the release's name and namespace filled in: neither needs an escape in JSON. */}}
{{- define "word2vec.filled" -}}
{{- $filled := .text | replace "$(TRAINCHART_RELEASE)" .context.Release.Name | replace "$(TRAINCHART_NAMESPACE)" .context.Release.Namespace -}}
{{- include "word2vec.refuseComposed" (dict "before" .text "after" $filled) -}}
{{- $filled -}}
{{- end -}}

{{- /* What refuseChanged cannot see in the values: a text that becomes "<no value>" in a release called no. */}}
{{- define "word2vec.refuseComposed" -}}
{{- if and (contains "<no value>" .after) (not (contains "<no value>" .before)) -}}
{{- fail (printf "%q has <no value> in it with the release's names, and Helm removes that: write it in another way" .after) -}}
{{- end -}}
{{- end -}}

{{- /* A duration (1h30m, 45s, or seconds) in seconds. */}}
{{- define "word2vec.seconds" -}}
{{- $text := include "word2vec.text" . -}}
{{- $hours := regexFind "[0-9]+h" $text | trimSuffix "h" | default "0" | int64 -}}
{{- $minutes := regexFind "[0-9]+m" $text | trimSuffix "m" | default "0" | int64 -}}
{{- $seconds := regexFind "[0-9]+s?$" $text | trimSuffix "s" | default "0" | int64 -}}
{{- add (mul $hours 3600) (mul $minutes 60) $seconds -}}
{{- end -}}

{{- /* A number as JSON, bounds checked again because a string escapes the schema's: (dict "key" … "value" … "minimum" …). */}}
{{- define "word2vec.number" -}}
{{- $text := toString .value -}}
{{- if not (regexMatch "^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?$" $text) -}}
{{- fail (printf "%s: %q is not a number" .key $text) -}}
{{- end -}}
{{- $number := float64 .value -}}
{{- if and (eq $number 0.0) (regexMatch "[1-9]" (regexFind "^[^eE]*" $text)) -}}
{{- fail (printf "%s: %s is too large or too small for a number" .key $text) -}}
{{- end -}}
{{- if and (hasKey . "minimum") (lt $number (float64 .minimum)) -}}
{{- fail (printf "%s: %s is less than the minimum %v" .key $text .minimum) -}}
{{- end -}}
{{- if and (hasKey . "exclusiveMinimum") (le $number (float64 .exclusiveMinimum)) -}}
{{- fail (printf "%s: %s must be greater than %v" .key $text .exclusiveMinimum) -}}
{{- end -}}
{{- if and (hasKey . "maximum") (gt $number (float64 .maximum)) -}}
{{- fail (printf "%s: %s is greater than the maximum %v" .key $text .maximum) -}}
{{- end -}}
{{- if and (hasKey . "exclusiveMaximum") (ge $number (float64 .exclusiveMaximum)) -}}
{{- fail (printf "%s: %s must be less than %v" .key $text .exclusiveMaximum) -}}
{{- end -}}
{{- toJson $number -}}
{{- end -}}

{{- /* Mappings merged key by key, later ones win; nothing when all are empty: (list chart-wide role). */}}
{{- define "word2vec.merged" -}}
{{- $merged := dict -}}
{{- range $layer := . -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- with $merged -}}
{{- include "word2vec.yaml" . -}}
{{- end -}}
{{- end -}}

{{- define "word2vec.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (include "word2vec.text" .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Where the program finds a volume: (dict "volume" .Values.volumes.checkpoints). */}}
{{- define "word2vec.volumeDir" -}}
{{- .volume.uri | default .volume.mountPath | trimSuffix "/" -}}
{{- end -}}

{{- /* Where TensorBoard's summaries are written and read. */}}
{{- define "word2vec.logDir" -}}
{{- include "word2vec.volumeDir" (dict "volume" .Values.volumes.checkpoints) -}}/logs
{{- end -}}
