//! What is said about mistakes in the configuration, and what is logged at the start.

use super::{load_in, options};

/// spec 70 §1.1: an error and a warning name the file and the line, and what a misspelt key means.
#[test]
fn config_file_and_line_are_named_with_a_mistake() {
    let off = "leaderElection: {leaderElect: false}\n";
    let with = |flags: &[&str], lines: &str| {
        let args: Vec<_> = ["--config=/c"].iter().chain(flags).copied().collect();
        load_in(&args, &[], &[("/c", &format!("{off}{lines}"))])
    };
    let error = |flags: &[&str], lines: &str| with(flags, lines).expect_err("it fails");

    let workers = "controllers:\n  managedResource:\n    concurrentSyncs: -1\n";
    let text = "controllers.managedResources.concurrentSyncs: Invalid value: -1: must be at least 1";
    assert_eq!(error(&[], workers), format!("{text} (/c, line 4)"));
    assert_eq!(error(&["--log-level=info"], workers), format!("{text} (/c and flags)"), "a flag may be wrong");
    let text = error(&[], "logLevel: trace\nlogFormat: xml\n");
    assert!(text.ends_with("] (/c, line 2: logLevel, line 3: logFormat)"), "{text}");
    let text = error(&["--log-level=info"], "controllers: {health: {syncPeriod: 15}}\n");
    assert!(text.starts_with("error decoding config: controllers.health.syncPeriod: "), "{text}");
    assert!(text.ends_with(" (/c, line 2)"), "{text}");

    let misspelt = with(&[], "controllers:\n  health: {syncperiod: 1h}\n").expect("it is valid").warnings;
    let texts: Vec<_> = misspelt.iter().map(|warning| warning.text(Some("/c"))).collect();
    let expected = r#"controllers.health.syncperiod: Unknown configuration key is ignored; did you mean "syncPeriod"?"#;
    assert_eq!(texts, [format!("/c:3: {expected}")]);
}

/// spec 70 §7 step 2
#[test]
fn flag_lines_of_the_log_have_the_given_flags_once_and_sorted() {
    let lines = |args: &[&str]| options(args, &[]).flag_lines();
    let namespaces = ["--extra-target-namespace=b", "--extra-target-namespace=a"];

    assert_eq!(lines(&["--config=/c"]), ["FLAG: --config=/c"]);
    assert_eq!(
        lines(&["--port=1", "--config=/c", "--profiling", "--version=v1.2.3", namespaces[0], namespaces[1]]),
        [
            "FLAG: --config=/c",
            "FLAG: --extra-target-namespace=[b,a]",
            "FLAG: --port=1",
            "FLAG: --profiling=true",
            "FLAG: --version=v1.2.3",
        ]
    );
    assert_eq!(lines(&["--log-level=info"]), ["FLAG: --config=", "FLAG: --log-level=info"], "even if it is not given");
}

/// spec 70 §7 step 2
#[test]
fn log_of_the_start_has_no_credentials() {
    let kubeconfig = "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: sesame}}]";
    let args = ["--config=/c", "--cluster-id=https://me:sesame@host", "--kubeconfig", kubeconfig];
    let file = "leaderElection: {leaderElect: false}
webhooks: {kubernetesServiceHost: {enabled: true, host: 'https://me:sesame@host'}}";

    let lines = options(&args, &[]).flag_lines().join("\n");
    let loaded = load_in(&args, &[], &[("/c", file)]).expect("the configuration is valid");

    assert!(loaded.config.to_yaml().contains("sesame"), "the example has credentials");
    for logged in [lines, loaded.config.to_log()] {
        assert!(!logged.contains("sesame") && logged.contains("https://…@host"), "{logged}");
    }
}

/// spec 70 §7 step 2
#[test]
fn log_of_the_start_has_the_configuration_as_it_is_printed() {
    let file = "leaderElection: {leaderElect: false}
sourceClientConnection: {kubeconfig: /var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig, namespaces: [a]}
controllers: {networkPolicy: {enabled: true, namespaceSelectors: [{matchLabels: {a: b}}]}}";
    let args = ["--config=/c", "--health-bind-address=0"];

    let loaded = load_in(&args, &[], &[("/c", file)]).expect("the configuration is valid");

    assert!(loaded.config.to_log().starts_with("# no server for probes"), "{}", loaded.config.to_log());
    assert_eq!(loaded.config.to_log(), loaded.config.to_yaml());
}
