{{/* The Secret with the serving certificate. */}}
{{- define "grm.tlsSecret" -}}
{{- .Values.global.tls.existingSecret | default (printf "%sgardener-resource-manager-tls" .Values.global.namePrefix) -}}
{{- end }}

{{/*
The certificate that the chart makes if the values name none (spec 71 §12.3 no. 11): data of its Secret, in Base64. It stays
for as long as the Secret does. One call of the program makes one certificate, which all templates see.
*/}}
{{- define "grm.generatedTls" -}}
{{- if not (hasKey .Values "generatedTls") }}
{{- $c := include "grm.context" . | fromYaml }}
{{- $data := dig "data" (dict) (lookup "v1" "Secret" $c.namespace (include "grm.tlsSecret" .) | default dict) }}
{{- if not (and (hasKey $data "ca.crt") (hasKey $data "tls.crt") (hasKey $data "tls.key")) }}
{{- $days := int .Values.global.tls.generatedDays }}
{{- $ca := genCA (printf "%s-ca" $c.name) $days }}
{{- $service := printf "%s.%s" $c.name $c.namespace }}
{{- $names := list $c.name $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service) }}
{{- $certificate := genSignedCert $c.name nil $names $days $ca }}
{{- $data = dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $certificate.Cert) "tls.key" (b64enc $certificate.Key) }}
{{- end }}
{{- $_ := set .Values "generatedTls" $data }}
{{- end }}
{{- pick .Values.generatedTls "ca.crt" "tls.crt" "tls.key" | toYaml }}
{{- end }}

{{/* Whether the chart makes the certificate. */}}
{{- define "grm.isGenerated" -}}
{{- $g := .Values.global }}
{{- if not (or $g.config.server.webhooks.certificate $g.tls.existingSecret $g.tls.certManager.enabled) }}true{{ end }}
{{- end }}

{{/* The CAs of the serving certificate in Base64, or nothing: cert-manager writes them, or the system knows them. */}}
{{- define "grm.caBundle" -}}
{{- $g := .Values.global }}
{{- if $g.config.server.webhooks.ca }}
{{- b64enc $g.config.server.webhooks.ca }}
{{- else if include "grm.isGenerated" . }}
{{- get (include "grm.generatedTls" . | fromYaml) "ca.crt" }}
{{- else if $g.tls.existingSecret }}
{{- dig "data" "ca.crt" "" (lookup "v1" "Secret" .Release.Namespace $g.tls.existingSecret | default dict) }}
{{- end }}
{{- end }}
