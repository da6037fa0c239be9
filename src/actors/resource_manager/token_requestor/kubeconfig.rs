//! Kubeconfigs, read and written like Go's client (spec 30 §6): unknown fields are dropped.

use base64::{Engine, prelude::BASE64_STANDARD};
use cluster::object;
use serde_json::{Map, Value, json};

use self::{
    Shape::{Any, Fields, Flag, List, MapOf, Text},
    Written::{Always, NotEmpty},
};

/// Why a kubeconfig is unusable. The texts quote nothing except names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// Invalid YAML, not an object, or a field of another type; with the position.
    #[error("the kubeconfig cannot be decoded{0}")]
    Undecodable(String),
    /// A defect: it was read, but cannot be written.
    #[error("the kubeconfig cannot be encoded")]
    Unencodable,
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

/// A kubeconfig with all fields that Go's client always writes, and without fields that it does not know.
pub struct Kubeconfig(Value);

/// The type of a field.
enum Shape {
    Text,
    Flag,
    /// Kept as it is.
    Any,
    List(&'static Shape),
    /// A map from names to values of one type.
    MapOf(&'static Shape),
    /// An object with fields: their names, when they are written, and their type.
    Fields(&'static [(&'static str, Written, Shape)]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Always,
    NotEmpty,
}

const KUBECONFIG: Shape = Fields(&[
    ("preferences", NotEmpty, Fields(&[("colors", NotEmpty, Flag), ("extensions", NotEmpty, EXTENSIONS)])),
    ("clusters", Always, List(&Fields(&[("name", Always, Text), ("cluster", Always, CLUSTER)]))),
    ("users", Always, List(&Fields(&[("name", Always, Text), ("user", Always, USER)]))),
    ("contexts", Always, List(&Fields(&[("name", Always, Text), ("context", Always, CONTEXT)]))),
    ("current-context", Always, Text),
    ("extensions", NotEmpty, EXTENSIONS),
]);

const CLUSTER: Shape = Fields(&[
    ("server", Always, Text),
    ("tls-server-name certificate-authority certificate-authority-data proxy-url", NotEmpty, Text),
    ("insecure-skip-tls-verify disable-compression", NotEmpty, Flag),
    ("extensions", NotEmpty, EXTENSIONS),
]);

const USER: Shape = Fields(&[
    ("client-certificate client-certificate-data client-key client-key-data", NotEmpty, Text),
    ("token tokenFile as as-uid username password", NotEmpty, Text),
    ("as-groups", NotEmpty, List(&Text)),
    ("as-user-extra", NotEmpty, MapOf(&List(&Text))),
    ("auth-provider", NotEmpty, Fields(&[("name", Always, Text), ("config", Always, MapOf(&Text))])),
    ("exec", NotEmpty, EXEC),
    ("extensions", NotEmpty, EXTENSIONS),
]);

const EXEC: Shape = Fields(&[
    ("command", Always, Text),
    ("args", Always, List(&Text)),
    ("env", Always, List(&Fields(&[("name value", Always, Text)]))),
    ("apiVersion installHint interactiveMode", NotEmpty, Text),
    ("provideClusterInfo", Always, Flag),
]);

const CONTEXT: Shape =
    Fields(&[("cluster user", Always, Text), ("namespace", NotEmpty, Text), ("extensions", NotEmpty, EXTENSIONS)]);

const EXTENSIONS: Shape = List(&Fields(&[("name", Always, Text), ("extension", Always, Any)]));

impl Shape {
    /// Returns the value with known fields only, or `None` if it has another type. Go treats null fields as absent.
    fn known(&self, value: Value) -> Option<Value> {
        match (self, value) {
            (Any, value) | (Text, value @ Value::String(_)) | (Flag, value @ Value::Bool(_)) => Some(value),
            (List(of), Value::Array(items)) => items.into_iter().map(|item| of.known(item)).collect(),
            (MapOf(of), Value::Object(entries)) => {
                let entries = entries.into_iter().filter(|(_, value)| !value.is_null());
                entries.map(|(key, value)| Some((key, of.known(value)?))).collect()
            }
            (Fields(fields), Value::Object(mut found)) => {
                let mut known = Map::new();
                let fields = fields
                    .iter()
                    .flat_map(|(keys, written, shape)| keys.split(' ').map(move |key| (key, written, shape)));
                for (key, written, shape) in fields {
                    let value = match found.remove(key).filter(|value| !value.is_null()) {
                        Some(value) => shape.known(value)?,
                        None if *written == Always => shape.zero(),
                        None => continue,
                    };
                    if *written == Always || !is_empty(&value) {
                        known.insert(key.to_owned(), value);
                    }
                }
                Some(known.into())
            }
            (Text | Flag | List(_) | MapOf(_) | Fields(_), _) => None,
        }
    }

    /// Returns the value of an absent field.
    fn zero(&self) -> Value {
        match self {
            Text => "".into(),
            Flag => false.into(),
            Any | List(_) | MapOf(_) => Value::Null,
            Fields(_) => self.known(Map::new().into()).unwrap_or_default(),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    [json!(false), json!(""), json!([]), json!({})].contains(value)
}

impl Kubeconfig {
    /// Reads JSON or YAML; empty input is an empty kubeconfig. Fails if it cannot be decoded or is of another kind.
    pub fn read(bytes: &[u8]) -> Result<Self, KubeconfigError> {
        let text = std::str::from_utf8(bytes).map_err(|_| KubeconfigError::Undecodable(": not UTF-8".to_owned()))?;
        let fields = match parse(text)? {
            Value::Null => Map::new(),
            Value::Object(fields) => fields,
            _ => return Err(KubeconfigError::Undecodable(": it is not an object".to_owned())),
        };
        for (key, expected) in [("kind", "Config"), ("apiVersion", "v1")] {
            match fields.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if text.is_empty() || text == expected => {}
                Some(_) => return Err(KubeconfigError::OtherKind),
            }
        }
        let known = KUBECONFIG.known(fields.into());
        known.map(Self).ok_or_else(|| KubeconfigError::Undecodable(": a field is of another type".to_owned()))
    }

    /// Writes YAML with sorted keys. It has no known failure for a kubeconfig that was read.
    pub fn write(self) -> Result<String, KubeconfigError> {
        let Self(mut document) = self;
        *object::field_mut(&mut document, &["apiVersion"]) = "v1".into();
        *object::field_mut(&mut document, &["kind"]) = "Config".into();
        document.sort_all_objects();
        let options = serde_saphyr::ser_options! {
            prefer_block_scalars: false, compact_list_indent: true, quote_all: true,
        };
        serde_saphyr::to_string_with_options(&document, options).map_err(|_| KubeconfigError::Unencodable)
    }

    /// Returns the part of the first entry of a list that has this name.
    fn part(&mut self, list: &str, name: &str, part: &str) -> Option<&mut Value> {
        let entries = self.0.get_mut(list)?.as_array_mut()?;
        entries.iter_mut().find(|entry| text(entry, "name") == name)?.get_mut(part)
    }

    /// Returns a name in the current context.
    fn in_context(&mut self, key: &str) -> Result<String, KubeconfigError> {
        let current = text(&self.0, "current-context").to_owned();
        let context = self.part("contexts", &current, "context").ok_or(KubeconfigError::NoContext)?;
        Ok(text(context, key).to_owned())
    }

    fn user(&mut self) -> Result<&mut Value, KubeconfigError> {
        let name = self.in_context("user")?;
        self.part("users", &name, "user").ok_or(KubeconfigError::NoUser(name))
    }

    fn cluster(&mut self) -> Result<&mut Value, KubeconfigError> {
        let name = self.in_context("cluster")?;
        self.part("clusters", &name, "cluster").ok_or(KubeconfigError::NoCluster(name))
    }

    /// Returns the token of the current user, may be empty. Fails if the context or user does not exist.
    pub fn token(&mut self) -> Result<&str, KubeconfigError> {
        self.user().map(|user| text(user, "token"))
    }

    /// Returns the CA bundle of the current cluster, empty if invalid. Fails if the context or cluster does not exist.
    pub fn ca(&mut self) -> Result<Vec<u8>, KubeconfigError> {
        let cluster = self.cluster()?;
        Ok(BASE64_STANDARD.decode(text(cluster, "certificate-authority-data")).unwrap_or_default())
    }

    /// Sets the token of the current user. Fails if the context or user does not exist.
    pub fn set_token(&mut self, token: &str) -> Result<(), KubeconfigError> {
        *object::field_mut(self.user()?, &["token"]) = token.into();
        Ok(())
    }

    /// Sets the CA bundle of the current cluster. Fails if the context or cluster does not exist.
    pub fn set_ca(&mut self, ca: &[u8]) -> Result<(), KubeconfigError> {
        *object::field_mut(self.cluster()?, &["certificate-authority-data"]) = BASE64_STANDARD.encode(ca).into();
        Ok(())
    }
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubeconfig")
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

fn text<'a>(fields: &'a Value, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}
