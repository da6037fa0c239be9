{{/*
What follows from the values. Templates that return data return YAML: read it with fromYaml.
*/}}

{{- define "gcm.context" -}}
{{- $v := .Values.global.controller }}
name: gardener-controller-manager
namespace: {{ .Release.Namespace }}
container: gardener-controller-manager
monitor: {{ $v.monitoring.prometheus | quote }}
labels:
  app: gardener
  role: controller-manager
selector:
  app: gardener
  role: controller-manager
{{- end }}

{{/* Whether the program is installed here. */}}
{{- define "gcm.runs" -}}
{{- if and .Values.global.controller.enabled .Values.global.deploy.runtime }}true{{ end }}
{{- end }}

{{/* The kubeconfig of the garden cluster. Empty: the program runs in it. */}}
{{- define "gcm.kubeconfigPath" -}}
{{- $v := .Values.global.controller }}
{{- if $v.kubeconfigSecret.genericKubeconfigSecret -}}
/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig
{{- else if or $v.kubeconfig $v.kubeconfigSecret.existingSecret -}}
/etc/gardener-controller-manager/kubeconfig/kubeconfig
{{- else }}
{{- $v.config.gardenClientConnection.kubeconfig | default "" }}
{{- end }}
{{- end }}

{{- define "gcm.kubeconfigSecret" -}}
{{- .Values.global.controller.kubeconfigSecret.existingSecret | default "gardener-controller-manager-kubeconfig" -}}
{{- end }}

{{- define "gcm.check" -}}
{{- $v := .Values.global.controller }}
{{- if and $v.kubeconfig (or $v.kubeconfigSecret.existingSecret $v.kubeconfigSecret.genericKubeconfigSecret) }}
{{- fail "the garden cluster has two kubeconfigs, keep one of them: global.controller.kubeconfig, global.controller.kubeconfigSecret" }}
{{- end }}
{{- if contains "\n" ($v.config.gardenClientConnection.kubeconfig | default "") }}
{{- fail "global.controller.config.gardenClientConnection.kubeconfig is a path: give the text of a kubeconfig as global.controller.kubeconfig, which goes into a Secret" }}
{{- end }}
{{- if and .Values.global.deployment.virtualGarden.controller.user.name (not .Values.global.deployment.virtualGarden.enabled) }}
{{- fail "global.deployment.virtualGarden.controller.user.name has no effect unless global.deployment.virtualGarden.enabled is true" }}
{{- end }}
{{- end }}

{{/* The component configuration: values with the paths of the mounted files. */}}
{{- define "gcm.config" -}}
{{- $config := deepCopy .Values.global.controller.config }}
{{- with include "gcm.kubeconfigPath" . }}{{ $_ := set $config.gardenClientConnection "kubeconfig" . }}{{ end }}
{{- $server := dict }}
{{- range list "healthProbes" "metrics" }}{{ $_ := set $server . (omit (get $config.server .) "enable") }}{{ end }}
{{- $_ := set $config "server" $server }}
{{- $_ := set $config "leaderElection" (dict) }}
{{- range $key, $value := .Values.global.controller.config.leaderElection }}
{{- if not (eq (toString $value) "") }}{{ $_ := set $config.leaderElection $key $value }}{{ end }}
{{- end }}
{{- $_ := unset $config "kubernetesLogLevel" }}
{{- range list "plant" "secretBindingProvider" }}{{ $_ := unset $config.controllers . }}{{ end }}
{{- $_ := set $config "apiVersion" "controllermanager.config.gardener.cloud/v1alpha1" }}
{{- $_ := set $config "kind" "ControllerManagerConfiguration" }}
{{- toYaml $config }}
{{- end }}

{{- define "gcm.rules" -}}
{{- if eq .Values.global.controller.rbac.rights "all" }}
{{- toYaml (list (dict "apiGroups" (list "*") "resources" (list "*") "verbs" (list "*"))) }}
{{- else }}
{{- include "gcm.rights" (dict "root" . "section" "garden") }}
{{- end }}
{{- end }}

{{/* The rules of one section of files/rights.yaml. `lease` is the name of the Lease. */}}
{{- define "gcm.rights" -}}
{{- $rules := list }}
{{- $section := .section }}
{{- $lease := .lease }}
{{- range .root.Files.Get "files/rights.yaml" | fromYamlArray }}
{{- range get . $section | default list }}
{{- $verbs := list }}
{{- range .verbs }}
{{- if eq . "r" }}{{ $verbs = concat $verbs (list "get" "list" "watch") }}{{ else }}{{ $verbs = append $verbs . }}{{ end }}
{{- end }}
{{- $rule := set . "verbs" $verbs }}
{{- if has "{leaderElection.resourceName}" (.resourceNames | default list) }}{{ $_ := set $rule "resourceNames" (list $lease) }}{{ end }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- toYaml $rules }}
{{- end }}
