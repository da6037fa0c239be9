//! The Secrets that an OperatingSystemConfig names (spec 61 §5.6). The config is decoded once, when its Secret changes.
//! Nothing else of its content is kept, and errors contain only a position.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::Value;

use super::Node;

const KEY: &str = "osc.yaml";
const API_VERSION: &str = "extensions.gardener.cloud/v1alpha1";
const KIND: &str = "OperatingSystemConfig";

/// The cached fields of a Secret with an OperatingSystemConfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OscSecret {
    /// Whether the Secret has the label of a pool.
    pub of_pool: bool,
    references: Result<Box<[Reference]>, Box<str>>,
}

/// A Secret that a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Name of the Secret.
    pub name: Box<str>,
    /// Host name of the only node that needs the file; `None`: all nodes need it.
    pub host: Option<Box<str>>,
}

/// Selects files by host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host<'a> {
    /// Files of all hosts: the Node does not exist yet, so its host is unknown (spec 61 §5.6).
    Any,
    /// Only files without a host: the Node has no host name (decision 33).
    Unnamed,
    /// Files of this host, and files without a host.
    Named(&'a str),
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct OscDocument {
    api_version: Option<String>,
    kind: Option<String>,
    spec: Option<OscSpec>,
    status: Option<OscStatus>,
}

#[derive(Deserialize, Default)]
struct OscSpec {
    files: Option<Vec<Option<File>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct OscStatus {
    extension_files: Option<Vec<Option<File>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    host_name: Option<Box<str>>,
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    secret_ref: Option<SecretRef>,
}

#[derive(Deserialize)]
struct SecretRef {
    name: Option<Box<str>>,
}

impl OscSecret {
    pub(super) fn of(secret: &Value, of_pool: bool) -> Self {
        let data = secret.get("data").and_then(|data| data.get(KEY)).and_then(Value::as_str);
        let references = data.map_or_else(|| Ok(Box::default()), |data| references(data).map_err(Into::into));
        Self { of_pool, references }
    }

    pub(super) fn references(&self, host: Host<'_>) -> Result<impl Iterator<Item = &str>, &str> {
        let references = self.references.as_ref().map_err(|cause| &**cause)?;
        let wanted = move |reference: &&Reference| host.needs(reference.host.as_deref());
        Ok(references.iter().filter(wanted).map(|reference| &*reference.name))
    }
}

impl<'a> Host<'a> {
    pub(super) fn of(node: &'a Node) -> Self {
        if node.host_name.is_empty() { Self::Unnamed } else { Self::Named(&node.host_name) }
    }

    fn needs(self, of_file: Option<&str>) -> bool {
        match (self, of_file) {
            (Self::Any, _) | (_, None) => true,
            (Self::Unnamed, Some(_)) => false,
            (Self::Named(host), Some(of_file)) => host == of_file,
        }
    }
}

fn references(data: &str) -> Result<Box<[Reference]>, String> {
    let bytes = BASE64_STANDARD.decode(data).map_err(|_| "the data is not Base64".to_owned())?;
    let document = decoded(&bytes)?;
    let is = |found: Option<String>, expected: &str| found.is_none_or(|found| found.is_empty() || found == expected);
    if !is(document.api_version, API_VERSION) || !is(document.kind, KIND) {
        return Err(format!("it is not an {KIND} of {API_VERSION}"));
    }
    let files = document.spec.unwrap_or_default().files.into_iter();
    let files = files.chain(document.status.unwrap_or_default().extension_files).flatten().flatten();
    let reference = |file: File| {
        let name = file.content?.secret_ref?.name.unwrap_or_default();
        Some(Reference { name, host: file.host_name })
    };
    Ok(files.filter_map(reference).collect())
}

fn decoded(bytes: &[u8]) -> Result<OscDocument, String> {
    if let Ok(document) = serde_json::from_slice(bytes) {
        return Ok(document);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    match serde_saphyr::from_str::<Option<OscDocument>>(text) {
        Ok(document) => Ok(document.unwrap_or_default()),
        Err(error) => {
            let place = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
            Err(format!("it is neither JSON nor YAML of an OperatingSystemConfig{}", place.unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(osc: &str) -> OscSecret {
        OscSecret::of(&json!({"data": {KEY: BASE64_STANDARD.encode(osc), "other": "x"}}), true)
    }

    fn names<'a>(secret: &'a OscSecret, host: Host<'_>) -> Result<Vec<&'a str>, &'a str> {
        secret.references(host).map(Iterator::collect)
    }

    /// spec 61 §5.6, decision 33
    #[test]
    fn config_names_the_secrets_of_its_files_by_host() {
        let yaml = "
apiVersion: extensions.gardener.cloud/v1alpha1
kind: OperatingSystemConfig
spec:
  unknown: {a: [1]}
  files:
  - {path: /a, content: {secretRef: {name: a, dataKey: k}}}
  - {path: /b, hostName: h1, content: {secretRef: {name: b}}}
  - {path: /c, content: {inline: {data: c}}}
  - {path: /d}
  - null
status:
  extensionFiles:
  - {path: /e, hostName: h2, content: {secretRef: {name: e}}}
  - {path: /f, hostName: '', content: {secretRef: {name: f}}}
";

        let secret = secret(yaml);

        assert_eq!(names(&secret, Host::Any), Ok(vec!["a", "b", "e", "f"]));
        assert_eq!(names(&secret, Host::Unnamed), Ok(vec!["a"]));
        assert_eq!(names(&secret, Host::Named("h1")), Ok(vec!["a", "b"]));
        assert_eq!(names(&secret, Host::Named("h2")), Ok(vec!["a", "e"]));
        assert_eq!(names(&secret, Host::Named("h3")), Ok(vec!["a"]));
    }

    /// spec 61 §5.6
    #[test]
    fn config_may_be_json_or_empty() {
        assert_eq!(
            names(&secret(r#"{"spec": {"files": [{"content": {"secretRef": {"name": "a"}}}]}}"#), Host::Any),
            Ok(vec!["a"])
        );
        for empty in ["", " \n", "# nothing\n", "null", "{}", "---\n", "spec:\n", "kind: ''", "spec: {files: }"] {
            assert_eq!(names(&secret(empty), Host::Any), Ok(vec![]), "{empty:?}");
        }
        assert_eq!(names(&OscSecret::of(&json!({"data": {"other": "x"}}), true), Host::Any), Ok(vec![]));
        assert_eq!(names(&OscSecret::of(&json!({}), true), Host::Any), Ok(vec![]));
    }

    /// spec 61 §8: errors contain nothing of a Secret
    #[test]
    fn undecodable_config_is_reported_without_quoting_it() {
        let table = [
            ("secret: [hush", "it is neither JSON nor YAML of an OperatingSystemConfig at line "),
            ("spec: hush", "it is neither JSON nor YAML of an OperatingSystemConfig at line 1, column "),
            (
                "spec: {files: [{content: {secretRef: [hush]}}]}",
                "it is neither JSON nor YAML of an OperatingSystemConfig at line 1, column ",
            ),
            ("kind: Hush", "it is not an OperatingSystemConfig of extensions.gardener.cloud/v1alpha1"),
            ("apiVersion: hush/v1", "it is not an OperatingSystemConfig of extensions.gardener.cloud/v1alpha1"),
        ];

        for (osc, expected) in table {
            let secret = secret(osc);
            let cause = names(&secret, Host::Any).unwrap_err();
            assert!(cause.starts_with(expected), "{cause}");
            assert!(!cause.to_lowercase().contains("hush"), "{cause}");
        }
        let unreadable = OscSecret::of(&json!({"data": {KEY: "!"}}), true);
        assert_eq!(names(&unreadable, Host::Any), Err("the data is not Base64"));
    }
}
