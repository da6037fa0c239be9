use std::{collections::BTreeMap, io::ErrorKind};

use process::BuildInfo;

use super::*;

type Pairs<'a> = &'a [(&'a str, &'a str)];

fn parse_in(args: &[&str], env: Pairs<'_>) -> Result<Command, String> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let env: BTreeMap<_, _> = env.iter().copied().collect();
    let parsed = Command::parse_from(&args, &|name| env.get(name).map(|value| (*value).to_owned()));
    parsed.map_err(|error| error.to_string())
}

fn parse(args: &[&str]) -> Result<Command, String> {
    parse_in(args, &[])
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

/// spec 80 scenario 1
#[test]
fn config_file_is_required() {
    assert_eq!(load_in(&[], &[], &[]), Err("missing config file".to_owned()));
    assert_eq!(load_in(&["--config="], &[], &[]), Err("missing config file".to_owned()));
}

/// spec 80 §2, scenarios 2, 10 and 13
#[test]
fn start_failures_name_their_cause() {
    let load = |content| load_in(&["--config", "/c"], &[], &[("/c", content)]).expect_err("it fails");

    let error = load_in(&["--config", "/d"], &[], &[]).expect_err("it fails");
    assert_eq!(error, "error reading config file: open /d: no such file or directory");
    assert!(load("kind: Foo").starts_with("error decoding config: no kind \"Foo\" is registered for version "));
    assert_eq!(load("featureGates: {Foo: true}"), "unrecognized feature gate: Foo (/c, line 1)");
    assert!(load("{logLevel: trace, logFormat: xml}").starts_with("[logLevel: Unsupported value: \"trace\""));
}

/// spec 80 §2
#[test]
fn flags_of_the_other_program_and_arguments_are_refused() {
    let table: [(&[&str], &str); 7] = [
        (&["run"], "unknown command \"run\" for \"gardener-controller-manager\""),
        (
            &["--config=/c", "help"],
            "unknown command \"help\" for \"gardener-controller-manager\"; a command comes first, and its flags follow it: \
             gardener-controller-manager help …",
        ),
        (&["pack"], "unknown command \"pack\" for \"gardener-controller-manager\""),
        (&["--extra-target-namespace=a"], "unknown flag: --extra-target-namespace"),
        (&["--kubeconfig=/k"], "unknown flag: --kubeconfig"),
        (&["--config"], "flag needs an argument: --config"),
        (&["--print-config=x"], "invalid argument \"x\" for \"--print-config\" flag: must be true or false"),
    ];

    for (args, text) in table {
        assert_eq!(parse(args), Err(text.to_owned()), "{args:?}");
    }
}

/// spec 80 §2
#[test]
fn version_flag_prints_or_overrides_the_version() {
    let version = BuildInfo::of_this_binary().version;

    let line = Ok(Command::Version(format!("gardener-controller-manager {version}")));
    assert_eq!([parse(&["--version"]), parse(&["--version=true", "--config=/c"])], [line.clone(), line]);
    assert!(matches!(parse(&["--version=raw"]), Ok(Command::Version(text)) if text.contains("gitCommit: ")));
    assert_eq!(options(&["--version=v9.9.9"], &[]).shared.version.version, "v9.9.9");
    assert!(parse(&["--version=latest"]).is_err());
}

#[test]
fn help_lists_flags_and_environment() {
    let Ok(Command::Help(help)) = parse(&["--help"]) else { panic!("help is printed") };

    for text in ["--config <FILE>", "--print-config", "--version", "--help", "KUBECONFIG"] {
        assert!(help.contains(text), "{text}: {help}");
    }
    assert!(matches!(parse(&["-h"]), Ok(Command::Help(_))));
    assert!(usage().contains("Usage: gardener-controller-manager --config <FILE>"), "{}", usage());
}

#[test]
fn print_config_is_a_flag() {
    assert!(matches!(parse(&["--config=/c", "--print-config"]), Ok(Command::PrintConfig(_))));
    assert!(matches!(parse(&["--config=/c", "--print-config=false"]), Ok(Command::Run(_))));
}

/// spec 80 scenario 17, trap 4
#[test]
fn kubeconfig_of_the_environment_beats_the_file() {
    let file = "gardenClientConnection: {kubeconfig: /b}";
    let path = |env: Pairs<'_>| {
        let loaded = load_in(&["--config=/c"], env, &[("/c", file)]).expect("the configuration is valid");
        loaded.config.garden_client_connection.kubeconfig
    };

    assert_eq!(path(&[("KUBECONFIG", "/a")]), "/a");
    assert_eq!(path(&[("KUBECONFIG", "")]), "/b");
    assert_eq!(path(&[("TARGET_KUBECONFIG", "/a")]), "/b");
}

/// spec 80 §11 step 2
#[test]
fn flag_lines_of_the_log_have_the_given_flags_once_and_sorted() {
    let lines = |args: &[&str]| options(args, &[]).flag_lines();

    assert_eq!(lines(&["--config=/c"]), ["FLAG: --config=/c"]);
    let flags = ["--config=/c", "--print-config=false", "--version=v1.2.3"];
    assert_eq!(lines(&[flags[2], flags[1], flags[0]]), flags.map(|flag| format!("FLAG: {flag}")));
}

/// spec 80 §2: an error and a warning name the file and the line, and what a misspelt key means.
#[test]
fn config_file_and_line_are_named_with_a_mistake() {
    let load = |content: &str| load_in(&["--config=/c"], &[], &[("/c", content)]);

    assert_eq!(
        load("logLevel: info\ngardenClientConnection:\n  burst: -1\n").expect_err("it fails"),
        "gardenClientConnection.burst: Invalid value: -1: must be non-negative (/c, line 3)"
    );
    let misspelt = load("logLevel: info\ncontrollers:\n  bastoin: {}\n").expect("it is valid").warnings;
    let texts: Vec<_> = misspelt.iter().map(|warning| warning.text(Some("/c"))).collect();
    let expected = r#"/c:3: controllers.bastoin: Unknown configuration key is ignored; did you mean "bastion"?"#;
    assert_eq!(texts, [expected]);
}

/// spec 80 §11 step 2
#[test]
fn log_of_the_start_has_the_configuration_as_it_is_printed() {
    let load = |content: &str| load_in(&["--config=/c"], &[], &[("/c", content)]).expect("it is valid");

    let loaded = load("controllers: {event: {}}\nfeatureGates: {DisableNginxIngressInShoot: true}");
    assert_eq!(loaded.config.to_log(), loaded.config.to_yaml());
    let loaded = load("gardenClientConnection: {kubeconfig: \"users: []\\ntoken: sesame\"}");
    assert!(
        loaded.config.to_yaml().contains("sesame") && !loaded.config.to_log().contains("sesame"),
        "{}",
        loaded.config.to_log()
    );
}

#[test]
fn referrers_take_each_name_of_a_kind() {
    let parsed = |args: &[&str]| match parse(args) {
        Ok(Command::Tool(Tool::Referrers(options))) => options,
        other => panic!("{args:?}: {other:?}"),
    };
    let table = [
        ("secret", "Secret"),
        ("cm", "ConfigMap"),
        ("quota", "Quota"),
        ("CloudProfiles", "CloudProfile"),
        ("quotas.core.gardener.cloud", "Quota"),
        ("CredentialsBinding.security.gardener.cloud", "CredentialsBinding"),
        ("workloadidentities", "WorkloadIdentity"),
        ("seed", "Seed"),
    ];

    for (word, kind) in table {
        assert_eq!(&*parsed(&["referrers", word, "x"]).kind.resource().kind, kind, "{word}");
    }
    let options = parsed(&["referrers", "secret", "x", "-n", "garden-dev", "-o", "json"]);
    assert_eq!((options.name.as_str(), options.namespace.as_deref()), ("x", Some("garden-dev")));
}

#[test]
fn referrers_refuse_what_cannot_be_meant() {
    let table: [(&[&str], &str); 7] = [
        (&["referrers", "pod", "x"], "must be one of CloudProfile, NamespacedCloudProfile, "),
        (&["referrers", "quotas.other.group", "x"], "must be one of "),
        (&["referrers", "secret"], "<[NAMESPACE/]NAME>"),
        (&["referrers", "secret", "a/b/c"], "must be <name> or <namespace>/<name>"),
        (&["referrers", "cloudprofile", "a/b"], "cloudprofiles have no namespace — leave it out"),
        (&["referrers", "seed", "b", "-n", "a"], "seeds have no namespace — leave it out"),
        (&["referrers", "secret", "a/b", "-n", "c"], "-n and the namespace of a name differ"),
    ];

    for (args, text) in table {
        let error = parse(args).expect_err("it is refused");
        let usage = "Usage: gardener-controller-manager referrers ";
        assert!(error.starts_with("error: ") && error.contains(text) && error.contains(usage), "{args:?}: {error}");
    }
}

#[test]
fn hibernation_takes_a_file_and_a_time() {
    let parsed = |args: &[&str]| match parse(args) {
        Ok(Command::Tool(Tool::Hibernation(options))) => options,
        other => panic!("{args:?}: {other:?}"),
    };

    let options = parsed(&["hibernation", "--shoot", "s.yaml", "--at", "2026-03-28T14:00:00+02:00", "-o", "json"]);
    assert_eq!((&*options.shoot, options.at), ("s.yaml", "2026-03-28T12:00:00Z".parse().ok()));
    assert_eq!(parsed(&["hibernation", "--shoot", "-"]).at, None);
    for (args, text) in
        [(&["hibernation"][..], "--shoot <FILE>"), (&["hibernation", "--shoot", "s", "--at", "soon"], "must be a date")]
    {
        assert!(parse(args).is_err_and(|error| error.contains(text)), "{args:?}");
    }
}

#[test]
fn commands_have_a_help_that_names_their_program() {
    for command in ["referrers", "extensions", "hibernation", "maintenance", "check", "version", "man", "completion"] {
        let flag = parse(&[command, "--help"]);
        assert_eq!(flag, parse(&["help", command]), "{command}");
        let Ok(Command::Help(help)) = flag else { panic!("{command} has a help") };
        assert!(help.contains(&format!("  gardener-controller-manager {command}")), "{help}");
        assert!(help.contains("Exit codes:") && !help.contains("gardener-resource-manager"), "{help}");
    }
    assert!(matches!(parse(&["help"]), Ok(Command::Help(text)) if text.contains("referrers")));
    assert!(parse(&["help", "nothing"]).is_err_and(|text| text.contains("there is no command \"nothing\"")));
}
