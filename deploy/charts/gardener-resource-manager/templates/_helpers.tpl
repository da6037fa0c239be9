{{/*
What follows from the values. Templates that return data return YAML: read it with fromYaml.
*/}}

{{/*
The names and labels of the objects.
  mode    whose selectors the webhooks have: runtime, shoot or plain
  hosted  whether the target is another cluster, which Gardener deploys
  suffix  of cluster-wide objects, so that both instances of a self-hosted shoot have their own
*/}}
{{- define "grm.context" -}}
{{- $g := .Values.global }}
{{- $name := printf "%sgardener-resource-manager" $g.namePrefix }}
{{- $mode := get (dict "cluster" "plain" "seed" "runtime" "garden" "runtime" "self-hosted-runtime" "runtime") $g.place | default "shoot" }}
{{- $labels := dict "app" $name }}
{{- $selector := dict "app" $name "gardener.cloud/role" (ternary "seed" "controlplane" (eq $mode "runtime")) }}
{{- if eq $mode "plain" }}
{{- $labels = dict "app" "gardener" "role" "resource-manager" }}
{{- $selector = deepCopy $labels }}
{{- else if eq $mode "shoot" }}
{{- $_ := set $labels "gardener.cloud/role" "controlplane" }}
{{- end }}
name: {{ $name }}
namespace: {{ .Release.Namespace }}
serviceAccount: {{ $g.serviceAccount.name | default $name }}
container: gardener-resource-manager
place: {{ $g.place }}
mode: {{ $mode }}
hosted: {{ has $g.place (list "shoot" "workerless-shoot" "virtual-garden") }}
suffix: {{ ternary "-shoot" "" (eq $mode "shoot") | quote }}
monitor: {{ $g.monitoring.prometheus | default (get (dict "runtime" "seed" "shoot" "shoot") $mode) | quote }}
labels: {{ toYaml $labels | nindent 2 }}
selector: {{ toYaml $selector | nindent 2 }}
{{- end }}

{{/* No webhook of this program may hold up the program itself (spec 71 §14 no. 4). */}}
{{- define "grm.podLabels" -}}
{{- $c := .c }}
{{- $labels := merge (dict) $c.selector $c.labels }}
{{- $_ := set $labels "projected-token-mount.resources.gardener.cloud/skip" "true" }}
{{- $_ := set $labels "system-components-config.resources.gardener.cloud/skip" "true" }}
{{- if eq $c.mode "plain" }}
{{- $_ := set $labels "seccompprofile.resources.gardener.cloud/skip" "true" }}
{{- $_ := set $labels "topology-spread-constraints.resources.gardener.cloud/skip" "true" }}
{{- else }}
{{- $_ := set $labels "networking.gardener.cloud/to-dns" "allowed" }}
{{- $_ := set $labels "networking.gardener.cloud/to-runtime-apiserver" "allowed" }}
{{- end }}
{{- if eq $c.mode "shoot" }}
{{- $_ := set $labels (printf "networking.resources.gardener.cloud/to-%skube-apiserver-tcp-443" .prefix) "allowed" }}
{{- end }}
{{- toYaml (mergeOverwrite (dict) (.extra | default dict) $labels) }}
{{- end }}

{{/* Whether the program reaches the source or the target with a kubeconfig. `.side` is source or target. */}}
{{- define "grm.kubeconfigPath" -}}
{{- $connection := get .root.Values.global.config (printf "%sClientConnection" .side) | default dict }}
{{- $values := get .root.Values.global (printf "%sKubeconfig" .side) }}
{{- if $values.genericKubeconfigSecret -}}
/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig
{{- else if or $connection.kubeconfig $values.existingSecret -}}
/etc/gardener-resource-manager/{{ .side }}-kubeconfig/kubeconfig
{{- end }}
{{- end }}

{{- define "grm.kubeconfigSecret" -}}
{{- $values := get .root.Values.global (printf "%sKubeconfig" .side) -}}
{{- $values.existingSecret | default (printf "%s-%s-kubeconfig" .c.name .side) -}}
{{- end }}

{{/*
Where the rights and registrations of the target cluster go: `here` into this release, `bundle` into a ManagedResource of
the program itself (spec 71 §6.4), `elsewhere` into another release of this chart.
*/}}
{{- define "grm.delivery" -}}
{{- $g := .root.Values.global -}}
{{- if not $g.deploy.application -}}
elsewhere
{{- else if not $g.deploy.runtime -}}
here
{{- else if .c.hosted -}}
bundle
{{- else if include "grm.kubeconfigPath" (dict "root" .root "side" "target") -}}
elsewhere
{{- else -}}
here
{{- end }}
{{- end }}

{{/* Values that contradict each other. */}}
{{- define "grm.check" -}}
{{- $g := .Values.global }}
{{- $webhooks := $g.config.server.webhooks }}
{{- if ne (empty $webhooks.certificate) (empty $webhooks.privateKey) }}
{{- fail "global.config.server.webhooks needs both certificate and privateKey, or neither" }}
{{- end }}
{{- $sources := list }}
{{- if $webhooks.certificate }}{{ $sources = append $sources "global.config.server.webhooks.certificate" }}{{ end }}
{{- if $g.tls.existingSecret }}{{ $sources = append $sources "global.tls.existingSecret" }}{{ end }}
{{- if $g.tls.certManager.enabled }}{{ $sources = append $sources "global.tls.certManager" }}{{ end }}
{{- if gt (len $sources) 1 }}
{{- fail (printf "the serving certificate has several sources, keep one of them: %s" (join ", " $sources)) }}
{{- end }}
{{- if and $g.tls.certManager.enabled (not $g.tls.certManager.issuerRef.name) }}
{{- fail "global.tls.certManager needs issuerRef.name: the Issuer or ClusterIssuer that signs the serving certificate" }}
{{- end }}
{{- range $side := list "source" "target" }}
{{- $connection := get $g.config (printf "%sClientConnection" $side) | default dict }}
{{- $values := get $g (printf "%sKubeconfig" $side) }}
{{- if and $connection.kubeconfig (or $values.existingSecret $values.genericKubeconfigSecret) }}
{{- fail (printf "the %s has two kubeconfigs, keep one of them: global.config.%sClientConnection.kubeconfig, global.%sKubeconfig" $side $side $side) }}
{{- end }}
{{- end }}
{{- $c := include "grm.context" . | fromYaml }}
{{- if and $c.hosted $g.deploy.runtime (not (include "grm.kubeconfigPath" (dict "root" . "side" "target"))) }}
{{- fail (printf "with place %s the target is another cluster: global.targetKubeconfig must name its kubeconfig" $c.place) }}
{{- end }}
{{- end }}
