use super::*;

/// spec 70 §4, by the number of the rule; scenarios 9, 10, 12 and 13. spec 31 §3, scenario 25. spec 41 §1, scenario 29.
#[test]
fn validation_has_the_text_of_each_rule() {
    let table: [(u8, &str, &[&str]); 42] = [
        (
            1,
            "sourceClientConnection: {cacheResyncPeriod: 9s}",
            &["sourceClientConnection.cacheResyncPeriod: Invalid value: 9000000000: must be at least 10s"],
        ),
        (
            1,
            "sourceClientConnection: {cacheResyncPeriod: 0s}",
            &["sourceClientConnection.cacheResyncPeriod: Invalid value: 0: must be at least 10s"],
        ),
        (
            2,
            "sourceClientConnection: {burst: -1}",
            &["sourceClientConnection.burst: Invalid value: -1: must be non-negative"],
        ),
        (
            3,
            "targetClientConnection: {cacheResyncPeriod: -1s, burst: -2}",
            &[
                "targetClientConnection.cacheResyncPeriod: Invalid value: -1000000000: must be at least 10s",
                "targetClientConnection.burst: Invalid value: -2: must be non-negative",
            ],
        ),
        (
            7,
            "server: {healthProbes: {port: -1}, metrics: {port: -2}}",
            &[
                "server.healthProbes.port: Invalid value: -1: must be greater than or equal to 0",
                "server.metrics.port: Invalid value: -2: must be greater than or equal to 0",
            ],
        ),
        (
            8,
            "logLevel: trace",
            &["logLevel: Unsupported value: \"trace\": supported values: \"debug\", \"info\", \"error\""],
        ),
        (9, "logFormat: xml", &["logFormat: Unsupported value: \"xml\": supported values: \"json\", \"text\""]),
        (
            10,
            "controllers: {resourceClass: \"\"}",
            &["controllers.resourceClass: Required value: must provide a resource class"],
        ),
        (
            11,
            "controllers: {csrApprover: {enabled: true, concurrentSyncs: 0}}",
            &["controllers.csrApprover.concurrentSyncs: Invalid value: 0: must be at least 1"],
        ),
        (11, "controllers: {csrApprover: {enabled: false, concurrentSyncs: 0}}", &[]),
        (
            12,
            "controllers: {csrApprover: {enabled: true, machineNamespace: \"\"}}",
            &["controllers.csrApprover.machineNamespace: Required value: machine namespace must be nil or not empty"],
        ),
        (12, "controllers: {csrApprover: {machineNamespace: \"\"}}", &[]),
        (
            13,
            "controllers: {garbageCollector: {enabled: true, syncPeriod: 14s}}",
            &["controllers.garbageCollector.syncPeriod: Invalid value: \"14s\": must be at least 15s"],
        ),
        (13, "controllers: {garbageCollector: {syncPeriod: 14s}}", &[]),
        (
            14,
            "controllers: {health: {concurrentSyncs: -1}}",
            &["controllers.health.concurrentSyncs: Invalid value: -1: must be at least 1"],
        ),
        (
            15,
            "controllers: {health: {syncPeriod: 10s}}",
            &["controllers.health.syncPeriod: Invalid value: \"10s\": must be at least 15s"],
        ),
        (
            16,
            "controllers: {managedResource: {concurrentSyncs: 0}}",
            &["controllers.managedResources.concurrentSyncs: Invalid value: 0: must be at least 1"],
        ),
        (
            17,
            "controllers: {managedResource: {syncPeriod: 0s}}",
            &["controllers.managedResources.syncPeriod: Invalid value: \"0s\": must be at least 15s"],
        ),
        (
            17,
            "controllers: {managedResource: {syncPeriod: 2m, revalidatePeriod: 119s}}",
            &[
                "controllers.managedResources.revalidatePeriod: Invalid value: \"1m59s\": must be 0s or at least syncPeriod",
            ],
        ),
        (
            17,
            "controllers: {managedResource: {revalidatePeriod: -1s}}",
            &[
                "controllers.managedResources.revalidatePeriod: Invalid value: \"-1s\": must be 0s or at least syncPeriod",
            ],
        ),
        (17, "controllers: {managedResource: {syncPeriod: 2m, revalidatePeriod: 2m}}", &[]),
        (17, "controllers: {managedResource: {syncPeriod: 2m, revalidatePeriod: 0s}}", &[]),
        (17, "controllers: {managedResource: {syncPeriod: 48h}}", &[]),
        (
            18,
            "controllers: {managedResource: {managedByLabelValue: \"\"}}",
            &[
                "controllers.managedResources.managedByLabelValue: Required value: must specify value of managed-by label",
            ],
        ),
        (
            19,
            "controllers: {tokenRequestor: {enabled: true, concurrentSyncs: 0}}",
            &["controllers.tokenRequestor.concurrentSyncs: Invalid value: 0: must be at least 1"],
        ),
        (19, "controllers: {tokenRequestor: {concurrentSyncs: 0}}", &[]),
        (
            20,
            "controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: -2s, maxDelay: -1s}}",
            &[
                "controllers.nodeAgentReconciliationDelay.minDelay: Invalid value: \"-2s\": must be non-negative",
                "controllers.nodeAgentReconciliationDelay.maxDelay: Invalid value: \"-1s\": must be non-negative",
            ],
        ),
        (20, "controllers: {nodeAgentReconciliationDelay: {minDelay: -2s}}", &[]),
        (
            21,
            "controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: 10m}}",
            &[
                "controllers.nodeAgentReconciliationDelay.minDelay: Invalid value: \"10m0s\": minimum delay must not be higher than maximum delay",
            ],
        ),
        (
            22,
            "webhooks: {podSchedulerName: {enabled: true, schedulerName: \"\"}}",
            &[
                "webhooks.podSchedulerName.schedulerName: Required value: must specify schedulerName when webhook is enabled",
            ],
        ),
        (22, "webhooks: {podSchedulerName: {schedulerName: \"\"}}", &[]),
        (
            23,
            "webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 599}}",
            &["webhooks.projectedTokenMount.expirationSeconds: Invalid value: 599: must be at least 600"],
        ),
        (23, "webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 600}}", &[]),
        (23, "webhooks: {projectedTokenMount: {expirationSeconds: 5}}", &[]),
        (
            24,
            "webhooks: {highAvailabilityConfig: {defaultNotReadyTolerationSeconds: -1, defaultUnreachableTolerationSeconds: -2}}",
            &[
                "webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds: Invalid value: -1: must be greater than or equal to 0",
                "webhooks.highAvailabilityConfig.defaultUnreachableTolerationSeconds: Invalid value: -2: must be greater than or equal to 0",
            ],
        ),
        (
            26,
            "webhooks: {nodeAgentAuthorizer: {enabled: true, machineNamespace: \"\"}}",
            &[
                "webhooks.nodeAgentAuthorizer.machineNamespace: Required value: machine namespace must be nil or not empty",
            ],
        ),
        (26, "webhooks: {nodeAgentAuthorizer: {machineNamespace: \"\"}}", &[]),
        (
            27,
            "controllers: {tokenValidator: {enabled: true}}",
            &[
                "controllers.tokenInvalidator: Forbidden: controller and webhook for TokenInvalidator must either be both disabled or enabled",
            ],
        ),
        (
            27,
            "webhooks: {tokenInvalidator: {enabled: true}}",
            &[
                "controllers.tokenInvalidator: Forbidden: controller and webhook for TokenInvalidator must either be both disabled or enabled",
            ],
        ),
        // Ours: upstream fails only when it listens.
        (
            0,
            "server: {webhooks: {port: -1}, metrics: {port: 65536}}",
            &[
                "server.metrics.port: Invalid value: 65536: must be between 0 and 65535",
                "server.webhooks.port: Invalid value: -1: must be between 0 and 65535",
            ],
        ),
        // Not validated on purpose.
        (0, "controllers: {cacheSyncTimeout: -1s, networkPolicy: {enabled: true, concurrentSyncs: -1}}", &[]),
        // Upstream fails when it starts the controller (spec 40 §4).
        (
            0,
            "controllers: {networkPolicy: {enabled: true, namespaceSelectors: [{}, {matchExpressions: [{key: a, operator: Has}]}]}}",
            &[
                "controllers.networkPolicy.namespaceSelectors[1]: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Has\"}]}: failed parsing namespace selector: \"Has\" is not a valid label selector operator",
            ],
        ),
    ];

    for (rule, yaml, expected) in table {
        assert_eq!(findings(yaml), expected, "rule {rule}: {yaml}");
    }
}

/// spec 70 §4 rules 4-6, scenarios 5, 6 and 7
#[test]
fn leader_election_is_checked_while_it_is_on() {
    let table: [(&str, &[&str]); 6] = [
        ("leaderElect: true", &["leaderElection.resourceNamespace: Required value"]),
        ("", &["leaderElection.resourceNamespace: Required value"]),
        ("leaderElect: false, leaseDuration: -1s", &[]),
        (
            "resourceNamespace: a, leaseDuration: 5s",
            &["leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`"],
        ),
        (
            "resourceNamespace: a, leaseDuration: 10s",
            &["leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`"],
        ),
        (
            "leaseDuration: -3s, renewDeadline: -2s, retryPeriod: -1s",
            &[
                "leaderElection.leaseDuration: Invalid value: \"-3s\": must be greater than zero",
                "leaderElection.renewDeadline: Invalid value: \"-2s\": must be greater than zero",
                "leaderElection.retryPeriod: Invalid value: \"-1s\": must be greater than zero",
                "leaderElection.leaseDuration: Invalid value: \"-2s\": must be greater than `RenewDeadline`",
                "leaderElection.resourceNamespace: Required value",
            ],
        ),
    ];

    for (fields, expected) in table {
        assert_eq!(findings_of(&format!("leaderElection: {{{fields}}}")), expected, "{fields}");
    }
}

/// spec 70 scenario 8
#[test]
fn findings_are_one_bracketed_list_in_the_order_of_the_rules() {
    let error =
        load(b"{logFormat: xml, logLevel: trace, leaderElection: {leaderElect: false}}").map_err(|e| e.to_string());

    let level = "logLevel: Unsupported value: \"trace\": supported values: \"debug\", \"info\", \"error\"";
    let format = "logFormat: Unsupported value: \"xml\": supported values: \"json\", \"text\"";
    assert_eq!(error, Err(format!("[{level}, {format}]")));
}

#[test]
fn findings_with_equal_texts_are_shown_once() {
    let finding = |path: &str| FieldError::required(path, "");

    let error = ConfigError::Invalid(vec![finding("a"), finding("b"), finding("a")]);
    let same = ConfigError::Invalid(vec![finding("a"), finding("a")]);

    assert_eq!(error.to_string(), "[a: Required value, b: Required value]");
    assert_eq!(same.to_string(), "a: Required value");
}

/// spec 70 §4.1, scenario 14
#[test]
fn tolerations_are_checked_even_if_the_webhook_is_off() {
    let key_empty = "Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let label = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let table: [(&str, Vec<String>); 11] = [
        ("{}", vec![format!("operator: {key_empty}")]),
        ("{operator: Exists}", vec![]),
        ("{key: a}", vec![]),
        ("{key: example.com/a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 3}", vec![]),
        ("{key: 'a b', operator: Exists}", vec![format!("key: Invalid value: \"a b\": {name}")]),
        ("{key: a, tolerationSeconds: 0}", vec!["effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set".to_owned()]),
        ("{key: a, value: '-'}", vec![format!("operator: Invalid value: \"-\": {label}")]),
        ("{key: a, value: '-------------------------------------------------------------------'}", vec![format!("operator: Invalid value: \"-------------------------------------------------------------------\": must be no more than 63 bytes;{label}")]),
        ("{key: a, operator: Exists, value: <, effect: NoExecute, tolerationSeconds: 3}", vec!["operator: Invalid value: {\"key\":\"a\",\"operator\":\"Exists\",\"value\":\"\\u003c\",\"effect\":\"NoExecute\",\"tolerationSeconds\":3}: value must be empty when `operator` is 'Exists'".to_owned()]),
        ("{key: a, operator: Gt}", vec!["operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\"".to_owned()]),
        ("{key: a, effect: Never}", vec!["effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"".to_owned()]),
    ];

    for (toleration, expected) in table {
        let yaml =
            format!("webhooks: {{systemComponentsConfig: {{podTolerations: [{{operator: Exists}}, {toleration}]}}}}");
        let expected: Vec<_> =
            expected.iter().map(|text| format!("webhooks.systemComponentsConfig.podTolerations[1].{text}")).collect();
        assert_eq!(findings(&yaml), expected, "{toleration}");
    }
}

#[test]
fn strings_are_quoted_with_escapes() {
    let errors = findings("logLevel: \"a\\\"b\\\\\\n\\t\\x01\\x85é\"");

    assert!(errors[0].starts_with(r#"logLevel: Unsupported value: "a\"b\\\n\t\x01\u0085é": "#), "{errors:?}");
}
