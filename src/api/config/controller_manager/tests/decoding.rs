use std::time::Duration;

use super::*;

/// spec 80 scenario 2
#[test]
fn configuration_of_another_kind_is_a_decoding_error() {
    let version = "controllermanager.config.gardener.cloud/v1alpha1";

    assert_eq!(
        error("kind: Foo"),
        format!("error decoding config: no kind \"Foo\" is registered for version \"{version}\"")
    );
    assert!(error("apiVersion: resourcemanager.config.gardener.cloud/v1alpha1").starts_with("error decoding config: "));
    assert_eq!(config(""), config(&format!("apiVersion: {version}\nkind: ControllerManagerConfiguration")));
}

/// spec 80 scenario 15
#[test]
fn unknown_keys_are_ignored_with_a_warning_that_has_their_path() {
    let text = "Unknown configuration key is ignored";
    let expected = [
        ("controllers.bastion.foo", ""),
        ("controllers.project.quotas[0].config.spec.Hard", "; did you mean \"hard\"?"),
        ("webhooks", ""),
    ];
    let yaml = "
webhooks: {}
controllers:
  bastion: {foo: 1, concurrentSyncs: 3}
  project: {quotas: [{config: {spec: {Hard: {a: 1}}}}]}";

    assert_eq!(warnings(yaml), expected.map(|(path, hint)| format!("{path}: {text}{hint}")));
    assert_eq!(config(yaml).controllers.bastion.concurrent_syncs.count(), 3);
}

/// spec 70 §2 rule 2, decision 39
#[test]
fn unknown_key_of_a_selector_is_an_error() {
    let quota =
        |selector: &str| error(&format!("controllers: {{project: {{quotas: [{{projectSelector: {selector}}}]}}}}"));
    let path = "error decoding config: controllers.project.quotas[0].projectSelector";

    assert!(
        quota("{matchlabels: {a: b}}").starts_with(&format!("{path}: unknown key \"matchlabels\", expected one of "))
    );
    assert!(
        quota("{matchExpressions: [{Key: a}]}")
            .starts_with(&format!("{path}.matchExpressions[0]: unknown key \"Key\""))
    );
}

/// spec 80 §3
#[test]
fn null_is_absence() {
    let null = "
gardenClientConnection: {kubeconfig: null, qps: null}
leaderElection:
server: {healthProbes: null, metrics: {port: null}}
debugging: ~
featureGates: {DisableNginxIngressInShoot: null}
gardenerVersion: null
controllers: {event: null, seed: {shootMonitorPeriod: null}, shootMaintenance: {enableShootControlPlaneRestarter: null}}";

    assert_eq!(loaded(null), loaded(""));
}

/// spec 80 §6, scenario 14
#[test]
fn former_keys_are_accepted_with_one_warning_each() {
    let without_effect = "
kubernetesLogLevel: 3
server: {http: {port: 1}, https: {port: 2719}}
controllers: {plant: {concurrentSyncs: 5, syncPeriod: 30s}, secretBindingProvider: {}}";
    let text = "Setting has no effect any more";
    let paths =
        ["server.http", "server.https", "controllers.plant", "controllers.secretBindingProvider", "kubernetesLogLevel"];
    assert_eq!(warnings(without_effect), paths.map(|path| format!("{path}: {text}")));
    assert_eq!(config(without_effect), config(""));

    let retry = loaded("controllers: {shootRetry: {retryDuration: 3m}}");
    assert_eq!(retry.config.controllers.shoot_retry.retry_period.get(), Duration::from_secs(180));
    let official = WarningKind::Deprecated { official: "controllers.shootRetry.retryPeriod".to_owned() };
    assert_eq!(retry.warnings, [Warning::new("controllers.shootRetry.retryDuration", official)]);

    let lease = loaded("leaderElection: {resourceName: '', lockObjectName: a, lockObjectNamespace: b}");
    let election = &lease.config.leader_election;
    assert_eq!((election.resource_name.as_str(), election.resource_namespace.as_str()), ("a", "b"));
    assert_eq!(lease.warnings.len(), 2);
}

/// spec 80 §6
#[test]
fn former_keys_lose_to_those_of_today_with_a_warning() {
    let loaded = loaded("leaderElection: {resourceName: a, lockObjectName: b}");

    assert_eq!(loaded.config.leader_election.resource_name, "a");
    let official = WarningKind::BothSpellings { official: "leaderElection.resourceName".to_owned() };
    assert_eq!(loaded.warnings, [Warning::new("leaderElection.lockObjectName", official)]);
}

#[test]
fn values_of_another_type_are_errors_that_name_the_field_as_written() {
    let table = [
        (
            "controllers: {shootRetry: {retryDuration: 3}}",
            "controllers.shootRetry.retryDuration: invalid type: integer `3`, expected a duration such as \"1m30s\"",
        ),
        (
            "controllers: {bastion: {concurrentSyncs: many}}",
            "controllers.bastion.concurrentSyncs: invalid type: string, expected i64",
        ),
        (
            "controllers: {project: {quotas: [{config: {spec: {hard: {pods: x}}}}]}}",
            "controllers.project.quotas[0].config.spec.hard.pods: \"x\" is no quantity",
        ),
        (
            "featureGates: {DisableNginxIngressInShoot: 1}",
            "featureGates.DisableNginxIngressInShoot: invalid type: integer `1`, expected a boolean",
        ),
        ("controllers: []", "controllers: invalid type: sequence, expected an object"),
    ];

    for (yaml, text) in table {
        assert_eq!(error(yaml), format!("error decoding config: {text}"));
    }
}

/// spec 80 §7, scenario 13
#[test]
fn feature_gates_are_known_by_name() {
    assert_eq!(error("featureGates: {Foo: true, Bar: false}\nlogLevel: x"), "unrecognized feature gate: Bar");

    let gates = config("featureGates: {DisableNginxIngressInShoot: true}").feature_gates;
    assert!(gates.is_enabled(DISABLE_NGINX_INGRESS_IN_SHOOT));
    assert_eq!(gates.explicit().keys().collect::<Vec<_>>(), ["DisableNginxIngressInShoot"]);
    assert!(!config("").feature_gates.is_enabled(DISABLE_NGINX_INGRESS_IN_SHOOT));
}

/// spec 80 §7
#[test]
fn feature_gates_of_a_stage_set_those_that_are_not_named() {
    let is_on = |gates: &str| {
        config(&format!("featureGates: {{{gates}}}")).feature_gates.is_enabled(DISABLE_NGINX_INGRESS_IN_SHOOT)
    };

    assert!(is_on("AllAlpha: true"));
    assert!(!is_on("AllBeta: true"));
    assert!(!is_on("AllAlpha: true, DisableNginxIngressInShoot: false"));
}

/// spec 80 §7
#[test]
fn feature_gates_of_earlier_releases_are_accepted_with_a_warning() {
    let loaded =
        loaded("featureGates: {UseDNSRecords: true, CachedRuntimeClients: false, RotateSSHKeypairOnMaintenance: true}");

    let paths: Vec<_> = loaded.warnings.iter().map(|warning| warning.path.as_str()).collect();
    let names = ["CachedRuntimeClients", "RotateSSHKeypairOnMaintenance", "UseDNSRecords"];
    assert_eq!(paths, names.map(|name| format!("featureGates.{name}")));
    assert!(loaded.config.feature_gates.explicit().is_empty());
}
