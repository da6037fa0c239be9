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

/// Options of all commands that take a value, with their commands.
fn options_with_values(command: &clap::Command, found: &mut Vec<(String, clap::Arg)>) {
    for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
        found.push((command.get_name().to_owned(), argument.clone()));
    }
    command.get_subcommands().for_each(|command| options_with_values(command, found));
}

#[test]
fn options_of_commands_refuse_empty_values_and_never_repeat_the_content_of_a_file() {
    // What is appended or written somewhere may be empty.
    const MAY_BE_EMPTY: [&str; 3] = ["prefix", "cluster_id", "managed_by"];
    let mut found = Vec::new();
    let commands = flags::command_line().command;
    let commands = commands.get_subcommands().filter(|command| !["help", "demo"].contains(&command.get_name()));
    commands.for_each(|command| options_with_values(command, &mut found));

    assert!(found.len() > 40, "{}", found.len());
    for (command, argument) in found {
        let id = argument.get_id().to_string();
        let of = |value: &str| {
            let alone = clap::Arg::new("x").long("x").value_parser(argument.get_value_parser().clone());
            clap::Command::new("c").arg(alone).try_get_matches_from(["c", "--x", value])
        };

        assert_eq!(of("").is_ok(), MAY_BE_EMPTY.contains(&id.as_str()), "{command}: {id}");
        if let Err(error) = of("users:\n- {name: u, user: {token: sesame}}\n") {
            let text = process::command_line::without_content(error).to_string();
            assert!(!text.contains("sesame"), "{command}: {id}: {text}");
        } else {
            assert!(MAY_BE_EMPTY.contains(&id.as_str()), "{command}: {id}");
        }
    }
}
