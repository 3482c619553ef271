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

{{- /* Name of a PersistentVolume, which must be unique in the whole cluster: (dict "context" $ "key" …). */}}
{{- define "<%= name %>.volumeName" -}}
{{- $whole := printf "%s/%s/%s" .context.Release.Namespace .context.Release.Name .key -}}
{{- printf "%s-%s-%s" .context.Release.Name .key (sha256sum $whole | trunc 8) -}}
{{- end -}}

{{- /* Namespace and name of the claim that a volume is for: (dict "context" $ "key" … "volume" …). */}}
{{- define "<%= name %>.claim" -}}
{{- $own := dict "namespace" .context.Release.Namespace "name" (printf "%s-%s" .context.Release.Name .key) -}}
{{- toJson (.volume.claim | default $own) -}}
{{- end -}}

{{- /* Labels of an object. */}}
{{- define "<%= name %>.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: volume
app.kubernetes.io/part-of: {{ .Chart.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- /* Access modes of a volume and of its claim. */}}
{{- define "<%= name %>.accessModes" -}}
{{- include "<%= name %>.yaml" (.accessModes | default (list "ReadWriteMany")) -}}
{{- end -}}

{{- /* A size, also a large number from a values file. */}}
{{- define "<%= name %>.size" -}}
{{- if kindIs "float64" . }}{{ int64 . | toString | quote }}{{ else }}{{ toString . | quote }}{{ end -}}
{{- end -}}

{{- /* What the schema does not know: which attributes a driver needs. (dict "key" … "volume" …). */}}
{{- define "<%= name %>.refuse" -}}
{{- $where := printf "volumes.%s" .key -}}
{{- $attributes := .volume.volumeAttributes | default dict -}}
{{- $needs := list -}}
{{- if or (eq .volume.driver "cephfs.csi.ceph.com") (hasSuffix ".cephfs.csi.ceph.com" .volume.driver) -}}
{{- $needs = list "clusterID" "fsName" "rootPath" -}}
{{- if not .volume.nodeStageSecretRef -}}
{{- fail (printf "%s.nodeStageSecretRef: CephFS needs a Secret with userID and userKey" $where) -}}
{{- end -}}
{{- else if eq .volume.driver "nfs.csi.k8s.io" -}}
{{- $needs = list "server" "share" -}}
{{- else if or (eq .volume.driver "rbd.csi.ceph.com") (hasSuffix ".rbd.csi.ceph.com" .volume.driver) -}}
{{- $needs = list "clusterID" "pool" "imageFeatures" -}}
{{- if or (not .volume.accessModes) (has "ReadWriteMany" .volume.accessModes) -}}
{{- fail (printf "%s.accessModes: a file system on Ceph RBD serves only one node: use ReadWriteOnce, or a CephFS export" $where) -}}
{{- end -}}
{{- if not .volume.volumeHandle -}}
{{- fail (printf "%s.volumeHandle: for Ceph RBD, name the image" $where) -}}
{{- end -}}
{{- end -}}
{{- range $needs -}}
{{- if not (get $attributes .) -}}
{{- fail (printf "%s.volumeAttributes.%s: %s needs it" $where . $.volume.driver) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Attributes of a volume; one of them tells Ceph's drivers that they did not create it. */}}
{{- define "<%= name %>.attributes" -}}
{{- $attributes := deepCopy (.volumeAttributes | default dict) -}}
{{- if hasSuffix ".csi.ceph.com" .driver -}}
{{- $_ := set $attributes "staticVolume" "true" -}}
{{- end -}}
{{- with $attributes -}}
{{- include "<%= name %>.yaml" . -}}
{{- end -}}
{{- end -}}
