{{- /* Requests and limits; an empty limit is the request: (dict "settings" … "gpuResource" … "more" (list …) "volumes" … "folders" …). */}}
{{- define "hello.resources" -}}
{{- $cpu := include "hello.text" .settings.cpu -}}
{{- $memory := include "hello.text" .settings.memory -}}
requests:
  cpu: {{ $cpu | quote }}
  memory: {{ $memory | quote }}
  {{- with include "hello.diskRequest" . }}
  ephemeral-storage: {{ . | quote }}
  {{- end }}
  {{- with include "hello.amounts" (dict "kind" "requests" "layers" .more) }}
  {{- . | nindent 2 }}
  {{- end }}
limits:
  cpu: {{ include "hello.text" .settings.cpuLimit | default $cpu | quote }}
  memory: {{ include "hello.text" .settings.memoryLimit | default $memory | quote }}
  {{- with include "hello.diskLimit" . }}
  ephemeral-storage: {{ . | quote }}
  {{- end }}
  {{- if .settings.gpus }}
  {{ .gpuResource }}: {{ int64 .settings.gpus | quote }}
  {{- end }}
  {{- with include "hello.amounts" (dict "kind" "limits" "layers" .more) }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with include "hello.claims" .more }}
claims:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "hello.claims" -}}
{{- $claims := list -}}
{{- range . -}}
{{- $claims = .claims | default $claims -}}
{{- end -}}
{{- with $claims -}}
{{- include "hello.yaml" . -}}
{{- end -}}
{{- end -}}

{{- /*
Amounts of resources as strings, later layers win: (dict "kind" "limits" "layers" (list …)); nothing where there are
none.
*/}}
{{- define "hello.amounts" -}}
{{- $amounts := dict -}}
{{- range .layers -}}
{{- range $resource, $amount := get . $.kind | default dict -}}
{{- $_ := set $amounts $resource (include "hello.text" $amount) -}}
{{- end -}}
{{- end -}}
{{- with $amounts -}}
{{- include "hello.yaml" . -}}
{{- end -}}
{{- end -}}

{{- /* Request for the node's disk: what is set, and on top of it the ephemeral volumes on that disk, "folders". */}}
{{- define "hello.diskRequest" -}}
{{- $request := include "hello.text" .settings.ephemeralStorage -}}
{{- if and $request .folders -}}
{{- $bytes := include "hello.size" (dict "key" "ephemeralStorage" "value" $request) | float64 -}}
{{- range .folders -}}
{{- $bytes = include "hello.size" (dict "key" "volumes" "value" .emptyDir.sizeLimit) | float64 | addf $bytes -}}
{{- end -}}
{{- include "hello.mebibytes" $bytes -}}
{{- else -}}
{{- $request -}}
{{- end -}}
{{- end -}}

{{- /* Bytes as Kubernetes writes them, or every kubectl apply would find a difference. */}}
{{- define "hello.mebibytes" -}}
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
{{- define "hello.diskLimit" -}}
{{- $request := include "hello.diskRequest" . -}}
{{- $bytes := 1073741824.0 -}}
{{- $isBounded := ne $request "" -}}
{{- with .settings.tmpSize -}}
{{- $bytes = include "hello.size" (dict "key" "tmpSize" "value" .) | float64 | addf $bytes -}}
{{- end -}}
{{- range concat (.volumes | default list) (.folders | default list) -}}
{{- $folder := .emptyDir | default dict -}}
{{- if and (hasKey . "emptyDir") (not $folder.medium) -}}
{{- if $folder.sizeLimit -}}
{{- $bytes = include "hello.size" (dict "key" "extraVolumes" "value" $folder.sizeLimit) | float64 | addf $bytes -}}
{{- else -}}
{{- $isBounded = false -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $limit := include "hello.text" .settings.ephemeralStorageLimit -}}
{{- if $limit -}}
{{- $limit -}}
{{- else if $isBounded -}}
{{- $bytes = include "hello.size" (dict "key" "ephemeralStorage" "value" $request) | float64 | maxf $bytes -}}
{{- include "hello.mebibytes" $bytes -}}
{{- end -}}
{{- end -}}
