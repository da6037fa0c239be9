use std::fs;

use tempfile::TempDir;

use super::*;

const CA: &str =
    "-----BEGIN CERTIFICATE-----\nMIIBATCBtKADAgECAgEBMAUGAytlcDAMMQowCAYDVQQDDAF4\n-----END CERTIFICATE-----\n";

fn kubeconfig(folder: &TempDir, name: &str, cluster: &str, user: &str) -> PathBuf {
    let path = folder.path().join(name);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n"
    );
    fs::write(&path, text).unwrap();
    path
}

fn in_cluster(folder: &TempDir, server: &str, proxies: &ProxySettings) -> Connection {
    fs::write(folder.path().join("token"), "t").unwrap();
    fs::write(folder.path().join("ca.crt"), CA).unwrap();
    Connection::in_cluster(server, folder.path(), proxies).unwrap()
}

fn from_kubeconfig(path: &Path) -> Result<Connection, ConnectionError> {
    Connection::of_kubeconfig(path, read_kubeconfig(path)?, &ProxySettings::default())
}

/// spec 70 §8.1
#[test]
fn connection_is_not_configured_without_the_token_of_a_pod() {
    let folder = TempDir::new().unwrap();

    let error = Connection::in_cluster("https://a:1", folder.path(), &ProxySettings::default()).unwrap_err();

    assert_eq!(
        error.to_string(),
        "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
    );
}

/// spec 70 §8.1
#[test]
fn in_cluster_connection_accepts_a_name_and_an_address() {
    let folder = TempDir::new().unwrap();

    for host in ["10.0.0.1:443", "[fd00::1]:443", "kubernetes:443"] {
        let connection = in_cluster(&folder, &format!("https://{host}"), &ProxySettings::default());

        assert_eq!(connection.host(), host);
        assert!(matches!(connection.credentials(), Ok(Credentials::File(_))));
    }
}

/// spec 70 §8.2
#[test]
fn connections_are_equal_when_server_and_credentials_are() {
    let folder = TempDir::new().unwrap();
    let read =
        |name: &str, cluster: &str, user: &str| from_kubeconfig(&kubeconfig(&folder, name, cluster, user)).unwrap();
    let first = read("a", "{server: 'https://a:1'}", "{token: x}");

    assert_eq!(first, read("b", "{server: 'https://a:1'}", "{token: x}"));
    for (cluster, user) in [
        ("{server: 'https://b:1'}", "{token: x}"),
        ("{server: 'https://a:1'}", "{token: y}"),
        ("{server: 'https://a:1', tls-server-name: n}", "{token: x}"),
        ("{server: 'https://a:1', proxy-url: 'http://p:1'}", "{token: x}"),
        ("{server: 'https://a:1'}", "{client-key-data: eA==, client-certificate-data: eA==}"),
    ] {
        assert_ne!(first, read("c", cluster, user), "{cluster} {user}");
    }
}

#[test]
fn credentials_are_hidden_in_errors_and_debug_output() {
    let folder = TempDir::new().unwrap();
    let broken = kubeconfig(&folder, "a", "{server: 'https://a:1'}", "{token: sesame, token: [}");

    let error = from_kubeconfig(&broken).unwrap_err().to_string();

    assert!(error.contains(&broken.display().to_string()) && error.contains("line"), "{error}");
    assert!(!error.contains("sesame"), "{error}");
    let good = from_kubeconfig(&kubeconfig(&folder, "b", "{server: 'https://a:1'}", "{token: sesame}"));
    assert!(!format!("{good:?}").contains("sesame"));
}

/// spec 70 §9.2
#[test]
fn host_label_is_host_and_port_alone() {
    let folder = TempDir::new().unwrap();

    for (server, host) in [
        ("https://a:6443", "a:6443"),
        ("https://a/path", "a"),
        ("https://me:sesame@a:6443", "a:6443"),
        ("https://me:sesame@a", "a"),
        ("https://sesame@[fd00::1]:6443/path", "[fd00::1]:6443"),
    ] {
        let path = kubeconfig(&folder, "a", &format!("{{server: '{server}'}}"), "{token: t}");
        let connection = from_kubeconfig(&path).unwrap();

        assert_eq!(connection.host(), host, "{server}");
        assert!(!format!("{connection:?}").contains("sesame"), "{connection:?}");
    }
}

#[tokio::test]
async fn clients_are_built_for_each_kind_of_connection() {
    let folder = TempDir::new().unwrap();
    let agent = user_agent("gardener-resource-manager", "1.2.3", "abc", false);
    for (cluster, works) in [
        ("{server: 'http://127.0.0.1:1'}", true),
        ("{server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}", true),
        ("{server: 'https://a:1', proxy-url: 'http://p:1', insecure-skip-tls-verify: true}", true),
        ("{server: 'https://a:1', proxy-url: 'socks5://p:1', insecure-skip-tls-verify: true}", true),
        ("{server: 'https://a:1', proxy-url: 'https://p:1', insecure-skip-tls-verify: true}", true),
        ("{server: 'https://a:1', tls-server-name: 'a b', insecure-skip-tls-verify: true}", false),
    ] {
        let connection = from_kubeconfig(&kubeconfig(&folder, "a", cluster, "{token: x}")).unwrap();

        assert_eq!(connection.client(&agent).map(drop).is_ok(), works, "{cluster}");
    }
}

/// spec 71 §13: an image has no CAs of a system, and the library fails where it finds none.
#[test]
fn cas_of_the_system_are_not_read_where_no_certificate_is_verified() {
    let folder = TempDir::new().unwrap();
    for (cluster, are_read) in [
        ("{server: 'https://a:1'}", true),
        ("{server: 'https://a:1', insecure-skip-tls-verify: true}", false),
        ("{server: 'http://a:1'}", false),
        ("{server: 'http://a:1', proxy-url: 'http://p:1'}", false),
        ("{server: 'http://a:1', proxy-url: 'https://p:1'}", true),
    ] {
        let connection = from_kubeconfig(&kubeconfig(&folder, "a", cluster, "{token: x}")).unwrap();

        assert_eq!(connection.config.root_cert.is_none(), are_read, "{cluster}");
    }
}

/// spec 70 §8.3
#[test]
fn user_agent_begins_with_the_name_of_the_program() {
    let agent = user_agent("gardener-resource-manager", "1.2.3", "abc", true);

    assert!(agent.starts_with("gardener-resource-manager/1.2.3 (linux/"), "{agent}");
    assert!(agent.ends_with(") kubernetes/abc/leader-election"), "{agent}");
}

#[test]
fn kubeconfig_that_is_a_pipe_is_rejected_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    let error = from_kubeconfig(&pipe).unwrap_err().to_string();

    assert!(error.starts_with("cannot load the kubeconfig /"), "{error}");
    assert!(error.ends_with("pipe: it is not a regular file"), "{error}");
}

#[test]
fn kubeconfig_without_end_is_rejected() {
    let error = from_kubeconfig(Path::new("/dev/zero")).unwrap_err();

    assert_eq!(error.to_string(), "cannot load the kubeconfig /dev/zero: file is larger than 2 MiB");
}

#[test]
fn kubeconfig_that_is_too_large_is_rejected() {
    let folder = TempDir::new().unwrap();
    let path = kubeconfig(&folder, "a", "{server: 'https://a'}", "{token: t}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(from_kubeconfig(&path).is_ok());
    fs::write(&path, format!("{text}#{}", "x".repeat(2 << 20))).unwrap();

    let error = from_kubeconfig(&path).unwrap_err().to_string();

    assert!(error.ends_with("file is larger than 2 MiB"), "{error}");
}

/// spec 70 §8.1
#[test]
fn proxy_url_that_is_invalid_is_an_error_without_the_password() {
    let folder = TempDir::new().unwrap();

    for (proxy_url, text) in [
        ("ftp://p:1", "unsupported scheme \"ftp\", must be http, https, or socks5"),
        ("http://me:sesame@p:port", "could not parse: http://***@p:port"),
    ] {
        let path = kubeconfig(&folder, "a", &format!("{{server: 'https://a:1', proxy-url: '{proxy_url}'}}"), "{}");
        let error = from_kubeconfig(&path).unwrap_err().to_string();

        assert_eq!(error, format!("cannot load the kubeconfig {}: {text}", path.display()));
    }
}

/// spec 70 §8.1
#[test]
fn proxy_of_the_environment_applies_to_pods_and_kubeconfigs_without_a_proxy_url() {
    let folder = TempDir::new().unwrap();
    let value = |name: &str| match name {
        "HTTPS_PROXY" => Some("http://me:sesame@env:3128".to_owned()),
        "NO_PROXY" => Some("10.0.0.0/8".to_owned()),
        _ => None,
    };
    let proxies = ProxySettings::of(&value);
    let of_cluster = |cluster: &str| {
        let path = kubeconfig(&folder, "a", cluster, "{token: t}");
        Connection::of_kubeconfig(&path, read_kubeconfig(&path).unwrap(), &proxies).unwrap()
    };
    let proxy = |connection: &Connection| connection.proxy.as_ref().map(ToString::to_string);

    let plain = of_cluster("{server: 'https://a:1'}");
    let own = of_cluster("{server: 'https://a:1', proxy-url: 'socks5://own'}");
    let near = in_cluster(&folder, "https://10.0.0.1:443", &proxies);
    let far = in_cluster(&folder, "https://100.64.0.1:443", &proxies);

    assert_eq!(proxy(&plain).as_deref(), Some("http://env:3128"));
    assert_eq!(proxy(&own).as_deref(), Some("socks5://own:1080"));
    assert_eq!((proxy(&near), proxy(&far).as_deref()), (None, Some("http://env:3128")));
    assert!(plain != from_kubeconfig(&kubeconfig(&folder, "b", "{server: 'https://a:1'}", "{token: t}")).unwrap());
    assert!(!format!("{plain:?} {proxies:?}").contains("sesame"));
}
