use super::*;
use crate::commands::get::GetError;

fn file(folder: &tempfile::TempDir, name: &str, context: &str) -> String {
    let path = folder.path().join(name);
    let text = format!("{{apiVersion: v1, kind: Config, current-context: {context}, contexts: [{{name: {context}}}]}}");
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

fn contexts(given: Option<&str>, variables: &[(&str, &str)]) -> Option<(String, Vec<String>)> {
    let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let found = kubeconfig(given, &value).unwrap()?;
    let names = found.contexts.into_iter().map(|context| context.name).collect();
    Some((found.current_context.unwrap_or_default(), names))
}

#[test]
fn kubeconfig_is_found_as_kubectl_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (file(&folder, "a", "a"), file(&folder, "b", "b"));
    std::fs::create_dir(folder.path().join(".kube")).unwrap();
    file(&folder, ".kube/config", "home");
    let home = folder.path().to_string_lossy().into_owned();
    let found =
        |current: &str, all: &[&str]| Some((current.to_owned(), all.iter().map(|&name| name.to_owned()).collect()));

    assert_eq!(contexts(Some(&a), &[("KUBECONFIG", &b), ("HOME", &home)]), found("a", &["a"]));
    assert_eq!(contexts(None, &[("KUBECONFIG", &b), ("HOME", &home)]), found("b", &["b"]));
    assert_eq!(contexts(None, &[("KUBECONFIG", ""), ("HOME", &home)]), found("home", &["home"]));
    let list = format!("{home}/gone:{b}:{a}");
    assert_eq!(contexts(None, &[("KUBECONFIG", &list)]), found("b", &["b", "a"]), "the first one's context counts");
    assert_eq!(contexts(None, &[("HOME", "/nowhere")]), None);
}

#[tokio::test]
async fn context_without_a_kubeconfig_is_an_error() {
    let options = ConnectionOptions { context: Some("prod".to_owned()), ..ConnectionOptions::default() };

    let error = client(&options, &|_| None).await.err();

    assert!(matches!(error, Some(ConnectError::NoKubeconfig { what: "context", name }) if name == "prod"));
}

#[test]
fn kubeconfig_cluster_and_user_are_chosen_by_flags() {
    let yaml = "{current-context: a, contexts: [{name: a, context: {cluster: c1, user: u1, namespace: n}}, \
                {name: b, context: {cluster: c2}}], clusters: [{name: c1}, {name: c2}], users: [{name: u1}, {name: u2}]}";
    let chosen = |yaml: &str, context: &str, cluster: &str, user: &str| {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (context, cluster, user) = (given(context), given(cluster), given(user));
        let options = ConnectionOptions { context, cluster, user, ..ConnectionOptions::default() };
        let mut kubeconfig = Kubeconfig::from_yaml(yaml).unwrap();
        choose(&mut kubeconfig, &options).map_err(|error| error.to_string())?;
        let current = kubeconfig.current_context.unwrap();
        let context = kubeconfig.contexts.into_iter().find(|context| context.name == current);
        let context = context.and_then(|context| context.context).unwrap_or_default();
        Ok::<_, String>(format!("{}/{}", context.cluster, context.user.unwrap_or_default()))
    };

    assert_eq!(chosen(yaml, "", "", ""), Ok("c1/u1".to_owned()));
    assert_eq!(chosen(yaml, "", "c2", ""), Ok("c2/u1".to_owned()));
    assert_eq!(chosen(yaml, "b", "", "u2"), Ok("c2/u2".to_owned()));
    assert_eq!(chosen("{clusters: [{name: c1}]}", "", "c1", ""), Ok("c1/".to_owned()));
    let error = chosen(yaml, "", "c3", "").unwrap_err();
    assert_eq!(error, "the kubeconfig has no cluster \"c3\" — it has c1, c2");
    assert_eq!(chosen("{}", "", "", "u").unwrap_err(), "the kubeconfig has no user \"u\" — it has none");
    let error = chosen("{users: [{name: u}]}", "", "", "u").unwrap_err();
    assert!(error.starts_with("the kubeconfig has no current context"), "{error}");
}

fn with_plugin(folder: &tempfile::TempDir, plugin: &str) -> ConnectionOptions {
    let path = folder.path().join("plugin");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: a, user: u}}}}],\n\
         clusters: [{{name: a, cluster: {{server: 'https://h:6443'}}}}], users: [{{name: u, user: {{exec: {plugin}}}}}]}}"
    );
    std::fs::write(&path, text).unwrap();
    ConnectionOptions { kubeconfig: Some(path.to_string_lossy().into_owned()), ..ConnectionOptions::default() }
}

#[tokio::test]
async fn credential_plugin_that_is_missing_is_named_with_its_cluster_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = "{apiVersion: client.authentication.k8s.io/v1, command: /nowhere/gardenlogin, installHint: \"See https://example.org\\n\"}";
    let options = with_plugin(&folder, plugin);
    rustls::crypto::ring::default_provider().install_default().ok();

    let error = client(&options, &|_| None).await.err().unwrap().to_string();

    let file = options.kubeconfig.unwrap_or_default();
    let place = format!("cannot connect to https://h:6443 (context \"c\" of {file}): ");
    assert!(
        error.starts_with(&format!("{place}the credential plugin \"/nowhere/gardenlogin\" cannot be started: ")),
        "{error}"
    );
    assert!(error.contains(" — install it (the kubeconfig says: See https://example.org), or give another"), "{error}");
}

#[tokio::test]
async fn credential_plugin_that_fails_is_reported_without_its_output() {
    let folder = tempfile::tempdir().unwrap();
    rustls::crypto::ring::default_provider().install_default().ok();
    for (arguments, cause) in [
        ("[-c, 'echo sesame; exit 3']", "the credential plugin failed with exit status: 3"),
        ("[-c, 'echo \"status: [sesame\"']", "the credential plugin printed no valid credentials"),
    ] {
        let plugin = format!("{{command: /bin/sh, args: {arguments}, interactiveMode: Never}}");
        let options = with_plugin(&folder, &plugin);

        let error = client(&options, &|_| None).await.err().unwrap();

        assert!(error.to_string().ends_with(cause), "{error}");
        assert!(!format!("{error} {error:?}").contains("sesame"), "{error} {error:?}");
    }
}

#[tokio::test]
async fn context_that_a_kubeconfig_lacks_is_named_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = file(&folder, "a", "a");
    let options = ConnectionOptions {
        kubeconfig: Some(file.clone()),
        context: Some("prod".to_owned()),
        ..ConnectionOptions::default()
    };

    let error = client(&options, &|_| None).await.err().unwrap().to_string();

    assert_eq!(error, format!("cannot use the context \"prod\" of {file}: there is none — it has a"));
}

#[test]
fn kubeconfig_that_cannot_be_read_is_named() {
    let error = kubeconfig(Some("/nowhere/k"), &|_| None).unwrap_err();

    assert!(error.to_string().starts_with("cannot use the kubeconfig /nowhere/k: "), "{error}");
}

#[test]
fn kubeconfig_that_cannot_be_parsed_is_named_without_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    std::fs::write(&path, "users:\n- {name: u, user: {token: sesame, token: [}}\n").unwrap();
    let path = path.to_string_lossy();

    let error = kubeconfig(Some(&path), &|_| None).unwrap_err();

    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot use the kubeconfig {path}: it is not valid YAML")), "{text}");
    assert!(!format!("{text} {error:?}").contains("sesame"), "{text} {error:?}");
    let raw = Kubeconfig::from_yaml("users: [{token: sesame, token: [}]").unwrap_err();
    let error = ConnectError::from(raw);
    assert!(!format!("{error} {error:?}").contains("sesame"), "{error} {error:?}");
}

#[test]
fn cluster_error_names_the_cluster_or_the_missing_definition() {
    let context = Some(("c".to_owned(), "/k".to_owned()));
    let endpoint = Endpoint { server: "https://h:6443".to_owned(), context };
    let text = |source: ApiError| {
        let error = GetError::Read { what: "the ManagedResources".to_owned(), source };
        named(named(error.into(), &endpoint), &endpoint).to_string()
    };
    let status = |code, reason: &str| {
        ApiError::Status(Box::new(cluster::Status { code, reason: reason.to_owned(), ..cluster::Status::default() }))
    };
    let place = "the cluster is https://h:6443 (context \"c\" of /k)";

    assert!(text(ApiError::Timeout).ends_with(&format!("did not answer in time — {place}")));
    assert!(text(status(401, "Unauthorized")).ends_with(place));
    assert!(text(status(404, "NotFound")).ends_with(&format!("{DEFINITION} installs their definition")));
    assert_eq!(text(status(403, "Forbidden")), "cannot read the ManagedResources: ");
    assert_eq!(Endpoint { context: None, ..endpoint.clone() }.to_string(), "https://h:6443 (of this Pod)");
}

/// spec 70 §8.1
#[test]
fn proxy_variable_that_is_invalid_is_warned_of_without_its_value() {
    let of = |value: &str| {
        let proxies = ProxySettings::of(&|name| (name == "HTTPS_PROXY").then(|| value.to_owned()));
        warnings(&proxies).collect::<Vec<_>>()
    };

    let warning = "warning: HTTPS_PROXY counts as unset: its value is no proxy that is supported";
    assert_eq!(of("ftp://me:sesame@p"), [warning]);
    assert!(of("http://me:sesame@p").is_empty());
}

#[tokio::test]
async fn kubeconfig_of_the_environment_that_does_not_exist_is_named() {
    let env = |name: &str| (name == "KUBECONFIG").then(|| "/nowhere/k".to_owned());

    let error = client(&ConnectionOptions::default(), &env).await.err().unwrap().to_string();

    let begin =
        "no cluster found: $KUBECONFIG names no file that exists (/nowhere/k), and no service account of a Pod (";
    assert!(error.starts_with(begin), "{error}");
}

#[tokio::test]
async fn kubeconfig_without_a_current_context_is_named_with_its_contexts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    std::fs::write(&path, "{contexts: [{name: a}, {name: b}]}").unwrap();
    let file = path.to_string_lossy().into_owned();
    let options = ConnectionOptions { kubeconfig: Some(file.clone()), ..ConnectionOptions::default() };

    let error = client(&options, &|_| None).await.err().unwrap().to_string();

    assert_eq!(error, format!("{file} has no current context — name one with --context (it has a, b)"));
}
