{{- /*
image.injectLauncher: the launcher comes from the runtime image, through an init container and a volume of the pod, so
that the training image needs only python3.
*/}}
{{- define "digits.launcherContainer" -}}
- name: launcher
  image: {{ .context.Values.run.controller.image | quote }}
  imagePullPolicy: {{ .context.Values.image.pullPolicy }}
  # Python, because an image that has it need not have cp. The copy keeps its mode: any user may read it.
  command: [python3, -c, "import shutil; shutil.copy('/opt/trainchart/launcher.pyz', '/launcher')"]
  env:
    - name: NVIDIA_VISIBLE_DEVICES
      value: void
  # Less than a training container asks for, so a pod needs no more than without it.
  resources:
    {{- $disk := ternary "" ", ephemeral-storage: 64Mi" (eq (toString .settings.ephemeralStorage) "") }}
    requests: {cpu: 100m, memory: 64Mi{{ $disk }}}
    limits: {cpu: 100m, memory: 64Mi{{ $disk }}}
  terminationMessagePolicy: FallbackToLogsOnError
  {{- with .context.Values.containerSecurityContext }}
  securityContext:
    {{- include "digits.yaml" . | nindent 4 }}
  {{- end }}
  volumeMounts:
    - name: launcher
      mountPath: /launcher
{{- end -}}

{{- define "digits.launcherVolume" -}}
- name: launcher
  emptyDir:
    sizeLimit: 64Mi
{{- end -}}

{{- /* Only this file: other files of the image in this folder stay visible. */}}
{{- define "digits.launcherMount" -}}
- name: launcher
  mountPath: /opt/trainchart/launcher.pyz
  subPath: launcher.pyz
  readOnly: true
{{- end -}}
