//! A configuration as it is logged: as it is printed, without what may be a credential.

use std::fmt;

use kit::credentials::without_credentials;
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

/// Returns the file that a configuration comes from, as [`to_yaml`] does, but without what may be a credential. Each text of
/// the configuration counts as suspect, whatever its key: a token or a URL with a password can stand anywhere by mistake.
pub fn to_log(config: &impl Serialize) -> String {
    // Neither fails: keys are texts, and a serialized value can be read again.
    let json = serde_json::to_string(config).unwrap_or_default();
    let mut ordered: Ordered = serde_json::from_str(&json).unwrap_or(Ordered::Other(Value::Null));
    ordered.leave_credentials_out();
    to_yaml(&ordered)
}

impl Ordered {
    fn leave_credentials_out(&mut self) {
        match self {
            Self::Text(text) => *text = without_credentials(text).into_owned(),
            Self::List(entries) => entries.iter_mut().for_each(Self::leave_credentials_out),
            Self::Fields(Fields(fields)) => fields.iter_mut().for_each(|(key, value)| {
                *key = without_credentials(key).into_owned();
                value.leave_credentials_out();
            }),
            Self::Other(_) => {}
        }
    }
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
            z: &'static str,
            a: Vec<f64>,
            m: Option<bool>,
            inner: Value,
        }
        let example =
            Example { z: "x", a: vec![1.0, 0.5], m: None, inner: json!({"empty": {}, "none": [], "text": ""}) };

        assert_eq!(to_log(&example), to_yaml(&example));
        assert!(to_log(&example).starts_with("z: x\na:\n"), "{}", to_log(&example));
    }

    #[test]
    fn logged_configuration_has_no_credentials_at_any_place() {
        let secret = "users: []\ntoken: sesame";
        let config = json!({
            "kubeconfig": secret, "host": "https://me:sesame@host", "list": [{"name": secret}], "map": {secret: "v"},
        });

        let logged = to_log(&config);

        assert!(!logged.contains("sesame"), "{logged}");
        assert!(logged.contains("https://…@host") && logged.contains(LEFT_OUT), "{logged}");
    }
}
