{{/*
The webhooks that the configuration enables, from files/webhooks, which the program itself wrote: the chart has no second
copy of their rules and selectors. Here they get the name and the address of this installation.
*/}}
{{- define "grm.webhookPaths" -}}
crdDeletionProtection: /webhooks/validate-crd-deletion
endpointSliceHints: /webhooks/endpoint-slice-hints
extensionValidation: /validate-
highAvailabilityConfig: /webhooks/high-availability-config
kubernetesServiceHost: /webhooks/kubernetes-service-host
podKubeAPIServerLoadBalancing: /webhooks/pod-kube-apiserver-load-balancing
podSchedulerName: /webhooks/default-pod-scheduler-name
podTopologySpreadConstraints: /webhooks/pod-topology-spread-constraints
projectedTokenMount: /webhooks/mount-projected-service-account-token
seccompProfile: /webhooks/seccomp-profile
systemComponentsConfig: /webhooks/system-components-config
tokenInvalidator: /webhooks/invalidate-service-account-token-secret
vpaInPlaceUpdates: /webhooks/vpa-in-place-updates
{{- end }}

{{/* The webhook configurations, as a list `items`. */}}
{{- define "grm.registrations" -}}
{{- $g := .Values.global }}
{{- $c := include "grm.context" . | fromYaml }}
{{- $config := include "grm.config" . | fromYaml }}
{{- $enabled := list }}
{{- range $key, $path := include "grm.webhookPaths" . | fromYaml }}
{{- if dig $key "enabled" false $config.webhooks }}{{ $enabled = append $enabled $path }}{{ end }}
{{- end }}
{{- $ca := "" }}
{{- if $enabled }}{{ $ca = include "grm.caBundle" . }}{{ end }}
{{- $items := list }}
{{- range $document := .Files.Get (printf "files/webhooks/%s.yaml" $c.place) | splitList "\n---\n" }}
{{- $registration := fromYaml $document }}
{{- $webhooks := list }}
{{- range $webhook := $registration.webhooks }}
{{- $path := regexFind "/(webhooks/|validate-)[a-z0-9-]+$" (dig "service" "path" ($webhook.clientConfig.url | default "") $webhook.clientConfig) }}
{{- $isEnabled := false }}
{{- range $enabled }}
{{- if or (eq . $path) (and (eq . "/validate-") (hasPrefix . $path)) }}{{ $isEnabled = true }}{{ end }}
{{- end }}
{{- if $isEnabled }}
{{- $client := dict }}
{{- if $g.webhookAddress }}
{{- $_ := set $client "url" (printf "%s%s" $g.webhookAddress $path) }}
{{- else if $c.hosted }}
{{- $_ := set $client "url" (printf "https://%s.%s:443%s" $c.name $c.namespace $path) }}
{{- else }}
{{- $_ := set $client "service" (dict "name" $c.name "namespace" $c.namespace "path" $path) }}
{{- end }}
{{- if $ca }}{{ $_ := set $client "caBundle" $ca }}{{ end }}
{{- $_ := set $webhook "clientConfig" $client }}
{{- if not (hasPrefix "pod-virtual-garden-" $webhook.name) }}
{{- range dig "objectSelector" "matchExpressions" (list) $webhook }}
{{- if eq .key "app" }}{{ $_ := set . "values" (list $c.name) }}{{ end }}
{{- end }}
{{- end }}
{{- $webhooks = append $webhooks $webhook }}
{{- end }}
{{- end }}
{{- $labels := merge (dict) $c.labels (dict) }}
{{- if ne $c.mode "plain" }}{{ $labels = merge (dict "app" $c.name) (omit $registration.metadata.labels "app") }}{{ end }}
{{- $metadata := dict "name" (printf "%s%s" $c.name $c.suffix) "labels" $labels }}
{{- if and $g.tls.certManager.enabled (not $ca) }}
{{- $_ := set $metadata "annotations" (dict "cert-manager.io/inject-ca-from" (printf "%s/%s" $c.namespace $c.name)) }}
{{- end }}
{{- $_ := set $registration "metadata" $metadata }}
{{- $_ := set $registration "webhooks" $webhooks }}
{{- if or $webhooks (eq $registration.kind "MutatingWebhookConfiguration") }}{{ $items = append $items $registration }}{{ end }}
{{- end }}
{{- toYaml (dict "items" $items) }}
{{- end }}
