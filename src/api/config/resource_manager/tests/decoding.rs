use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use process::logging::Level;
use proptest::prelude::*;

use super::*;

/// spec 70 scenario 2
#[test]
fn configuration_of_another_kind_is_a_decoding_error() {
    let error = decode_error("kind: Foo");

    let version = "resourcemanager.config.gardener.cloud/v1alpha1";
    assert_eq!(error, format!("error decoding config: no kind \"Foo\" is registered for version \"{version}\""));
    assert!(decode_error("apiVersion: v1\n").contains("is registered for version \"v1\""));
}

/// spec 70 scenario 3
#[test]
fn group_version_and_kind_may_be_missing() {
    let full = config("apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration");

    assert_eq!(config(""), full);
    assert_eq!(config("apiVersion: \"\"\nkind:"), full);
}

#[test]
fn an_empty_file_is_an_empty_configuration() {
    for yaml in ["", "---\n", "# nothing\n", "{}", "null"] {
        assert_eq!(findings_of(yaml), ["leaderElection.resourceNamespace: Required value"], "{yaml:?}");
    }
}

#[test]
fn configuration_may_be_json() {
    let json = br#"{"leaderElection": {"leaderElect": false}, "controllers": {"clusterID": "a\/b"}}"#;

    let config = load(json).expect("the configuration is valid").config;

    assert_eq!(config.controllers.cluster_id, "a/b");
}

/// spec 70 §2 rule 3
#[test]
fn configuration_is_the_first_document_only() {
    let yaml = "---\nleaderElection: {leaderElect: false}\ncontrollers: {clusterID: a}\n---\nkind: Foo\n--- {broken\n";

    let config = load(yaml.as_bytes()).expect("the configuration is valid").config;

    assert_eq!(config.controllers.cluster_id, "a");
}

/// spec 70 §2 rule 2
#[test]
fn unknown_keys_are_ignored_with_a_warning_that_has_their_path() {
    let yaml = "
featureGates: {A: true}
LogLevel: debug
controllers:
  foo: {bar: 1}
  health: {syncperiod: 1h}
  networkPolicy: {namespaceselectors: [{matchlabels: {a: b}}]}
  managedResources: {syncs: 1}
webhooks:
  systemComponentsConfig: {podtolerations: [{operator: Exists, Key: b}]}
";

    let loaded = loaded(yaml);

    let unknown = |path: &str, nearest: Option<&str>| {
        Warning::new(path, WarningKind::UnknownKey { nearest: nearest.map(str::to_owned) })
    };
    assert_eq!(
        loaded.warnings,
        [
            unknown("LogLevel", Some("logLevel")),
            unknown("controllers.foo", None),
            unknown("controllers.health.syncperiod", Some("syncPeriod")),
            unknown("controllers.managedResources.syncs", None),
            unknown("controllers.networkPolicy.namespaceselectors", Some("namespaceSelectors")),
            unknown("featureGates", None),
            unknown("webhooks.systemComponentsConfig.podtolerations", Some("podTolerations")),
        ]
    );
    assert_eq!(loaded.config.logging().level, Level::Info);
}

/// As in Go: a key without a value has its default; an entry of a list of strings must have one.
#[test]
fn null_is_absence() {
    let null = "
controllers: {health: {concurrentSyncs: null}, networkPolicy: null, resourceClass: null, clusterID: ~}
webhooks:
  systemComponentsConfig: {enabled: true, nodeSelector: null, podTolerations: null}
sourceClientConnection: {namespaces: null, qps: null, cacheResyncPeriod: null}
server: null";
    let absent = "webhooks: {systemComponentsConfig: {enabled: true}}";

    assert_eq!(loaded(null), loaded(absent));
    let selectors = "controllers: {networkPolicy: {enabled: true, namespaceSelectors: [null]}}";
    let policy = config(selectors).controllers.network_policy.settings;
    assert_eq!(policy.namespace_selectors, [LabelSelector::default()]);
    assert_eq!(warnings("foo: null"), ["foo: Unknown configuration key is ignored"]);
}

/// spec 70 §2 rule 2, decision 39: an unknown key never widens a selection
#[test]
fn unknown_keys_of_what_selects_something_are_errors() {
    let policy = "controllers.networkPolicy.";
    let table = [
        ("namespaceSelectors: [{}, {MatchLabels: {a: b}}]", "namespaceSelectors[1]: unknown key \"MatchLabels\""),
        (
            "namespaceSelectors: [{matchExpressions: [{key: a, operator: Exists, Values: []}]}]",
            "namespaceSelectors[0].matchExpressions[0]: unknown key \"Values\"",
        ),
        (
            "ingressControllerSelector: {namespace: a, podSelector: {matchlabels: {a: b}}}",
            "ingressControllerSelector.podSelector: unknown key \"matchlabels\"",
        ),
        (
            "ingressControllerSelector: {namespace: a, podselector: {}}",
            "ingressControllerSelector: unknown key \"podselector\"",
        ),
    ];
    for (yaml, text) in table {
        let error = decode_error(&format!("controllers: {{networkPolicy: {{enabled: true, {yaml}}}}}"));
        assert!(error.starts_with(&format!("error decoding config: {policy}{text}, expected one of ")), "{error}");
    }
    let error = decode_error("webhooks: {systemComponentsConfig: {podTolerations: [{Key: a, operator: Exists}]}}");
    assert!(error.contains("podTolerations[0]: unknown key \"Key\", expected one of key, "), "{error}");
    assert!(error.ends_with("; did you mean \"key\"?"), "{error}");
}

/// spec 70 §2 rule 4
#[test]
fn values_of_another_type_are_errors_that_name_the_field() {
    let table = [
        (
            "controllers: {health: {syncPeriod: 60}}",
            "controllers.health.syncPeriod: invalid type: integer `60`, expected a duration such as \"1m30s\"",
        ),
        (
            "controllers: {health: {syncPeriod: 1d}}",
            "controllers.health.syncPeriod: unknown unit \"d\" in duration \"1d\"",
        ),
        (
            "controllers: {managedResources: {syncPeriod: 1}}",
            "controllers.managedResources.syncPeriod: invalid type: integer `1`, expected a duration such as \"1m30s\"",
        ),
        ("controllers: {node: {backoff: x}}", "controllers.node.backoff: invalid duration \"x\""),
        (
            "controllers: {health: {concurrentSyncs: 1.5}}",
            "controllers.health.concurrentSyncs: invalid type: floating point `1.5`, expected i64",
        ),
        ("controllers: {clusterID: 1}", "controllers.clusterID: invalid type: integer `1`, expected a string"),
        (
            "webhooks: {seccompProfile: {enabled: \"true\"}}",
            "webhooks.seccompProfile.enabled: invalid type: string, expected a boolean",
        ),
        ("webhooks: []", "webhooks: invalid type: sequence, expected an object"),
        (
            "sourceClientConnection: {namespaces: [a, 1]}",
            "sourceClientConnection.namespaces[1]: invalid type: integer `1`, expected a string",
        ),
        (
            "sourceClientConnection: {namespaces: a}",
            "sourceClientConnection.namespaces: invalid type: string, expected a sequence",
        ),
        ("sourceClientConnection: {qps: many}", "sourceClientConnection.qps: invalid type: string, expected f64"),
        (
            "sourceClientConnection: {namespaces: [null]}",
            "sourceClientConnection.namespaces[0]: invalid type: null, expected a string",
        ),
        (
            "webhooks: {systemComponentsConfig: {nodeSelector: {a: null}}}",
            "webhooks.systemComponentsConfig.nodeSelector.a: invalid type: null, expected a string",
        ),
        (
            "controllers: {networkPolicy: {namespaceSelectors: [[]]}}",
            "controllers.networkPolicy.namespaceSelectors[0]: invalid type: sequence, expected LabelSelector",
        ),
        ("kind: 1", "kind: invalid type: integer `1`, expected a string"),
        ("[]", "invalid type: sequence, expected an object"),
        ("text", "invalid type: string, expected an object"),
    ];

    for (yaml, text) in table {
        assert_eq!(decode_error(yaml), format!("error decoding config: {text}"));
    }
    assert!(decode_error("a: [").starts_with("error decoding config: "));
    let error = load(b"\xff").expect_err("not text").to_string();
    assert!(error.starts_with("error decoding config: not UTF-8: "), "{error}");
}

#[test]
fn yaml_is_read_with_the_rules_kubernetes_keeps_of_yaml_1_1() {
    let yaml = "
webhooks: {seccompProfile: {enabled: yes}, vpaInPlaceUpdates: {enabled: on}}
controllers:
  health: &workers {concurrentSyncs: 010}
  managedResource: {<<: *workers, syncPeriod: 20s}
logLevel: debug
logLevel: error
";

    let config = config(yaml);

    assert!(config.webhooks.seccomp_profile.enabled && config.webhooks.vpa_in_place_updates.enabled);
    assert_eq!(config.controllers.health.concurrent_syncs.count(), 8);
    assert_eq!(config.controllers.managed_resource.concurrent_syncs.count(), 8);
    assert_eq!(config.logging().level, Level::Error);
}

/// spec 70 scenario 11
#[test]
fn the_plural_key_of_the_managedresource_controller_works() {
    let loaded = loaded("controllers: {managedResources: {alwaysUpdate: true}}");

    assert!(loaded.config.controllers.managed_resource.always_update);
    assert_eq!(loaded.warnings, []);
}

/// decision 18, spec 10 §3.1
#[test]
fn managedresource_controller_singular_key_wins_field_by_field() {
    let loaded = loaded(
        "controllers:
  managedResources: {alwaysUpdate: true, syncPeriod: 1h, concurrentSyncs: 3}
  managedResource: {syncPeriod: 30s, concurrentSyncs: null}",
    );

    let settings = &loaded.config.controllers.managed_resource;
    assert_eq!(settings.sync_period.get(), Duration::from_secs(30));
    assert_eq!((settings.always_update, settings.concurrent_syncs.count()), (true, 3));
    let both = WarningKind::BothSpellings { official: "controllers.managedResource".to_owned() };
    assert_eq!(loaded.warnings, [Warning::new("controllers.managedResources", both)]);
}

/// spec 41 scenario 20
#[test]
fn the_former_block_of_node_critical_components_works_with_a_warning() {
    let loaded = loaded("controllers: {node: {enabled: true, backoff: 3s}}");

    let expected = NodeCriticalComponents { concurrent_syncs: Workers::new(5), backoff: Duration::from_secs(3).into() };
    assert_eq!(loaded.config.controllers.node_critical_components.on(), Some(&expected));
    assert_eq!(
        loaded.warnings[0].to_string(),
        "controllers.node: Configuration key is deprecated (controllers.nodeCriticalComponents)"
    );
}

#[test]
fn aliases_of_other_blocks_lose_as_a_whole_to_the_official_block() {
    let table = [
        ("controllers", "node", "nodeCriticalComponents"),
        ("controllers", "kubeletCSRApprover", "csrApprover"),
        ("controllers", "tokenValidator", "tokenInvalidator"),
        ("webhooks", "tokenValidator", "tokenInvalidator"),
    ];

    for (section, accepted, official) in table {
        let yaml = format!("{section}: {{{accepted}: {{enabled: true}}, {official}: {{enabled: false}}}}");
        let loaded = loaded(&yaml);

        assert_eq!(loaded.config, Config::default(), "{yaml}");
        let kind = WarningKind::BothSpellings { official: format!("{section}.{official}") };
        assert_eq!(loaded.warnings, [Warning::new(format!("{section}.{accepted}"), kind)]);
    }
}

/// spec 70 §2.2
#[test]
fn the_former_csr_approver_block_uses_the_only_source_namespace() {
    let namespace = |yaml: &str| config(yaml).controllers.csr_approver.on()?.machine_namespace.clone();
    let former = "controllers: {kubeletCSRApprover: {enabled: true}}";

    assert_eq!(namespace(&format!("{former}\nsourceClientConnection: {{namespaces: [a]}}")).as_deref(), Some("a"));
    assert_eq!(namespace(&format!("{former}\nsourceClientConnection: {{namespace: a}}")).as_deref(), Some("a"));
    assert_eq!(namespace(&format!("{former}\nsourceClientConnection: {{namespaces: [a, b]}}")), None);
    assert_eq!(namespace(former), None);
    let named = "controllers: {kubeletCSRApprover: {enabled: true, machineNamespace: m}}";
    assert_eq!(namespace(&format!("{named}\nsourceClientConnection: {{namespaces: [a]}}")).as_deref(), Some("m"));
    let official = "controllers: {csrApprover: {enabled: true}}";
    assert_eq!(namespace(&format!("{official}\nsourceClientConnection: {{namespaces: [a]}}")), None);
}

/// spec 70 §2.2; spec 31 §3, scenario 26
#[test]
fn keys_of_earlier_releases_are_honoured() {
    let config = config(
        "
sourceClientConnection: {namespace: b, namespaces: [a]}
targetClientConnection: {namespace: \"\", disableCachedClient: true}
controllers: {tokenValidator: {enabled: true, concurrentSyncs: 7}}
webhooks: {tokenValidator: {enabled: true}, endpointSliceHints: {enabled: true}}",
    );

    assert_eq!(config.source.namespaces, ["a", "b"]);
    assert_eq!(config.target.namespaces, Vec::<String>::new());
    assert!(config.target.disable_cached_client && !config.source.disable_cached_client);
    assert_eq!(config.controllers.token_invalidator.on().map(|it| it.concurrent_syncs), Some(Workers::new(7)));
    assert!(config.webhooks.token_invalidator.enabled && config.webhooks.endpoint_slice_hints.enabled);
}

/// spec 70 §2.2
#[test]
fn keys_without_effect_are_accepted_with_a_warning() {
    let yaml = "controllers: {rootCAPublisher: {x: 1}, secret: {}}\nwebhooks: {podZoneAffinity: {enabled: true}}";

    let text = "Setting has no effect any more";
    let paths = ["controllers.rootCAPublisher", "controllers.secret", "webhooks.podZoneAffinity"];
    assert_eq!(warnings(yaml), paths.map(|path| format!("{path}: {text}")));
}

#[test]
fn deeply_nested_and_self_multiplying_documents_end_in_an_error() {
    let deep = format!("a: {}", "[".repeat(100_000));
    let levels = (1..12).map(|i| format!("l{i}: &l{i} [{}]", vec![format!("*l{}", i - 1); 10].join(", ")));
    let bomb = std::iter::once("l0: &l0 [x]".to_owned()).chain(levels).collect::<Vec<_>>().join("\n");

    assert!(load(deep.as_bytes()).is_err());
    assert!(load(bomb.as_bytes()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = load(&bytes);
    }

    #[test]
    fn any_text_like_yaml_is_decoded_or_refused(text in "([a-z{}\\[\\]:,\"'&*#|>\\-]|\\n| |controllers|health|node|1s|5){0,60}") {
        let _ = load(text.as_bytes());
    }
}

#[test]
fn the_effective_configuration_can_be_loaded_again() {
    let table = [
        "",
        "leaderElection: {resourceNamespace: garden}\nsourceClientConnection: {namespaces: [a], namespace: b, qps: -1}",
        "leaderElection: {leaderElect: false}\ncontrollers: {kubeletCSRApprover: {enabled: true}, managedResources: {alwaysUpdate: true}}\n\
         sourceClientConnection: {namespaces: [shoot]}\nwebhooks: {highAvailabilityConfig: {enabled: true, defaultNotReadyTolerationSeconds: 0}}",
    ];

    for text in table {
        let text = if text.is_empty() { "leaderElection: {leaderElect: false}" } else { text };
        let loaded = load(text.as_bytes()).expect("it is a configuration");
        let printed = loaded.config.to_yaml();
        let again = load(printed.as_bytes()).unwrap_or_else(|error| panic!("{error}:\n{printed}"));

        assert_eq!(again.config, loaded.config, "{printed}");
        assert_eq!(again.warnings, [], "{printed}");
        assert!(printed.contains("\ncontrollers:\n"), "{printed}");
    }
}
