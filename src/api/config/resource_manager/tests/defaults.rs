use std::{path::Path, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use process::settings::RateLimit;
use serde_json::{Value, json};

use super::*;

const CONNECTION: RateLimit = RateLimit { qps: 100.0, burst: 130 };

/// spec 70 §3: each row whose default shows in the configuration, as a JSON pointer into it.
#[test]
fn absent_settings_get_their_defaults() {
    let all_on = "
controllers:
  garbageCollector: {enabled: true}
  csrApprover: {enabled: true}
  istioClusterConfiguration: {enabled: true}
  networkPolicy: {enabled: true}
  tokenRequestor: {enabled: true}
  tokenInvalidator: {enabled: true}
  nodeCriticalComponents: {enabled: true}
  nodeAgentReconciliationDelay: {enabled: true}
webhooks:
  tokenInvalidator: {enabled: true}
  podSchedulerName: {enabled: true}
  projectedTokenMount: {enabled: true}
  highAvailabilityConfig: {enabled: true}
  nodeAgentAuthorizer: {enabled: true}
leaderElection: {resourceNamespace: garden}";
    let config = load(all_on.as_bytes()).expect("the configuration is valid").config;

    let table = [
        ("/sourceClientConnection/kubeconfig", json!("")),
        ("/sourceClientConnection/qps", json!(100.0)),
        ("/sourceClientConnection/burst", json!(130)),
        ("/targetClientConnection/qps", json!(100.0)),
        ("/targetClientConnection/burst", json!(130)),
        ("/sourceClientConnection/cacheResyncPeriod", json!("24h0m0s")),
        ("/targetClientConnection/cacheResyncPeriod", json!("24h0m0s")),
        ("/targetClientConnection/namespaces", json!([])),
        ("/leaderElection/leaderElect", json!(true)),
        ("/leaderElection/leaseDuration", json!("15s")),
        ("/leaderElection/renewDeadline", json!("10s")),
        ("/leaderElection/retryPeriod", json!("2s")),
        ("/leaderElection/resourceLock", json!("leases")),
        ("/leaderElection/resourceName", json!("gardener-resource-manager")),
        ("/server/webhooks/bindAddress", json!("")),
        ("/server/webhooks/port", json!(9449)),
        ("/server/webhooks/tls/serverCertDir", json!("")),
        ("/server/healthProbes", json!({"bindAddress": "", "port": 8081})),
        ("/server/metrics", json!({"bindAddress": "", "port": 8080, "perManagedResource": false})),
        ("/debugging", json!({"enableProfiling": false, "enableContentionProfiling": false})),
        ("/logLevel", json!("info")),
        ("/logFormat", json!("json")),
        ("/controllers/clusterID", json!("")),
        ("/controllers/resourceClass", json!("resources")),
        ("/controllers/cacheSyncTimeout", json!("2m0s")),
        ("/controllers/garbageCollector/syncPeriod", json!("1h0m0s")),
        ("/controllers/health/concurrentSyncs", json!(5)),
        ("/controllers/health/syncPeriod", json!("1m0s")),
        ("/controllers/csrApprover", json!({"enabled": true, "concurrentSyncs": 1, "machineNamespace": null})),
        ("/controllers/managedResource/concurrentSyncs", json!(5)),
        ("/controllers/managedResource/syncPeriod", json!("1m0s")),
        ("/controllers/managedResource/revalidatePeriod", json!("24h0m0s")),
        ("/controllers/managedResource/alwaysUpdate", json!(false)),
        ("/controllers/managedResource/managedByLabelValue", json!("gardener")),
        ("/controllers/istioClusterConfiguration/concurrentSyncs", json!(5)),
        ("/controllers/networkPolicy/concurrentSyncs", json!(5)),
        ("/controllers/networkPolicy/namespaceSelectors", json!([])),
        ("/controllers/networkPolicy/ingressControllerSelector", Value::Null),
        ("/controllers/networkPolicy/onlyForMatchingPods", json!(false)),
        ("/controllers/networkPolicy/explicitFromWorldPeers", json!(true)),
        ("/controllers/tokenRequestor", json!({"enabled": true, "concurrentSyncs": 5, "deleteServiceAccounts": false})),
        ("/controllers/tokenInvalidator/concurrentSyncs", json!(5)),
        ("/controllers/nodeCriticalComponents/concurrentSyncs", json!(5)),
        ("/controllers/nodeCriticalComponents/backoff", json!("10s")),
        ("/controllers/nodeAgentReconciliationDelay/minDelay", json!("0s")),
        ("/controllers/nodeAgentReconciliationDelay/maxDelay", json!("5m0s")),
        ("/webhooks/podSchedulerName/schedulerName", json!("default-scheduler")),
        ("/webhooks/projectedTokenMount/expirationSeconds", json!(43_200)),
        ("/webhooks/highAvailabilityConfig/defaultNotReadyTolerationSeconds", Value::Null),
        (
            "/webhooks/nodeAgentAuthorizer",
            json!({"enabled": true, "machineNamespace": null, "authorizeWithSelectors": false}),
        ),
    ];

    assert!(!config.controllers.token_requestor.settings.any_class);
    let config = serde_json::to_value(&config).expect("the configuration is JSON");
    for (pointer, value) in table {
        assert_eq!(config.pointer(pointer), Some(&value), "{pointer}");
    }
}

/// spec 70 §3, last row
#[test]
fn switches_are_off_by_default() {
    let config = config("");

    assert_eq!(config, Config::default());
    assert_eq!(config.enabled_controllers(), ["health", "health-progressing", "managedresource"]);
    assert_eq!(config.enabled_webhooks(), Vec::<&str>::new());
}

/// spec 70 scenario 4 and §2 rule 5
#[test]
fn zeros_of_required_fields_count_as_absent() {
    let zeros = "
sourceClientConnection: {kubeconfig: \"\", acceptContentTypes: \"\", contentType: \"\", qps: 0, burst: 0, namespaces: []}
targetClientConnection: {qps: 0, burst: 0}
leaderElection: {leaderElect: true, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: \"\", resourceName: \"\", resourceNamespace: garden}
server: {webhooks: {bindAddress: \"\", port: 0, tls: {serverCertDir: \"\"}}, healthProbes: {port: 0}, metrics: {port: 0}}
logLevel: \"\"
logFormat: \"\"
debugging:
controllers:";
    let absent = "leaderElection: {resourceNamespace: garden}";

    let zeros = load(zeros.as_bytes()).expect("the configuration is valid");

    assert_eq!(zeros, load(absent.as_bytes()).expect("the configuration is valid"));
    let election = zeros.config.leader_election.on().expect("leader election is on by default");
    assert_eq!(election.lease_duration.get(), Duration::from_secs(15));
    assert_eq!(zeros.config.source.rate_limit(), Some(CONNECTION));
}

/// spec 70 §2 rule 5
#[test]
fn zeros_of_optional_fields_are_kept() {
    let config = config(
        "
controllers: {clusterID: \"\", cacheSyncTimeout: 0s, nodeAgentReconciliationDelay: {enabled: true, maxDelay: 0s}}
webhooks: {highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: 0}}",
    );

    let delay = config.controllers.node_agent_reconciliation_delay.on().expect("the controller is on");
    assert_eq!(delay.max_delay.get(), Duration::ZERO);
    let availability = config.webhooks.high_availability_config.on().expect("the webhook is on");
    assert_eq!(availability.default_not_ready_toleration_seconds, Some(0));
    assert_eq!(availability.default_unreachable_toleration_seconds, None);
    assert_eq!(config.controllers.cache_sync_timeout.get(), Duration::from_secs(120), "0 and less count as 2 min");
}

/// spec 70 §4, what is not validated on purpose
#[test]
fn values_that_are_not_validated_become_something_with_a_meaning() {
    let config = config(
        "
sourceClientConnection: {qps: -1}
controllers:
  cacheSyncTimeout: -5s
  networkPolicy: {enabled: true, concurrentSyncs: 0}
  istioClusterConfiguration: {enabled: true, concurrentSyncs: -3}
  nodeCriticalComponents: {enabled: true, concurrentSyncs: 0, backoff: 0s}
  tokenInvalidator: {enabled: true, concurrentSyncs: 0}
webhooks: {tokenInvalidator: {enabled: true}}",
    );

    assert_eq!(config.source.rate_limit(), None);
    assert_eq!(config.controllers.cache_sync_timeout.get(), Duration::from_secs(120));
    let controllers = &config.controllers;
    let node = controllers.node_critical_components.on().expect("the controller is on");
    assert_eq!((node.concurrent_syncs.count(), node.backoff.get()), (1, Duration::from_secs(10)));
    let workers = [
        controllers.network_policy.on().map(|it| it.concurrent_syncs.count()),
        controllers.istio_cluster_configuration.on().map(|it| it.concurrent_syncs.count()),
        controllers.token_invalidator.on().map(|it| it.concurrent_syncs.count()),
    ];
    assert_eq!(workers, [Some(1); 3]);
}

#[test]
fn namespaces_are_watched_once_and_an_empty_name_means_all() {
    assert_eq!(config("sourceClientConnection: {namespaces: [b, a, b]}").source.namespaces, ["b", "a"]);
    assert_eq!(config("sourceClientConnection: {namespaces: [a, \"\"]}").source.namespaces, Vec::<String>::new());
}

#[test]
fn a_selector_without_entries_selects_everything() {
    let config = config(
        "controllers:
  networkPolicy:
    enabled: true
    namespaceSelectors: [{}, {matchExpressions: [{key: a, operator: In, values: [w, x]}]}]
    ingressControllerSelector: {namespace: garden, podSelector: {matchLabels: {app: nginx}}}",
    );

    let policy = config.controllers.network_policy.on().expect("the controller is on");
    assert_eq!(policy.namespace_selectors[0], LabelSelector::default());
    let second = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["w", "x"]}]});
    assert_eq!(serde_json::to_value(&policy.namespace_selectors[1]).ok(), Some(second));
    let ingress = policy.ingress_controller_selector.as_ref().expect("the selector is there");
    assert_eq!(serde_json::to_value(&ingress.pod_selector).ok(), Some(json!({"matchLabels": {"app": "nginx"}})));
}

#[test]
fn the_directory_of_certificates_has_a_default_below_the_temporary_one() {
    let dir = |yaml: &str| config(yaml).server.webhooks.tls.cert_dir(Path::new("/tmp"));

    assert_eq!(dir(""), Path::new("/tmp/k8s-webhook-server/serving-certs"));
    assert_eq!(dir("server: {webhooks: {tls: {serverCertDir: /tls}}}"), Path::new("/tls"));
}

#[test]
fn enabled_controllers_and_webhooks_follow_the_start_order() {
    let config = config(
        "
controllers: {tokenRequestor: {enabled: true}, tokenInvalidator: {enabled: true}, csrApprover: {enabled: true}}
webhooks: {tokenInvalidator: {enabled: true}, highAvailabilityConfig: {enabled: true}}",
    );

    assert_eq!(
        config.enabled_controllers(),
        [
            "csr-approver",
            "health",
            "health-progressing",
            "managedresource",
            "token-invalidator",
            "token-requestor",
            "node-high-availability-config"
        ]
    );
    assert_eq!(config.enabled_webhooks(), ["highAvailabilityConfig", "tokenInvalidator"]);
}

#[test]
fn the_hash_depends_on_the_meaning_not_on_the_writing() {
    let hash = |yaml: &str| config(yaml).hash();

    assert_eq!(hash("logLevel: info"), hash("logFormat: json # the default"));
    assert_ne!(hash("logLevel: info"), hash("logLevel: debug"));
    assert_eq!(hash("").len(), 64);
    let off = "controllers: {csrApprover: {concurrentSyncs: 9, machineNamespace: m}}";
    assert_eq!(hash(off), hash(""), "what is off means nothing");
    assert_ne!(hash("controllers: {csrApprover: {enabled: true}}"), hash(""));
    assert_eq!(hash("sourceClientConnection: {qps: -1, burst: 5}"), hash("sourceClientConnection: {qps: -2}"));
    assert_eq!(hash("controllers: {cacheSyncTimeout: -1s}"), hash("controllers: {cacheSyncTimeout: 120s}"));
    assert_eq!(
        hash("controllers: {managedResource: {revalidatePeriod: 24h, syncPeriod: 48h}}"),
        hash("controllers: {managedResource: {revalidatePeriod: 48h, syncPeriod: 48h}}")
    );
}

/// spec 70 §14
#[test]
fn cluster_identity_has_two_values_that_mean_the_configmap() {
    assert_eq!(cluster_id_source("<cluster>"), ClusterIdSource::Required);
    assert_eq!(cluster_id_source("<default>"), ClusterIdSource::Optional);
    assert_eq!(cluster_id_source(""), ClusterIdSource::Literal(String::new()));
    assert_eq!(cluster_id_source("<other>"), ClusterIdSource::Literal("<other>".to_owned()));
}
