//! A block with `enabled` beside its settings.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor},
    forward_to_deserialize_any,
};

/// A block that does nothing unless its key `enabled` is true. The other keys are those of `T`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Enabled<T> {
    /// Off by default.
    pub enabled: bool,
    /// The settings, which count only if `enabled` is true.
    #[serde(flatten)]
    pub settings: T,
}

impl<T> Enabled<T> {
    /// Returns the settings if the block is on.
    pub fn on(&self) -> Option<&T> {
        self.enabled.then_some(&self.settings)
    }
}

impl<T> From<T> for Enabled<T> {
    /// A block that is on.
    fn from(settings: T) -> Self {
        Self { enabled: true, settings }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Enabled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut enabled = false;
        let settings = T::deserialize(WithoutEnabled { inner: deserializer, enabled: &mut enabled })?;
        Ok(Self { enabled, settings })
    }
}

/// Takes `enabled` out of a struct. It wraps the deserializer, then its visitor, then the access to its fields.
struct WithoutEnabled<'a, I> {
    inner: I,
    enabled: &'a mut bool,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithoutEnabled<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, known, WithoutEnabled { inner: visitor, enabled: self.enabled })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for WithoutEnabled<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(WithoutEnabled { inner: fields, enabled: self.enabled })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutEnabled<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.inner.next_key::<String>()? {
            if key != "enabled" {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            *self.enabled = self.inner.next_value::<Option<bool>>()?.unwrap_or_default();
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}
