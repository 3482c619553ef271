{{- /*
What every pod of the chart has: (dict "context" $ "component" "worker" "settings" …). The settings of a role, of
run.controller or of tensorboard win over those at the top level of the values. With "hostNetwork", only one DNS policy
resolves Services.
*/}}
{{- define "<%= name %>.everyPod" -}}
enableServiceLinks: false
{{- with .context.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
<% for field in pod_fields if field.is_everywhere %>
<% if field.key == "tolerations" %>
{{- $tolerations := .settings.<%= field.value %> | default .context.Values.<%= field.value %> }}
{{- if or $tolerations .patienceSeconds }}
tolerations:
  {{- /* A node that does not answer for this long has lost the pod. */}}
  {{- with .patienceSeconds }}
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: {{ . }}}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: {{ . }}}
  {{- end }}
  {{- with $tolerations }}
  {{- include "<%= name %>.yaml" . | nindent 2 }}
  {{- end }}
{{- end }}
<% elif field.key == "dnsPolicy" %>
{{- with .settings.<%= field.value %> | default .context.Values.<%= field.value %> | default (ternary "ClusterFirstWithHostNet" "" (default false .hostNetwork)) }}
dnsPolicy: {{ . }}
{{- end }}
<% elif field.merge %>
{{- with include "<%= name %>.merged" (list .context.Values.<%= field.value %> .settings.<%= field.value %>) }}
<%= field.key %>:
  {{- . | nindent 2 }}
{{- end }}
<% else %>
{{- with .settings.<%= field.value %> | default .context.Values.<%= field.value %> }}
<%= field.key %>:
<% if field.key == "topologySpreadConstraints" %>
  {{- include "<%= name %>.topologySpreadConstraints" (dict "context" $.context "component" $.component "constraints" .) | nindent 2 }}
<% elif field.key == "nodeSelector" %>
  {{- include "<%= name %>.stringMap" (dict "context" $.context "layers" (list .)) | nindent 2 }}
<% elif field.fills %>
  {{- include "<%= name %>.filledYaml" (dict "context" $.context "value" .) | nindent 2 }}
<% else %>
  {{- include "<%= name %>.yaml" . | nindent 2 }}
<% endif %>
{{- end }}
<% endif %>
<% endfor %>
{{- end -}}

{{- /*
Labels of a pod: those of the settings win over those at the top level, and neither can change the selector.
"training" says whether the pod trains ("true"), or only belongs to a training run, so that it is scraped like the
training pods ("false").
*/}}
{{- define "<%= name %>.podLabels" -}}
{{- $labels := dict "sidecar.istio.io/inject" "false" -}}
{{- $shared := include "<%= name %>.shared" (dict "component" .component "layer" .context.Values.podLabels) | fromJson -}}
{{- range $layer := list $shared .settings.podLabels -}}
{{- range $key, $value := $layer -}}
{{- $_ := set $labels $key (include "<%= name %>.text" $value) -}}
{{- end -}}
{{- end -}}
{{- $own := include "<%= name %>.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "<%= name %>" -}}
{{- with .training -}}
{{- $_ := set $own "trainchart/training" . -}}
{{- end -}}
{{- include "<%= name %>.filledYaml" (dict "context" .context "value" (mergeOverwrite $labels $own)) -}}
{{- end -}}

{{- define "<%= name %>.podAnnotations" -}}
{{- $shared := include "<%= name %>.shared" (dict "component" .component "layer" .context.Values.podAnnotations) | fromJson -}}
{{- include "<%= name %>.stringMap" (dict "context" .context "layers" (list $shared .settings.podAnnotations)) -}}
{{- end -}}

{{- /* Spread constraints; one without labelSelector counts the pods of the component. */}}
{{- define "<%= name %>.topologySpreadConstraints" -}}
{{- $labels := include "<%= name %>.selectorLabels" . | fromYaml -}}
{{- $constraints := list -}}
{{- range .constraints -}}
{{- $constraint := deepCopy . -}}
{{- if not (hasKey $constraint "labelSelector") -}}
{{- $_ := set $constraint "labelSelector" (dict "matchLabels" $labels) -}}
{{- end -}}
{{- $constraints = append $constraints $constraint -}}
{{- end -}}
{{- include "<%= name %>.yaml" $constraints -}}
{{- end -}}
