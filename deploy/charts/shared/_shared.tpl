{{/*
Objects and parts of Pods that both charts have. Each chart links this file into its templates. All take a dict:
  c     context of the chart: name, namespace, labels, selector, container, metricsPort, monitor
  v     the values of the program
  root  the root of the templates
*/}}

{{- define "shared.image" -}}
{{- $image := .v.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Where a Pod runs, and what it needs for that. */}}
{{- define "shared.scheduling" -}}
{{- $v := .v }}
{{- with $v.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 0 }}
{{- end }}
{{- with $v.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $v.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $v.terminationGracePeriodSeconds }}
terminationGracePeriodSeconds: {{ . }}
{{- end }}
{{- $spread := include "shared.spread" . | fromYamlArray }}
{{- with $spread }}
topologySpreadConstraints: {{ toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* Over hosts, and over zones where there are several (spec 71 §3.3). */}}
{{- define "shared.spread" -}}
{{- $replicas := int .v.replicaCount }}
{{- $zones := int .v.topologySpread.zones }}
{{- if .v.topologySpreadConstraints }}
{{- toYaml .v.topologySpreadConstraints }}
{{- else if and .v.topologySpread.enabled (gt $replicas 1) }}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{ toYaml .c.selector | nindent 6 }}
  matchLabelKeys:
  - pod-template-hash
{{- if gt $zones 1 }}
- maxSkew: 1
  minDomains: {{ min $zones $replicas }}
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: DoNotSchedule
  labelSelector:
    matchLabels: {{ toYaml .c.selector | nindent 6 }}
  matchLabelKeys:
  - pod-template-hash
{{- end }}
{{- else -}}
[]
{{- end }}
{{- end }}

{{/* The token of the ServiceAccount, which the program reads again when it changes (spec 71 §3.1). */}}
{{- define "shared.tokenVolume" -}}
- name: kube-api-access-gardener
  projected:
    defaultMode: 420
    sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: 43200
    - configMap:
        name: kube-root-ca.crt
        items:
        - key: ca.crt
          path: ca.crt
    - downwardAPI:
        items:
        - path: namespace
          fieldRef:
            apiVersion: v1
            fieldPath: metadata.namespace
{{- end }}

{{- define "shared.tokenMount" -}}
- name: kube-api-access-gardener
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end }}

{{- define "shared.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .c.namespace }}
  labels: {{ toYaml .c.labels | nindent 4 }}
  {{- with .v.serviceAccount.annotations }}
  annotations: {{ toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}

{{/* `spec` of a PodDisruptionBudget lets unhealthy Pods go (spec 71 §3). */}}
{{- define "shared.podDisruptionBudget" -}}
{{- with .v.podDisruptionBudget }}
{{- if .enabled }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $.c.name }}
  namespace: {{ $.c.namespace }}
  labels: {{ toYaml $.c.labels | nindent 4 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{ toYaml $.c.selector | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shared.verticalPodAutoscaler" -}}
{{- with .v.verticalPodAutoscaler }}
{{- if or .enabled $.vpa }}
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata:
  name: {{ $.c.name }}-vpa
  namespace: {{ $.c.namespace }}
  labels: {{ merge (dict) ($.labels | default dict) $.c.labels | toYaml | nindent 4 }}
spec:
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ $.c.name }}
  updatePolicy:
    updateMode: {{ .updateMode }}
  resourcePolicy:
    containerPolicies:
    - containerName: {{ $.c.container }}
      controlledValues: RequestsOnly
      {{- with .minAllowed }}
      minAllowed: {{ toYaml . | nindent 8 }}
      {{- end }}
      {{- with .maxAllowed }}
      maxAllowed: {{ toYaml . | nindent 8 }}
      {{- end }}
    - containerName: "*"
      mode: "Off"
{{- end }}
{{- end }}
{{- end }}

{{/* Labels of the Service become labels of the series; no metric is dropped (spec 71 §11). */}}
{{- define "shared.serviceMonitor" -}}
{{- with .v.monitoring.serviceMonitor }}
{{- if .enabled }}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ with $.c.monitor }}{{ . }}-{{ end }}{{ $.c.name }}
  namespace: {{ $.c.namespace }}
  labels: {{ mergeOverwrite (dict) $.c.labels (ternary (dict "prometheus" $.c.monitor) (dict) (ne $.c.monitor "")) (.labels | default dict) | toYaml | nindent 4 }}
spec:
  selector:
    matchLabels: {{ toYaml $.c.labels | nindent 6 }}
  endpoints:
  - port: metrics
    {{- with .interval }}
    interval: {{ . }}
    {{- end }}
    {{- with .scrapeTimeout }}
    scrapeTimeout: {{ . }}
    {{- end }}
    relabelings:
    - action: labelmap
      regex: __meta_kubernetes_service_label_(.+)
    {{- with .relabelings }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .metricRelabelings }}
    metricRelabelings: {{ toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The rules of files/prometheusrule.yaml. A Service of another name gives the series another label `job`. */}}
{{- define "shared.prometheusRule" -}}
{{- with .v.monitoring.prometheusRule }}
{{- if .enabled }}
{{- $file := $.root.Files.Get "files/prometheusrule.yaml" }}
{{- $file = $file | replace (printf "job=\"%s\"" $.c.container) (printf "job=\"%s\"" $.c.name) }}
{{- $rule := $file | replace "docs/operations.md#" (printf "%s#" .runbook) | fromYaml }}
{{- $labels := mergeOverwrite (dict) $.c.labels (ternary (dict "prometheus" $.c.monitor) (dict) (ne $.c.monitor "")) (.labels | default dict) }}
{{- $_ := set $rule "metadata" (dict "name" $.c.name "namespace" $.c.namespace "labels" $labels) }}
{{- $disabled := .disabledAlerts }}
{{- $ruleLabels := .ruleLabels | default dict }}
{{- range $group := $rule.spec.groups }}
{{- $kept := list }}
{{- range $group.rules }}
{{- if not (has .alert $disabled) }}
{{- $_ := set . "labels" (mergeOverwrite (dict) .labels $ruleLabels) }}
{{- $kept = append $kept . }}
{{- end }}
{{- end }}
{{- $_ := set $group "rules" $kept }}
{{- end }}
{{- toYaml $rule }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shared.dashboards" -}}
{{- with .v.monitoring.dashboards }}
{{- if .enabled }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $.c.name }}-dashboards
  namespace: {{ $.c.namespace }}
  labels: {{ mergeOverwrite (dict) $.c.labels (.labels | default dict) | toYaml | nindent 4 }}
data: {{ ($.root.Files.Glob "files/dashboards/*.json").AsConfig | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Who may connect to the program, and where it connects to. `.ports` are its ports. */}}
{{- define "shared.networkPolicy" -}}
{{- with .v.networkPolicy }}
{{- if .enabled }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $.c.name }}
  namespace: {{ $.c.namespace }}
  labels: {{ toYaml $.c.labels | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{ toYaml $.c.selector | nindent 6 }}
  policyTypes:
  - Ingress
  - Egress
  ingress:
  {{- range $port := $.ports }}
  - ports:
    - protocol: TCP
      port: {{ $port.number }}
    {{- with $port.from }}
    from: {{ toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  egress:
  {{- if .dns }}
  - ports:
    - protocol: UDP
      port: 53
    - protocol: TCP
      port: 53
    - protocol: UDP
      port: 8053
    - protocol: TCP
      port: 8053
  {{- end }}
  - ports:
    {{- range .apiServerPorts }}
    - protocol: TCP
      port: {{ . }}
    {{- end }}
    {{- with .apiServers }}
    to: {{ toYaml . | nindent 4 }}
    {{- end }}
  {{- with .egress }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* One role and its binding. `.kind` is Role or ClusterRole, `.rules` its rules, `.subject` whom it is granted to. */}}
{{- define "shared.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{ toYaml .labels | nindent 4 }}
rules: {{ toYaml .rules | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .binding | default .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{ toYaml .labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
- {{ toYaml .subject | nindent 2 | trim }}
{{- end }}
