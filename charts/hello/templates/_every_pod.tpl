{{- /*
What every pod of the chart has: (dict "context" $ "component" "worker" "settings" …). The settings of a role, of
run.controller or of tensorboard win over those at the top level of the values. With "hostNetwork", only one DNS policy
resolves Services.
*/}}
{{- define "hello.everyPod" -}}
enableServiceLinks: false
{{- with .context.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .settings.nodeSelector | default .context.Values.nodeSelector }}
nodeSelector:
  {{- include "hello.stringMap" (dict "context" $.context "layers" (list .)) | nindent 2 }}
{{- end }}
{{- $tolerations := .settings.tolerations | default .context.Values.tolerations }}
{{- if or $tolerations .patienceSeconds }}
tolerations:
  {{- /* A node that does not answer for this long has lost the pod. */}}
  {{- with .patienceSeconds }}
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: {{ . }}}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: {{ . }}}
  {{- end }}
  {{- with $tolerations }}
  {{- include "hello.yaml" . | nindent 2 }}
  {{- end }}
{{- end }}
{{- with .settings.affinity | default .context.Values.affinity }}
affinity:
  {{- include "hello.filledYaml" (dict "context" $.context "value" .) | nindent 2 }}
{{- end }}
{{- with .settings.topologySpreadConstraints | default .context.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- include "hello.topologySpreadConstraints" (dict "context" $.context "component" $.component "constraints" .) | nindent 2 }}
{{- end }}
{{- with .settings.priorityClassName | default .context.Values.priorityClassName }}
priorityClassName:
  {{- include "hello.yaml" . | nindent 2 }}
{{- end }}
{{- with .settings.runtimeClassName | default .context.Values.runtimeClassName }}
runtimeClassName:
  {{- include "hello.yaml" . | nindent 2 }}
{{- end }}
{{- with .settings.schedulerName | default .context.Values.schedulerName }}
schedulerName:
  {{- include "hello.yaml" . | nindent 2 }}
{{- end }}
{{- with .settings.hostAliases | default .context.Values.hostAliases }}
hostAliases:
  {{- include "hello.yaml" . | nindent 2 }}
{{- end }}
{{- with .settings.dnsPolicy | default .context.Values.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" (default false .hostNetwork)) }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .settings.dnsConfig | default .context.Values.dnsConfig }}
dnsConfig:
  {{- include "hello.yaml" . | nindent 2 }}
{{- end }}
{{- with include "hello.merged" (list .context.Values.podSecurityContext .settings.podSecurityContext) }}
securityContext:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /*
Labels of a pod: those of the settings win over those at the top level, and neither can change the selector.
"training" says whether the pod trains ("true"), or only belongs to a training run, so that it is scraped like the
training pods ("false").
*/}}
{{- define "hello.podLabels" -}}
{{- $labels := dict "sidecar.istio.io/inject" "false" -}}
{{- $shared := include "hello.shared" (dict "component" .component "layer" .context.Values.podLabels) | fromJson -}}
{{- range $layer := list $shared .settings.podLabels -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $labels $key (include "hello.text" $value) -}}
{{- end -}}
{{- end -}}
{{- $own := include "hello.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "hello" -}}
{{- with .training -}}
{{- $_ := set $own "trainchart/training" . -}}
{{- end -}}
{{- include "hello.filledYaml" (dict "context" .context "value" (mergeOverwrite $labels $own)) -}}
{{- end -}}

{{- define "hello.podAnnotations" -}}
{{- $shared := include "hello.shared" (dict "component" .component "layer" .context.Values.podAnnotations) | fromJson -}}
{{- include "hello.stringMap" (dict "context" .context "layers" (list $shared .settings.podAnnotations)) -}}
{{- end -}}

{{- /* Spread constraints; one without labelSelector counts the pods of the component. */}}
{{- define "hello.topologySpreadConstraints" -}}
{{- $labels := include "hello.selectorLabels" . | fromYaml -}}
{{- $constraints := list -}}
{{- range .constraints -}}
{{- $constraint := deepCopy . -}}
{{- if not (hasKey $constraint "labelSelector") -}}
{{- $_ := set $constraint "labelSelector" (dict "matchLabels" $labels) -}}
{{- end -}}
{{- $constraints = append $constraints $constraint -}}
{{- end -}}
{{- include "hello.yaml" $constraints -}}
{{- end -}}
