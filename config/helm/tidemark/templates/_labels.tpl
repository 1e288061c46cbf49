{{/* The labels that select the pod of a workspace; they never change. The argument is the workspace's name. */}}
{{- define "tidemark.selector" -}}
app.kubernetes.io/name: tidemark
tidemark/workspace: {{ . | quote }}
{{- end }}

{{/* The container that writes backups: that of config/kubernetes/backup. The arguments: root, image, backup. */}}
{{- define "tidemark.backup" -}}
{{- $container := get (index (.root.Files.Get "files/backup.yaml" | fromYamlArray) 0) "value" }}
{{- $variables := list (dict "name" "EVERY_HOURS" "value" (toString .backup.everyHours)) (dict "name" "KEEP" "value" (toString .backup.keep)) }}
{{- list (merge (dict "image" .image "env" $variables) $container) | toYaml }}
{{- end }}

{{/* The labels of every object. The argument is the root. */}}
{{- define "tidemark.owner" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
