{{- /* ServiceAccount of the run controller. */}}
{{- define "<%= name %>.controllerAccount" -}}
{{- if .Values.rbac.create -}}
{{- include "<%= name %>.partName" (dict "context" . "part" "controller") -}}
{{- else -}}
{{- .Values.run.controller.serviceAccountName -}}
{{- end -}}
{{- end -}}

{{- define "<%= name %>.stateName" -}}
{{- include "<%= name %>.partName" (dict "context" . "part" "state") -}}
{{- end -}}

{{- /* The run's record on the cluster; an empty object if there is none, or if the cluster cannot be queried. */}}
{{- define "<%= name %>.state" -}}
{{- $record := lookup "v1" "ConfigMap" .Release.Namespace (include "<%= name %>.stateName" .) -}}
{{- get (get $record "data" | default dict) "state.json" | default "{}" -}}
{{- end -}}

{{- /*
Whether the run has ended, by its record on the cluster; empty if it has not, or if the cluster cannot be queried.
*/}}
{{- define "<%= name %>.isOver" -}}
{{- $state := include "<%= name %>.state" . | fromJson -}}
{{- $isSame := eq (toString (get $state "runId")) (include "<%= name %>.text" .Values.run.id) -}}
{{- if and $isSame (has (get $state "phase") (list "Succeeded" "Failed" "Stopped")) -}}
true
{{- end -}}
{{- end -}}

{{- /*
The name holds the hash of the Job's text: a Job cannot be changed, only replaced. (dict "context" $ "spec" what
controllerSpec gives)
*/}}
{{- define "<%= name %>.jobName" -}}
{{- printf "%s-%s" (include "<%= name %>.partName" (dict "context" .context "part" "controller")) (.spec | sha256sum | trunc 8) -}}
{{- end -}}

{{- /* The controller's Job: (dict "context" $ "plan" what planId gives, which takes long). */}}
{{- define "<%= name %>.controllerSpec" -}}
{{- $plan := .plan -}}
{{- with .context -}}
# No podFailurePolicy, with which a controller on a lost node would not be replaced. The controller itself sets backoffLimit:
# high at its start, so that it may crash, and low when the run has failed, so that the Job fails.
template:
  {{- /* If its node does not answer, this pod is soon given up on; docs/lifecycle.md says what happens to the run. */}}
  {{- $arguments := dict "context" . "component" "controller" "settings" .Values.run.controller "training" "false" "patienceSeconds" 10 }}
  metadata:
    labels:
      {{- include "<%= name %>.podLabels" $arguments | nindent 6 }}
    {{- with include "<%= name %>.podAnnotations" $arguments }}
    annotations:
      {{- . | nindent 6 }}
    {{- end }}
  spec:
    restartPolicy: Never
    serviceAccountName: {{ include "<%= name %>.controllerAccount" . | quote }}
    automountServiceAccountToken: true
    terminationGracePeriodSeconds: 5
    {{- include "<%= name %>.everyPod" $arguments | nindent 4 }}
    containers:
      - name: controller
        image: {{ .Values.run.controller.image | default (include "<%= name %>.image" .) | quote }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        command: [python3, /opt/trainchart/controller.pyz]
        env:
          - name: TRAINCHART_RELEASE
            value: {{ .Release.Name | quote }}
          - name: TRAINCHART_NAMESPACE
            valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}
          - name: TRAINCHART_POD_NAME
            valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}
          - name: TRAINCHART_JOB_NAME
            valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}
          - name: TRAINCHART_RUN_ID
            {{- with include "<%= name %>.text" .Values.run.id }}
            value: {{ . | quote }}
            {{- end }}
          - name: TRAINCHART_STATE_NAME
            value: {{ include "<%= name %>.stateName" . }}
          - name: TRAINCHART_CLUSTER_FILE
            value: /etc/trainchart/cluster.json
          - name: TRAINCHART_PLAN_ID
            value: {{ $plan | quote }}
          - name: TRAINCHART_RUN_SETTINGS
            value: {{ include "<%= name %>.runSettings" . | quote }}
          - name: TRAINCHART_METRICS_ADDRESS
            value: ":{{ int64 .Values.service.statusPort }}"
          - name: NVIDIA_VISIBLE_DEVICES
            value: void
          {{- if .Values.run.notify.secret }}
          {{- $proxies := pick .Values.env "HTTP_PROXY" "HTTPS_PROXY" "NO_PROXY" "http_proxy" "https_proxy" "no_proxy" }}
          {{- with include "<%= name %>.userEnv" (dict "layers" (list (dict "path" "env" "env" $proxies)) "drops" true) }}
          {{- . | nindent 10 }}
          {{- end }}
          {{- end }}
        ports:
          - name: status
            containerPort: {{ int64 .Values.service.statusPort }}
        resources:
          {{- include "<%= name %>.resources" (dict "settings" .Values.run.controller) | nindent 10 }}
        terminationMessagePolicy: FallbackToLogsOnError
        {{- with include "<%= name %>.merged" (list .Values.containerSecurityContext .Values.run.controller.containerSecurityContext) }}
        securityContext:
          {{- . | nindent 10 }}
        {{- end }}
        volumeMounts:
          - name: config
            mountPath: /etc/trainchart
            readOnly: true
          {{- if .Values.run.notify.secret }}
          - name: notify
            mountPath: /etc/trainchart-notify
            readOnly: true
          {{- end }}
    volumes:
      - name: config
        configMap:
          name: {{ include "<%= name %>.clusterName" . }}
      {{- with .Values.run.notify }}
      {{- if .secret }}
      - name: notify
        secret:
          secretName: {{ .secret | quote }}
          optional: true
          items: [{key: {{ .key | quote }}, path: url}]
      {{- end }}
      {{- end }}
{{- end -}}
{{- end -}}
