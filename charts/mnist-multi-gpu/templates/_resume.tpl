{{- /*
How a new run begins (docs/checkpoints.md): what the chart passes to the training library, and the checkpoints of
another release, which the pods of this one mount read-only. Their claim has the name that this chart gives it in that
release.
*/}}

{{- define "mnist-multi-gpu.resumeEnv" -}}
- name: TRAINCHART_RESUME
  value: {{ include "mnist-multi-gpu.text" .Values.run.resume | quote }}
{{- with include "mnist-multi-gpu.text" .Values.run.resumeRelease }}
- name: TRAINCHART_RESUME_RELEASE
  value: {{ . | quote }}
- name: TRAINCHART_RESUME_DIR
  value: {{ include "mnist-multi-gpu.ofOtherRelease" (dict "context" $ "text" $.Values.volumes.checkpoints.uri) | default "/run/trainchart-resume" | quote }}
{{- end }}
{{- end -}}

{{- /* A text of the values as it reads in the other release: (dict "context" $ "text" …). */}}
{{- define "mnist-multi-gpu.ofOtherRelease" -}}
{{- $text := .text | replace "$(TRAINCHART_RELEASE)" (include "mnist-multi-gpu.text" .context.Values.run.resumeRelease) -}}
{{- include "mnist-multi-gpu.filled" (dict "context" .context "text" $text) -}}
{{- end -}}

{{- /* Whether a role sees the other release's folder of a claim: (dict "context" $ "role" …); "true" or nothing. */}}
{{- define "mnist-multi-gpu.seesOtherRelease" -}}
{{- if include "mnist-multi-gpu.text" .context.Values.run.resumeRelease -}}
{{- include "mnist-multi-gpu.mounts" (dict "role" .role "volume" .context.Values.volumes.checkpoints) -}}
{{- end -}}
{{- end -}}

{{- /* The other release's claim. An existing one is shared: a pod that mounts one claim as two volumes may never start. */}}
{{- define "mnist-multi-gpu.resumeVolume" -}}
{{- if and (include "mnist-multi-gpu.seesOtherRelease" .) (not .context.Values.volumes.checkpoints.existingClaim) }}
{{- $other := dict "Chart" .context.Chart "Release" (dict "Name" (include "mnist-multi-gpu.text" .context.Values.run.resumeRelease)) }}
- name: resume
  persistentVolumeClaim:
    claimName: {{ include "mnist-multi-gpu.partName" (dict "context" $other "part" "checkpoints") | quote }}
{{- end }}
{{- end -}}

{{- define "mnist-multi-gpu.resumeVolumeMount" -}}
{{- if include "mnist-multi-gpu.seesOtherRelease" . }}
{{- $volume := .context.Values.volumes.checkpoints }}
- name: {{ ternary "volume-checkpoints" "resume" (ne $volume.existingClaim "") }}
  mountPath: /run/trainchart-resume
  readOnly: true
  {{- with include "mnist-multi-gpu.ofOtherRelease" (dict "context" .context "text" $volume.subPath) }}
  subPath: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "mnist-multi-gpu.refuseResume" -}}
{{- /*
An upgrade replaces the values that `trainchart rerun` has set: without run.id, the first run would start again.
*/}}
{{- $runId := get (include "mnist-multi-gpu.state" . | fromJson) "runId" | default "" | toString -}}
{{- if and .Release.IsUpgrade $runId (eq (include "mnist-multi-gpu.text" .Values.run.id) "") -}}
{{- fail (printf "run.id: the values do not set it, so they would end run %s of this release and start another; set run.id=%s and run.resume=latest, use --reuse-values, or set a new run.id" $runId $runId) -}}
{{- end -}}
{{- with include "mnist-multi-gpu.text" .Values.run.resumeRelease -}}
{{- $volume := $.Values.volumes.checkpoints | default dict -}}
{{- if not $volume -}}
{{- fail "run.resumeRelease: this model has no volume named checkpoints" -}}
{{- end -}}
{{- if eq . $.Release.Name -}}
{{- fail "run.resumeRelease: this is the release itself; run.resume is enough to continue from its own checkpoints" -}}
{{- end -}}
{{- if eq (include "mnist-multi-gpu.text" $.Values.run.resume) "never" -}}
{{- fail (printf "run.resume: set latest, or a step, to start from the checkpoints of release %s" .) -}}
{{- end -}}
{{- range $key := ternary (list "uri") (list "subPath") (ne $volume.uri "") -}}
{{- if and (or $volume.uri $volume.existingClaim) (not (contains "$(TRAINCHART_RELEASE)" (get $volume $key))) -}}
{{- fail (printf "run.resumeRelease: it is not known where release %s keeps its checkpoints: volumes.checkpoints.%s does not contain $(TRAINCHART_RELEASE)" $.Values.run.resumeRelease $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
