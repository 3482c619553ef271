{{- /* Volumes that no pod could use as the values say. Included by the refusals. */}}
{{- define "digits.refuseVolumes" -}}
{{- $taken := dict -}}
{{- range $name, $volume := .Values.volumes -}}
{{- include "digits.refuseTexts" (dict "context" $ "where" (printf "volumes.%s." $name) "settings" $volume) -}}
{{- if or (hasPrefix "/" $volume.subPath) (has ".." (splitList "/" $volume.subPath)) -}}
{{- fail (printf "volumes.%s.subPath: %s is not a folder inside the volume" $name $volume.subPath) -}}
{{- end -}}
{{- if $volume.ephemeral -}}
{{- include "digits.refuseEphemeral" (dict "name" $name "volume" $volume "tensorboard" ($.Values.tensorboard | default dict)) -}}
{{- else if and $volume.uri $volume.existingClaim -}}
{{- fail (printf "volumes.%s: set uri or existingClaim, not both" $name) -}}
{{- end -}}
{{- if not (or $volume.uri $volume.existingClaim (ne (toString $volume.size) "")) -}}
{{- fail (printf "volumes.%s: set size, existingClaim or uri" $name) -}}
{{- end -}}
{{- if not (or $volume.uri $volume.mountPath) -}}
{{- fail (printf "volumes.%s.mountPath: set a folder, or a uri" $name) -}}
{{- end -}}
{{- if and $volume.mountPath (not $volume.uri) -}}
{{- $place := include "digits.freeFolder" (dict "name" $name "volume" $volume) -}}
{{- if hasKey $taken $place -}}
{{- fail (printf "volumes.%s.mountPath: %s and %s are both mounted at %s" $name (get $taken $place) $name $place) -}}
{{- end -}}
{{- $taken = set $taken $place $name -}}
{{- end -}}
{{- if and (eq $volume.accessMode "ReadOnlyMany") (not $volume.readOnly) (not $volume.ephemeral) -}}
{{- fail (printf "volumes.%s.accessMode: ReadOnlyMany needs readOnly: true" $name) -}}
{{- end -}}
{{- end -}}
{{- range $role, $settings := .Values.roles -}}
{{- $folders := include "digits.nodeFolders" (dict "context" $ "role" $role) | fromJsonArray -}}
{{- $limit := include "digits.text" $settings.ephemeralStorageLimit -}}
{{- if and $folders $limit -}}
{{- $wanted := include "digits.diskRequest" (dict "settings" $settings "folders" $folders) -}}
{{- if and $wanted (gt (include "digits.size" (dict "key" "" "value" $wanted) | float64) (include "digits.size" (dict "key" "" "value" $limit) | float64)) -}}
{{- fail (printf "roles.%s.ephemeralStorageLimit: %s of the node's disk is less than the request, which is %s with the ephemeral volumes; raise it, or leave it empty" $role $limit $wanted) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What only a claim can do: (dict "name" … "volume" … "tensorboard" …). */}}
{{- define "digits.refuseEphemeral" -}}
{{- $name := .name -}}
{{- range $key := list "existingClaim" "uri" "keep" "readOnly" -}}
{{- if get $.volume $key -}}
{{- fail (printf "volumes.%s.%s: not for an ephemeral volume: each pod gets its own empty volume, which is removed with the pod; set ephemeral to false, or leave %s out" $name $key $key) -}}
{{- end -}}
{{- end -}}
{{- if eq (toString .volume.size) "" -}}
{{- fail (printf "volumes.%s.size: an ephemeral volume needs a size, for example 20Gi" $name) -}}
{{- end -}}
{{- if eq $name "checkpoints" -}}
{{- fail "volumes.checkpoints.ephemeral: what a pod saves would be lost with the pod, and no other pod could read it; use a claim" -}}
{{- end -}}
{{- if and .tensorboard.enabled (eq $name "checkpoints") -}}
{{- fail (printf "volumes.%s.ephemeral: TensorBoard cannot read another pod's volume; use a claim" $name) -}}
{{- end -}}
{{- end -}}

{{- /* Where a volume is mounted, unless it would hide what pods need there: (dict "name" … "volume" …). */}}
{{- define "digits.freeFolder" -}}
{{- $place := clean .volume.mountPath -}}
{{- range $folder := list "/app" "/bin" "/dev" "/etc" "/lib" "/lib64" "/opt" "/proc" "/run" "/sbin" "/sys" "/tmp" "/usr" -}}
{{- if or (eq $place "/" $folder) (hasPrefix (printf "%s/" $folder) $place) -}}
{{- fail (printf "volumes.%s.mountPath: %s is used by the image or the system; use for example /%s" $.name $place $.name) -}}
{{- end -}}
{{- end -}}
{{- $place -}}
{{- end -}}
