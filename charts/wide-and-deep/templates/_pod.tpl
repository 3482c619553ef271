{{- /* Whether a role mounts a volume: (dict "role" "worker" "volume" …); "true" or nothing. */}}
{{- define "wide-and-deep.mounts" -}}
{{- if and (not .volume.uri) (or (not .volume.roles) (has .role .volume.roles)) -}}
true
{{- end -}}
{{- end -}}

{{- /* Volumes of a training pod. */}}
{{- define "wide-and-deep.podVolumes" -}}
- name: config
  projected:
    sources:
      - configMap:
          name: {{ include "wide-and-deep.clusterName" .context }}
      - configMap:
          name: {{ include "wide-and-deep.hyperparametersName" .context }}
- name: state
  emptyDir:
    sizeLimit: 64Mi
- name: tmp
  emptyDir:
    sizeLimit: {{ include "wide-and-deep.text" .settings.tmpSize | quote }}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ include "wide-and-deep.text" .settings.shmSize | quote }}
{{- $context := .context }}
{{- $role := .role }}
{{- range $name, $volume := .context.Values.volumes }}
{{- if include "wide-and-deep.mounts" (dict "role" $role "volume" $volume) }}
- name: volume-{{ $name }}
  persistentVolumeClaim:
    claimName: {{ $volume.existingClaim | default (include "wide-and-deep.partName" (dict "context" $context "part" $name)) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Mounts of the training container. */}}
{{- define "wide-and-deep.volumeMounts" -}}
- name: config
  mountPath: /etc/trainchart
  readOnly: true
- name: state
  mountPath: /run/trainchart
- name: tmp
  mountPath: /tmp
- name: shm
  mountPath: /dev/shm
{{- $role := .role }}
{{- range $name, $volume := .context.Values.volumes }}
{{- if include "wide-and-deep.mounts" (dict "role" $role "volume" $volume) }}
- name: volume-{{ $name }}
  mountPath: {{ $volume.mountPath | quote }}
  {{- with $volume.subPath }}
  subPath: {{ . | quote }}
  {{- end }}
  {{- if $volume.readOnly }}
  readOnly: true
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}
