use std::{io, time::Duration};

use process::http::listen::ListenAddress;

use super::{super::load, Pairs, flag_mode, load_in, options, with_file};
use crate::api::config::resource_manager::{TokenRequestor, Workers};

/// spec 70 §5, end
#[test]
fn kubeconfig_of_the_environment_serves_both_clusters_in_flag_mode() {
    let kubeconfigs = |flags: &[&str], env: Pairs<'_>| {
        let args: Vec<_> = ["--leader-election=false"].iter().chain(flags).copied().collect();
        let config = load_in(&args, env, &[]).expect("the configuration is valid").config;
        (config.source.kubeconfig, config.target.kubeconfig)
    };
    let pair = |source: &str, target: &str| (source.to_owned(), target.to_owned());
    let env: Pairs<'_> = &[("KUBECONFIG", "/x")];

    assert_eq!(kubeconfigs(&[], env), pair("/x", "/x"));
    assert_eq!(kubeconfigs(&["--kubeconfig=/z"], env), pair("/z", "/x"));
    assert_eq!(kubeconfigs(&["--target-kubeconfig=/tz"], env), pair("/x", "/tz"));
    assert_eq!(kubeconfigs(&[], &[("KUBECONFIG", "/x"), ("TARGET_KUBECONFIG", "/tx")]), pair("/x", "/tx"));
    assert_eq!(kubeconfigs(&[], &[]), pair("", ""));
}

/// spec 70 scenario 15 and the column of legacy defaults in §5
#[test]
fn flag_mode_has_the_defaults_of_the_first_generation() {
    let config = flag_mode(&["--garbage-collector-sync-period=30m"]);

    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let collector = config.controllers.garbage_collector.on().expect("the garbage collector is on");
    assert_eq!(collector.sync_period.get(), minutes(30));
    assert_eq!(config.controllers.managed_resource.concurrent_syncs.count(), 10);
    assert_eq!(config.controllers.managed_resource.sync_period.get(), minutes(1));
    assert_eq!(config.controllers.health.concurrent_syncs.count(), 10);
    let election = config.leader_election.on().expect("leader election is on");
    assert_eq!(election.resource_namespace, "garden");
    assert_eq!(config.server.webhooks.address(), ListenAddress { host: "0.0.0.0".to_owned(), port: 9449 });
    assert_eq!(config.server.metrics(), Some(ListenAddress { host: String::new(), port: 8080 }));
    let expiration = config.webhooks.projected_token_mount.on().map(|webhook| webhook.expiration_seconds);
    assert_eq!(expiration, Some(43_200));
    assert_eq!(config.enabled_webhooks(), ["projectedTokenMount"]);
    assert_eq!(config.enabled_controllers(), ["garbage-collector", "health", "health-progressing", "managedresource"]);
}

/// decision 8; spec 30 §2.1
#[test]
fn token_requestor_deletes_service_accounts_in_flag_mode_only() {
    let flag = "--token-requestor-max-concurrent-workers=3";

    let flags = flag_mode(&[flag]).controllers.token_requestor;
    let file = with_file(&[flag], "").controllers.token_requestor;

    let settings =
        |any_class| TokenRequestor { concurrent_syncs: Workers::new(3), delete_service_accounts: any_class, any_class };
    assert_eq!((flags.on(), file.on()), (Some(&settings(true)), Some(&settings(false))));
}

/// spec 70 §5, `--leader-election-namespace`
#[test]
fn lease_namespace_in_flag_mode_is_that_of_the_pod() {
    let text =
        "unable to find leader election namespace: not running in-cluster, please specify LeaderElectionNamespace";

    assert_eq!(load_in(&["--port=1"], &[], &[]), Err(text.to_owned()));
    assert!(load_in(&["--leader-election=false"], &[], &[]).is_ok());
    let named = load_in(&["--leader-election-namespace=a"], &[], &[]).expect("the configuration is valid");
    assert_eq!(named.config.leader_election.on().expect("it is on").resource_namespace, "a");
    let read = |_: &str| Err(io::Error::other("broken"));
    let error = load(&options(&["--port=1"], &[]), &read).expect_err("it fails").to_string();
    assert_eq!(error, "unable to find leader election namespace: error reading namespace file: broken");
}
