use serde_json::Value;

use super::{
    super::super::tests::{all_paths, uncommented},
    *,
};

pub(super) const COMMENTED: &str = include_str!("../../../../../config/component-config.yaml");
const LOCAL: &str = include_str!("../../../../../config/local.yaml");
const DEMO: &str = include_str!("../../../../../config/demo.yaml");

/// The configuration as a deployer renders it (spec 70 §2.3).
#[test]
fn a_deployers_configuration_loads_without_warnings() {
    let yaml = r#"
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: "", acceptContentTypes: "", contentType: "", qps: 0, burst: 0, namespaces: [shoot--foo--bar]}
targetClientConnection: {kubeconfig: /var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig, qps: 0, burst: 0, namespaces: [kube-system]}
leaderElection: {leaderElect: true, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: "", resourceName: gardener-resource-manager, resourceNamespace: shoot--foo--bar}
server:
  webhooks: {bindAddress: "", port: 10250, tls: {serverCertDir: /etc/gardener-resource-manager-tls}}
  healthProbes: {bindAddress: "", port: 8081}
  metrics: {bindAddress: "", port: 8080}
logLevel: info
logFormat: json
controllers:
  clusterID: my-seed
  garbageCollector: {enabled: true, syncPeriod: 12h0m0s}
  health: {concurrentSyncs: 10, syncPeriod: 1m0s}
  managedResource: {concurrentSyncs: 20, syncPeriod: 1h0m0s, alwaysUpdate: true}
  csrApprover: {enabled: true, concurrentSyncs: 5, machineNamespace: shoot--foo--bar}
webhooks:
  projectedTokenMount: {enabled: true}
"#;

    let loaded = load(yaml.as_bytes()).expect("the configuration is valid");

    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.controllers.managed_resource.concurrent_syncs.count(), 20);
    assert_eq!(loaded.config.server.webhooks.port, 10250);
}

#[test]
fn the_commented_example_shows_the_defaults() {
    let loaded = load(COMMENTED.as_bytes()).expect("the example is valid");
    let empty = load(b"leaderElection: {resourceNamespace: garden}").expect("the configuration is valid");

    assert_eq!(loaded, empty);
}

/// Without the comments at its settings, the example is valid and has every key.
#[test]
fn the_commented_example_mentions_every_key() {
    let everything = uncommented(COMMENTED);
    let document: Value = serde_saphyr::from_str(&everything).expect("the example is YAML");

    let draft = Draft::decode(everything.as_bytes()).expect("the example is valid");
    // A written struct has all of its keys; those of Kubernetes omit empty ones.
    let written = serde_json::to_value(&draft.config).expect("a configuration is JSON");
    let policy = "controllers.networkPolicy";
    let selectors =
        [format!("{policy}.namespaceSelectors[]"), format!("{policy}.ingressControllerSelector.podSelector")];
    let of_selectors =
        ["matchLabels", "matchExpressions[].key", "matchExpressions[].operator", "matchExpressions[].values"];
    let of_tolerations = ["key", "operator", "value", "effect", "tolerationSeconds"];
    let (mentioned, mut understood) = (all_paths(&document), all_paths(&written));
    understood.extend(selectors.iter().flat_map(|path| of_selectors.map(|key| format!("{path}.{key}"))));
    understood.extend(of_tolerations.map(|key| format!("webhooks.systemComponentsConfig.podTolerations[].{key}")));

    assert_eq!(draft.warnings, []);
    assert!(draft.finish(&[]).is_ok());
    // Keys of earlier releases are not written; this key only the target has.
    let left_out = ["sourceClientConnection.disableCachedClient"];
    assert_eq!(understood.difference(&mentioned).collect::<Vec<_>>(), left_out);
}

#[test]
fn the_local_example_needs_no_cluster_around_it() {
    let loaded = load(LOCAL.as_bytes()).expect("the example is valid");

    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.leader_election.on(), None);
    assert_eq!(loaded.config.source.kubeconfig, "", "it comes from the environment");
}

#[test]
fn the_demonstrations_configuration_is_valid() {
    let loaded = load(DEMO.as_bytes()).expect("it is valid");

    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.leader_election.on(), None);
}
