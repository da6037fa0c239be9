use std::{path::Path, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
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
    let seconds = |secs: u64| json!({"secs": secs, "nanos": 0});

    let table = [
        ("/source/kubeconfig", Value::Null),
        ("/source/rate_limit", json!({"qps": 100.0, "burst": 130})),
        ("/target/rate_limit", json!({"qps": 100.0, "burst": 130})),
        ("/source/cache_resync_period", seconds(86_400)),
        ("/target/cache_resync_period", seconds(86_400)),
        ("/target/namespaces", json!([])),
        ("/leader_election/lease_duration", seconds(15)),
        ("/leader_election/renew_deadline", seconds(10)),
        ("/leader_election/retry_period", seconds(2)),
        ("/leader_election/resource_lock", json!("leases")),
        ("/leader_election/resource_name", json!("gardener-resource-manager")),
        ("/servers/webhooks", json!({"host": "", "port": 9449})),
        ("/servers/health_probes", json!({"host": "", "port": 8081})),
        ("/servers/metrics", json!({"host": "", "port": 8080})),
        ("/servers/tls_cert_dir", Value::Null),
        ("/debugging", json!({"profiling": false, "contention_profiling": false})),
        ("/logging", json!({"level": "info", "format": "json"})),
        ("/cluster_id", json!("")),
        ("/resource_class", json!("resources")),
        ("/cache_sync_timeout", seconds(120)),
        ("/controllers/garbage_collector/sync_period", seconds(3_600)),
        ("/controllers/health/concurrent_syncs", json!(5)),
        ("/controllers/health/sync_period", seconds(60)),
        ("/controllers/csr_approver", json!({"concurrent_syncs": 1, "machine_namespace": null})),
        ("/controllers/managed_resource/concurrent_syncs", json!(5)),
        ("/controllers/managed_resource/sync_period", seconds(60)),
        ("/controllers/managed_resource/revalidate_period", seconds(86_400)),
        ("/controllers/managed_resource/always_update", json!(false)),
        ("/controllers/managed_resource/managed_by_label_value", json!("gardener")),
        ("/controllers/istio_cluster_configuration/concurrent_syncs", json!(5)),
        ("/controllers/network_policy/concurrent_syncs", json!(5)),
        ("/controllers/network_policy/namespace_selectors", json!([])),
        ("/controllers/network_policy/ingress_controller_selector", Value::Null),
        ("/controllers/network_policy/only_for_matching_pods", json!(false)),
        ("/controllers/network_policy/explicit_from_world_peers", json!(true)),
        (
            "/controllers/token_requestor",
            json!({"concurrent_syncs": 5, "delete_service_accounts": false, "any_class": false}),
        ),
        ("/controllers/token_invalidator/concurrent_syncs", json!(5)),
        ("/controllers/node_critical_components/concurrent_syncs", json!(5)),
        ("/controllers/node_critical_components/backoff", seconds(10)),
        ("/controllers/node_agent_reconciliation_delay/min_delay", seconds(0)),
        ("/controllers/node_agent_reconciliation_delay/max_delay", seconds(300)),
        ("/webhooks/pod_scheduler_name/scheduler_name", json!("default-scheduler")),
        ("/webhooks/projected_token_mount/expiration_seconds", json!(43_200)),
        ("/webhooks/high_availability_config/default_not_ready_toleration_seconds", Value::Null),
        ("/webhooks/node_agent_authorizer", json!({"machine_namespace": null, "authorize_with_selectors": false})),
    ];

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
    let election = zeros.config.leader_election.expect("leader election is on by default");
    assert_eq!(election.lease_duration, Duration::from_secs(15));
    assert_eq!(zeros.config.source.rate_limit, Some(CONNECTION));
}

/// spec 70 §2 rule 5
#[test]
fn zeros_of_optional_fields_are_kept() {
    let config = config(
        "
controllers: {clusterID: \"\", cacheSyncTimeout: 0s, nodeAgentReconciliationDelay: {enabled: true, maxDelay: 0s}}
webhooks: {highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: 0}}",
    );

    let delay = config.controllers.node_agent_reconciliation_delay.expect("the controller is on");
    assert_eq!(delay.max_delay, Duration::ZERO);
    let availability = config.webhooks.high_availability_config.expect("the webhook is on");
    assert_eq!(availability.default_not_ready_toleration_seconds, Some(0));
    assert_eq!(availability.default_unreachable_toleration_seconds, None);
    assert_eq!(config.cache_sync_timeout, Duration::from_secs(120), "0 and less count as 2 min");
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

    assert_eq!(config.source.rate_limit, None);
    assert_eq!(config.cache_sync_timeout, Duration::from_secs(120));
    let controllers = &config.controllers;
    assert_eq!(controllers.network_policy.as_ref().map(|policy| policy.concurrent_syncs), Some(1));
    assert_eq!(controllers.istio_cluster_configuration, Some(Workers { concurrent_syncs: 1 }));
    let node = NodeCriticalComponents { concurrent_syncs: 1, backoff: Duration::from_secs(10) };
    assert_eq!(controllers.node_critical_components, Some(node));
    assert_eq!(controllers.token_invalidator, Some(Workers { concurrent_syncs: 1 }));
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

    let policy = config.controllers.network_policy.expect("the controller is on");
    assert_eq!(policy.namespace_selectors[0], LabelSelector::default());
    let second = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["w", "x"]}]});
    assert_eq!(serde_json::to_value(&policy.namespace_selectors[1]).ok(), Some(second));
    let ingress = policy.ingress_controller_selector.expect("the selector is there");
    assert_eq!(serde_json::to_value(&ingress.pod_selector).ok(), Some(json!({"matchLabels": {"app": "nginx"}})));
}

#[test]
fn the_directory_of_certificates_has_a_default_below_the_temporary_one() {
    let dir = |yaml: &str| config(yaml).servers.cert_dir(Path::new("/tmp"));

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
}

#[test]
fn endpoints_are_written_as_addresses() {
    let endpoint = |host: &str| Endpoint { host: host.to_owned(), port: 80 }.to_string();

    assert_eq!([endpoint(""), endpoint("0.0.0.0"), endpoint("::1")], [":80", "0.0.0.0:80", "[::1]:80"]);
}

/// spec 70 §14
#[test]
fn cluster_identity_has_two_values_that_mean_the_configmap() {
    assert_eq!(cluster_id_source("<cluster>"), ClusterIdSource::Required);
    assert_eq!(cluster_id_source("<default>"), ClusterIdSource::Optional);
    assert_eq!(cluster_id_source(""), ClusterIdSource::Literal(String::new()));
    assert_eq!(cluster_id_source("<other>"), ClusterIdSource::Literal("<other>".to_owned()));
}
