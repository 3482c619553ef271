{{- /* Whether a role mounts a volume: (dict "role" "worker" "volume" …); "true" or nothing. */}}
{{- define "mnist-classic.mounts" -}}
{{- if and (not .volume.uri) (or (not .volume.roles) (has .role .volume.roles)) -}}
true
{{- end -}}
{{- end -}}

{{- /* The node to which pods are bound by name; empty if they are not: (dict "context" $ "settings" …). */}}
{{- define "mnist-classic.node" -}}
{{- $selector := .settings.nodeSelector | default .context.Values.nodeSelector | default dict -}}
{{- get $selector "kubernetes.io/hostname" -}}
{{- end -}}

{{- /* Volumes of a training pod. */}}
{{- define "mnist-classic.podVolumes" -}}
- name: config
  projected:
    sources:
      - configMap:
          name: {{ include "mnist-classic.clusterName" .context }}
      - configMap:
          name: {{ include "mnist-classic.hyperparametersName" .context }}
- name: state
  emptyDir:
    sizeLimit: 64Mi
- name: tmp
  emptyDir:
    sizeLimit: {{ include "mnist-classic.text" .settings.tmpSize | quote }}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ include "mnist-classic.text" .settings.shmSize | quote }}
{{- $context := .context }}
{{- $role := .role }}
{{- range $name, $volume := .context.Values.volumes }}
{{- if include "mnist-classic.mounts" (dict "role" $role "volume" $volume) }}
- name: volume-{{ $name }}
  {{- if $volume.ephemeral }}
  {{- include "mnist-classic.ephemeralVolume" (dict "context" $context "component" $role "volume" $volume) | nindent 2 }}
  {{- else }}
  persistentVolumeClaim:
    claimName: {{ $volume.existingClaim | default (include "mnist-classic.partName" (dict "context" $context "part" $name)) | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- include "mnist-classic.resumeVolume" . }}
{{- end -}}

{{- /* Source of a volume that each pod has for itself: a claim that goes with the pod, or a folder on the node's disk. */}}
{{- define "mnist-classic.ephemeralVolume" -}}
{{- if has .volume.storageClass (list "" "-") -}}
emptyDir:
  sizeLimit: {{ include "mnist-classic.text" .volume.size | quote }}
{{- else -}}
ephemeral:
  volumeClaimTemplate:
    metadata:
      labels:
        {{- include "mnist-classic.selectorLabels" . | nindent 8 }}
      {{- with .volume.annotations }}
      annotations:
        {{- include "mnist-classic.stringMap" (dict "context" $.context "layers" (list .)) | nindent 8 }}
      {{- end }}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: {{ .volume.storageClass | quote }}
      resources:
        requests:
          storage: {{ include "mnist-classic.text" .volume.size | quote }}
{{- end -}}
{{- end -}}

{{- /* Ephemeral volumes on the node's disk that a role mounts, as a JSON list of sources: (dict "context" $ "role" …). */}}
{{- define "mnist-classic.nodeFolders" -}}
{{- $role := .role -}}
{{- $folders := list -}}
{{- range $name, $volume := .context.Values.volumes -}}
{{- if and $volume.ephemeral (has $volume.storageClass (list "" "-")) (include "mnist-classic.mounts" (dict "role" $role "volume" $volume)) -}}
{{- $folders = append $folders (dict "emptyDir" (dict "sizeLimit" $volume.size)) -}}
{{- end -}}
{{- end -}}
{{- toJson $folders -}}
{{- end -}}

{{- /* Mounts of the training container. */}}
{{- define "mnist-classic.volumeMounts" -}}
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
{{- $context := .context }}
{{- range $name, $volume := .context.Values.volumes }}
{{- if include "mnist-classic.mounts" (dict "role" $role "volume" $volume) }}
- name: volume-{{ $name }}
  mountPath: {{ $volume.mountPath | quote }}
  {{- with $volume.subPath }}
  subPath: {{ include "mnist-classic.filled" (dict "context" $context "text" .) | quote }}
  {{- end }}
  {{- if $volume.readOnly }}
  readOnly: true
  {{- end }}
{{- end }}
{{- end }}
{{- include "mnist-classic.resumeVolumeMount" . }}
{{- end -}}
