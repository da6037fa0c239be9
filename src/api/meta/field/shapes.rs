//! Types of fields, read as Go reads them: absent, `null` and empty are the same, unknown fields are ignored, and a
//! wrong type is an error. Two values are equal if they mean the same (spec 62 §2.6).

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, ops::Deref};

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use jiff::Timestamp;
use serde::{
    Deserialize, Serialize, Serializer,
    de::{Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{Json, json::wrong, time::moment};
use crate::api::meta::quantity::Amount;

/// A text.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Text<'a>(pub Cow<'a, str>);

/// A value that is not optional.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Plain<T>(pub T);

/// A struct whose JSON must be a map. A plain struct would also accept a list of its fields in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyed<T>(pub T);

/// As [`Keyed`]; absent and `null` are the default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Part<T>(pub T);

/// A list; items may be `null`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct List<T>(pub Vec<T>);

/// A map with text keys, in the order of its keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Map<'a, T>(pub BTreeMap<Text<'a>, T>);

/// Bytes, written in Base64.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// An amount, equal to the same amount in any notation.
#[derive(Debug, Clone)]
pub struct Quantity<'a> {
    /// As written; numbers as their text.
    pub text: Cow<'a, str>,
    /// The amount.
    pub amount: Amount,
}

/// A time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Timestamp);

/// A number or a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum IntOrText<'a> {
    /// A number.
    Integer(i32),
    /// A text.
    Text(Text<'a>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_any(Reading)
    }
}

impl<T> Deref for Plain<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Plain<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| Self(value.unwrap_or_default()))
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Keyed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StructVisitor(PhantomData)).map(Self)
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Part<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StructVisitor(PhantomData)).map(Self)
    }
}

struct StructVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for StructVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    /// Only for [`Part`]: `deserialize_map` refuses `null`.
    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Option::<Vec<Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self(items.into_iter().map(Option::unwrap_or_default).collect()))
    }
}

impl<'a, T> Deref for Map<'a, T> {
    type Target = BTreeMap<Text<'a>, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de> + Default> Deserialize<'de> for Map<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Option::<BTreeMap<Text<'a>, Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self(entries.into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect()))
    }
}

/// As in Go: surplus bits in the last character are ignored.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?;
        let text: Cow<'_, str> = match text.contains(['\r', '\n']) {
            // As in Go.
            true => text.replace(['\r', '\n'], "").into(),
            false => text.0,
        };
        BASE64.decode(&*text).map(Self).map_err(|_| D::Error::custom("bytes that are not written in Base64"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?;
        moment(&text).map(Self).ok_or_else(|| D::Error::custom("a text that is no time of RFC 3339"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Quantity<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Json::deserialize(deserializer)? {
            Json::Null => Cow::Borrowed("0"),
            Json::Text(text) => text,
            Json::Number(number) => number.to_string().into(),
            other => return Err(wrong(&other, "a quantity")),
        };
        let amount = Amount::parse(&text).ok_or_else(|| D::Error::custom("a text that is no quantity"))?;
        Ok(Self { text, amount })
    }
}

impl Default for Quantity<'_> {
    fn default() -> Self {
        Self { text: Cow::Borrowed("0"), amount: Amount::ZERO }
    }
}

impl PartialEq for Quantity<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for IntOrText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Null => Ok(Self::default()),
            Json::Text(text) => Ok(Self::Text(Text(text))),
            other => i32::deserialize(&other)
                .map(Self::Integer)
                .map_err(|_| wrong(&other, "a text or an integer of 32 bits")),
        }
    }
}

impl Default for IntOrText<'_> {
    fn default() -> Self {
        Self::Integer(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Thing<'a> {
        #[serde(borrow)]
        a: Text<'a>,
        n: Plain<i32>,
        o: Option<i32>,
        l: List<Text<'a>>,
        p: Part<Inner>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        b: Plain<bool>,
    }

    /// spec 62 §2.3
    #[test]
    fn null_is_as_good_as_absent_and_unknown_fields_are_passed_over() {
        let empty = read::<Part<Thing<'_>>>("{}").unwrap();
        for text in [r#"{"a":null,"n":null,"o":null,"l":null,"p":null}"#, r#"{"l":[],"p":{},"x":{"y":1}}"#, "null"] {
            assert_eq!(read::<Part<Thing<'_>>>(text).unwrap(), empty, "{text}");
        }
        assert_eq!(read::<List<Text<'_>>>(r#"["a",null]"#).unwrap().len(), 2);
    }

    /// spec 62 §2.3
    #[test]
    fn a_value_of_the_wrong_type_is_an_error_that_does_not_repeat_it() {
        for text in [r#"{"a":5}"#, r#"{"n":"s3cret"}"#, r#"{"n":1.5}"#, r#"{"n":3000000000}"#, r#"{"l":{}}"#] {
            let error = read::<Part<Thing<'_>>>(text).unwrap_err();
            assert!(error.contains("expected"), "{error}");
        }
        assert!(read::<Part<Thing<'_>>>("[]").is_err() && read::<Part<Thing<'_>>>(r#"{"p":[true]}"#).is_err());
        assert!(read::<Bytes>(r#""%""#).is_err() && read::<Bytes>(r#""YQ==""#).unwrap().0 == b"a");
        assert_eq!(read::<Bytes>(r#""YR==""#).unwrap().0, b"a", "with bits that Go does not look at");
        assert!(read::<Quantity<'_>>(r#""many""#).is_err() && read::<Time>(r#""yesterday""#).is_err());
    }

    /// spec 62 §2.6
    #[test]
    fn shapes_with_the_same_meaning_are_equal() {
        let quantity = |text| read::<Quantity<'_>>(text).unwrap();
        assert_eq!(quantity(r#""1500m""#), quantity(r#""1.5""#));
        assert_eq!(read::<Time>(r#""2026-01-01T00:00:00Z""#), read::<Time>(r#""2026-01-01T01:00:00+01:00""#));
    }
}
