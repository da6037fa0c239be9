//! The commands for authors of bundles, as somebody runs them in a shell.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// Runs the program without a cluster around it.
fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gardener-resource-manager"))
        .args(arguments)
        .env_clear()
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
    output.status.code().expect("no signal ends it")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it prints UTF-8")
}

#[test]
fn a_pipe_of_all_commands_that_need_no_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.yaml").display().to_string();

    let packed = run(&["pack", "-", "--name", "web", "--namespace", "garden", "-o", &file], CONFIG_MAP);
    let unpacked = run(&["unpack", &file], "");
    let validated = run(&["validate", &file], "");

    assert_eq!((code(&packed), text(&packed.stdout)), (0, String::new()), "{}", text(&packed.stderr));
    assert_eq!(text(&unpacked.stdout), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n");
    assert_eq!((code(&validated), text(&validated.stdout)), (0, String::new()));
    assert_eq!(text(&validated.stderr), "documents: 2, errors: 0, warnings: 0\n");
}

#[test]
fn mistakes_in_the_input_are_exit_code_1_and_everything_else_2() {
    let table: [(&[&str], &str, i32, &str); 8] = [
        (&["pack", "-", "--name", "web"], "kind: A", 1, "-: the object has no apiVersion or no kind"),
        (&["validate", "-"], "kind: A", 1, "documents: 1, errors: 2, "),
        (&["unpack", "-"], CONFIG_MAP, 1, "-: v1/ConfigMap/default/a is no Secret"),
        (&["pack", "-"], "", 2, "--name <NAME>"),
        (&["pack", "/nowhere", "--name", "web"], "", 2, "error: cannot read /nowhere: "),
        (&["diff", "-"], CONFIG_MAP, 2, "error: the files hold no ManagedResource"),
        (&["diff", "-", "--name", "a/b"], CONFIG_MAP, 2, "give a kubeconfig with --kubeconfig or $KUBECONFIG"),
        (&["diff", "-", "--name", "a"], CONFIG_MAP, 2, "must be <namespace>/<name>"),
    ];

    for (arguments, input, expected, message) in table {
        let output = run(arguments, input);

        let stderr = text(&output.stderr);
        assert_eq!(code(&output), expected, "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
}

#[test]
fn each_command_has_help_with_an_example_and_its_exit_codes() {
    for command in ["pack", "unpack", "validate", "diff"] {
        let output = run(&[command, "--help"], "");

        let help = text(&output.stdout);
        assert_eq!(code(&output), 0);
        assert!(help.contains("Example") && help.contains("Exit codes: 0"), "{help}");
        assert!(help.contains(&format!("gardener-resource-manager {command} ")), "{help}");
    }
}
