{{/*
The component configuration: global.config with the paths of the mounted files, and with the former spellings of Gardener's
chart turned into today's (spec 71 §12.3 no. 1 and 2).
*/}}
{{- define "grm.config" -}}
{{- $g := .Values.global }}
{{- $c := include "grm.context" . | fromYaml }}
{{- $config := deepCopy $g.config }}
{{- $controllers := $config.controllers | default dict }}
{{- $webhooks := $config.webhooks | default dict }}
{{- range $old, $new := dict "managedResources" "managedResource" "node" "nodeCriticalComponents" "kubeletCSRApprover" "csrApprover" "tokenValidator" "tokenInvalidator" }}
{{- if hasKey $controllers $old }}
{{- $_ := set $controllers $new (mergeOverwrite (dict) (get $controllers $old | default dict) (get $controllers $new | default dict)) }}
{{- $_ := unset $controllers $old }}
{{- end }}
{{- end }}
{{- if hasKey $webhooks "tokenValidator" }}
{{- $_ := set $webhooks "tokenInvalidator" (mergeOverwrite (dict) ($webhooks.tokenValidator | default dict) ($webhooks.tokenInvalidator | default dict)) }}
{{- $_ := unset $webhooks "tokenValidator" }}
{{- end }}
{{- range list "secret" "rootCAPublisher" }}{{ $_ := unset $controllers . }}{{ end }}
{{- $_ := unset $webhooks "podZoneAffinity" }}
{{- if dig "highAvailabilityConfig" "enabled" false $webhooks }}
{{- with $g.nodeToleration }}
{{- $_ := set $webhooks "highAvailabilityConfig" (mergeOverwrite (deepCopy .) $webhooks.highAvailabilityConfig) }}
{{- end }}
{{- end }}
{{- range $side := list "source" "target" }}
{{- $key := printf "%sClientConnection" $side }}
{{- $path := include "grm.kubeconfigPath" (dict "root" $ "side" $side) }}
{{- $connection := get $config $key | default dict }}
{{- if or $connection $path }}
{{- $_ := unset $connection "kubeconfig" }}
{{- if $path }}{{ $_ := set $connection "kubeconfig" $path }}{{ end }}
{{- if $connection.namespace }}
{{- $_ := set $connection "namespaces" (append ($connection.namespaces | default list) $connection.namespace | uniq) }}
{{- end }}
{{- $_ := unset $connection "namespace" }}
{{- $_ := set $config $key $connection }}
{{- else }}
{{- $_ := unset $config $key }}
{{- end }}
{{- end }}
{{- /* The former spelling also means the Machines in the only namespace of the source (spec 70 §2.2). */}}
{{- $namespaces := dig "sourceClientConnection" "namespaces" (list) $config }}
{{- if and (hasKey (.Values.global.config.controllers | default dict) "kubeletCSRApprover") (eq (len $namespaces) 1) (not $controllers.csrApprover.machineNamespace) }}
{{- $_ := set $controllers.csrApprover "machineNamespace" (first $namespaces) }}
{{- end }}
{{- $election := $config.leaderElection }}
{{- $_ := set $election "resourceName" ($election.resourceName | default $c.name) }}
{{- $_ := set $election "resourceNamespace" ($election.resourceNamespace | default $c.namespace) }}
{{- $server := $config.server.webhooks }}
{{- range list "ca" "certificate" "privateKey" }}{{ $_ := unset $server . }}{{ end }}
{{- $_ := set $server "tls" (dict "serverCertDir" "/etc/gardener-resource-manager/tls") }}
{{- $_ := set $config "controllers" $controllers }}
{{- $_ := set $config "webhooks" $webhooks }}
{{- $_ := set $config "apiVersion" "resourcemanager.config.gardener.cloud/v1alpha1" }}
{{- $_ := set $config "kind" "ResourceManagerConfiguration" }}
{{- toYaml $config }}
{{- end }}

{{/* The value of the setting `.path` (a.b.c) of the configuration `.config` if it is neither empty nor false. */}}
{{- define "grm.setting" -}}
{{- $at := .config }}
{{- range splitList "." .path }}
{{- $at = ternary (get (ternary $at (dict) (kindIs "map" $at)) .) nil (kindIs "map" $at) }}
{{- end }}
{{- if $at }}{{ $at }}{{ end }}
{{- end }}
