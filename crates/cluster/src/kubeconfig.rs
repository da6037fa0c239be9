//! Where clusters are: from a kubeconfig or from inside the cluster (spec 70 §8.1, §8.2), and which kubeconfigs are
//! acceptable. Pure: the environment, the file and whether a file exists are arguments.

use std::path::{Path, PathBuf};

use kube::{
    client::AuthError,
    config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError},
};

use crate::ProxySettings;

const VALID_FIELDS: &str = "[client-certificate-data client-key-data token username password tokenFile]";

/// The environment variables that matter (spec 70 §1.2); `None` if unset or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// `KUBECONFIG`: one path.
    pub kubeconfig: Option<String>,
    /// `TARGET_KUBECONFIG`: one path.
    pub target_kubeconfig: Option<String>,
    /// URL of the API server of the cluster the process runs in.
    pub in_cluster: Option<String>,
    /// `HOME`.
    pub home: Option<String>,
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`.
    pub proxies: ProxySettings,
}

/// Source of a connection's address and credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The current context of this kubeconfig.
    Kubeconfig(PathBuf),
    /// The ServiceAccount of the Pod.
    InCluster {
        /// `https://<host>:<port>`.
        server: String,
    },
}

/// The context of a kubeconfig that a connection comes from, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextOfFile {
    /// Path of the kubeconfig, without what may be a credential.
    pub kubeconfig: String,
    /// Name of the context.
    pub context: String,
}

/// There is no kubeconfig, and the process does not run in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)]
pub struct NoConfiguration;

/// A user of a kubeconfig has an unsupported field. The texts are those of spec 70 §8.1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}, these are the valid fields: {VALID_FIELDS}")]
pub struct ForbiddenField(String);

impl Environment {
    /// Reads the variables.
    pub fn read(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |name| env(name).filter(|value| !value.is_empty());
        let (host, port) = (get("KUBERNETES_SERVICE_HOST"), get("KUBERNETES_SERVICE_PORT"));
        Self {
            kubeconfig: get("KUBECONFIG"),
            target_kubeconfig: get("TARGET_KUBECONFIG"),
            in_cluster: host.zip(port).map(|(host, port)| in_cluster_url(&host, &port)),
            home: get("HOME"),
            proxies: ProxySettings::of(env),
        }
    }
}

/// URL of the API server of the cluster the process runs in; IPv6 hosts in brackets.
fn in_cluster_url(host: &str, port: &str) -> String {
    if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

/// Returns where source and target are, or fails without a source. The paths include flags and environment already. In
/// flag mode, `~/.kube/config` is the last resort of both, if `exists` returns true for it. A target for which nothing
/// is found is the source (spec 70 §8.2).
pub fn resolve(
    source: Option<&str>,
    target: Option<&str>,
    environment: &Environment,
    flag_mode: bool,
    exists: &dyn Fn(&Path) -> bool,
) -> Result<(Origin, Origin), NoConfiguration> {
    let home = environment.home.as_ref().filter(|_| flag_mode).map(|home| Path::new(home).join(".kube/config"));
    let find = |path: Option<&str>| {
        let given = path.map(|path| Origin::Kubeconfig(PathBuf::from(path)));
        let around = || environment.in_cluster.clone().map(|server| Origin::InCluster { server });
        let personal = || home.clone().filter(|path| exists(path)).map(Origin::Kubeconfig);
        given.or_else(around).or_else(personal)
    };
    let source = find(source).ok_or(NoConfiguration)?;
    let target = find(target).unwrap_or_else(|| source.clone());
    Ok((source, target))
}

/// Fails for the first unsupported field of any user of the file, also of users that no context uses.
pub fn check(kubeconfig: &Kubeconfig) -> Result<(), ForbiddenField> {
    let users = kubeconfig.auth_infos.iter();
    users
        .filter_map(|user| Some((&user.name, user.auth_info.as_ref()?)))
        .try_for_each(|(name, user)| check_user(name, user))
}

/// Returns why a kubeconfig cannot be used, without path and without the parser's quotes, which may hold credentials.
pub fn reason(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => {
            let at = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
            format!("it is not valid YAML of a kubeconfig{}", at.unwrap_or_default())
        }
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        other => other.to_string(),
    }
}

/// Returns why a user of a kubeconfig gets no credentials, without the output of a credential plugin, which may hold them.
pub fn credentials_reason(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(error) => format!("the credential plugin cannot be started: {error}"),
        AuthError::AuthExecRun { out, .. } => format!("the credential plugin failed with {}", out.status),
        AuthError::AuthExecParse(_) => "the credential plugin printed no valid credentials".to_owned(),
        other => other.to_string(),
    }
}

fn check_user(name: &str, user: &AuthInfo) -> Result<(), ForbiddenField> {
    let is_set = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.is_empty());
    let groups = user.impersonate_groups.as_ref().is_some_and(|groups| !groups.is_empty());
    let extra = user.impersonate_user_extra.as_ref().is_some_and(|extra| !extra.is_empty());
    let provider = user.auth_provider.as_ref().is_some_and(|provider| !provider.config.is_empty());
    let of_user = |fields: &str| format!("{fields} are not supported (user {name:?})");
    let fields = [
        (is_set(&user.client_certificate), of_user("client certificate files")),
        (is_set(&user.client_key), of_user("client key files")),
        (
            is_set(&user.impersonate) || is_set(&user.impersonate_uid) || groups || extra,
            "impersonation is not supported".to_owned(),
        ),
        (provider, of_user("auth provider configurations")),
        (user.exec.is_some(), of_user("exec configurations")),
    ];
    let forbidden = fields.into_iter().find(|(is_set, _)| *is_set);
    forbidden.map_or(Ok(()), |(_, text)| Err(ForbiddenField(text)))
}

/// Returns the cluster of the current context.
pub(crate) fn current_cluster(kubeconfig: &mut Kubeconfig) -> Option<&mut Cluster> {
    let current = kubeconfig.current_context.as_ref()?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == *current)?.context.as_ref()?;
    kubeconfig.clusters.iter_mut().find(|cluster| cluster.name == context.cluster)?.cluster.as_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(users: &str) -> Result<(), String> {
        let yaml = format!("apiVersion: v1\nkind: Config\ncurrent-context: a\nusers: {users}");
        let kubeconfig = Kubeconfig::from_yaml(&yaml).expect("the kubeconfig is valid");
        check(&kubeconfig).map_err(|error| error.to_string())
    }

    /// spec 70 §8.1 and scenario 19
    #[test]
    fn kubeconfig_users_may_have_supported_fields_only() {
        let list = "[client-certificate-data client-key-data token username password tokenFile]";
        let table = [
            ("client-certificate: /c", "client certificate files are not supported (user \"u\"), "),
            ("client-key: /k", "client key files are not supported (user \"u\"), "),
            ("as: someone", "impersonation is not supported, "),
            ("as-groups: [some]", "impersonation is not supported, "),
            ("as-uid: some", "impersonation is not supported, "),
            ("as-user-extra: {some: [one]}", "impersonation is not supported, "),
            (
                "auth-provider: {name: p, config: {a: b}}",
                "auth provider configurations are not supported (user \"u\"), ",
            ),
            ("exec: {command: /bin/true}", "exec configurations are not supported (user \"u\"), "),
            // The order of the checks, not of the fields.
            ("exec: {command: /x}, client-key: /k", "client key files are not supported (user \"u\"), "),
        ];

        for (fields, text) in table {
            let unused = format!("[{{name: good, user: {{token: t}}}}, {{name: u, user: {{{fields}}}}}]");
            assert_eq!(users(&unused), Err(format!("{text}these are the valid fields: {list}")), "{fields}");
        }
    }

    /// spec 70 §8.1
    #[test]
    fn kubeconfig_accepts_supported_and_empty_fields() {
        let supported = "[{name: a, user: {client-certificate-data: YQ==, client-key-data: YQ==, token: t, username: u, \
                         password: p, tokenFile: /t}}, {name: b}, {name: c, user: {client-certificate: '', \
                         as: '', as-groups: [], auth-provider: {name: p}}}]";

        assert_eq!(users(supported), Ok(()));
        assert_eq!(users("[]"), Ok(()));
    }

    #[test]
    fn in_cluster_host_becomes_a_url() {
        assert_eq!(in_cluster_url("10.0.0.1", "443"), "https://10.0.0.1:443");
        assert_eq!(in_cluster_url("fd00::1", "443"), "https://[fd00::1]:443");
    }

    /// spec 70 §8.1, §8.2, §5 (end)
    #[test]
    fn kubeconfig_path_beats_in_cluster_and_the_target_falls_back_to_the_source() {
        let nowhere = Environment::default();
        let pod = Environment { in_cluster: Some("https://10.0.0.1:443".to_owned()), ..Environment::default() };
        let person = Environment { home: Some("/home/p".to_owned()), ..Environment::default() };
        let file = |path: &str| Origin::Kubeconfig(PathBuf::from(path));
        let around = Origin::InCluster { server: "https://10.0.0.1:443".to_owned() };
        let home = file("/home/p/.kube/config");
        let table = [
            (Some("/s"), Some("/t"), &pod, false, Ok((file("/s"), file("/t")))),
            (None, None, &pod, false, Ok((around.clone(), around.clone()))),
            (Some("/s"), None, &pod, false, Ok((file("/s"), around.clone()))),
            (Some("/s"), None, &nowhere, false, Ok((file("/s"), file("/s")))),
            (None, Some("/t"), &nowhere, false, Err(NoConfiguration)),
            (None, None, &person, false, Err(NoConfiguration)),
            (None, None, &person, true, Ok((home.clone(), home.clone()))),
            (Some("/s"), None, &person, true, Ok((file("/s"), home))),
        ];

        for (source, target, environment, flag_mode, expected) in table {
            let resolved = resolve(source, target, environment, flag_mode, &|_| true);
            assert_eq!(resolved, expected, "{source:?} {target:?} {environment:?}");
        }
        assert_eq!(resolve(None, None, &person, true, &|_| false), Err(NoConfiguration));
        let text = "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable";
        assert_eq!(NoConfiguration.to_string(), text);
    }
}
