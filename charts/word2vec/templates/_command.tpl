{{- /* The words of a role's program, which the launcher and Kubernetes fill in: the arguments of podTemplate. */}}
{{- define "word2vec.command" -}}
{{- $words := concat (.settings.command | default .context.Values.command) (.settings.args | default .context.Values.args) -}}
{{- if contains "$(TRAINCHART_" (join " " $words) -}}
{{- $env := include "word2vec.env" . | fromYamlArray -}}
{{- $launcher := list "TF_CONFIG" "TRAINCHART_STRATEGY" "TRAINCHART_EVALUATORS" "TRAINCHART_HYPERPARAMETERS" "TRAINCHART_PROGRESS_FILE" "TRAINCHART_ATTEMPT" "TASK_TYPE" "TASK_INDEX" "PS_HOSTS" "WORKER_HOSTS" "CHIEF_HOSTS" "TRAINCHART_HP_LEARNING_RATE" "TRAINCHART_HP_DIMENSIONS" "TRAINCHART_HP_WINDOW" "TRAINCHART_HP_NEGATIVES" "TRAINCHART_HP_MAX_STEPS" "TRAINCHART_HP_BATCH_SIZE"  -}}
{{- $where := printf "command or args of %s" .role -}}
{{- include "word2vec.refuseUnfilled" (dict "where" $where "texts" $words "env" $env "launcher" $launcher) -}}
{{- end -}}
{{- include "word2vec.yaml" $words -}}
{{- end -}}

{{- /*
Containers that users add, as YAML. They have only their own variables: (dict "key" "extraContainers" "containers" …).
*/}}
{{- define "word2vec.ownContainers" -}}
{{- $key := .key -}}
{{- range .containers -}}
{{- $texts := concat (.command | default list) (.args | default list) -}}
{{- range .env -}}
{{- $texts = append $texts .value -}}
{{- end -}}
{{- if not .envFrom -}}
{{- include "word2vec.refuseUnfilled" (dict "where" (printf "%s: %s" $key .name) "texts" $texts "env" .env "launcher" list) -}}
{{- end -}}
{{- end -}}
{{- include "word2vec.yaml" .containers -}}
{{- end -}}

{{- /*
Refuse a $(TRAINCHART_…) that nothing would fill in: (dict "where" … "texts" … "env" entries "launcher"
names-that-may-have-a-mark).
*/}}
{{- define "word2vec.refuseUnfilled" -}}
{{- $where := .where -}}
{{- $launcher := .launcher -}}
{{- $names := list -}}
{{- range .env -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range .texts -}}
{{- range include "word2vec.references" . | fromJsonArray -}}
{{- $isFilled := or (has . $names) (has (regexReplaceAll "[?+*-]$" . "") $launcher) -}}
{{- if and (hasPrefix "TRAINCHART_" .) (not $isFilled) -}}
{{- $near := regexFindAll (ternary "\\bTRAINCHART_HP_\\S+" "\\bTRAINCHART_\\S+" (hasPrefix "TRAINCHART_HP_" .)) (concat $launcher $names | sortAlpha | join " ") -1 -}}
{{- fail (printf "%s: nothing fills in $(%s); known: %s" $where . (join ", " $near | default "none")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
