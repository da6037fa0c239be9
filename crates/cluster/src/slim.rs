//! Parses objects without `metadata.managedFields`: a third of an object on average, and hardly ever needed.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub(super) struct Slim(pub(super) Value);

#[derive(Clone, Copy)]
enum SlimPosition {
    Object,
    Metadata,
}

impl<'de> Deserialize<'de> for Slim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SlimPosition::Object.deserialize(deserializer).map(Self)
    }
}

impl<'de> DeserializeSeed<'de> for SlimPosition {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SlimPosition {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(field) = entries.next_key::<String>()? {
            let value = match (self, field.as_str()) {
                (Self::Object, "metadata") => entries.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "managedFields") => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Self::Object | Self::Metadata, _) => entries.next_value()?,
            };
            fields.insert(field, value);
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slim(text: &str) -> serde_json::Result<Value> {
        serde_json::from_str::<Slim>(text).map(|slim| slim.0)
    }

    #[test]
    fn managed_fields_of_the_object_itself_are_left_out() {
        let object = json!({
            "kind": "A", "metadata": {"name": "a", "managedFields": [{"manager": "x", "fieldsV1": {"f:a": {}}}], "n": 1},
            "spec": {"managedFields": [1], "metadata": {"managedFields": {}}}, "managedFields": -2,
        });

        let read = slim(&object.to_string()).unwrap();

        let mut expected = object;
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(read, expected);
    }

    #[test]
    fn slim_parser_reads_everything_else_unchanged() {
        for text in ["null", "true", "-1", "18446744073709551615", "0.5", "\"a\"", "[1,{\"metadata\":null}]", "{}"] {
            assert_eq!(slim(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        for text in ["", "{", "{\"metadata\":{\"managedFields\":[}}", "{} x"] {
            assert!(slim(text).is_err(), "{text}");
        }
    }
}
