use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{
    limits::{FIELDS_COST, Limits, Meter, NODE_COST},
    scalar,
};

/// Returns the value at the start of `input` and the offset after it, or `None` if there are only blanks.
pub(super) fn next(input: &[u8], limits: &Limits, meter: &mut Meter) -> Option<Result<(Value, usize), String>> {
    if input.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
        return None;
    }

    let mut deserializer = serde_json::Deserializer::from_slice(input);
    deserializer.disable_recursion_limit(); // there is one in each node
    let value = JsonNode { limits, depth: 0, meter }.deserialize(&mut deserializer);
    // The iterator only tells the position of the deserializer.
    let offset = deserializer.into_iter::<IgnoredAny>().byte_offset();
    Some(value.map(|value| (value, offset)).map_err(|error| format!("json: {error}")))
}

/// Builds a value as `serde_json` does, but metered, bounded in depth, and with whole floats as integers. The last of
/// equal keys counts.
struct JsonNode<'a> {
    limits: &'a Limits,
    depth: usize,
    meter: &'a mut Meter,
}

impl JsonNode<'_> {
    fn child(&mut self) -> JsonNode<'_> {
        JsonNode { limits: self.limits, depth: self.depth + 1, meter: self.meter }
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        if self.depth >= self.limits.depth {
            return Err(E::custom(self.limits.depth_text()));
        }
        self.charge(0)
    }

    fn charge<E: Error>(&mut self, text: usize) -> Result<(), E> {
        self.meter.charge(NODE_COST + text).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for JsonNode<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<Value, E> {
        self.charge(0)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<Value, E> {
        self.charge(0)?;
        Ok(value.into())
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<Value, E> {
        self.charge(0)?;
        Ok(value.into())
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<Value, E> {
        self.charge(0)?;
        scalar::float(value).ok_or_else(|| E::custom("number has no JSON form"))
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<Value, E> {
        self.charge(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(mut self) -> Result<Value, E> {
        self.charge(0)?;
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.child())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.charge(key.len())?;
            let value = access.next_value_seed(self.child())?;
            if fields.is_empty() {
                self.meter.charge(FIELDS_COST).map_err(A::Error::custom)?;
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use kit::testing::on_a_large_stack;
    use serde_json::json;

    use super::*;

    fn one(input: &str) -> Option<Result<(Value, usize), String>> {
        next(input.as_bytes(), &Limits::default(), &mut Meter::new(1 << 20))
    }

    #[test]
    fn the_offset_is_behind_the_value() {
        assert_eq!(one(r#" {"a":[1]}{"b":2}"#), Some(Ok((json!({"a": [1]}), 10))));
        assert_eq!(one(" \n\t"), None);
        assert_eq!(one(""), None);
    }

    #[test]
    fn numbers_keep_64_bits_and_whole_floats_are_integers() {
        let input =
            r#"{"a":9223372036854775807,"b":18446744073709551615,"c":-9223372036854775808,"d":1.0,"e":1e3,"f":0.5}"#;
        let expected = json!({"a": i64::MAX, "b": u64::MAX, "c": i64::MIN, "d": 1, "e": 1000, "f": 0.5});

        assert_eq!(one(input).unwrap().unwrap().0, expected);
    }

    #[test]
    fn a_key_that_comes_twice_has_its_last_value() {
        assert_eq!(one(r#"{"a":1,"a":{"b":2}}"#).unwrap().unwrap().0, json!({"a": {"b": 2}}));
    }

    #[test]
    fn json_errors_name_the_position_and_no_content() {
        assert_eq!(one(r#"{"password": geheim}"#), Some(Err("json: expected value at line 1 column 14".to_owned())));
    }

    #[test]
    fn depth_and_memory_are_bounded() {
        on_a_large_stack(|| {
            let deep = "[".repeat(10_001) + &"]".repeat(10_001);
            let fits = "[".repeat(10_000) + &"]".repeat(10_000);

            assert!(one(&deep).unwrap().unwrap_err().contains("nested deeper than 10000 levels"));
            assert!(one(&fits).unwrap().is_ok());
        });
        let limits = Limits::default();
        let error = next(b"[1,2,3]", &limits, &mut Meter::new(100)).unwrap().unwrap_err();
        assert!(error.contains("more than 100 bytes of memory"), "{error}");
    }
}
