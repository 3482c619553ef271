{{- /* Sizes that no pod or claim can have: nothing at all, or a request above its limit. Included by the refusals. */}}
{{- define "digits.refuseSizes" -}}
{{- range $role, $settings := .Values.roles -}}
{{- $where := printf "roles.%s" $role -}}
{{- include "digits.refuseResources" (dict "where" $where "settings" $settings) -}}
{{- $_ := include "digits.size" (dict "key" (printf "%s.tmpSize" $where) "value" $settings.tmpSize) -}}
{{- include "digits.refuseMoreResources" (dict "where" $where "gpu" $.Values.gpu.resourceName "layers" (list $.Values.resources ($settings.resources | default dict))) -}}
{{- $shared := include "digits.size" (dict "key" (printf "%s.shmSize" $where) "value" $settings.shmSize) | float64 -}}
{{- $memory := $settings.memoryLimit | default $settings.memory -}}
{{- if ge $shared (include "digits.size" (dict "key" (printf "%s.memory" $where) "value" $memory) | float64) -}}
{{- fail (printf "%s.shmSize: /dev/shm of %s leaves no memory of %s; it counts against the memory limit" $where (include "digits.text" $settings.shmSize) (include "digits.text" $memory)) -}}
{{- end -}}
{{- end -}}
{{- include "digits.refuseResources" (dict "where" "run.controller" "settings" .Values.run.controller) -}}
{{- with .Values.tensorboard -}}
{{- include "digits.refuseResources" (dict "where" "tensorboard" "settings" .) -}}
{{- $_ := include "digits.size" (dict "key" "tensorboard.tmpSize" "value" .tmpSize) -}}
{{- end -}}
{{- range $name, $volume := .Values.volumes -}}
{{- if ne (toString $volume.size) "" -}}
{{- $_ := include "digits.size" (dict "key" (printf "volumes.%s.size" $name) "value" $volume.size) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "digits.refuseResources" -}}
{{- $where := .where -}}
{{- $settings := .settings -}}
{{- range $request := list "cpu" "memory" "ephemeralStorage" -}}
{{- if ne (toString (get $settings $request)) "" -}}
{{- $limit := printf "%sLimit" $request -}}
{{- $wanted := include "digits.size" (dict "key" (printf "%s.%s" $where $request) "value" (get $settings $request)) | float64 -}}
{{- if ne (toString (get $settings $limit)) "" -}}
{{- $allowed := include "digits.size" (dict "key" (printf "%s.%s" $where $limit) "value" (get $settings $limit)) | float64 -}}
{{- if gt $wanted $allowed -}}
{{- fail (printf "%s.%s: %s is less than the request %s of %s; raise it, or leave it empty to use the request" $where $limit (include "digits.text" (get $settings $limit)) $request (include "digits.text" (get $settings $request))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /*
What the API server refuses in resources other than cpu and memory: a resource that cannot be overcommitted, such as a
device, needs a limit, and a request that equals it.
*/}}
{{- define "digits.refuseMoreResources" -}}
{{- $where := .where -}}
{{- $gpu := .gpu -}}
{{- $limits := dict -}}
{{- $requests := dict -}}
{{- range .layers -}}
{{- $limits = merge (dict) (.limits | default dict) $limits -}}
{{- $requests = merge (dict) (.requests | default dict) $requests -}}
{{- end -}}
{{- range $kind, $amounts := dict "limits" $limits "requests" $requests -}}
{{- range $resource, $amount := $amounts -}}
{{- $key := printf "%s.resources.%s.%s" $where $kind $resource -}}
{{- $size := include "digits.size" (dict "key" $key "value" $amount) | float64 -}}
{{- $own := dict "cpu" "cpu" "memory" "memory" "ephemeral-storage" "ephemeralStorage" $gpu "gpus" -}}
{{- if hasKey $own $resource -}}
{{- fail (printf "%s: set %s.%s instead" $key $where (get $own $resource)) -}}
{{- end -}}
{{- if not (or (contains "/" $resource) (hasPrefix "hugepages-" $resource)) -}}
{{- fail (printf "%s: is not a Kubernetes resource; device resources have a domain, such as rdma/hca" $key) -}}
{{- end -}}
{{- if and (contains "/" $resource) (ne $size (floor $size)) -}}
{{- fail (printf "%s: %s is not a whole number of devices" $key (include "digits.text" $amount)) -}}
{{- end -}}
{{- if eq $kind "requests" -}}
{{- $limit := get $limits $resource -}}
{{- if eq (toString $limit) "" -}}
{{- fail (printf "%s: needs a limit of the same amount" $key) -}}
{{- end -}}
{{- if ne $size (include "digits.size" (dict "key" $key "value" $limit) | float64) -}}
{{- fail (printf "%s: a request of %s and a limit of %s; they must be the same" $key (include "digits.text" $amount) (include "digits.text" $limit)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A quantity such as 500m, 2Gi or 1e3 as a number of its base unit, refused unless positive: (dict "key" … "value" …). */}}
{{- define "digits.size" -}}
{{- $text := include "digits.text" .value -}}
{{- $number := regexFind "^[0-9.]+(e[+-]?[0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- $factors := dict "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- $size := mulf (float64 $number) (get $factors $unit | default 1.0) -}}
{{- if le $size 0.0 -}}
{{- fail (printf "%s: %s is not a positive quantity, for example 500m, 2, 512Mi or 4Gi" .key $text) -}}
{{- end -}}
{{- $size -}}
{{- end -}}
