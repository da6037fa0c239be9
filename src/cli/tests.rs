//! The command line with its configuration file. `flag_mode`: without one. `reference`: the reference of all flags. `start`:
//! what is said about mistakes, and logged at the start.

mod flag_mode;
mod reference;
mod start;
mod tools;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, ErrorKind},
    time::Duration,
};

use process::{
    command_line::{parse_bool, read_file},
    logging::Level,
};

use super::*;
use crate::api::config::resource_manager::{Config, LOCK_REPLACED, Loaded, NARROWS_TARGET, Workers};

type Pairs<'a> = &'a [(&'a str, &'a str)];

fn parse_in(args: &[&str], env: Pairs<'_>) -> Result<Command, UsageError> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let env: BTreeMap<_, _> = env.iter().copied().collect();
    Cli::parse_from(&args, &|name| env.get(name).map(|value| (*value).to_owned()))
}

fn parse(args: &[&str]) -> Result<Command, String> {
    parse_in(args, &[]).map_err(|error| error.to_string())
}

fn options(args: &[&str], env: Pairs<'_>) -> RunOptions {
    match parse_in(args, env) {
        Ok(Command::Run(options)) => *options,
        other => panic!("not a run: {other:?}"),
    }
}

fn load_in(args: &[&str], env: Pairs<'_>, files: Pairs<'_>) -> Result<Loaded, String> {
    let files: BTreeMap<_, _> = files.iter().copied().collect();
    let read = |path: &str| {
        let content = files.get(path).map(|content| content.as_bytes().to_vec());
        content.ok_or_else(|| io::Error::new(ErrorKind::NotFound, format!("open {path}: no such file or directory")))
    };
    load(&options(args, env), &read).map_err(|error| error.to_string())
}

/// Loads these flags with a file `/c` that disables leader election and has the given lines.
fn with_file(flags: &[&str], lines: &str) -> Config {
    let args: Vec<_> = ["--config=/c"].iter().chain(flags).copied().collect();
    let file = format!("leaderElection: {{leaderElect: false}}\n{lines}");
    load_in(&args, &[], &[("/c", &file)]).expect("the configuration is valid").config
}

fn flag_mode(flags: &[&str]) -> Config {
    load_in(flags, &[], &[(load::SERVICE_ACCOUNT_NAMESPACE, "garden\n")]).expect("the configuration is valid").config
}

/// spec 70 scenario 1
#[test]
fn config_file_is_required_without_flags() {
    assert_eq!(load_in(&[], &[], &[]), Err("missing config file".to_owned()));
    assert_eq!(load_in(&["--config="], &[], &[]), Err("missing config file".to_owned()));
    assert_eq!(load_in(&["--extra-target-namespace=a"], &[], &[]), Err("missing config file".to_owned()));
}

/// spec 70 §1.1
#[test]
fn start_failures_name_their_cause() {
    let load = |content| load_in(&["--config", "/c"], &[], &[("/c", content)]).expect_err("it fails");

    let error = load_in(&["--config", "/d"], &[], &[]).expect_err("it fails");
    assert_eq!(error, "error reading config file: open /d: no such file or directory");
    assert!(load("kind: Foo").starts_with("error decoding config: no kind \"Foo\" is registered for version "));
    assert_eq!(load(""), "leaderElection.resourceNamespace: Required value (/c)");
}

#[test]
fn config_file_size_is_limited() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let write = |name: &str, bytes: usize| {
        let path = directory.path().join(name);
        std::fs::write(&path, vec![b' '; bytes]).expect("a file can be written");
        path.to_string_lossy().into_owned()
    };

    assert_eq!(read_file(&write("fits", 2 << 20)).expect("it is read").len(), 2 << 20);
    let error = read_file(&write("big", (2 << 20) + 1)).expect_err("it is too big").to_string();
    assert!(error.starts_with("open /") && error.ends_with("big: file is larger than 2 MiB"), "{error}");
    assert_eq!(read_file("/no/such/file").expect_err("it is missing").kind(), ErrorKind::NotFound);
}

/// spec 70 §1
#[test]
fn flags_take_values_in_both_forms_and_the_last_one_counts() {
    let forms: [&[&str]; 4] = [
        &["--config", "/c", "--port", "-1", "--profiling", "--always-update=false"],
        &["--config=/c", "--port=-1", "--profiling=true", "--always-update=0"],
        &["--profiling=T", "--config=/x", "--port=3", "--port=-1", "--always-update=F", "--config=/c"],
        &["--profiling=f", "--always-update", "--config", "/c", "--port=-1", "--profiling", "--always-update=f"],
    ];

    for args in forms {
        let options = options(args, &[]);
        assert_eq!(options.shared.config.as_deref(), Some("/c"));
        assert_eq!(options.legacy("port"), Some("-1"));
        assert!(parse_bool(options.legacy("profiling").expect("it is set")).expect("it is a boolean"));
        assert!(!parse_bool(options.legacy("always-update").expect("it is set")).expect("it is a boolean"));
    }
}

/// spec 70 §1
#[test]
fn flags_unknown_incomplete_or_invalid_are_refused() {
    const LATE: &str = "; a command comes first, and its flags follow it: gardener-resource-manager";
    let help = format!("unknown command \"help\" for \"gardener-resource-manager\"{LATE} help …");
    let get = format!("unknown command \"get\" for \"gardener-resource-manager\"{LATE} get …");
    let early = format!("unknown flag: -n{LATE} get -n …");
    let table: [(&[&str], &str); 13] = [
        (&["run"], "unknown command \"run\" for \"gardener-resource-manager\""),
        (&["--profiling", "false"], "unknown command \"false\" for \"gardener-resource-manager\""),
        (&["--config=/c", "help"], &help),
        (&["--config=/c", "get"], &get),
        (&["-n", "garden", "get"], &early),
        (&["--foo"], "unknown flag: --foo"),
        (&["--foo=1"], "unknown flag: --foo"),
        (&["--config"], "flag needs an argument: --config"),
        (&["--port=x"], "invalid argument \"x\" for \"--port\" flag: must be an integer"),
        (&["--sync-period=5"], "invalid argument \"5\" for \"--sync-period\" flag: missing unit in duration \"5\""),
        (&["--profiling=maybe"], "invalid argument \"maybe\" for \"--profiling\" flag: must be true or false"),
        (
            &["--metrics-bind-address=8080"],
            "invalid argument \"8080\" for \"--metrics-bind-address\" flag: must be host:port, or 0 for no server",
        ),
        (&["--version=1"], ""),
    ];

    for (args, text) in table {
        match parse(args) {
            Err(error) => assert_eq!(error, text),
            Ok(command) => assert!(text.is_empty() && matches!(command, Command::Version(_)), "{args:?}: {command:?}"),
        }
    }
}

/// spec 70 §1
#[test]
fn misspelt_command_is_answered_with_the_nearest_one() {
    let table = [("descibe", "describe"), ("evnets", "events"), ("suspnd", "suspend"), ("unpak", "unpack")];

    for (word, nearest) in table {
        match parse_in(&[word, "x"], &[]) {
            Err(UsageError::Tool(text)) => assert!(text.contains(word) && text.contains(nearest), "{text}"),
            other => panic!("{word}: {other:?}"),
        }
    }
}

#[test]
fn request_timeout_has_a_default_and_zero_is_none() {
    let of = |args: &[&str]| match parse_in(args, &[]) {
        Ok(Command::Tool(Tool::Get(options))) => options.connection.request_timeout.get(),
        other => panic!("{other:?}"),
    };
    let days = |duration: Duration| duration.as_secs() / 86400;

    assert_eq!(of(&["get"]), RequestTimeout::default().get());
    assert_eq!(of(&["get", "--request-timeout=1m30s"]).as_secs(), 90);
    assert_eq!((of(&["get"]).as_secs(), days(of(&["get", "--request-timeout", "0"]))), (15, 365));
}

/// spec 70 §1
#[test]
fn version_flag_prints_or_overrides_the_version() {
    let version = BuildInfo::of_this_binary().version;
    let line = Ok(Command::Version(format!("gardener-resource-manager {version}")));

    assert_eq!(parse(&["--version"]), line);
    assert_eq!(parse(&["--version=true", "--config=/c"]), line);
    assert!(matches!(parse(&["--version=raw"]), Ok(Command::Version(text)) if text.contains("gitCommit: ")));
    assert_eq!(options(&["--version=false"], &[]).shared.version.version, version);
    assert_eq!(options(&["--version=v9.9.9"], &[]).shared.version.version, "v9.9.9");
    assert!(parse(&["--version=latest"]).is_err());
}

#[test]
fn help_lists_each_flag_and_keeps_the_legacy_ones_apart() {
    let Ok(Command::Help(help)) = parse(&["--help"]) else { panic!("help is printed") };

    let (main, legacy_part) = help.split_once("Legacy flags").expect("the legacy flags have a heading");
    for flag in ["--config", "--extra-target-namespace", "--print-config", "--version", "--help"] {
        assert!(main.contains(flag), "{flag}");
    }
    for flag in legacy::FLAGS {
        assert!(legacy_part.contains(&format!("--{}", flag.name)), "{}", flag.name);
        assert!(!main.contains(&format!("--{} ", flag.name)), "{}", flag.name);
    }
    assert!(Cli::usage().contains("Usage: gardener-resource-manager"));
}

#[test]
fn help_short_has_the_common_options_and_names_the_long_one() {
    let Ok(Command::Help(help)) = parse(&["-h"]) else { panic!("help is printed") };

    assert!(help.contains("--config <FILE>") && help.contains("see more with '--help'"), "{help}");
    for flag in legacy::FLAGS {
        assert!(!help.contains(&format!("--{} ", flag.name)), "{}", flag.name);
    }
}

/// A wrapped example is no command.
#[test]
fn help_does_not_wrap_examples() {
    let narrow = |path: &[&str]| {
        let mut line = flags::command_line();
        line.command = line.command.term_width(40).mut_subcommands(|command| command.term_width(40));
        let args: Vec<OsString> = path.iter().chain(&["--help"]).map(OsString::from).collect();
        match line.parse(&args) {
            Ok(process::command_line::Parsed::Help(help)) => help,
            other => panic!("{other:?}"),
        }
    };
    let table: [(&[&str], &str); 3] = [
        (&[], "  gardener-resource-manager --config config/local.yaml"),
        (
            &["completion"],
            "  gardener-resource-manager completion bash > /etc/bash_completion.d/gardener-resource-manager",
        ),
        (&["diff"], "  gardener-resource-manager diff garden/web -f manifests/"),
    ];

    for (command, example) in table {
        let help = narrow(command);
        assert!(help.lines().any(|line| line == example), "{help}");
        assert!(!help.contains('\u{a0}'), "{help}");
    }
}

#[cfg(feature = "sim")]
#[test]
fn demo_is_a_command() {
    let second = Some(Duration::from_secs(1));
    let story = DemoOptions { keep: false, bundles: None, change_interval: second };
    assert_eq!(parse(&["demo"]), Ok(Command::Demo(story)));
    assert_eq!(parse(&["demo", "--keep"]), Ok(Command::Demo(DemoOptions { keep: true, ..story })));
    assert_eq!(parse(&["demo", "--keep=false"]), Ok(Command::Demo(story)));
    assert!(parse(&["demo", "--keep=x"]).is_err());
    assert!(matches!(parse(&["demo", "--help"]), Ok(Command::Help(text)) if text.contains("--keep")));
}

#[cfg(feature = "sim")]
#[test]
fn demo_takes_a_number_of_bundles_and_a_rate_of_changes_within_limits() {
    let options = |args: &[&str]| match parse(&[&["demo"], args].concat()) {
        Ok(Command::Demo(options)) => Ok((options.bundles, options.change_interval)),
        other => Err(format!("{other:?}")),
    };

    assert_eq!(options(&["--bundles", "10000"]), Ok((Some(10_000), Some(Duration::from_secs(1)))));
    assert_eq!(options(&["--bundles=1", "--changes-per-second=4"]), Ok((Some(1), Some(Duration::from_millis(250)))));
    assert_eq!(options(&["--changes-per-second", "0"]), Ok((None, None)));
    for (args, named) in [
        (["--bundles", "0"], "1..=20000"),
        (["--bundles", "1000000"], "1..=20000"),
        (["--bundles", "many"], "'many'"),
        (["--changes-per-second", "-1"], "from 0.001 to 100"),
        (["--changes-per-second", "NaN"], "from 0.001 to 100"),
        (["--changes-per-second", "1e9"], "from 0.001 to 100"),
    ] {
        let error = options(&args).unwrap_err();
        assert!(error.contains(named) && error.contains(args[0]), "{error}");
    }
}

/// spec 70 scenario 34 and trap 1
#[test]
fn extra_target_namespaces_are_appended_as_they_are() {
    let args = ["--config=/c", "--extra-target-namespace=b", "--extra-target-namespace", "a,c"];
    let file = "leaderElection: {leaderElect: false}\ntargetClientConnection: {namespaces: [z]}";
    let everywhere = "leaderElection: {leaderElect: false}";

    let appended = load_in(&args, &[], &[("/c", file)]).expect("the configuration is valid");
    let narrowed = load_in(&args, &[], &[("/c", everywhere)]).expect("the configuration is valid");

    assert_eq!(appended.config.target.namespaces, ["z", "b", "a,c"]);
    assert_eq!(appended.warnings, []);
    assert_eq!(narrowed.config.target.namespaces, ["b", "a,c"]);
    assert_eq!(narrowed.warnings[0].kind, NARROWS_TARGET);
}

/// spec 70 scenario 21 and §1.2
#[test]
fn kubeconfig_flag_beats_the_environment_and_that_beats_the_file() {
    let file = "leaderElection: {leaderElect: false}
sourceClientConnection: {kubeconfig: /y}
targetClientConnection: {kubeconfig: /ty}";
    let kubeconfigs = |flags: &[&str], env: Pairs<'_>| {
        let args: Vec<_> = ["--config=/c"].iter().chain(flags).copied().collect();
        let config = load_in(&args, env, &[("/c", file)]).expect("the configuration is valid").config;
        (config.source.kubeconfig, config.target.kubeconfig)
    };
    let pair = |source: &str, target: &str| (source.to_owned(), target.to_owned());
    let env: Pairs<'_> = &[("KUBECONFIG", "/x"), ("TARGET_KUBECONFIG", "/tx")];

    assert_eq!(kubeconfigs(&[], &[]), pair("/y", "/ty"));
    assert_eq!(kubeconfigs(&[], &[("KUBECONFIG", ""), ("TARGET_KUBECONFIG", "")]), pair("/y", "/ty"));
    assert_eq!(kubeconfigs(&[], &[("KUBECONFIG", "/x")]), pair("/x", "/ty"));
    assert_eq!(kubeconfigs(&[], env), pair("/x", "/tx"));
    assert_eq!(kubeconfigs(&["--kubeconfig=/z", "--target-kubeconfig=/tz"], env), pair("/z", "/tz"));
    assert_eq!(kubeconfigs(&["--kubeconfig=", "--target-kubeconfig="], env), pair("/x", "/tx"));
    assert_eq!(kubeconfigs(&["--kubeconfig=", "--target-kubeconfig="], &[]), pair("", ""));
}

#[test]
fn environment_shows_whether_the_process_runs_in_a_cluster() {
    let in_cluster = |env: Pairs<'_>| options(&["--config=/c"], env).environment.in_cluster;

    let host = ("KUBERNETES_SERVICE_HOST", "::1");
    assert_eq!(in_cluster(&[host, ("KUBERNETES_SERVICE_PORT", "443")]).as_deref(), Some("https://[::1]:443"));
    assert_eq!(in_cluster(&[host]), None);
    assert_eq!(in_cluster(&[host, ("KUBERNETES_SERVICE_PORT", "")]), None);
}

/// spec 70 scenario 16
#[test]
fn namespace_flag_replaces_the_namespaces_of_the_file() {
    let namespaces = |flags: &[&str]| {
        let file = "sourceClientConnection: {namespaces: [a], namespace: c}\ntargetClientConnection: {namespaces: [t]}";
        let config = with_file(flags, file);
        (config.source.namespaces, config.target.namespaces)
    };

    assert_eq!(namespaces(&["--namespace=b"]), (vec!["b".to_owned()], vec!["t".to_owned()]));
    assert_eq!(namespaces(&["--target-namespace=b"]).1, ["b"]);
    assert_eq!(namespaces(&["--namespace="]).0, Vec::<String>::new());
}

/// spec 70 scenario 17
#[test]
fn flag_defaults_have_no_effect_with_a_file() {
    let config = with_file(&[], "");

    assert_eq!(config, Config::default());
    assert_eq!(config.controllers.managed_resource.concurrent_syncs.count(), 5);
    assert_eq!(with_file(&["--always-update"], "").controllers.managed_resource.concurrent_syncs.count(), 5);
}

/// spec 70 scenario 18
#[test]
fn worker_flags_of_zero_disable_controllers() {
    let file = "
controllers:
  tokenInvalidator: {enabled: true}
  tokenRequestor: {enabled: true}
  csrApprover: {enabled: true}
  garbageCollector: {enabled: true}
webhooks: {tokenInvalidator: {enabled: true}}";
    let flags = [
        "--token-invalidator-max-concurrent-workers=0",
        "--token-requestor-max-concurrent-workers=0",
        "--kubelet-csr-approver-max-concurrent-workers=0",
        "--garbage-collector-sync-period=0",
    ];

    let config = with_file(&flags, file);

    assert_eq!(config, Config::default());
}

#[test]
fn worker_flags_enable_controllers_and_their_webhooks() {
    let flags = ["--token-invalidator-max-concurrent-workers=4", "--kubelet-csr-approver-max-concurrent-workers=2"];

    let config = with_file(&flags, "sourceClientConnection: {namespaces: [a]}");
    let with_namespace = with_file(&[flags[1], "--namespace=n"], "");

    assert_eq!(config.controllers.token_invalidator.on().map(|it| it.concurrent_syncs), Some(Workers::new(4)));
    assert!(config.webhooks.token_invalidator.enabled);
    let approver = config.controllers.csr_approver.on().expect("the controller is on");
    assert_eq!((approver.concurrent_syncs.count(), approver.machine_namespace.as_deref()), (2, None));
    let approver = with_namespace.controllers.csr_approver.on().expect("the controller is on");
    assert_eq!(approver.machine_namespace.as_deref(), Some("n"));
}

/// spec 70 §5: each flag that sets one field, and the field.
#[test]
fn flags_override_their_fields() {
    let table = [
        ("--cache-resync-period=1h", "/sourceClientConnection/cacheResyncPeriod", "\"1h0m0s\""),
        ("--target-cache-resync-period=1h", "/targetClientConnection/cacheResyncPeriod", "\"1h0m0s\""),
        ("--target-disable-cache", "/targetClientConnection/disableCachedClient", "true"),
        ("--tls-cert-dir=/t", "/server/webhooks/tls/serverCertDir", "\"/t\""),
        ("--bind-address=::", "/server/webhooks/bindAddress", "\"::\""),
        ("--port=1", "/server/webhooks/port", "1"),
        (
            "--metrics-bind-address=[::1]:9",
            "/server/metrics",
            "{\"bindAddress\":\"::1\",\"perManagedResource\":false,\"port\":9}",
        ),
        ("--health-bind-address=h:9", "/server/healthProbes", "{\"bindAddress\":\"h\",\"port\":9}"),
        ("--profiling", "/debugging/enableProfiling", "true"),
        ("--contention-profiling", "/debugging/enableContentionProfiling", "true"),
        ("--log-level=error", "/logLevel", "\"error\""),
        ("--log-format=text", "/logFormat", "\"text\""),
        ("--resource-class=c", "/controllers/resourceClass", "\"c\""),
        ("--resource-class=", "/controllers/resourceClass", "\"resources\""),
        ("--cluster-id=i", "/controllers/clusterID", "\"i\""),
        ("--max-concurrent-workers=7", "/controllers/managedResource/concurrentSyncs", "7"),
        ("--sync-period=7h", "/controllers/managedResource/syncPeriod", "\"7h0m0s\""),
        ("--always-update", "/controllers/managedResource/alwaysUpdate", "true"),
        ("--managed-by-label=m", "/controllers/managedResource/managedByLabelValue", "\"m\""),
        ("--health-max-concurrent-workers=7", "/controllers/health/concurrentSyncs", "7"),
        ("--health-sync-period=7h", "/controllers/health/syncPeriod", "\"7h0m0s\""),
        (
            "--pod-scheduler-name-webhook-enabled",
            "/webhooks/podSchedulerName",
            "{\"enabled\":true,\"schedulerName\":\"default-scheduler\"}",
        ),
        ("--pod-topology-spread-constraints-webhook-enabled", "/webhooks/podTopologySpreadConstraints/enabled", "true"),
        ("--seccomp-profile-webhook-enabled", "/webhooks/seccompProfile/enabled", "true"),
    ];

    for (flag, pointer, value) in table {
        let config = serde_json::to_value(with_file(&[flag], "controllers: {resourceClass: x}")).expect("it is JSON");
        let found = config.pointer(pointer).map(ToString::to_string);
        assert_eq!(found.as_deref(), Some(value), "{flag}");
    }
    assert_eq!(with_file(&["--metrics-bind-address=0"], "").server.metrics(), None);
    assert_eq!(with_file(&["--health-bind-address=0"], "").server.health_probes(), None);
    let scheduler = ["--pod-scheduler-name-webhook-enabled", "--pod-scheduler-name-webhook-scheduler=s"];
    assert_eq!(with_file(&scheduler, "").webhooks.pod_scheduler_name.on().map(|w| &*w.scheduler_name), Some("s"));
    let seconds = flag_mode(&["--projected-token-mount-expiration-seconds=600"]).webhooks.projected_token_mount;
    assert_eq!(seconds.on().map(|webhook| webhook.expiration_seconds), Some(600));
    assert_eq!(with_file(&["--log-level=debug"], "logLevel: error").logging().level, Level::Debug);
}
