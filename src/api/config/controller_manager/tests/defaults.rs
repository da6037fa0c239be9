use std::time::Duration;

use serde_json::{Value, json};

use super::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// spec 80 §4, scenario 3: each row whose default shows in the printed configuration, as a JSON pointer.
#[test]
fn absent_settings_get_their_defaults() {
    let table = [
        ("/gardenClientConnection/kubeconfig", json!("")),
        ("/gardenClientConnection/qps", json!(50.0)),
        ("/gardenClientConnection/burst", json!(100)),
        (
            "/leaderElection",
            json!({
                "leaderElect": true, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s",
                "resourceLock": "leases", "resourceName": "gardener-controller-manager-leader-election",
                "resourceNamespace": "garden",
            }),
        ),
        ("/logLevel", json!("info")),
        ("/logFormat", json!("json")),
        ("/server/healthProbes", json!({"bindAddress": "", "port": 2718})),
        ("/server/metrics", json!({"bindAddress": "", "port": 2719})),
        ("/debugging", json!({"enableProfiling": false, "enableContentionProfiling": false})),
        ("/featureGates", json!({})),
        ("/gardenerVersion", json!("")),
        ("/controllers/bastion", json!({"concurrentSyncs": 5, "maxLifetime": "24h0m0s"})),
        ("/controllers/credentialsBinding", json!({"concurrentSyncs": 5, "labelWorkloadIdentities": true})),
        ("/controllers/controllerRegistration", json!({"concurrentSyncs": 5, "strictExtensionServiceAccounts": false})),
        ("/controllers/event", Value::Null),
        (
            "/controllers/project",
            json!({
                "concurrentSyncs": 5, "minimumLifetimeDays": 30, "staleGracePeriodDays": 14,
                "staleExpirationTimeDays": 90, "staleSyncPeriod": "12h0m0s", "quotas": [],
            }),
        ),
        (
            "/controllers/seed",
            json!({"concurrentSyncs": 5, "syncPeriod": "10s", "monitorPeriod": "40s", "shootMonitorPeriod": "3m20s"}),
        ),
        (
            "/controllers/seedExtensionsCheck",
            json!({"concurrentSyncs": 5, "syncPeriod": "30s", "conditionThresholds": []}),
        ),
        (
            "/controllers/seedBackupBucketsCheck",
            json!({"concurrentSyncs": 5, "syncPeriod": "30s", "conditionThresholds": []}),
        ),
        ("/controllers/shootHibernation", json!({"concurrentSyncs": 5, "triggerDeadlineDuration": "2h0m0s"})),
        (
            "/controllers/shootMaintenance",
            json!({
                "concurrentSyncs": 5, "enableShootControlPlaneRestarter": true, "enableShootCoreAddonRestarter": false,
            }),
        ),
        (
            "/controllers/shootQuota",
            json!({"concurrentSyncs": 5, "syncPeriod": "1h0m0s", "enforceMaximumExpiration": false}),
        ),
        ("/controllers/shootReference", json!({"concurrentSyncs": 5, "protectAuditPolicyConfigMaps": true})),
        ("/controllers/shootRetry", json!({"concurrentSyncs": 5, "retryPeriod": "10m0s", "retryJitterPeriod": "5m0s"})),
        ("/controllers/managedSeedSet", json!({"concurrentSyncs": 5, "maxShootRetries": 3, "syncPeriod": "30m0s"})),
        ("/controllers/cacheSyncTimeout", json!("2m0s")),
    ];
    let workers_only = [
        "certificateSigningRequest",
        "cloudProfile",
        "namespacedCloudProfile",
        "controllerDeployment",
        "controllerDeploymentReference",
        "exposureClass",
        "quota",
        "secretBinding",
        "seedReference",
        "shootConditions",
        "shootStatusLabel",
        "shootMigration",
        "shootState",
    ];

    for yaml in ["", "controllers:", "controllers: {project: {}, seed: {}, shootQuota: {}, managedSeedSet: {}}"] {
        let config = serde_json::to_value(config(yaml)).expect("the configuration is JSON");
        for (pointer, value) in &table {
            assert_eq!(config.pointer(pointer), Some(value), "{pointer} of {yaml:?}");
        }
        for block in workers_only {
            assert_eq!(config["controllers"][block], json!({"concurrentSyncs": 5}), "{block}");
        }
        let blocks = config["controllers"].as_object().expect("it is an object").keys();
        let known = table.iter().filter_map(|(pointer, _)| pointer.strip_prefix("/controllers/")).chain(workers_only);
        assert_eq!(blocks.collect::<std::collections::BTreeSet<_>>().len(), known.count(), "each block is in a table");
    }
}

/// spec 80 scenario 4
#[test]
fn event_controller_runs_only_if_its_block_exists() {
    let event = |yaml: &str| config(yaml).controllers.event;

    let configured = event("controllers: {event: {}}").expect("it runs");
    assert_eq!((configured.concurrent_syncs.count(), configured.ttl_non_shoot_events.get()), (5, seconds(3600)));
    assert_eq!(event("controllers: {event: }"), None);
    assert_eq!(event("controllers: {event: null}"), None);
    assert_eq!(event(""), None);
}

/// spec 80 scenario 5; spec 81 D-9
#[test]
fn shoot_monitor_period_follows_from_the_monitor_period() {
    let period = |fields: &str| {
        let loaded = loaded(&format!("controllers: {{seed: {{{fields}}}}}"));
        let again = load(loaded.config.to_yaml().as_bytes(), None).expect("what is printed can be loaded");
        assert_eq!(again.config.to_yaml(), loaded.config.to_yaml());
        loaded.config.controllers.seed.shoot_monitor_period()
    };

    assert_eq!(period("monitorPeriod: 10s"), seconds(50));
    assert_eq!(period("monitorPeriod: 10s, shootMonitorPeriod: 300s"), seconds(300));
    assert_eq!(period("shootMonitorPeriod: 0s"), Duration::ZERO);
    assert_eq!(period("shootMonitorPeriod: -1s"), Duration::ZERO);
    assert_eq!(period("monitorPeriod: 0s"), seconds(200));
    assert_eq!(Seed::default().shoot_monitor_period(), seconds(200));
}

/// spec 80 scenario 6, trap 1; spec 86 scenario 42
#[test]
fn managed_seed_sets_are_always_reconciled_periodically() {
    let period = |fields: &str| {
        let loaded = loaded(&format!("controllers: {{managedSeedSet: {{{fields}}}}}"));
        (loaded.config.controllers.managed_seed_set.sync_period.get(), loaded.warnings.len())
    };

    assert_eq!(period("concurrentSyncs: 3"), (seconds(1800), 0));
    assert_eq!(period("syncPeriod: 0s"), (seconds(1800), 0));
    assert_eq!(period("syncPeriod: -1s"), (seconds(1800), 1));
    assert_eq!(period("syncPeriod: 1m"), (seconds(60), 0));
}

/// spec 80 scenario 7, trap 2
#[test]
fn workers_below_one_are_one_worker() {
    let bastion =
        |workers: i64| config(&format!("controllers: {{bastion: {{concurrentSyncs: {workers}}}}}")).controllers.bastion;

    assert_eq!([-7, 0, 1, 20].map(|workers| bastion(workers).concurrent_syncs.count()), [1, 1, 1, 20]);
}

/// spec 80 scenario 8
#[test]
fn zeros_of_required_fields_count_as_absent() {
    let zeros = "
gardenClientConnection: {kubeconfig: \"\", acceptContentTypes: \"\", contentType: \"\", qps: 0, burst: 0}
leaderElection: {leaderElect: true, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: \"\", resourceName: \"\", resourceNamespace: \"\"}
server: {healthProbes: {port: 0}, metrics: {bindAddress: \"\", port: 0}}
logLevel: \"\"
logFormat: \"\"
debugging:";

    assert_eq!(loaded(zeros), loaded(""));
    let elsewhere = config("leaderElection: {leaseDuration: 0s, resourceNamespace: kube-system}").leader_election;
    assert_eq!((elsewhere.lease_duration.get(), &*elsewhere.resource_namespace), (seconds(15), "kube-system"));
    assert_eq!(elsewhere.resource_name, "gardener-controller-manager-leader-election");
}

/// spec 80 §4
#[test]
fn periods_that_are_not_positive_count_as_absent_with_a_warning() {
    let yaml = |period: &str| {
        format!(
            "
controllers:
  seed: {{syncPeriod: {period}, monitorPeriod: {period}}}
  seedExtensionsCheck: {{syncPeriod: {period}}}
  seedBackupBucketsCheck: {{syncPeriod: {period}}}
  shootQuota: {{syncPeriod: {period}}}
  project: {{staleSyncPeriod: {period}}}
  cacheSyncTimeout: {period}"
        )
    };
    let keys = [
        "seed.syncPeriod",
        "seed.monitorPeriod",
        "seedExtensionsCheck.syncPeriod",
        "seedBackupBucketsCheck.syncPeriod",
        "shootQuota.syncPeriod",
        "project.staleSyncPeriod",
        "cacheSyncTimeout",
    ];

    for period in ["0s", "-1m"] {
        let text = "Value is not positive, the default is used";
        assert_eq!(warnings(&yaml(period)), keys.map(|key| format!("controllers.{key}: {text}")), "{period}");
        assert_eq!(loaded(&yaml(period)).config.to_yaml(), loaded("").config.to_yaml());
        assert_eq!(config(&yaml(period)).hash(), config("").hash());
    }
}

/// spec 80 §4
#[test]
fn condition_thresholds_that_are_negative_count_as_zero() {
    let yaml = "controllers: {seedExtensionsCheck: {conditionThresholds: [{type: A, duration: -1s}, {type: B, duration: 1m}]}}";

    let check = config(yaml).controllers.seed_extensions_check;

    assert_eq!(["A", "B", "C"].map(|kind| check.threshold(kind)), [Duration::ZERO, seconds(60), Duration::ZERO]);
    let thresholds =
        check.condition_thresholds.iter().map(|threshold| (&*threshold.condition_type, threshold.duration.get()));
    assert_eq!(thresholds.collect::<Vec<_>>(), [("A", Duration::ZERO), ("B", seconds(60))]);
}

/// spec 80 D-3
#[test]
fn audit_policies_are_protected_unless_the_former_key_says_no() {
    let protects = |fields: &str| {
        let loaded = loaded(&format!("controllers: {{shootReference: {{{fields}}}}}"));
        assert_eq!(loaded.warnings, []);
        loaded.config.controllers.shoot_reference.protect_audit_policy_config_maps
    };

    assert!(protects("") && protects("protectAuditPolicyConfigMaps: true"));
    assert!(!protects("protectAuditPolicyConfigMaps: false"));
}

/// spec 80 scenario 17
#[test]
fn kubeconfig_of_the_environment_beats_the_file() {
    let path = |environment: Option<&str>| {
        let loaded = load(b"gardenClientConnection: {kubeconfig: /b}", environment).expect("it is valid");
        loaded.config.garden_client_connection.kubeconfig
    };

    assert_eq!([path(Some("/a")), path(Some("")), path(None)], ["/a", "/b", "/b"]);
}

#[test]
fn rate_limit_can_be_switched_off() {
    let limit =
        |fields: &str| config(&format!("gardenClientConnection: {{{fields}}}")).garden_client_connection.rate_limit();

    assert_eq!(limit(""), Some(RateLimit { qps: 50.0, burst: 100 }));
    assert_eq!(limit("qps: 2.5, burst: 3"), Some(RateLimit { qps: 2.5, burst: 3 }));
    assert_eq!(limit("qps: -1"), None);
}

#[test]
fn default_configuration_is_that_of_an_empty_file() {
    let mut empty = config("");
    assert_eq!(empty.hash(), loaded("logLevel: info # the default").config.hash());

    empty.controllers.seed.shoot_monitor_period = None;
    assert_eq!(empty, Config::default());
}

#[test]
fn hash_depends_on_the_meaning_not_on_the_writing() {
    let hash = |yaml: &str| config(yaml).hash();

    assert_ne!(hash("logLevel: debug"), hash(""));
    assert_eq!(
        hash("controllers: {bastion: {concurrentSyncs: 0}}"),
        hash("controllers: {bastion: {concurrentSyncs: 1}}")
    );
    assert_eq!(
        hash("leaderElection: {leaderElect: false, retryPeriod: 9s}"),
        hash("leaderElection: {leaderElect: false}")
    );
    assert_eq!(hash("featureGates: {AllBeta: true, DisableNginxIngressInShoot: false}"), hash(""));
    assert_eq!(hash("featureGates: {AllAlpha: true}"), hash("featureGates: {DisableNginxIngressInShoot: true}"));
    assert_ne!(hash("controllers: {event: {}}"), hash(""));
    assert_eq!(hash("").len(), 64);
}
