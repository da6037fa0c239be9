//! JSON that borrows its texts from the bytes, if they have no escapes.

use std::borrow::Cow;

use serde::{
    Deserialize, Serialize, Serializer,
    de::{
        DeserializeSeed as _, Deserializer, Error, IntoDeserializer, Visitor,
        value::{BorrowedStrDeserializer, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Number, Value};

use super::{Keep, Picking};

/// A JSON value. If a map has a key twice, the last value counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// A map, in the order of the text.
    Map(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Returns the value of a key, or `None` if it is absent or `null`.
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        let Self::Map(entries) = self else { return None };
        entries.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Returns true if it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the text, if it is a text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl From<Json<'_>> for Value {
    fn from(json: Json<'_>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(value),
            Json::Number(number) => Self::Number(number),
            Json::Text(text) => Self::String(text.into_owned()),
            Json::List(items) => items.into_iter().map(Self::from).collect(),
            Json::Map(entries) => entries.into_iter().map(|(key, value)| (key, Self::from(value))).collect(),
        }
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// Without a bound: for values that are already in memory.
impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Picking { keep: Keep::All, room: &mut { usize::MAX } }.deserialize(deserializer)
    }
}

impl<'de, 'a: 'de> Deserializer<'de> for &'de Json<'a> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Json::Null => visitor.visit_unit(),
            Json::Bool(value) => visitor.visit_bool(*value),
            Json::Number(number) => number.deserialize_any(visitor),
            Json::Text(text) => visitor.visit_borrowed_str(text),
            Json::List(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Json::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (BorrowedStrDeserializer::new(key), value));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

impl<'de, 'a: 'de> IntoDeserializer<'de, serde_json::Error> for &'de Json<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The error for a value of another type. It does not repeat the value.
pub(super) fn wrong<E: Error>(found: &Json<'_>, expected: &str) -> E {
    let found = match found {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::Text(_) => "a text",
        Json::List(_) => "a list",
        Json::Map(_) => "a map",
    };
    E::custom(format!("{found} where {expected} is expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn json_is_written_as_it_was_read() {
        let text = r#"{"a":[1,-2,0.5,true,null,"x\n"],"b":{}}"#;
        assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        assert!(matches!(read(r#""plain""#), Json::Text(Cow::Borrowed(_))));
    }

    #[test]
    fn json_keeps_the_last_of_equal_keys() {
        let many: String = (0..40).map(|key| format!(r#""{key}":0,"#)).collect();
        for text in [r#"{"a":1,"b":2,"a":3}"#.to_owned(), format!(r#"{{"a":1,{many}"a":3}}"#)] {
            assert_eq!(read(&text).get("a"), Some(&Json::Number(3.into())));
            assert_eq!(serde_json::to_string(&read(&text)).unwrap().matches(r#""a""#).count(), 1);
        }
    }
}
