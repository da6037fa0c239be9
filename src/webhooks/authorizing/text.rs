//! Values of fields that may have any type.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Bound of the items kept of a list. Users are in tens of groups; an item may take ten times its text's memory.
pub(super) const MOST_ITEMS: usize = 10_000;

/// Any JSON value. Only strings and lists of strings are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Lenient<'a> {
    #[default]
    Null,
    Text(Cow<'a, str>),
    List(Vec<Cow<'a, str>>),
    /// Anything else, such as a list with another type in it or with more than [`MOST_ITEMS`].
    Other,
}

struct LenientVisitor;

impl<'de: 'a, 'a> Deserialize<'de> for Lenient<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor)
    }
}

impl<'de> Visitor<'de> for LenientVisitor {
    type Value = Lenient<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Lenient<'de>, E> {
        Ok(Lenient::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Lenient<'de>, E> {
        Ok(Lenient::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Lenient<'de>, E> {
        Ok(Lenient::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Lenient<'de>, E> {
        Ok(Lenient::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Lenient<'de>, E> {
        Ok(Lenient::Other)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Lenient<'de>, E> {
        Ok(Lenient::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Lenient<'de>, E> {
        Ok(Lenient::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lenient<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Lenient::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Lenient<'de>, A::Error> {
        let mut texts = Vec::new();
        let mut is_other = false;
        while let Some(item) = items.next_element::<Lenient<'de>>()? {
            match item {
                _ if is_other || texts.len() == MOST_ITEMS => is_other = true,
                Lenient::Text(text) => texts.push(text),
                Lenient::Null => texts.push(Cow::Borrowed("")),
                Lenient::List(_) | Lenient::Other => is_other = true,
            }
        }
        Ok(if is_other { Lenient::Other } else { Lenient::List(texts) })
    }
}
