//! Both programs as a user runs them in a shell, without a cluster: their commands, and the starts that fail.

mod clusters;
mod controller_manager;
mod terminal;

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn run(arguments: &[&str], input: &str) -> Output {
    run_in(&[], arguments, input)
}

fn run_in(environment: &[(&str, &str)], arguments: &[&str], input: &str) -> Output {
    run_program(env!("CARGO_BIN_EXE_gardener-resource-manager"), environment, arguments, input)
}

fn run_program(program: &str, environment: &[(&str, &str)], arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program may end before it has read everything.
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).ok();
    child.wait_with_output().expect("the program ends")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("no signal has ended the program")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it prints UTF-8")
}

/// spec 70 §1.1, scenarios 1, 2 and 26: the reason is on both streams, the exit code is 1.
#[test]
fn start_failure_is_printed_on_both_streams() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let kubeconfig = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],\
                      contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}]}";
    std::fs::write(path("kubeconfig"), kubeconfig).unwrap();
    std::fs::write(path("foo.yaml"), "apiVersion: v1\nkind: Foo\n").unwrap();
    let connection = format!("{{kubeconfig: {}}}", path("kubeconfig"));
    let valid = format!(
        "{{sourceClientConnection: {connection}, targetClientConnection: {connection}, leaderElection: {{leaderElect: false}},\n\
         server: {{webhooks: {{tls: {{serverCertDir: {}}}}}}}}}",
        path("tls")
    );
    std::fs::write(path("valid.yaml"), valid).unwrap();
    let (foo, valid) = (path("foo.yaml"), path("valid.yaml"));
    let certificate = format!("cannot read the serving certificate: {}/tls.crt: ", path("tls"));
    let table: [(&[&str], &str); 3] = [
        (&[], "missing config file"),
        (&["--config", &foo], "error decoding config: "),
        (&["--config", &valid], &certificate),
    ];

    for (arguments, reason) in table {
        let output = run(arguments, "");

        let (printed, errors) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(code(&output), 1, "{arguments:?}: {printed} {errors}");
        assert!(printed.contains(reason) && errors.contains(reason), "{arguments:?}: {printed} {errors}");
    }
}

#[test]
fn offline_commands_work_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.yaml").display().to_string();

    let packed = run(&["pack", "-", "--name", "web", "--namespace", "garden", "--output-file", &file], CONFIG_MAP);
    let unpacked = run(&["unpack", "-f", &file], "");
    let validated = run(&["validate", &file], "");

    assert_eq!((code(&packed), text(&packed.stdout)), (0, String::new()), "{}", text(&packed.stderr));
    assert_eq!(text(&unpacked.stdout), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n");
    assert_eq!((code(&validated), text(&validated.stdout)), (0, String::new()));
    assert_eq!(text(&validated.stderr), "documents: 2, errors: 0, warnings: 0\n");
}

#[test]
fn exit_code_is_1_for_wrong_input_and_2_for_other_errors() {
    let table: [(&[&str], &str, i32, &str); 26] = [
        (&["pack", "-", "--name", "web"], "kind: A", 1, "-: the object has no apiVersion or no kind"),
        (&["validate", "-"], "kind: A", 1, "documents: 1, errors: 2, "),
        (&["unpack", "-f", "-"], CONFIG_MAP, 1, "-: v1/ConfigMap/default/a is no Secret"),
        (&["pack", "-"], "", 2, "--name <NAME>"),
        (&["pack", "/nowhere", "--name", "web"], "", 2, "error: cannot read /nowhere: "),
        (&["diff", "-f", "-"], CONFIG_MAP, 2, "error: the files hold no ManagedResource"),
        (&["diff", "-f", "-", "a/b"], CONFIG_MAP, 2, "give a kubeconfig with --kubeconfig or $KUBECONFIG"),
        (&["unpack", "manifests/"], CONFIG_MAP, 2, "must be <name> or <namespace>/<name>; files are given with -f"),
        (&["get"], "", 2, "give a kubeconfig with --kubeconfig or $KUBECONFIG"),
        (&["get", "-A", "web"], "", 2, "cannot be used with"),
        (&["describe", "a/b/c"], "", 2, "must be <name> or <namespace>/<name>"),
        (&["trace", "web"], "", 2, "must be <kind>/<name> or <kind>.<group>/<name>"),
        (&["suspend"], "", 2, "required"),
        (&["suspend", "web", "-l", "a=b"], "", 2, "cannot be used with"),
        (&["reconcile", "web", "--timeout", "1m"], "", 2, "--wait"),
        (&["get", "--request-timeout", "5"], "", 2, "missing unit in duration \"5\" — write 5s, 5m or 5h"),
        (&["descibe", "web"], "", 2, "describe"),
        (&["nothing-like-it"], "", 1, "unknown command \"nothing-like-it\" for \"gardener-resource-manager\""),
        (&["get", "-A", "-n", "garden"], "", 2, "cannot be used with"),
        (&["pack", "-f", "-", "--name", "web", "-o", "bundle.yaml"], CONFIG_MAP, 2, "[possible values: yaml, json]"),
        (&["validate", "-f", "-"], "kind: A", 1, "documents: 1, errors: 2, "),
        (&["webhook", "review", "--path", "/webhooks/nothing", "-f", "-"], CONFIG_MAP, 2, "no webhook is served at"),
        (&["help", "nothing-like-it"], "", 2, "error: there is no command \"nothing-like-it\""),
        (&["help", "webhook", "rewiev"], "", 2, "review"),
        (&["man", "/dev/null"], "", 2, "error: /dev/null is a file — name a directory"),
        (&["get", "-o", "table"], "", 2, "must be wide, json, yaml, name, jsonpath=<template>"),
    ];

    for (arguments, input, expected, message) in table {
        let output = run(arguments, input);

        let stderr = text(&output.stderr);
        assert_eq!(code(&output), expected, "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
}

#[test]
fn wrong_usage_of_a_command_is_one_message_with_its_short_usage() {
    let table: [(&[&str], &str); 26] = [
        (&["suspend", "-n", "staging", "default/web"], "-n and the namespace of a name differ"),
        (&["get", "-o", "jsonpath={.a"], "not a JSONPath template: expected }"),
        (&["get", "-o", "custom-columns=A"], "is not <header>:<path>"),
        (&["get", "--sort-by", "size"], "must be a column"),
        (&["get", "--sort-by", "AGE", "--watch"], "cannot be used with"),
        (&["get", "-A", "web"], "cannot be used with"),
        (&["get", "a/web", "b/web", "-w"], "a watch of names is in one namespace"),
        (&["get", "Web"], "must be <name> or <namespace>/<name>"),
        (&["get", "-n", "a_b"], "a namespace must be lower case letters"),
        (&["suspend", "-l", ""], "must not be empty"),
        (&["suspend", "-A"], "required"),
        (&["wait", "web"], "--for"),
        (&["wait", "web", "--for", "ready"], "[possible values: applied, healthy, deleted]"),
        (&["diff", "-f", "a", "x", "y"], "files with -f are one bundle"),
        (&["diff", "-f", "a", "-A"], "cannot be used with"),
        (&["unpack", "web", "-f", "a"], "cannot be used with"),
        (&["pack", "-", "--name", "Web"], "a name must be lower case letters, digits, - and ."),
        (&["pack", "-", "--name", "web", "-n", "a.b"], "a namespace must be lower case letters"),
        (&["pack", "-", "--name", "web", "--output-file", ""], "a value is required for '--output-file <FILE>'"),
        (&["man", ""], "a value is required for '<DIRECTORY>'"),
        (&["validate", ""], "a value is required for '[FILE|DIR]...'"),
        (&["get", "--kubeconfig", ""], "a value is required for '--kubeconfig <FILE>'"),
        (&["get", "--context", ""], "a value is required for '--context <NAME>'"),
        (
            &["get", "--kubeconfig", "a: sesame\nb: c\n"],
            "'--kubeconfig <FILE>' takes a path, and this is the content of a file",
        ),
        (&["get", "-n", "a: sesame\nb: c\n"], "invalid value '(a text of 15 bytes)' for '--namespace"),
        (&["events", "--watch"], "unexpected argument '--watch' found"),
    ];

    for (arguments, message) in table {
        let output = run(arguments, "");

        let stderr = text(&output.stderr);
        assert_eq!((code(&output), text(&output.stdout).as_str()), (2, ""), "{arguments:?}: {stderr}");
        let usage = format!("\nUsage: gardener-resource-manager {} ", arguments[0]);
        assert!(stderr.starts_with("error: ") && stderr.contains(message) && stderr.contains(&usage), "{stderr}");
        assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
        assert!(stderr.lines().count() <= 9 && !stderr.contains("as a value"), "{stderr}");
        assert!(!stderr.contains("sesame"), "{stderr}");
    }
}

#[test]
fn examples_of_commands_are_not_wrapped() {
    for command in ["get", "describe", "events", "trace", "suspend", "resume", "reconcile", "wait", "diff", "unpack"] {
        let output = run(&[command, "--help"], "");

        let help = text(&output.stdout);
        let (_, examples) = help.split_once("Examples:\n").expect("the help has examples");
        let (examples, _) = examples.split_once("\n\n").expect("exit codes follow");
        let begin = format!("  gardener-resource-manager {command} ");
        assert!(examples.lines().all(|line| line.starts_with(&begin)), "{examples}");
    }
}

#[test]
fn help_of_a_command_is_printed_in_three_ways() {
    let [flag, command, nested] =
        [&["get", "--help"][..], &["help", "get"], &["help", "webhook", "list"]].map(|arguments| run(arguments, ""));

    assert_eq!((code(&flag), code(&command), code(&nested)), (0, 0, 0));
    assert_eq!(text(&flag.stdout), text(&command.stdout));
    assert!(text(&nested.stdout).contains("webhook list --config config.yaml"), "{}", text(&nested.stdout));
    assert!(text(&run(&["help"], "").stdout).contains("Legacy flags"));
}

#[test]
fn manual_pages_are_written_to_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man/man1");

    let [first, second] = [0, 1].map(|_| run(&["man", &path.display().to_string()], ""));

    assert_eq!((code(&first), code(&second)), (0, 0), "{}", text(&first.stderr));
    assert!(text(&first.stderr).starts_with(&format!("manual pages in {}: ", path.display())));
    let page = std::fs::read_to_string(path.join("gardener-resource-manager-webhook-review.1")).unwrap();
    assert!(page.contains(".TH gardener-resource-manager-webhook-review 1"), "{page}");
    assert!(path.join("gardener-resource-manager.1").exists());
}

#[test]
fn plugin_of_kubectl_is_the_program_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let as_plugin = |name: &str, arguments: &[&str]| {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gardener-resource-manager"), &link).ok();
        Command::new(link).args(arguments).env_clear().stdin(Stdio::null()).output().expect("the program starts")
    };

    let listed = as_plugin("kubectl-managedresource", &["webhook", "list"]);
    let wrong = as_plugin("kubectl-managedresource", &["--config", "/c"]);
    let alone = as_plugin("kubectl-managedresource", &[]);
    let completed = as_plugin("kubectl_complete-managedresource", &["webhook", "li"]);

    assert_eq!(code(&listed), 0);
    assert!(text(&listed.stdout).contains("/webhooks/seccomp-profile"));
    assert_eq!((code(&wrong), text(&wrong.stdout).as_str()), (2, ""));
    assert!(text(&wrong.stderr).contains("Usage: kubectl managedresource <COMMAND>"), "{}", text(&wrong.stderr));
    assert_eq!(code(&alone), 0);
    assert!(text(&alone.stdout).contains("Usage: kubectl managedresource <COMMAND>"), "{}", text(&alone.stdout));
    assert_eq!(text(&completed.stdout), "list\tList the webhooks with their paths\n:4\n");
}

#[test]
fn output_to_a_full_disk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml").display().to_string();
    std::fs::write(&file, "kind: A").unwrap();
    let config_map = folder.path().join("b.yaml").display().to_string();
    std::fs::write(&config_map, CONFIG_MAP).unwrap();
    let table: [(&[&str], i32); 6] = [
        (&["validate", &file], 2),
        (&["pack", &config_map, "--name", "web"], 2),
        (&["unpack", "--list", "-f", &config_map], 2),
        (&["pack", &config_map, "--name", "web", "--output-file", "/dev/full"], 2),
        (&["--help"], 1),
        (&["--version"], 1),
    ];

    for (arguments, expected) in table {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_gardener-resource-manager"))
            .args(arguments)
            .env_clear()
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();

        let stderr = text(&output.stderr);
        assert_eq!(code(&output), expected, "{arguments:?}: {stderr}");
        assert!(stderr.contains("cannot write") && stderr.contains("No space left"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn packed_file_is_private_and_overwrites_no_input() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (input, manifests, output) = (path("in.yaml"), path("manifests"), path("out.yaml"));
    std::fs::create_dir_all(path("manifests/more")).unwrap();
    std::fs::write(&input, CONFIG_MAP).unwrap();
    std::fs::write(path("manifests/a.yaml"), CONFIG_MAP).unwrap();
    std::os::unix::fs::symlink(&input, path("link.yaml")).unwrap();
    std::fs::write(&output, "before").unwrap();
    let pack = |from: &str, to: &str| run(&["pack", from, "--name", "web", "--output-file", to], "");

    let refused = [
        (pack(&input, &input), "would be overwritten"),
        (pack(&path("link.yaml"), &input), "would be overwritten"),
        (pack(&input, &path("link.yaml")), "would be overwritten"),
        (pack(&manifests, &path("manifests/bundle.yaml")), "the next run would read"),
        (pack(&manifests, &path("manifests/more/../more/bundle.json")), "the next run would read"),
        (pack(&input, &path("nowhere/bundle.yaml")), "cannot write"),
    ];
    for (packed, reason) in refused {
        assert_eq!(code(&packed), 2, "{reason}");
        assert!(text(&packed.stderr).contains(reason), "{}", text(&packed.stderr));
    }
    assert_eq!(std::fs::read_to_string(&input).unwrap(), CONFIG_MAP);

    for to in [output, path("manifests/bundle.packed"), path("new.yaml")] {
        let packed = pack(&manifests, &to);

        assert_eq!(code(&packed), 0, "{}", text(&packed.stderr));
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(&to).unwrap().contains("kind: ManagedResource\n"));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "no other file is left behind");
}

#[test]
fn kubeconfig_without_end_or_without_a_writer_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, config) = (path("pipe"), path("config.yaml"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let connection = format!("{{kubeconfig: {pipe}}}");
    let text_of_config = format!(
        "{{apiVersion: resourcemanager.config.gardener.cloud/v1alpha1, kind: ResourceManagerConfiguration,\n\
         sourceClientConnection: {connection}, targetClientConnection: {connection}, leaderElection: {{leaderElect: false}}}}"
    );
    std::fs::write(&config, text_of_config).unwrap();

    let table: [(&[&str], &str); 3] = [
        (&["get", "--kubeconfig", "/dev/zero"], "/dev/zero: file is larger than 2 MiB"),
        (&["get", "--kubeconfig", &pipe], "pipe: it is not a regular file"),
        (&["check", "--config", &config], "pipe: it is not a regular file"),
    ];
    for (arguments, message) in table {
        let output = run(arguments, "");

        assert_ne!(code(&output), 0, "{arguments:?}");
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(shown.contains(message), "{arguments:?}: {shown}");
    }
}

#[test]
fn manifest_folder_with_a_named_pipe_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("a.yaml").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let folder = folder.path().display().to_string();

    for path in [&pipe, &folder] {
        for arguments in [
            vec!["validate", path],
            vec!["pack", path, "--name", "web"],
            vec!["diff", "-f", path],
            vec!["unpack", "-f", path],
        ] {
            let output = run(&arguments, "");

            assert_eq!(code(&output), 2, "{arguments:?}");
            let stderr = text(&output.stderr);
            assert!(stderr.contains("a.yaml is not a regular file"), "{arguments:?}: {stderr}");
        }
    }
    let through_a_pipe = run(&["validate", "/dev/stdin"], CONFIG_MAP);
    assert_eq!(code(&through_a_pipe), 0, "{}", text(&through_a_pipe.stderr));
}

#[test]
fn pipe_gets_the_bytes_of_the_data_unchanged() {
    let value = "a\x1b[2J\r\u{9b}\u{202e}b\r\n";
    let manifest =
        serde_json::json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "key": value}).to_string();
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a.json": manifest},
    });

    let output = run(&["unpack", "-f", "-", "-o", "jsonpath={.items[0].key}"], &secret.to_string());

    assert_eq!((code(&output), text(&output.stdout).as_str()), (0, value), "{}", text(&output.stderr));
}

#[test]
fn help_of_each_command_has_an_example_and_exit_codes() {
    for command in [
        "pack",
        "unpack",
        "validate",
        "diff",
        "get",
        "describe",
        "events",
        "trace",
        "suspend",
        "resume",
        "reconcile",
        "wait",
        "version",
        "completion",
    ] {
        let output = run(&[command, "--help"], "");

        let help = text(&output.stdout);
        assert_eq!(code(&output), 0);
        assert!(help.contains("Examples:\n") && help.contains("Exit codes:\n  0  success\n"), "{help}");
        assert!(help.contains(&format!("gardener-resource-manager {command} ")), "{help}");
    }
}

#[test]
fn version_command_prints_the_details_of_the_build() {
    let lines = run(&["version"], "");
    let json = run(&["version", "-o", "json"], "");

    assert!(text(&lines.stdout).starts_with("version: "), "{}", text(&lines.stdout));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["platform"].is_string(), "{json}");
}
