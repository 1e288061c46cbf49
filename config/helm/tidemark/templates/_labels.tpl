{{/* What selects the pod of a workspace; it never changes. The argument is the workspace's name. */}}
{{- define "tidemark.selector" -}}
app.kubernetes.io/name: tidemark
tidemark/workspace: {{ . }}
{{- end }}

{{/* Whose an object is. The argument is the root. */}}
{{- define "tidemark.owner" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
