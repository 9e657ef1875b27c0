{{- define "headgate.name" -}}
{{- $own := ternary .Release.Name (printf "%s-headgate" .Release.Name) (contains "headgate" .Release.Name) -}}
{{- $own | trunc 57 | trimSuffix "-" -}}
{{- end -}}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The gateway's file. */}}
{{- define "headgate.file" -}}
{{- $file := deepCopy .Values.gateway -}}
{{- with .Values.redis -}}
{{- if .enabled -}}
{{- $shared := dict "url" (dict "env" "REDIS_URL") "pool" .pool "replicas" $.Values.replicas -}}
{{- $_ := set $shared "maxConcurrency" .maxConcurrency -}}
{{- $_ := set $shared "drainDuration" .drainDuration -}}
{{- $_ := set $file "sharedState" $shared -}}
{{- end -}}
{{- end -}}
{{- toYaml $file -}}
{{- end -}}
