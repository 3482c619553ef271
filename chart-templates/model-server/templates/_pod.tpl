{{- /* A pod of a track: (dict "context" $ "model" … "track" …). */}}
{{- define "<%= name %>.pod" -}}
{{- with .context.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
serviceAccountName: {{ .context.Values.serviceAccountName | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
# Requests that have begun are answered: first the pod leaves the Service everywhere, then the server ends its requests.
terminationGracePeriodSeconds: {{ add 10 (int .context.Values.drainSeconds) }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .context.Values.runtimeClassName }}
runtimeClassName: {{ . | quote }}
{{- end }}
{{- with .context.Values.nodeSelector }}
nodeSelector:
  {{- include "<%= name %>.yaml" . | nindent 2 }}
{{- end }}
{{- with .context.Values.tolerations }}
tolerations:
  {{- include "<%= name %>.yaml" . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "<%= name %>.selector" . | nindent 8 }}
initContainers:
  -
    {{- include "<%= name %>.fetch" . | nindent 4 }}
containers:
  - name: server
    image: {{ include "<%= name %>.image" .context | quote }}
    imagePullPolicy: {{ .context.Values.image.pullPolicy }}
    {{- include "<%= name %>.program" . | nindent 4 }}
    ports:
      - {name: grpc, containerPort: 8500}
      - {name: http, containerPort: 8501}
    {{- include "<%= name %>.probes" . | nindent 4 }}
    lifecycle:
      preStop:
        sleep: {seconds: 5}
    resources:
      {{- include "<%= name %>.yaml" .context.Values.resources | nindent 6 }}
    securityContext:
      {{- include "<%= name %>.containerSecurity" . | nindent 6 }}
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
      - {name: models, mountPath: /models, readOnly: true}
      - {name: tmp, mountPath: /tmp}
volumes:
  - name: models
    emptyDir:
      sizeLimit: {{ include "<%= name %>.number" .model.sizeLimit | quote }}
  - name: tmp
    emptyDir:
      sizeLimit: 256Mi
  {{- with .model.claim }}
  - name: source
    persistentVolumeClaim:
      claimName: {{ . | quote }}
      readOnly: true
  {{- end }}
{{- end -}}
