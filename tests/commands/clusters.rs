//! Commands that reach a cluster, or fail to.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Command,
};

use super::{code, run, run_in, text};

pub(super) fn api_server(
    folder: &std::path::Path,
    answer: impl Fn(&str) -> (&'static str, String) + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client connects");
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                let count = stream.read(&mut buffer).expect("the client sends a request");
                assert!(count > 0, "the client sends all of it");
                request.extend_from_slice(&buffer[..count]);
            }
            let (status, body) = answer(text(&request).split(' ').nth(1).expect("a request has a path"));
            let length = body.len();
            let head = "content-type: application/json\r\nconnection: close";
            write!(stream, "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}")
                .expect("the client reads");
        }
    });
    let path = folder.join("kubeconfig");
    let content = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}],\n\
         contexts: [{{name: c, context: {{cluster: c, user: u, namespace: garden}}}}],\n\
         users: [{{name: u, user: {{token: t}}}}]}}\n"
    );
    std::fs::write(&path, content).expect("the folder can be written to");
    path.display().to_string()
}

#[test]
fn get_uses_the_namespace_of_the_context_and_names_missing_objects() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = api_server(folder.path(), |path| {
        let collection = "/apis/resources.gardener.cloud/v1alpha1/namespaces/garden/managedresources";
        if path.starts_with(&format!("{collection}?")) {
            let item = r#"{"metadata": {"namespace": "garden", "name": "web"}, "spec": {"secretRefs": []}}"#;
            let list = r#""apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResourceList""#;
            return ("200 OK", format!(r#"{{{list}, "metadata": {{"resourceVersion": "1"}}, "items": [{item}]}}"#));
        }
        let status = r#""kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404"#;
        let details = r#""details": {"name": "x", "kind": "managedresources"}"#;
        ("404 Not Found", format!(r#"{{{status}, {details}, "message": "no {path}"}}"#))
    });

    let list = run(&["get", "--kubeconfig", &kubeconfig], "");
    let missing = run(&["get", "x", "--kubeconfig", &kubeconfig], "");

    let expected = "NAME   CLASS       APPLIED   HEALTHY   PROGRESSING   OBJECTS   AGE         PROBLEM\n\
                    web    resources   -         -         -             0         <unknown>   ResourcesApplied has not been reported yet\n";
    assert_eq!((code(&list), text(&list.stdout).as_str()), (0, expected), "{}", text(&list.stderr));
    let expected = "error: there is no ManagedResource garden/x — check name and namespace; get -A lists all\n";
    assert_eq!((code(&missing), text(&missing.stdout).as_str(), text(&missing.stderr).as_str()), (1, "", expected));
}

/// spec 71 §13: an image has no CAs of a system, and the library fails where it finds none.
#[test]
fn command_without_a_certificate_to_verify_reads_no_cas_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig").display().to_string();
    let without = [("SSL_CERT_FILE", "/nowhere"), ("SSL_CERT_DIR", "/nowhere")];

    for (cluster, are_read) in [
        ("{server: 'https://127.0.0.1:9'}", true),
        ("{server: 'https://127.0.0.1:9', insecure-skip-tls-verify: true}", false),
        ("{server: 'http://127.0.0.1:9'}", false),
        ("{server: 'http://127.0.0.1:9', proxy-url: 'http://127.0.0.1:9'}", false),
        ("{server: 'http://127.0.0.1:9', proxy-url: 'https://127.0.0.1:9'}", true),
    ] {
        let content = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}],\n\
             clusters: [{{name: c, cluster: {cluster}}}], users: [{{name: u, user: {{token: t}}}}]}}\n"
        );
        std::fs::write(&kubeconfig, content).unwrap();

        let output = run_in(&without, &["get", "--kubeconfig", &kubeconfig], "");

        let stderr = text(&output.stderr);
        assert_eq!(code(&output), 2, "{cluster}: {stderr}");
        assert_eq!(stderr.contains("cannot connect to"), are_read, "{cluster}: {stderr}");
    }
}

#[test]
fn cluster_that_cannot_be_reached_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    // Nothing listens on the discard port.
    let content = "{apiVersion: v1, kind: Config, current-context: none, \
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],\n\
        contexts: [{name: other, context: {cluster: c, user: u}}], users: [{name: u, user: {token: sesame}}]}\n";
    std::fs::write(&path, content).unwrap();
    let kubeconfig = path.display().to_string();

    let commands = [
        &["get"][..],
        &["describe", "web"],
        &["events"],
        &["trace", "Pod/p"],
        &["suspend", "-l", "a=b"],
        &["suspend", "web"],
        &["garbage"],
        &["diff", "web"],
        &["unpack", "web"],
        &["wait", "web", "--for", "applied", "--timeout", "0"],
    ];
    for command in commands {
        let output = run(&[command, &["--kubeconfig", &kubeconfig, "--context", "other"]].concat(), "");

        let stderr = text(&output.stderr);
        let place = format!(" — the cluster is http://127.0.0.1:9 (context \"other\" of {kubeconfig})\n");
        assert_eq!(code(&output), 2, "{command:?}: {stderr}");
        assert!(stderr.ends_with(&place) && !stderr.contains("sesame"), "{command:?}: {stderr}");
    }
}

/// A cluster that does not answer is a finding, and the checks of the process itself go on.
#[test]
fn check_names_a_cluster_and_a_certificate_that_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    // Nothing listens on the discard port.
    let kubeconfig = "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],\
                      contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: sesame}}]}";
    std::fs::write(path("kubeconfig"), kubeconfig).unwrap();
    let connection = format!("{{kubeconfig: {}}}", path("kubeconfig"));
    let config = format!(
        "{{sourceClientConnection: {connection}, targetClientConnection: {connection}, leaderElection: {{leaderElect: false}},\n\
         server: {{webhooks: {{tls: {{serverCertDir: {}}}}}}}}}",
        path("tls")
    );
    std::fs::write(path("config.yaml"), config).unwrap();

    let output = run(&["check", "--config", &path("config.yaml")], "");

    let (printed, remarks) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((code(&output), remarks.as_str()), (1, "checks: 3, missing: 3, notes: 0\n"), "{printed}");
    let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().take(4).collect()).collect();
    let directory = path("tls");
    let expected = [
        ["CHECK", "CLUSTER", "NAMESPACE", "RESULT"],
        ["cluster", "source", "missing", "127.0.0.1:9"],
        ["cluster", "target", "missing", "127.0.0.1:9"],
        ["certificate", "missing", &directory, "cannot"],
    ];
    assert_eq!(rows, expected, "{printed}");
    assert!(!printed.contains("sesame"), "{printed}");
}

/// The checks of the other cluster and of the process itself go on.
#[test]
fn check_names_a_kubeconfig_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let source = api_server(folder.path(), |_| ("401 Unauthorized", String::new()));
    let config = format!(
        "{{sourceClientConnection: {{kubeconfig: {source}}}, targetClientConnection: {{kubeconfig: /nowhere}},\n\
         leaderElection: {{leaderElect: false}}, server: {{webhooks: {{tls: {{serverCertDir: {}}}}}}}}}",
        path("tls")
    );
    std::fs::write(path("config.yaml"), config).unwrap();
    std::fs::write(path("garden.yaml"), "{gardenClientConnection: {kubeconfig: /nowhere}}").unwrap();
    let check = |program: &str, config: &str| {
        Command::new(program)
            .args(["check", "--config", &path(config)])
            .env_clear()
            .output()
            .expect("the program starts")
    };

    let resources = check(env!("CARGO_BIN_EXE_gardener-resource-manager"), "config.yaml");
    let garden = check(env!("CARGO_BIN_EXE_gardener-controller-manager"), "garden.yaml");

    let printed = text(&resources.stdout);
    assert_eq!(
        (code(&resources), text(&resources.stderr).as_str()),
        (1, "checks: 3, missing: 3, notes: 0\n"),
        "{printed}"
    );
    let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    let expected =
        [["CHECK", "CLUSTER", "NAMESPACE"], ["cluster", "source", "missing"], ["cluster", "target", "missing"]];
    assert_eq!(rows[..3], expected, "{printed}");
    assert!(printed.contains("cannot load the kubeconfig /nowhere: "), "{printed}");
    let printed = text(&garden.stdout);
    assert_eq!((code(&garden), text(&garden.stderr).as_str()), (1, "checks: 1, missing: 1, notes: 0\n"), "{printed}");
    assert!(printed.contains("cannot load the kubeconfig /nowhere: "), "{printed}");
}

#[test]
fn answer_of_a_server_in_an_error_is_cut_and_has_no_tokens_or_hidden_characters() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = api_server(folder.path(), |_| {
        let text = "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln\u{1b}[2J\u{202e}\u{200b}\u{e0041}".to_owned();
        let message = text + &"x".repeat(100_000);
        let status = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401, "reason": "Unauthorized", "message": message,
        });
        ("401 Unauthorized", status.to_string())
    });

    for command in [&["get"][..], &["suspend", "web"], &["wait", "web", "--for", "applied"], &["garbage"]] {
        let output = run(&[command, &["--kubeconfig", &kubeconfig]].concat(), "");

        let stderr = text(&output.stderr);
        assert!(
            code(&output) > 0 && stderr.contains("Bearer (left out: it may be a credential)"),
            "{command:?}: {stderr}"
        );
        assert!(stderr.len() < 5_000 && !stderr.contains("eyJ"), "{command:?}: {stderr}");
        assert!(!stderr.contains(['\x1b', '\u{202e}', '\u{200b}', '\u{e0041}']), "{command:?}: {stderr:?}");
    }
}

#[test]
fn check_without_a_usable_configuration_fails() {
    for (arguments, reason) in [
        (&["check"][..], "--config <FILE>"),
        (&["check", "--config", "/nowhere"], "error reading config file: open /nowhere: "),
    ] {
        for program in
            [env!("CARGO_BIN_EXE_gardener-resource-manager"), env!("CARGO_BIN_EXE_gardener-controller-manager")]
        {
            let output = Command::new(program).args(arguments).env_clear().output().expect("the program starts");

            let errors = text(&output.stderr);
            assert!(code(&output) == 2 && errors.contains(reason), "{program} {arguments:?}: {errors}");
        }
    }
}
