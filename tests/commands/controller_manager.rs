//! The commands of gardener-controller-manager.

use std::process::Output;

use serde_json::Value;

use super::{clusters::api_server, code, run_program, text};

const COMMANDS: [&str; 8] =
    ["referrers", "extensions", "hibernation", "maintenance", "check", "version", "man", "completion"];

fn run(arguments: &[&str]) -> Output {
    run_program(env!("CARGO_BIN_EXE_gardener-controller-manager"), &[], arguments, "")
}

/// spec 80 §2: a garden in which a Shoot and a SecretBinding refer to a Secret, which has a value.
#[test]
fn referrers_are_printed_for_people_and_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = api_server(folder.path(), |path| {
        let list = |items: &str| {
            let fields = r#""kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}"#;
            ("200 OK", format!(r#"{{{fields}, "items": [{items}]}}"#))
        };
        let collection = path.split('?').next().unwrap_or_default();
        if collection == "/api/v1/namespaces/garden/secrets/s" {
            let metadata = r#"{"namespace": "garden", "name": "s", "resourceVersion": "1", "uid": "u"}"#;
            let fields = r#""apiVersion": "v1", "kind": "Secret", "data": {"key": "c2VzYW1l"}"#;
            return ("200 OK", format!(r#"{{{fields}, "metadata": {metadata}}}"#));
        }
        match collection.rsplit('/').next().unwrap_or_default() {
            "shoots" => {
                let reference = r#"{"apiVersion": "v1", "kind": "Secret", "name": "s"}"#;
                let spec = format!(r#"{{"resources": [{{"name": "n", "resourceRef": {reference}}}]}}"#);
                list(&format!(r#"{{"metadata": {{"namespace": "garden", "name": "web"}}, "spec": {spec}}}"#))
            }
            "secretbindings" => {
                list(r#"{"metadata": {"namespace": "garden", "name": "b"}, "secretRef": {"name": "s"}}"#)
            }
            _ => list(""),
        }
    });

    let table = run(&["referrers", "secret", "s", "--kubeconfig", &kubeconfig]);
    let json = run(&["referrers", "secrets", "garden/s", "-o", "json", "--kubeconfig", &kubeconfig]);

    let out = text(&table.stdout);
    assert_eq!((code(&table), text(&table.stderr).as_str()), (0, ""), "{out}");
    let rows: Vec<String> = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "Object: Secret garden/s",
        "Deleting: no",
        "Finalizers: none",
        "",
        "KIND NAMESPACE NAME STATE KEEPS",
        "Shoot garden web in use gardener.cloud/reference-protection",
        "SecretBinding garden b in use gardener.cloud/secretbinding",
    ];
    assert_eq!(rows, expected);
    assert_eq!(code(&json), 0, "{}", text(&json.stderr));
    let json: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(json["referrers"].as_array().map(Vec::len), Some(2));
    assert!(!json.to_string().contains("c2VzYW1l") && !out.contains("c2VzYW1l"));
}

#[test]
fn referrers_name_the_cluster_that_cannot_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig").display().to_string();
    let content = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],\
                   contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}]}";
    std::fs::write(&path, content).unwrap();

    let output = run(&["referrers", "secret", "a/b", "--kubeconfig", &path]);

    let stderr = text(&output.stderr);
    assert_eq!((code(&output), text(&output.stdout).as_str()), (2, ""), "{stderr}");
    assert!(stderr.starts_with("error: cannot read Secret a/b: "), "{stderr}");
    assert!(stderr.contains("the cluster is http://127.0.0.1:9 (context \"c\" of "), "{stderr}");
}

#[test]
fn exit_code_of_wrong_usage_is_2_with_one_message_and_a_short_usage() {
    let table: [(&[&str], &str); 9] = [
        (&["referrers"], "required"),
        (&["referrers", "pod", "x"], "must be one of CloudProfile, "),
        (&["referrers", "seed", "a/x"], "seeds have no namespace"),
        (&["referrers", "secret", "x", "-o", "table"], "must be json, yaml or jsonpath=<template>"),
        (&["referrers", "secret", "x", "--request-timeout", "5"], "write 5s, 5m or 5h"),
        (&["referrers", "secret", "x", "--kubeconfig", "a: sesame\nb: c\n"], "is the content of a file"),
        (&["check"], "--config <FILE>"),
        (&["completion", "sh"], "[possible values: bash, "),
        (&["man", ""], "a value is required for '<DIRECTORY>'"),
    ];

    for (arguments, message) in table {
        let output = run(arguments);

        let stderr = text(&output.stderr);
        assert_eq!((code(&output), text(&output.stdout).as_str()), (2, ""), "{arguments:?}: {stderr}");
        let usage = format!("\nUsage: gardener-controller-manager {} ", arguments[0]);
        assert!(stderr.starts_with("error: ") && stderr.contains(message) && stderr.contains(&usage), "{stderr}");
        assert!(!stderr.contains("sesame"), "{stderr}");
    }
}

#[test]
fn misspelt_command_names_the_nearest_one() {
    let output = run(&["referers", "secret", "x"]);

    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("'referrers'"), "{}", text(&output.stderr));
    let output = run(&["get", "-A"]);
    assert_eq!(code(&output), 1, "{}", text(&output.stderr));
}

#[test]
fn help_of_each_command_has_examples_that_are_not_wrapped() {
    for command in COMMANDS {
        let output = run(&[command, "--help"]);

        let help = text(&output.stdout);
        assert_eq!((code(&output), help.as_str()), (0, text(&run(&["help", command]).stdout).as_str()));
        let (_, examples) = help.split_once("Examples:\n").expect("the help has examples");
        let (examples, _) = examples.split_once("\n\n").expect("exit codes follow");
        let begin = format!("  gardener-controller-manager {command} ");
        let is_call = |line: &str| format!("{line} ").starts_with(&begin);
        assert!(examples.lines().all(is_call), "{examples}");
    }
    assert_eq!(code(&run(&["help", "nothing"])), 2);
}

#[test]
fn version_completion_and_manual_pages_are_those_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man1").display().to_string();

    let version = run(&["version", "-o", "jsonpath={.version}"]);
    let completion = run(&["completion", "bash"]);
    let manual = run(&["man", &path]);

    assert_eq!((code(&version), code(&completion), code(&manual)), (0, 0, 0));
    assert!(text(&run(&["version"]).stdout).contains(&text(&version.stdout)));
    let script = text(&completion.stdout);
    assert!(script.contains("referrers") && !script.contains("gardener-resource-manager"), "{script}");
    assert_eq!(text(&manual.stderr), format!("manual pages in {path}: 10\n"));
    let page = std::fs::read_to_string(format!("{path}/gardener-controller-manager-referrers.1")).unwrap();
    assert!(page.contains("Show who refers to an object") && page.contains("Exit codes"), "{page}");
}
