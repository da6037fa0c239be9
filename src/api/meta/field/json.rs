//! JSON that borrows its texts from the bytes, if they have no escapes.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Serialize, Serializer,
    de::{
        DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
    ser::{SerializeMap as _, SerializeSeq as _},
};
use serde_json::{Number, Value};

/// Most lists, maps and scalars of a reviewed object. A large EndpointSlice has 15,000; 7 MiB of text can have
/// millions. Each can take a hundred times the bytes of its text, and two kilobytes when a webhook adds to it.
pub const MOST_VALUES: usize = 50_000;

/// Start of the error about an object with more values.
pub const TOO_MANY: &str = "the object has too many fields";

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

/// Remaining number of values; reads one [`Json`].
#[derive(Debug)]
pub struct Budget<'a>(pub &'a mut usize);

pub(super) struct Key<'a>(pub(super) Cow<'a, str>);

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
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

/// Has no budget: for values that are already in memory.
impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Budget(&mut { usize::MAX }).deserialize(deserializer)
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
            Json::List(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Of))),
            Json::Map(entries) => {
                visitor.visit_map(MapDeserializer::new(entries.iter().map(|(key, value)| (OfKey(key), Of(value)))))
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

struct Of<'de, 'a>(&'de Json<'a>);

struct OfKey<'de>(&'de str);

impl<'de, 'a: 'de> serde::de::IntoDeserializer<'de, serde_json::Error> for Of<'de, 'a> {
    type Deserializer = &'de Json<'a>;

    fn into_deserializer(self) -> Self::Deserializer {
        self.0
    }
}

impl<'de> serde::de::IntoDeserializer<'de, serde_json::Error> for OfKey<'de> {
    type Deserializer = serde::de::value::BorrowedStrDeserializer<'de, serde_json::Error>;

    fn into_deserializer(self) -> Self::Deserializer {
        serde::de::value::BorrowedStrDeserializer::new(self.0)
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

impl Budget<'_> {
    pub(super) fn take<E: Error>(&mut self) -> Result<(), E> {
        *self.0 = self.0.checked_sub(1).ok_or_else(|| E::custom(TOO_MANY))?;
        Ok(())
    }

    fn leaf<E: Error>(mut self, value: Json<'_>) -> Result<Json<'_>, E> {
        self.take()?;
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Budget<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Budget<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json<'de>, E> {
        self.leaf(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json<'de>, E> {
        self.leaf(Json::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json<'de>, E> {
        self.leaf(Json::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json<'de>, E> {
        self.leaf(Json::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json<'de>, E> {
        self.leaf(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Json<'de>, E> {
        self.leaf(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json<'de>, E> {
        self.leaf(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Json<'de>, A::Error> {
        self.take()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Budget(self.0))? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Json<'de>, A::Error> {
        self.take()?;
        let mut entries = Vec::new();
        while let Some(Key(key)) = access.next_key::<Key<'de>>()? {
            entries.push((key, access.next_value_seed(Budget(self.0))?));
        }
        Ok(Json::Map(once(entries)))
    }
}

/// Keeps the last of equal keys. Sorts a copy to find them, so that a map of thousands takes no quadratic time.
pub(super) fn once<'a>(mut entries: Vec<(Cow<'a, str>, Json<'a>)>) -> Vec<(Cow<'a, str>, Json<'a>)> {
    let twice = if entries.len() <= 16 {
        entries.iter().enumerate().any(|(at, (key, _))| entries[..at].iter().any(|(other, _)| other == key))
    } else {
        let mut keys: Vec<_> = entries.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    };
    if twice {
        let mut seen = std::collections::HashSet::new();
        entries.reverse();
        entries.retain(|(key, _)| seen.insert(key.clone()));
        entries.reverse();
    }
    entries
}

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Reading)
    }
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

    #[test]
    fn an_object_of_too_many_values_is_refused_before_it_is_in_memory() {
        let mut room = 3;
        let error = Budget(&mut room).deserialize(&mut serde_json::Deserializer::from_str("[1,2,3]")).unwrap_err();
        assert!(error.to_string().starts_with(TOO_MANY), "{error}");
    }
}
