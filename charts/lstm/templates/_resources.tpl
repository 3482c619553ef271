{{- /* Requests and limits; an empty limit is the request: (dict "settings" … "gpuResource" … "more" (list …) "volumes" … "folders" …). */}}
{{- define "lstm.resources" -}}
{{- $cpu := include "lstm.text" .settings.cpu -}}
{{- $memory := include "lstm.text" .settings.memory -}}
requests:
  cpu: {{ $cpu | quote }}
  memory: {{ $memory | quote }}
  {{- with include "lstm.diskRequest" . }}
  ephemeral-storage: {{ . | quote }}
  {{- end }}
  {{- with include "lstm.amounts" (dict "kind" "requests" "layers" .more) }}
  {{- . | nindent 2 }}
  {{- end }}
limits:
  cpu: {{ include "lstm.text" .settings.cpuLimit | default $cpu | quote }}
  memory: {{ include "lstm.text" .settings.memoryLimit | default $memory | quote }}
  {{- with include "lstm.diskLimit" . }}
  ephemeral-storage: {{ . | quote }}
  {{- end }}
  {{- if .settings.gpus }}
  {{ .gpuResource }}: {{ int64 .settings.gpus | quote }}
  {{- end }}
  {{- with include "lstm.amounts" (dict "kind" "limits" "layers" .more) }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with include "lstm.claims" .more }}
claims:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "lstm.claims" -}}
{{- $claims := list -}}
{{- range . -}}
{{- $claims = .claims | default $claims -}}
{{- end -}}
{{- with $claims -}}
{{- include "lstm.yaml" . -}}
{{- end -}}
{{- end -}}

{{- /*
Amounts of resources as strings, later layers win: (dict "kind" "limits" "layers" (list …)); nothing where there are
none.
*/}}
{{- define "lstm.amounts" -}}
{{- $amounts := dict -}}
{{- range .layers -}}
{{- range $resource, $amount := get . $.kind | default dict -}}
{{- $_ := set $amounts $resource (include "lstm.text" $amount) -}}
{{- end -}}
{{- end -}}
{{- with $amounts -}}
{{- include "lstm.yaml" . -}}
{{- end -}}
{{- end -}}

{{- /* Request for the node's disk: what is set, and on top of it the ephemeral volumes on that disk, "folders". */}}
{{- define "lstm.diskRequest" -}}
{{- $request := include "lstm.text" .settings.ephemeralStorage -}}
{{- if and $request .folders -}}
{{- $bytes := include "lstm.size" (dict "key" "ephemeralStorage" "value" $request) | float64 -}}
{{- range .folders -}}
{{- $bytes = include "lstm.size" (dict "key" "volumes" "value" .emptyDir.sizeLimit) | float64 | addf $bytes -}}
{{- end -}}
{{- include "lstm.mebibytes" $bytes -}}
{{- else -}}
{{- $request -}}
{{- end -}}
{{- end -}}

{{- /* Bytes as Kubernetes writes them, or every kubectl apply would find a difference. */}}
{{- define "lstm.mebibytes" -}}
{{- $mebi := divf . 1048576.0 | ceil | int64 -}}
{{- if eq (mod $mebi 1048576) 0 -}}
{{- printf "%dTi" (div $mebi 1048576) -}}
{{- else if eq (mod $mebi 1024) 0 -}}
{{- printf "%dGi" (div $mebi 1024) -}}
{{- else -}}
{{- printf "%dMi" $mebi -}}
{{- end -}}
{{- end -}}

{{- /*
Limit of the node's disk: what is set, or else what /tmp, "folders" and the emptyDirs of "volumes" may hold, and 1Gi
for the log and the chart's own. The kubelet evicts a pod that holds more, so there is no limit if an emptyDir without
sizeLimit may hold any amount.
*/}}
{{- define "lstm.diskLimit" -}}
{{- $request := include "lstm.diskRequest" . -}}
{{- $bytes := 1073741824.0 -}}
{{- $isBounded := ne $request "" -}}
{{- with .settings.tmpSize -}}
{{- $bytes = include "lstm.size" (dict "key" "tmpSize" "value" .) | float64 | addf $bytes -}}
{{- end -}}
{{- range concat (.volumes | default list) (.folders | default list) -}}
{{- $folder := .emptyDir | default dict -}}
{{- if and (hasKey . "emptyDir") (not $folder.medium) -}}
{{- if $folder.sizeLimit -}}
{{- $bytes = include "lstm.size" (dict "key" "extraVolumes" "value" $folder.sizeLimit) | float64 | addf $bytes -}}
{{- else -}}
{{- $isBounded = false -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $limit := include "lstm.text" .settings.ephemeralStorageLimit -}}
{{- if $limit -}}
{{- $limit -}}
{{- else if $isBounded -}}
{{- $bytes = include "lstm.size" (dict "key" "ephemeralStorage" "value" $request) | float64 | maxf $bytes -}}
{{- include "lstm.mebibytes" $bytes -}}
{{- end -}}
{{- end -}}
