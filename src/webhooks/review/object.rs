//! Strict maps for reviews, and the bounded JSON value of their object.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use crate::api::meta::field::{Budget, MOST_VALUES};

/// Deserializes from a map only. A plain struct would also accept a list of its fields in order.
pub(in crate::webhooks) struct Keyed<T>(pub(in crate::webhooks) T);

struct KeyedVisitor<T>(PhantomData<T>);

/// Reads the object of a review; `None` if it is `null`. Fails if it is not JSON or has more than [`MOST_VALUES`].
pub(super) fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let object = Budget(&mut { MOST_VALUES }).deserialize(deserializer)?;
    Ok((!object.is_null()).then(|| object.into()))
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Keyed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeyedVisitor(PhantomData)).map(Self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for KeyedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}
