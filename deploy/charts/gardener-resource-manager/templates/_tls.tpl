{{/* The Secret with the serving certificate. */}}
{{- define "grm.tlsSecret" -}}
{{- .Values.global.tls.existingSecret | default (printf "%sgardener-resource-manager-tls" .Values.global.namePrefix) -}}
{{- end }}

{{/* Whom the serving certificate is for: DNS names, and IP addresses of webhookAddress. */}}
{{- define "grm.certificateHosts" -}}
{{- $c := include "grm.context" . | fromYaml }}
{{- $service := printf "%s.%s" $c.name $c.namespace }}
{{- $names := list $c.name $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service) }}
{{- $addresses := list }}
{{- with .Values.global.webhookAddress }}
{{- $host := get (urlParse .) "hostname" }}
{{- if regexMatch "^[0-9.]+$|:" $host }}
{{- $addresses = append $addresses $host }}
{{- else }}
{{- $names = append $names $host }}
{{- end }}
{{- end }}
{{- toYaml (dict "names" (uniq $names) "addresses" $addresses) }}
{{- end }}

{{/* The annotation of the generated Secret with the host of webhookAddress: another host needs another certificate. */}}
{{- define "grm.hostAnnotation" -}}
resources.gardener.cloud/webhook-host
{{- end }}

{{/* The host of webhookAddress; nothing if each certificate is for it. */}}
{{- define "grm.webhookHost" -}}
{{- $c := include "grm.context" . | fromYaml }}
{{- $service := printf "%s.%s" $c.name $c.namespace }}
{{- $always := list $c.name $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service) }}
{{- with .Values.global.webhookAddress }}
{{- $host := get (urlParse .) "hostname" }}
{{- if not (has $host $always) }}{{ $host }}{{ end }}
{{- end }}
{{- end }}

{{/*
The certificate that the chart makes if the values name none (spec 71 §12.3 no. 11): data of its Secret, in Base64. It stays
for as long as the Secret does, and until webhookAddress names another host. One call of the program makes one certificate, which
all templates see.
*/}}
{{- define "grm.generatedTls" -}}
{{- if not (hasKey .Values "generatedTls") }}
{{- $c := include "grm.context" . | fromYaml }}
{{- $secret := lookup "v1" "Secret" $c.namespace (include "grm.tlsSecret" .) | default dict }}
{{- $data := dig "data" (dict) $secret }}
{{- $host := dig "metadata" "annotations" (include "grm.hostAnnotation" .) "" $secret }}
{{- if not (and (hasKey $data "ca.crt") (hasKey $data "tls.crt") (hasKey $data "tls.key") (has (include "grm.webhookHost" .) (list "" $host))) }}
{{- $days := int .Values.global.tls.generatedDays }}
{{- $ca := genCA (printf "%s-ca" $c.name) $days }}
{{- $hosts := include "grm.certificateHosts" . | fromYaml }}
{{- $certificate := genSignedCert $c.name $hosts.addresses $hosts.names $days $ca }}
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

{{/*
The CAs of the serving certificate in Base64. Nothing if cert-manager writes them here, or if a public CA signed the
certificate for webhookAddress. Fails if an API server would know no CA of the program.
*/}}
{{- define "grm.caBundle" -}}
{{- $g := .Values.global }}
{{- if $g.config.server.webhooks.ca }}
{{- b64enc $g.config.server.webhooks.ca }}
{{- else if not $g.deploy.runtime }}
{{- fail "global.config.server.webhooks.ca must hold the CA of the program's serving certificate: with deploy.runtime: false, another release has the certificate" }}
{{- else if include "grm.isGenerated" . }}
{{- get (include "grm.generatedTls" . | fromYaml) "ca.crt" }}
{{- else if $g.tls.certManager.enabled }}
{{- $c := include "grm.context" . | fromYaml }}
{{- if $c.hosted }}
{{- fail "cert-manager cannot write its CA into another cluster: set global.config.server.webhooks.ca" }}
{{- end }}
{{- else }}
{{- $secret := $g.tls.existingSecret }}
{{- $ca := "" }}
{{- if $secret }}{{ $ca = dig "data" "ca.crt" "" (lookup "v1" "Secret" .Release.Namespace $secret | default dict) }}{{ end }}
{{- if not (or $ca $g.webhookAddress) }}
{{- $found := ternary (printf "helm finds no key ca.crt in Secret %s/%s (it does not look when it only renders)" .Release.Namespace $secret) "the values have a certificate without its CA" (not (empty $secret)) }}
{{- fail (printf "global.config.server.webhooks.ca must hold the CA of the serving certificate, so that API servers trust the webhooks: %s" $found) }}
{{- end }}
{{- $ca }}
{{- end }}
{{- end }}
