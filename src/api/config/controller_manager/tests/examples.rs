use serde_json::{Value, json};

use super::{
    super::super::tests::{all_paths, assert_reference, uncommented},
    *,
};

const COMMENTED: &str = include_str!("../../../../../config/controller-manager.yaml");

const INTRODUCTION: &str = "\
# Keys of the configuration of gardener-controller-manager

Generated from `config/controller-manager.yaml` and the defaults of the program; a test compares this file with both.

For a setting without a default the table shows an example.
";

/// spec 80 §3, scenario 16
#[test]
fn configuration_of_gardener_operator_loads_without_warnings() {
    let yaml = r#"
apiVersion: controllermanager.config.gardener.cloud/v1alpha1
kind: ControllerManagerConfiguration
gardenClientConnection: {kubeconfig: /var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig, qps: 100, burst: 130, acceptContentTypes: "", contentType: ""}
leaderElection: {leaderElect: true, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: "",
  resourceName: gardener-controller-manager-leader-election, resourceNamespace: kube-system}
logLevel: info
logFormat: json
server: {healthProbes: {bindAddress: "", port: 2718}, metrics: {bindAddress: "", port: 2719}}
controllers:
  controllerRegistration: {concurrentSyncs: 20}
  project: {concurrentSyncs: 20, quotas: [{config: {metadata: {creationTimestamp: null}, spec: {hard: {count/secrets: "400"}}, status: {}}, projectSelector: {}}]}
  secretBinding: {concurrentSyncs: 20}
  credentialsBinding: {concurrentSyncs: 20}
  seed: {concurrentSyncs: 20, shootMonitorPeriod: 5m0s}
  seedExtensionsCheck: {conditionThresholds: [{duration: 1m0s, type: ExtensionsReady}]}
  seedBackupBucketsCheck: {conditionThresholds: [{duration: 1m0s, type: BackupBucketsReady}]}
  event: {concurrentSyncs: 10, ttlNonShootEvents: 2h0m0s}
  shootMaintenance: {concurrentSyncs: 20, enableShootControlPlaneRestarter: null, enableShootCoreAddonRestarter: null}
  shootHibernation: {}
  shootReference: {concurrentSyncs: 20}
"#;

    let Loaded { config, warnings } = loaded(yaml);

    assert_eq!(warnings, []);
    assert_eq!(config.server.health_probes.address().to_string(), ":2718");
    assert_eq!(config.server.metrics.address().to_string(), ":2719");
    assert_eq!(config.controllers.seed.concurrent_syncs.count(), 20);
    assert!(config.controllers.shoot_maintenance.enable_shoot_control_plane_restarter);
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {}, "spec": {"hard": {"count/secrets": "400"}},
    });
    assert_eq!(config.controllers.project.quotas[0].config.to_object(), quota);
}

#[test]
fn quota_keeps_its_labels_scopes_and_numbers() {
    let yaml = "
controllers:
  project:
    quotas:
    - config:
        apiVersion: v1
        kind: ResourceQuota
        metadata: {labels: {a: b}}
        spec:
          hard: {pods: 5, requests.memory: 1Gi}
          scopes: [NotTerminating]
          scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}";

    let loaded = loaded(yaml);

    assert_eq!(loaded.warnings, []);
    let quota = loaded.config.controllers.project.quotas[0].config.to_object();
    assert_eq!(quota["metadata"], json!({"labels": {"a": "b"}}));
    let scopes = json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]});
    let hard = json!({"pods": "5", "requests.memory": "1Gi"});
    assert_eq!(quota["spec"], json!({"hard": hard, "scopes": ["NotTerminating"], "scopeSelector": scopes}));
}

#[test]
fn commented_example_shows_the_defaults() {
    assert_eq!(loaded(COMMENTED), loaded(""));
}

/// Without the comments at its settings, the example is valid and has every key.
#[test]
fn commented_example_mentions_every_key() {
    let everything = uncommented(COMMENTED).replace("quotas: []", "quotas:").replace("Thresholds: []", "Thresholds:");
    let document: Value = serde_saphyr::from_str(&everything).expect("the example is YAML");

    let loaded = loaded(&everything);

    assert_eq!(loaded.warnings, []);
    let written = serde_json::to_value(&loaded.config).expect("a configuration is JSON");
    let (mentioned, understood) = (all_paths(&document), all_paths(&written));
    assert_eq!(understood.difference(&mentioned).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn documentation_lists_every_key() {
    let defaults = serde_json::to_value(config("")).expect("it is JSON");

    assert_reference("controller-manager-keys.md", INTRODUCTION, COMMENTED, &defaults);
}

#[test]
fn printed_configuration_can_be_loaded_again() {
    let table = [
        "",
        "controllers: {event: {}, seed: {monitorPeriod: 10s}, project: {quotas: [{config: {spec: {hard: {pods: 1}}}}]}}",
        "leaderElection: {leaderElect: false}\ngardenClientConnection: {qps: -1}\nfeatureGates: {AllAlpha: true}",
    ];

    for yaml in table {
        let loaded = loaded(yaml);
        let printed = loaded.config.to_yaml();
        let again = load(printed.as_bytes(), None).unwrap_or_else(|error| panic!("{error}:\n{printed}"));

        assert_eq!(again.config.hash(), loaded.config.hash(), "{printed}");
        assert_eq!(again.config, loaded.config, "{printed}");
        assert_eq!(again.warnings, [], "{printed}");
    }
}
