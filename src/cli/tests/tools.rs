//! Options of commands.

use super::*;

#[test]
fn webhook_review_takes_a_path_and_files() {
    let args =
        ["webhook", "review", "--path=/webhooks/a", "-f", "-", "--config=c", "--objects", "x", "y", "--objects=z"];

    let options = ReviewOptions {
        path: "/webhooks/a".to_owned(),
        files: vec!["-".to_owned()],
        config: Some("c".to_owned()),
        objects: ["x", "y", "z"].map(str::to_owned).into(),
    };
    assert_eq!(parse_in(&args, &[]), Ok(Command::Tool(Tool::Webhook(WebhookTool::Review(options)))));
    for incomplete in [&["webhook"][..], &["webhook", "review"], &["webhook", "review", "--path=a"]] {
        assert!(matches!(parse_in(incomplete, &[]), Err(UsageError::Tool(_))), "{incomplete:?}");
    }
    let Ok(Command::Help(help)) = parse_in(&["webhook", "review", "--help"], &[]) else { panic!("no help") };
    assert!(help.contains("Examples:\n  gardener-resource-manager webhook review --path"), "{help}");
}

#[test]
fn garbage_needs_no_dry_run_flag_but_accepts_it() {
    let garbage = |dry_run| Ok(Command::Tool(Tool::Garbage(GarbageOptions { dry_run, ..GarbageOptions::default() })));

    assert_eq!(parse_in(&["garbage"], &[]), garbage(false));
    assert_eq!(parse_in(&["garbage", "--dry-run"], &[]), garbage(true));
    let Ok(Command::Help(help)) = parse_in(&["garbage", "--help"], &[]) else { panic!("no help") };
    assert!(!help.contains("dry-run"), "{help}");
}

#[test]
fn leader_election_flags_override_their_fields() {
    let flags = [
        "--config=/c",
        "--leader-election",
        "--leader-election-lease-duration=9s",
        "--leader-election-renew-deadline=8s",
        "--leader-election-retry-period=3s",
        "--leader-election-namespace=n",
        "--leader-election-resource-lock=configmapsleases",
    ];

    let loaded = load_in(&flags, &[], &[("/c", "leaderElection: {leaderElect: false}")]).expect("it is valid");

    let election = loaded.config.leader_election.on().expect("leader election is on");
    let durations = [election.lease_duration.get(), election.renew_deadline.get(), election.retry_period.get()];
    assert_eq!(durations, [9, 8, 3].map(Duration::from_secs));
    assert_eq!((election.resource_namespace.as_str(), election.resource_lock.as_str()), ("n", "leases"));
    assert_eq!(loaded.warnings[0].kind, LOCK_REPLACED);
}

#[test]
fn flags_without_effect_are_accepted_with_a_warning() {
    let flags = [
        "--leader-election=false",
        "--root-ca-file=/x",
        "--root-ca-publisher-max-concurrent-workers=5",
        "--secret-max-concurrent-workers=5",
        "--pod-zone-affinity-webhook-enabled",
    ];

    let loaded = load_in(&flags, &[], &[]).expect("the configuration is valid");

    let paths: Vec<_> = loaded.warnings.iter().map(|warning| warning.path.as_str()).collect();
    let names = flags[1..].iter().map(|flag| flag.split('=').next().unwrap_or_default());
    assert_eq!(paths, names.collect::<Vec<_>>());
}

/// spec 70 §5: after merging, validation applies as usual.
#[test]
fn flag_values_are_validated_like_those_of_the_file() {
    let error = load_in(&["--leader-election=false", "--max-concurrent-workers=0"], &[], &[]).expect_err("it fails");

    assert_eq!(error, "controllers.managedResources.concurrentSyncs: Invalid value: 0: must be at least 1");
}

#[test]
fn print_config_is_a_flag() {
    let asked = |args: &[&str]| matches!(parse(args), Ok(Command::PrintConfig(_)));

    assert!(asked(&["--config=/c", "--print-config"]));
    assert!(!asked(&["--config=/c", "--print-config=false"]));
    assert!(parse(&["--print-config=x"]).is_err());
}
