{{- define "deputy.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "deputy.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{- define "deputy.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* Called with (list $ "web"). */}}
{{- define "deputy.selects" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "deputy.settings" -}}
{{- range $name, $value := .Values.settings }}
{{- if ne $name "ALLOWED_HOSTS" }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
# the probes ask for 127.0.0.1
ALLOWED_HOSTS: {{ list (default "" .Values.settings.ALLOWED_HOSTS) "127.0.0.1" | compact | join "," | quote }}
DEMO: "no"
LOG_FORMAT: json
{{- end }}

{{- /* Called with (list $ "name"), of its ServiceAccount. */}}
{{- define "deputy.pod" -}}
serviceAccountName: {{ index . 1 }}
{{- with index . 0 }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
volumes:
  - {name: tmp, emptyDir: {}}
  - {name: home, emptyDir: {}}
{{- end }}
{{- end }}

{{- /* Not on the same machine, nor in the same zone, where that can be had. */}}
{{- define "deputy.spread" -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {{ include "deputy.selects" $ | fromYaml | toJson }}}
  {{- end }}
{{- end }}

{{- /* Called with (list $ "name"), of its ConfigMap. */}}
{{- define "deputy.container" -}}
{{- $settings := index . 1 }}
{{- with index . 0 }}
image: {{ include "deputy.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - configMapRef: {name: {{ $settings }}}
  - secretRef: {name: {{ required "existingSecret: name a Secret with DATABASE_URL and SECRET_KEY" .Values.existingSecret }}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: home, mountPath: /var/lib/deputy}
{{- end }}
{{- end }}

{{- /* A change of the settings is a new rollout. */}}
{{- define "deputy.changes" -}}
checksum/settings: {{ toJson .Values.settings | sha256sum }}
{{- end }}
