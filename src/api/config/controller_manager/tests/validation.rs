use super::*;

/// spec 80 §5; scenarios 9 and 12
#[test]
fn validation_has_the_text_of_each_rule() {
    let table: [(&str, &[&str]); 9] = [
        (
            "gardenClientConnection: {burst: -1}",
            &["gardenClientConnection.burst: Invalid value: -1: must be non-negative"],
        ),
        (
            "leaderElection: {leaseDuration: -3s, renewDeadline: -2s, retryPeriod: -1s}",
            &[
                "leaderElection.leaseDuration: Invalid value: \"-3s\": must be greater than zero",
                "leaderElection.renewDeadline: Invalid value: \"-2s\": must be greater than zero",
                "leaderElection.retryPeriod: Invalid value: \"-1s\": must be greater than zero",
                "leaderElection.leaseDuration: Invalid value: \"-2s\": must be greater than `RenewDeadline`",
            ],
        ),
        ("leaderElection: {leaderElect: false, leaseDuration: -3s}", &[]),
        (
            "controllers: {shootState: {concurrentSyncs: -1}}",
            &["controllers.shootState.concurrentSyncs: Invalid value: -1: must be greater than or equal to 0"],
        ),
        ("controllers: {shootState: {concurrentSyncs: 0}}", &[]),
        // Not validated on purpose.
        ("controllers: {quota: {concurrentSyncs: -1}, project: {minimumLifetimeDays: -3}}\ngardenerVersion: x", &[]),
        ("controllers: {seedExtensionsCheck: {conditionThresholds: [{type: Foo, duration: 1s}]}}", &[]),
        ("server: {metrics: {bindAddress: 'no address'}}", &[]),
        ("server: {metrics: {port: 65536}, healthProbes: {port: -1}}", &[]),
    ];

    for (yaml, expected) in table {
        assert_eq!(findings(yaml), expected, "{yaml}");
    }
}

/// spec 80 scenario 10
#[test]
fn findings_are_one_bracketed_list_in_the_order_of_the_rules() {
    let level = "logLevel: Unsupported value: \"trace\": supported values: \"debug\", \"info\", \"error\"";
    let format = "logFormat: Unsupported value: \"xml\": supported values: \"json\", \"text\"";

    assert_eq!(error("{logFormat: xml, logLevel: trace}"), format!("[{level}, {format}]"));
    assert_eq!(error("logLevel: trace"), level);
}

/// spec 80 §5.1, scenario 11
#[test]
fn selectors_of_quotas_are_checked() {
    let path = "controllers.project.quotas[1].projectSelector";
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let label = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let expression = "matchExpressions[0]";
    let table = [
        ("{}", vec![]),
        ("{matchLabels: {example.org/a: b}, matchExpressions: [{key: a, operator: NotIn, values: [b, '']}]}", vec![]),
        (
            "{matchExpressions: [{}]}",
            vec![
                format!("{expression}.operator: Invalid value: \"\": not a valid selector operator"),
                format!("{expression}.key: Invalid value: \"\": name part must be non-empty"),
                format!("{expression}.key: Invalid value: \"\": {name}"),
            ],
        ),
        (
            "{matchExpressions: [{key: a, operator: In}]}",
            vec![format!("{expression}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'")],
        ),
        (
            "{matchExpressions: [{key: a, operator: Exists, values: [b]}]}",
            vec![format!(
                "{expression}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )],
        ),
        (
            "{matchExpressions: [{key: a, operator: In, values: [b, '-']}]}",
            vec![format!("{expression}.values[1]: Invalid value: \"-\": {label}")],
        ),
        (
            "{matchLabels: {'a b': '-'}}",
            vec![
                format!("matchLabels: Invalid value: \"a b\": {name}"),
                format!("matchLabels: Invalid value: \"-\": {label}"),
            ],
        ),
    ];

    for (selector, expected) in table {
        let yaml = format!("controllers: {{project: {{quotas: [{{}}, {{projectSelector: {selector}}}]}}}}");
        let expected: Vec<_> = expected.iter().map(|text| format!("{path}.{text}")).collect();
        assert_eq!(findings(&yaml), expected, "{selector}");
    }
}
