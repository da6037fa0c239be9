//! JSON objects that users write into annotations (decision 39). As in Go, the case of field names does not matter. An
//! unknown field is an error: a selector with an ignored condition would select too much.

use std::{borrow::Cow, fmt};

use kit::quote::{cut_after, quoted};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::field::Json;

/// A JSON object in the order of its text. A field may occur several times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

const LONGEST_NAME: usize = 60; // longest name of an unknown field in an error, in characters

impl<'a> Record<'a> {
    /// Returns a value as an object. Fails if it is none.
    pub fn of(json: Json<'a>) -> Result<Self, String> {
        match json {
            Json::Map(entries) => Ok(Self(entries)),
            _ => Err("it is no object".to_owned()),
        }
    }

    /// Returns the values of these fields, each in the order of the text; for nearly all fields the last one counts
    /// ([`last`]). Fails at the first other field.
    pub fn fields<const N: usize>(self, known: [&str; N]) -> Result<[Vec<Json<'a>>; N], String> {
        let mut values = [const { Vec::new() }; N];
        for (name, value) in self.0 {
            let place = known.iter().position(|known| known.eq_ignore_ascii_case(&name));
            let Some(values) = place.and_then(|place| values.get_mut(place)) else {
                let name = quoted(&cut_after(LONGEST_NAME, &name));
                return Err(format!("unknown field {name}, known are {}", known.join(", ")));
            };
            values.push(value);
        }
        Ok(values)
    }
}

/// The last value of a field, as in Go; `null` is no value.
pub fn last(mut values: Vec<Json<'_>>) -> Option<Json<'_>> {
    values.pop().filter(|value| !value.is_null())
}

impl<'de: 'a, 'a> Deserialize<'de> for Record<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Record<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Record<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = access.next_key::<String>()? {
                    entries.push((Cow::Owned(name), access.next_value()?));
                }
                Ok(Record(entries))
            }
        }

        deserializer.deserialize_map(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Result<[Vec<String>; 2], String> {
        let record: Record<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let texts = |values: Vec<Json<'_>>| values.iter().map(|it| serde_json::to_string(it).unwrap()).collect();
        Ok(record.fields(["matchLabels", "values"])?.map(texts))
    }

    /// decision 39
    #[test]
    fn record_fields_are_read_in_any_case_in_the_order_of_the_text() {
        let found = fields(r#"{"VALUES":1,"matchlabels":{},"values":null,"Values":2}"#);
        assert_eq!(found, Ok([vec!["{}".to_owned()], ["1", "null", "2"].map(str::to_owned).to_vec()]));
        assert_eq!(last(vec![Json::Bool(true), Json::Null]), None);
    }

    /// decision 39
    #[test]
    fn record_with_an_unknown_field_is_refused() {
        let error = fields(r#"{"values":1,"match_labels":{}}"#);
        assert_eq!(error, Err("unknown field \"match_labels\", known are matchLabels, values".to_owned()));
        assert!(fields(&format!("{{\"{}\":1}}", "x".repeat(10_000))).is_err_and(|text| text.len() < 200));
        assert!(fields("[]").is_err() && Record::of(Json::Null).is_err());
    }
}
