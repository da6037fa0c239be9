//! Kubeconfigs, read and written like Go's client (spec 30 §6): unknown fields are dropped.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use cluster::object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why a kubeconfig is unusable. The texts quote nothing except names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// Invalid YAML, not an object, or a field of another type; with the position.
    #[error("the kubeconfig cannot be decoded{0}")]
    Undecodable(String),
    /// It is another kind of document.
    #[error("no kind \"Config\" of version \"v1\": the kubeconfig is of another kind")]
    OtherKind,
    /// Spec 30 §6 rule 2.
    #[error("did not find context defined in current context")]
    NoContext,
    /// Spec 30 §6 rule 3.
    #[error("did not find authInfo of current context named {0}")]
    NoUser(String),
    /// Spec 30 §6 rule 5.
    #[error("did not find cluster of current context named {0}")]
    NoCluster(String),
}

/// A kubeconfig: lists of named parts.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kubeconfig {
    #[serde(default, skip_serializing_if = "Preferences::is_empty")]
    preferences: Preferences,
    clusters: Option<Vec<Named<ClusterPart>>>,
    users: Option<Vec<Named<UserPart>>>,
    contexts: Option<Vec<Named<ContextPart>>>,
    #[serde(default)]
    current_context: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension>,
}

#[derive(Serialize, Deserialize)]
struct Named<T> {
    #[serde(default)]
    name: String,
    #[serde(flatten, bound = "T: Serialize + serde::de::DeserializeOwned")]
    part: T,
}

#[derive(Default, Serialize, Deserialize)]
struct Preferences {
    #[serde(default, skip_serializing_if = "is_false")]
    colors: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension>,
}

#[derive(Serialize, Deserialize)]
struct Extension {
    #[serde(default)]
    name: String,
    #[serde(default)]
    extension: Value,
}

#[derive(Serialize, Deserialize)]
struct ClusterPart {
    #[serde(default)]
    cluster: Cluster,
}

#[derive(Serialize, Deserialize)]
struct UserPart {
    #[serde(default)]
    user: User,
}

#[derive(Serialize, Deserialize)]
struct ContextPart {
    #[serde(default)]
    context: Context,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    tls_server_name: String,
    #[serde(skip_serializing_if = "is_false")]
    insecure_skip_tls_verify: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    certificate_authority: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    certificate_authority_data: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    proxy_url: String,
    #[serde(skip_serializing_if = "is_false")]
    disable_compression: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    #[serde(skip_serializing_if = "String::is_empty")]
    client_certificate: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    client_certificate_data: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    client_key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    client_key_data: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    token: String,
    #[serde(rename = "tokenFile", skip_serializing_if = "String::is_empty")]
    token_file: String,
    #[serde(rename = "as", skip_serializing_if = "String::is_empty")]
    impersonate: String,
    #[serde(rename = "as-uid", skip_serializing_if = "String::is_empty")]
    impersonate_uid: String,
    #[serde(rename = "as-groups", skip_serializing_if = "Vec::is_empty")]
    impersonate_groups: Vec<String>,
    #[serde(rename = "as-user-extra", skip_serializing_if = "BTreeMap::is_empty")]
    impersonate_extra: BTreeMap<String, Vec<String>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    password: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_provider: Option<AuthProvider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<Exec>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct AuthProvider {
    name: String,
    config: Option<BTreeMap<String, String>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Exec {
    command: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    install_hint: String,
    provide_cluster_info: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    interactive_mode: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Extension>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Kubeconfig {
    /// Reads JSON or YAML; empty input is an empty kubeconfig. Fails if it cannot be decoded or is of another kind.
    pub fn read(bytes: &[u8]) -> Result<Self, KubeconfigError> {
        let text = std::str::from_utf8(bytes).map_err(|_| KubeconfigError::Undecodable(": not UTF-8".to_owned()))?;
        let mut document = parse(text)?;
        if document.is_null() {
            document = Value::Object(Map::new());
        }
        let Some(fields) = document.as_object() else {
            return Err(KubeconfigError::Undecodable(": it is not an object".to_owned()));
        };
        for (key, expected) in [("kind", "Config"), ("apiVersion", "v1")] {
            match fields.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if text.is_empty() || text == expected => {}
                Some(_) => return Err(KubeconfigError::OtherKind),
            }
        }
        without_nulls(&mut document);
        // The decoder's error would quote content.
        serde_json::from_value(document)
            .map_err(|_| KubeconfigError::Undecodable(": a field is of another type".to_owned()))
    }

    /// Writes YAML with sorted keys. It has no known failure for a kubeconfig that was read.
    pub fn write(&self) -> Result<String, KubeconfigError> {
        let failed = |text: &str| KubeconfigError::Undecodable(text.to_owned());
        let mut document = serde_json::to_value(self).map_err(|_| failed(": it cannot be encoded"))?;
        *object::field_mut(&mut document, &["apiVersion"]) = "v1".into();
        *object::field_mut(&mut document, &["kind"]) = "Config".into();
        let options = serde_saphyr::ser_options! {
            prefer_block_scalars: false, compact_list_indent: true, quote_all: true,
        };
        let document = sorted(document);
        serde_saphyr::to_string_with_options(&document, options).map_err(|_| failed(": it cannot be encoded"))
    }

    fn context(&self) -> Result<&Context, KubeconfigError> {
        let mut contexts = self.contexts.iter().flatten();
        let found = contexts.find(|context| context.name == self.current_context);
        found.map(|context| &context.part.context).ok_or(KubeconfigError::NoContext)
    }

    fn user(&mut self) -> Result<&mut User, KubeconfigError> {
        let name = self.context()?.user.clone();
        let found = self.users.iter_mut().flatten().find(|user| user.name == name);
        found.map(|user| &mut user.part.user).ok_or(KubeconfigError::NoUser(name))
    }

    fn cluster(&mut self) -> Result<&mut Cluster, KubeconfigError> {
        let name = self.context()?.cluster.clone();
        let found = self.clusters.iter_mut().flatten().find(|cluster| cluster.name == name);
        found.map(|cluster| &mut cluster.part.cluster).ok_or(KubeconfigError::NoCluster(name))
    }

    /// Returns the token of the current user, may be empty. Fails if the context or user does not exist.
    pub fn token(&mut self) -> Result<&str, KubeconfigError> {
        self.user().map(|user| &*user.token)
    }

    /// Returns the CA bundle of the current cluster, empty if invalid. Fails if the context or cluster does not exist.
    pub fn ca(&mut self) -> Result<Vec<u8>, KubeconfigError> {
        self.cluster().map(|cluster| BASE64_STANDARD.decode(&cluster.certificate_authority_data).unwrap_or_default())
    }

    /// Sets the token of the current user. Fails if the context or user does not exist.
    pub fn set_token(&mut self, token: &str) -> Result<(), KubeconfigError> {
        self.user()?.token = token.to_owned();
        Ok(())
    }

    /// Sets the CA bundle of the current cluster. Fails if the context or cluster does not exist.
    pub fn set_ca(&mut self, ca: &[u8]) -> Result<(), KubeconfigError> {
        self.cluster()?.certificate_authority_data = BASE64_STANDARD.encode(ca);
        Ok(())
    }
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubeconfig")
    }
}

impl Preferences {
    fn is_empty(&self) -> bool {
        !self.colors && self.extensions.is_empty()
    }
}

fn parse(text: &str) -> Result<Value, KubeconfigError> {
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map(|place| format!(" at line {} column {}", place.line(), place.column()));
        KubeconfigError::Undecodable(place.unwrap_or_default())
    })
}

/// Go treats null as absent. Extensions stay unchanged.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.iter_mut().filter(|(key, _)| *key != "extension").for_each(|(_, value)| without_nulls(value));
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> = fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
