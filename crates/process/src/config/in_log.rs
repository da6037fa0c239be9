//! A configuration as it is logged: as it is printed, without what may be a credential. A text is shown only if it has the
//! form of its field: a short token looks like nothing, so it cannot be known by its look.

use std::fmt;

use kit::{
    credentials::{LEFT_OUT, is_like_a_path, without_credentials},
    duration::GoDuration,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use super::to_yaml;

/// A value whose keys keep their order.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Ordered {
    Text(String),
    List(Vec<Ordered>),
    Fields(Fields),
    Other(Value),
}

struct Fields(Vec<(String, Ordered)>);

/// What the texts of a field look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A path of a file or folder.
    Path,
    /// An address, or a URL without user and query.
    Address,
    /// A name as DNS has it, or a placeholder for one.
    Name,
    /// A key or value of a label, a resource, or a word that the program knows; also the keys of maps of these.
    Label,
    /// Media types.
    MediaTypes,
}

/// Texts of all other keys are left out. Durations have a form of their own, whatever their keys are.
const FORMS: [(Form, &[&str]); 5] = [
    (Form::Path, &["kubeconfig", "serverCertDir"]),
    (Form::Address, &["bindAddress", "host"]),
    (
        Form::Name,
        &[
            "clusterID",
            "logFormat",
            "logLevel",
            "machineNamespace",
            "namespace",
            "namespaces",
            "resourceClass",
            "resourceLock",
            "resourceName",
            "resourceNamespace",
            "schedulerName",
        ],
    ),
    (
        Form::Label,
        &[
            "apiVersion",
            "conditionType",
            "effect",
            "featureGates",
            "gardenerVersion",
            "hard",
            "key",
            "kind",
            "managedByLabelValue",
            "matchLabels",
            "nodeSelector",
            "operator",
            "podNodeSelector",
            "scopes",
            "value",
            "values",
        ],
    ),
    (Form::MediaTypes, &["acceptContentTypes", "contentType"]),
];

/// Longest name of DNS, in bytes.
const LONGEST_NAME: usize = 253;
/// Longest value of a label, in bytes.
const LONGEST_VALUE: usize = 63;

/// Returns the file that a configuration comes from, as [`to_yaml`] does, but without texts that do not have the form of
/// their field: a token or a URL with a password can stand anywhere by mistake.
pub fn to_log(config: &impl Serialize) -> String {
    // Neither fails: keys are texts, and a serialized value can be read again.
    let json = serde_json::to_string(config).unwrap_or_default();
    let mut ordered: Ordered = serde_json::from_str(&json).unwrap_or(Ordered::Other(Value::Null));
    ordered.leave_credentials_out(None);
    to_yaml(&ordered)
}

impl Ordered {
    /// `form`: that of the field that has this value.
    fn leave_credentials_out(&mut self, form: Option<Form>) {
        match self {
            Self::Text(text) => *text = shown(text, form),
            Self::List(entries) => entries.iter_mut().for_each(|entry| entry.leave_credentials_out(form)),
            Self::Fields(Fields(fields)) => fields.iter_mut().for_each(|(key, value)| {
                value.leave_credentials_out(Form::of(key).or(form));
                if form.is_some() {
                    *key = shown(key, form); // a map, whose keys are texts of the file
                }
            }),
            Self::Other(_) => {}
        }
    }
}

impl Form {
    fn of(key: &str) -> Option<Self> {
        FORMS.iter().find(|(_, keys)| keys.contains(&key)).map(|(form, _)| *form)
    }

    fn fits(self, text: &str) -> bool {
        let consists_of = |others: &str| {
            text.chars().all(|character| character.is_ascii_alphanumeric() || others.contains(character))
        };
        match self {
            Self::Path => is_like_a_path(text),
            Self::Address => text.len() <= LONGEST_NAME && consists_of("-.:[]%/…@?_"),
            Self::Name => {
                text.len() <= LONGEST_NAME
                    && consists_of("-.*<>")
                    && !text.contains(|character: char| character.is_ascii_uppercase())
            }
            Self::Label => {
                let (prefix, value) = text.split_once('/').unwrap_or_default();
                let value = if prefix.is_empty() { text } else { value };
                prefix.len() <= LONGEST_NAME && value.len() <= LONGEST_VALUE && consists_of("-._/")
            }
            Self::MediaTypes => consists_of("-.+*/;=, "),
        }
    }
}

fn shown(text: &str, form: Option<Form>) -> String {
    let masked = without_credentials(text);
    let is_clear = text.is_empty() || text.parse::<GoDuration>().is_ok() || form.is_some_and(|form| form.fits(&masked));
    if is_clear { masked.into_owned() } else { LEFT_OUT.to_owned() }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use kit::credentials::LEFT_OUT;
    use serde_json::json;

    use super::*;

    #[test]
    fn logged_configuration_has_the_order_and_the_values_of_the_printed_one() {
        #[derive(Serialize)]
        struct Example {
            resource_class: &'static str,
            a: Vec<f64>,
            m: Option<bool>,
            inner: Value,
        }
        let inner = json!({
            "none": [], "text": "", "syncPeriod": "1m0s", "kubeconfig": "/a/b", "serverCertDir": "config/tls",
            "clusterID": "<cluster>", "resourceClass": "*", "host": "api.example.org", "bindAddress": "::1",
            "namespaces": ["kube-system"], "nodeSelector": {"a.b/c": "D_e", "empty": ""}, "hard": {"count/pods": "1"},
            "matchExpressions": [{"key": "a/b", "operator": "In", "values": ["c"]}], "contentType": "application/json; q=1",
        });
        let example = Example { resource_class: "", a: vec![1.0, 0.5], m: None, inner };

        assert_eq!(to_log(&example), to_yaml(&example));
        assert!(to_log(&example).starts_with("resource_class: \"\"\na:\n"), "{}", to_log(&example));
    }

    #[test]
    fn logged_configuration_has_no_credentials_at_any_place() {
        let secret = "users: []\ntoken: sesame";
        let config = json!({
            "kubeconfig": secret, "host": "https://me:sesame@host", "namespaces": [{"name": secret}],
            "matchLabels": {secret: "v"},
        });

        let logged = to_log(&config);

        assert!(!logged.contains("sesame"), "{logged}");
        assert!(logged.contains("https://…@host") && logged.contains(LEFT_OUT), "{logged}");
    }

    #[test]
    fn logged_configuration_shows_a_text_only_in_the_form_of_its_field() {
        for (key, text) in [
            ("kubeconfig", "5fSesame"),
            ("serverCertDir", "sesame.0123456789"),
            ("clusterID", "Sesame"),
            ("namespaces", "sesame=="),
            ("host", "sesame=="),
            ("matchLabels", "se+same"),
            ("contentType", "s&sesame"),
            ("unheardOf", "sesame"),
        ] {
            let logged = to_log(&json!({"block": {key: text}}));

            assert!(logged.contains(LEFT_OUT) && !logged.to_lowercase().contains("sesame"), "{key}: {logged}");
        }
        let logged = to_log(&json!({"matchLabels": {"sesame==": "a"}}));
        assert!(!logged.contains("sesame"), "{logged}");
    }
}
