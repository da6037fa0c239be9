// The CustomResourceDefinitions that the charts' optional objects need: those of cert-manager, Prometheus Operator and the
// VerticalPodAutoscaler. The module zips hold them as YAML. Nothing is built from these modules.
module gardener-resource-manager/tests/charts/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
	k8s.io/autoscaler/vertical-pod-autoscaler v1.8.1
)
