{{- /* The cluster as the launcher reads it: it expands the hosts <name>-<ordinal>.<service>:<port> from this. */}}
{{- define "<%= name %>.cluster" -}}
{{- $context := . -}}
{{- $service := include "<%= name %>.serviceName" . -}}
{{- $roles := dict -}}
{{- $bytes := 0 -}}
{{- range $role, $settings := .Values.roles -}}
{{- $set := include "<%= name %>.partName" (dict "context" $context "part" $role) -}}
{{- $_ := set $roles $role (dict "name" $set "replicas" (int64 $settings.replicas)) -}}
{{- $bytes = add $bytes (mul $settings.replicas (add (len $set) (len $service) 16)) -}}
{{- end -}}
{{- if gt (int64 $bytes) 131000 -}}
{{- fail (printf "roles: TF_CONFIG would need %d bytes, but an environment variable has at most 131072; use fewer replicas or a shorter release name" (int64 $bytes)) -}}
{{- end -}}
{{- toJson (dict "strategy" "<%= strategy.name %>" "service" $service "port" (int64 .Values.service.port) "statusPort" (int64 .Values.service.statusPort) "roles" $roles) -}}
{{- end -}}

{{- /* The hyperparameters as one JSON object, each of its declared type. */}}
{{- define "<%= name %>.hyperparameters" -}}
{
<%- for parameter in hyperparameters %>

  <%= parameter.name | tojson %>: <% if parameter.is_optional %>{{ if kindIs "invalid" .Values.hyperparameters.<%= parameter.name %> }}null{{ else }}{{ <%= parameter.expression %> }}{{ end }}<% else %>{{ <%= parameter.expression %> }}<% endif %><% if not loop.last %>,<% endif %>
<%- endfor %>

}
{{- end -}}
