{{/* The templates use what Go's text/template has built in and nothing else, so that they can be
     checked without Helm: deploy/check.sh. */}}
{{- define "labels" -}}
app.kubernetes.io/name: noetl
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/version: {{ printf "%q" .Chart.AppVersion }}
{{- end -}}
{{- define "resources" -}}
{{- range $kind, $amounts := . }}
            {{ $kind }}:
              {{- range $what, $amount := $amounts }}
              {{ $what }}: {{ printf "%q" $amount }}
              {{- end }}
{{- end }}
{{- end -}}
{{- define "env" -}}
{{- range $name, $value := . }}
            - name: {{ $name }}
              value: {{ printf "%q" $value }}
{{- end }}
{{- end -}}
{{- define "hardened" -}}
runAsNonRoot: true
            runAsUser: 10001
            allowPrivilegeEscalation: false
            capabilities: {drop: [ALL]}
            seccompProfile: {type: RuntimeDefault}
{{- end -}}
