{{- /* Requests and limits; an empty limit is the request: (dict "settings" … "gpuResource" … "more" (list …) "volumes" … "folders" …). */}}
{{- define "digits.resources" -}}
{{- $cpu := include "digits.text" .settings.cpu -}}
{{- $memory := include "digits.text" .settings.memory -}}
requests:
  cpu: {{ $cpu | quote }}
  memory: {{ $memory | quote }}
  {{- with include "digits.diskRequest" . }}
  ephemeral-storage: {{ . | quote }}
  {{- end }}
  {{- with include "digits.amounts" (dict "kind" "requests" "layers" .more) }}
  {{- . | nindent 2 }}
  {{- end }}
limits:
  cpu: {{ include "digits.text" .settings.cpuLimit | default $cpu | quote }}
  memory: {{ include "digits.text" .settings.memoryLimit | default $memory | quote }}
  {{- with include "digits.diskLimit" . }}
  ephemeral-storage: {{ . | quote }}
  {{- end }}
  {{- if .settings.gpus }}
  {{ .gpuResource }}: {{ int64 .settings.gpus | quote }}
  {{- end }}
  {{- with include "digits.amounts" (dict "kind" "limits" "layers" .more) }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with include "digits.claims" .more }}
claims:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "digits.claims" -}}
{{- $claims := list -}}
{{- range . -}}
{{- $claims = .claims | default $claims -}}
{{- end -}}
{{- with $claims -}}
{{- include "digits.yaml" . -}}
{{- end -}}
{{- end -}}

{{- /*
Amounts of resources as strings, later layers win: (dict "kind" "limits" "layers" (list …)); nothing where there are
none.
*/}}
{{- define "digits.amounts" -}}
{{- $amounts := dict -}}
{{- range .layers -}}
{{- range $resource, $amount := get . $.kind | default dict -}}
{{- $_ := set $amounts $resource (include "digits.text" $amount) -}}
{{- end -}}
{{- end -}}
{{- with $amounts -}}
{{- include "digits.yaml" . -}}
{{- end -}}
{{- end -}}

{{- /* Request for the node's disk: what is set, and on top of it the ephemeral volumes on that disk, "folders". */}}
{{- define "digits.diskRequest" -}}
{{- $request := include "digits.text" .settings.ephemeralStorage -}}
{{- if and $request .folders -}}
{{- $bytes := include "digits.size" (dict "key" "ephemeralStorage" "value" $request) | float64 -}}
{{- range .folders -}}
{{- $bytes = include "digits.size" (dict "key" "volumes" "value" .emptyDir.sizeLimit) | float64 | addf $bytes -}}
{{- end -}}
{{- include "digits.mebibytes" $bytes -}}
{{- else -}}
{{- $request -}}
{{- end -}}
{{- end -}}

{{- /* Bytes as Kubernetes writes them, or every kubectl apply would find a difference. */}}
{{- define "digits.mebibytes" -}}
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
{{- define "digits.diskLimit" -}}
{{- $request := include "digits.diskRequest" . -}}
{{- $bytes := 1073741824.0 -}}
{{- $isBounded := ne $request "" -}}
{{- with .settings.tmpSize -}}
{{- $bytes = include "digits.size" (dict "key" "tmpSize" "value" .) | float64 | addf $bytes -}}
{{- end -}}
{{- range concat (.volumes | default list) (.folders | default list) -}}
{{- $folder := .emptyDir | default dict -}}
{{- if and (hasKey . "emptyDir") (not $folder.medium) -}}
{{- if $folder.sizeLimit -}}
{{- $bytes = include "digits.size" (dict "key" "extraVolumes" "value" $folder.sizeLimit) | float64 | addf $bytes -}}
{{- else -}}
{{- $isBounded = false -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $limit := include "digits.text" .settings.ephemeralStorageLimit -}}
{{- if $limit -}}
{{- $limit -}}
{{- else if $isBounded -}}
{{- $bytes = include "digits.size" (dict "key" "ephemeralStorage" "value" $request) | float64 | maxf $bytes -}}
{{- include "digits.mebibytes" $bytes -}}
{{- end -}}
{{- end -}}
