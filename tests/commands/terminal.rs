//! Which texts and characters errors give to a terminal.

use super::*;

#[test]
fn content_of_a_file_in_the_place_of_its_path_is_not_printed() {
    let content = "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: sesame}}]\n";
    let table: [&[&str]; 6] = [
        &["--config", content],
        &["--config", content, "--print-config"],
        &[content],
        &["help", content],
        &["--config=/nowhere", "--port", content],
        &["--leader-election=false", "--kubeconfig", content],
    ];

    for arguments in table {
        let output = run(arguments, "");

        let printed = text(&output.stdout) + &text(&output.stderr);
        assert!(code(&output) > 0 && !printed.contains("sesame"), "{arguments:?}: {printed}");
    }
    let printed = text(&run(&["--config", content], "").stderr);
    assert!(printed.contains("this is the content of a file, and no path — name the file that holds it"), "{printed}");
}

#[test]
fn refusal_of_a_command_line_has_no_control_characters_and_no_tokens() {
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln";
    let table: [&[&str]; 4] = [&[token], &["--config", token], &["--config", "/nowhere/a\x1b[2J"], &["--a\x1b[2J"]];

    for arguments in table {
        let output = run(arguments, "");

        assert_eq!(code(&output), 1, "{arguments:?}");
        for stream in [&output.stdout, &output.stderr] {
            let shown = text(stream);
            assert!(!shown.is_empty() && !shown.contains('\x1b') && !shown.contains("c2ln"), "{shown:?}");
        }
    }
}

#[test]
fn terminal_escapes_in_secret_keys_are_not_printed() {
    let secret = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {
        "k\u001b[2J\u009b.yaml": "a2luZDogQQphcGlWZXJzaW9uOiB2MQptZXRhZGF0YToge25hbWU6IGF9Cg==", "x\u001b[2J.yaml.br": "AAAA"}}"#;

    for arguments in [["unpack", "--list", "-f", "-"].as_slice(), &["unpack", "-f", "-"], &["validate", "-"]] {
        let output = run(arguments, secret);

        for stream in [text(&output.stdout), text(&output.stderr)] {
            let control = |character: char| character.is_control() && character != '\n';
            assert!(!stream.contains(control), "{arguments:?}: {stream:?}");
        }
    }
}

#[test]
fn errors_cut_long_names() {
    let name = "x".repeat(100_000);
    let manifest = format!("{{apiVersion: v1, kind: A, metadata: {{name: {name}, labels: {{b: true}}}}}}");
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a.yaml": manifest},
    });
    let config_map = CONFIG_MAP.replace("name: a", &format!("name: {name}"));

    for (input, end) in [
        (config_map, " is no Secret — give the Secret of a bundle\n"),
        (secret.to_string(), "the value of \"b\" is no string\n"),
    ] {
        let output = run(&["unpack", "-f", "-"], &input);

        let stderr = text(&output.stderr);
        assert!(stderr.len() < 5_000 && stderr.ends_with(end), "{stderr}");
    }
}

#[test]
fn errors_leave_out_a_token_in_the_place_of_a_path_or_a_name() {
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln";
    let table: [&[&str]; 8] = [
        &["validate", token],
        &["unpack", "-f", token],
        &["pack", token, "--name", "web"],
        &["diff", "-f", token],
        &["get", "--kubeconfig", token],
        &["get", token],
        &["get", "-n", token],
        &["check", "--config", token],
    ];

    for arguments in table {
        let output = run(arguments, "");

        let stderr = text(&output.stderr);
        assert!(code(&output) > 0 && stderr.contains("(left out: it may be a credential)"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("eyJ") && !stderr.contains("c2ln"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn wrong_usage_has_no_hidden_characters() {
    for arguments in
        [["get", "-n", "a\u{202e}\x1b[2J\u{200b}"], ["get", "--kubeconfig", "/no\u{202e}\x1b[2J\u{200b}where"]]
    {
        let output = run(&arguments, "");

        let stderr = text(&output.stderr);
        assert!(code(&output) == 2 && stderr.contains("\\u200b"), "{stderr}");
        assert!(!stderr.contains(['\u{202e}', '\x1b', '\u{200b}']), "{stderr:?}");
    }
}
