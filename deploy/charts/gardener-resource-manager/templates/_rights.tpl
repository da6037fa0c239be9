{{/* The rules of one section of files/rights.yaml, as a list `items`: those of all parts that the configuration enables. */}}
{{- define "grm.rights" -}}
{{- $section := .section }}
{{- $config := include "grm.config" .root | fromYaml }}
{{- $items := list }}
{{- range $row := .root.Files.Get "files/rights.yaml" | fromYamlArray }}
{{- $isOn := true }}
{{- with .part }}{{ if not (include "grm.setting" (dict "config" $config "path" (printf "%s.enabled" .))) }}{{ $isOn = false }}{{ end }}{{ end }}
{{- with .when }}
{{- $value := include "grm.setting" (dict "config" $config "path" .) }}
{{- if or (not $value) (and $row.is (not (has $value $row.is))) }}{{ $isOn = false }}{{ end }}
{{- end }}
{{- if $isOn }}
{{- range get . $section | default list }}
{{- $verbs := list }}
{{- range .verbs }}
{{- if eq . "r" }}{{ $verbs = concat $verbs (list "get" "list" "watch") }}{{ else }}{{ $verbs = append $verbs . }}{{ end }}
{{- end }}
{{- $rule := set (omit . "optional" "without") "verbs" $verbs }}
{{- with .resourceNames }}
{{- $names := list }}
{{- range . }}
{{- $isSetting := and (hasPrefix "{" .) (hasSuffix "}" .) }}
{{- $names = append $names ($isSetting | ternary (include "grm.setting" (dict "config" $config "path" (trimAll "{}" .))) .) }}
{{- end }}
{{- $_ := set $rule "resourceNames" $names }}
{{- end }}
{{- $items = append $items $rule }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml (dict "items" ($items | uniq)) }}
{{- end }}

{{/* The rules of the target in all namespaces: all rights, because bundles may contain anything, or what is known to be needed. */}}
{{- define "grm.targetRules" -}}
{{- $rbac := .Values.global.rbac.target }}
{{- if eq $rbac.rights "all" }}
{{- toYaml (list (dict "apiGroups" (list "*") "resources" (list "*") "verbs" (list "*"))) }}
{{- else }}
{{- $parts := (include "grm.rights" (dict "root" . "section" "target") | fromYaml).items }}
{{- $everywhere := (include "grm.rights" (dict "root" . "section" "targetCluster") | fromYaml).items }}
{{- toYaml (concat $parts $everywhere ($rbac.rules | default list)) }}
{{- end }}
{{- end }}
