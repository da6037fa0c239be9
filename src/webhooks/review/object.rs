//! Strict maps for reviews, and the bounded JSON value of their object.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Number, Value};

use crate::api::field::{MOST_VALUES, TOO_MANY};

/// Deserializes from a map only. A plain struct would also accept a list of its fields in order.
pub(in crate::webhooks) struct Keyed<T>(pub(in crate::webhooks) T);

struct KeyedVisitor<T>(PhantomData<T>);

struct ObjectNode<'a> {
    room: &'a mut usize,
}

/// Reads the object of a review; `None` if it is `null`. Fails if it is not JSON or has more than [`MOST_VALUES`].
pub(super) fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let object = ObjectNode { room: &mut { MOST_VALUES } }.deserialize(deserializer)?;
    Ok((!object.is_null()).then_some(object))
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

impl ObjectNode<'_> {
    fn child(&mut self) -> ObjectNode<'_> {
        ObjectNode { room: self.room }
    }

    fn take<E: Error>(&mut self) -> Result<(), E> {
        *self.room = self.room.checked_sub(1).ok_or_else(|| E::custom(TOO_MANY))?;
        Ok(())
    }

    fn leaf<E: Error>(mut self, value: impl Into<Value>) -> Result<Value, E> {
        self.take()?;
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for ObjectNode<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ObjectNode<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.leaf(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.leaf(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.leaf(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.leaf(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.leaf(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.leaf(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.take()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.child())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.take()?;
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(self.child())?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}
