{{- /*
Settings of pods that the API server would refuse, or under which peers do not find each other: every layer of settings, at
its place in the values. Included by the refusals.
*/}}
{{- define "mnist-multi-gpu.refusePods" -}}
{{- $shared := dict "commonLabels" .Values.commonLabels "commonAnnotations" .Values.commonAnnotations "podLabels" .Values.podLabels "podAnnotations" .Values.podAnnotations -}}
{{- $shared = merge $shared (dict "affinity" .Values.affinity "envFrom" .Values.envFrom "extraVolumes" .Values.extraVolumes "resourceClaims" .Values.resourceClaims "extraManifests" .Values.extraManifests) -}}
{{- include "mnist-multi-gpu.refuseTexts" (dict "context" . "where" "" "settings" $shared) -}}
{{- include "mnist-multi-gpu.refuseTexts" (dict "context" . "where" "run.controller." "settings" .Values.run.controller) -}}
{{- include "mnist-multi-gpu.refuseTexts" (dict "context" . "where" "tensorboard." "settings" (.Values.tensorboard | default dict)) -}}
{{- include "mnist-multi-gpu.refuseTolerations" (dict "where" "" "tolerations" .Values.tolerations) -}}
{{- include "mnist-multi-gpu.refuseTolerations" (dict "where" "run.controller." "tolerations" .Values.run.controller.tolerations) -}}
{{- include "mnist-multi-gpu.refuseTolerations" (dict "where" "tensorboard." "tolerations" (.Values.tensorboard).tolerations) -}}
{{- include "mnist-multi-gpu.refuseNoNameservers" (dict "where" "" "policy" .Values.dnsPolicy "config" .Values.dnsConfig) -}}
{{- range $where, $settings := dict "run.controller" .Values.run.controller "tensorboard" (.Values.tensorboard | default dict) -}}
{{- $config := $settings.dnsConfig | default $.Values.dnsConfig -}}
{{- include "mnist-multi-gpu.refuseNoNameservers" (dict "where" (printf "%s." $where) "policy" $settings.dnsPolicy "config" $config) -}}
{{- end -}}
{{- range $role, $settings := .Values.roles -}}
{{- include "mnist-multi-gpu.refuseTexts" (dict "context" $ "where" (printf "roles.%s." $role) "settings" $settings) -}}
{{- include "mnist-multi-gpu.refuseTolerations" (dict "where" (printf "roles.%s." $role) "tolerations" $settings.tolerations) -}}
{{- $where := ternary (printf "roles.%s.dnsPolicy" $role) "dnsPolicy" (ne (default "" $settings.dnsPolicy) "") -}}
{{- $policy := $settings.dnsPolicy | default $.Values.dnsPolicy -}}
{{- $config := $settings.dnsConfig | default $.Values.dnsConfig -}}
{{- if eq $policy "Default" -}}
{{- fail (printf "%s: under Default, the pods cannot resolve the names of their peers: use ClusterFirst" $where) -}}
{{- end -}}
{{- if and (eq $policy "ClusterFirst") (or $settings.hostNetwork $.Values.hostNetwork) -}}
{{- fail (printf "%s: with hostNetwork, ClusterFirst means Default, and the pods cannot resolve the names of their peers: leave it empty, or use ClusterFirstWithHostNet" $where) -}}
{{- end -}}
{{- if and (eq $policy "None") (not (and $config.nameservers $config.searches)) -}}
{{- fail (printf "%s: None needs the cluster's nameservers and searches in dnsConfig, or the pods cannot resolve the names of their peers" $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /*
Strings in which only the release and its namespace are filled in; those for labels must be valid label values.
*/}}
{{- define "mnist-multi-gpu.refuseTexts" -}}
{{- $arguments := . -}}
{{- range $key := list "commonLabels" "commonAnnotations" "labels" "podLabels" "podAnnotations" "affinity" "envFrom" "extraVolumes" "resourceClaims" "extraManifests" "subPath" -}}
{{- $value := get $arguments.settings $key -}}
{{- /* Kubernetes fills in other names for itself in some places, but not in a subPath. */ -}}
{{- $pattern := ternary "\\$\\([^)\" ]*\\)?" "\\$\\(TRAINCHART_[^)\" ]*\\)?" (eq $key "subPath") -}}
{{- range $name := regexFindAll $pattern (toJson $value) -1 -}}
{{- if not (has $name (list "$(TRAINCHART_RELEASE)" "$(TRAINCHART_NAMESPACE)")) -}}
{{- fail (printf "%s%s: %s is not known here: use $(TRAINCHART_RELEASE) or $(TRAINCHART_NAMESPACE)" $arguments.where $key $name) -}}
{{- end -}}
{{- end -}}
{{- if hasSuffix "abels" $key -}}
{{- range $label, $text := $value | default dict -}}
{{- $filled := include "mnist-multi-gpu.filled" (dict "context" $arguments.context "text" (include "mnist-multi-gpu.text" $text)) -}}
{{- if not (regexMatch "^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$" $filled) -}}
{{- fail (printf "%s%s.%s: %q is not a valid label value: at most 63 letters, digits, dots, dashes and underscores, starting and ending with a letter or digit" $arguments.where $key $label $filled) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "mnist-multi-gpu.refuseNoNameservers" -}}
{{- if and (eq .policy "None") (not .config.nameservers) -}}
{{- fail (printf "%sdnsPolicy: None needs nameservers in dnsConfig" .where) -}}
{{- end -}}
{{- end -}}

{{- define "mnist-multi-gpu.refuseTolerations" -}}
{{- $where := .where -}}
{{- range $index, $toleration := .tolerations -}}
{{- $at := printf "%stolerations[%d]" $where $index -}}
{{- $operator := .operator | default "Equal" -}}
{{- if not (has $operator (list "Equal" "Exists" "Gt" "Lt")) -}}
{{- fail (printf "%s.operator: %q is not Equal, Exists, Gt or Lt" $at $operator) -}}
{{- end -}}
{{- if and .effect (not (has .effect (list "NoExecute" "NoSchedule" "PreferNoSchedule"))) -}}
{{- fail (printf "%s.effect: %q is not NoExecute, NoSchedule or PreferNoSchedule" $at .effect) -}}
{{- end -}}
{{- if and (not .key) (ne $operator "Exists") -}}
{{- fail (printf "%s.key: operator %s needs a key; only Exists without a key tolerates every taint" $at $operator) -}}
{{- end -}}
{{- if and .value (eq $operator "Exists") -}}
{{- fail (printf "%s.value: operator Exists takes no value, but has %q; Equal compares values" $at .value) -}}
{{- end -}}
{{- if and (not (kindIs "invalid" .tolerationSeconds)) (ne (toString .effect) "NoExecute") -}}
{{- fail (printf "%s.tolerationSeconds: needs the effect NoExecute" $at) -}}
{{- end -}}
{{- end -}}
{{- end -}}
