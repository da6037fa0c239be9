//! Reads a JSON value of a bounded size, or a part of it. The rest is skipped, however large or deep it is.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Json, shapes::Text};

/// Most lists, maps and scalars of a reviewed object. A large EndpointSlice has 15,000; 7 MiB of text can have
/// millions. Each can take a hundred times the bytes of its text, and two kilobytes when a webhook adds to it.
pub const MOST_VALUES: usize = 50_000;

/// Start of the error about an object with more values.
pub const TOO_MANY: &str = "the object has too many fields";

/// The part of a value that is read.
#[derive(Debug, Clone, Copy)]
pub enum Keep {
    /// Everything.
    All,
    /// Maps: this part of the values under these keys. Lists: nothing. Other values: everything.
    Only(&'static [(&'static str, Keep)]),
    /// Maps: all, but only this part (`None`: nothing) of the values under these keys. Lists: nothing. Others: all.
    Except(&'static [(&'static str, Option<Keep>)]),
    /// Lists: this part of each item. Maps: nothing. Other values: everything.
    Each(&'static Keep),
}

/// Reads the part as one [`Json`]; skipped values take no room.
#[derive(Debug)]
pub struct Picking<'a> {
    /// The part that is read.
    pub keep: Keep,
    /// Remaining number of values.
    pub room: &'a mut usize,
}

/// Reads a whole value that owns its texts.
#[derive(Debug)]
pub struct Owning<'a> {
    /// Remaining number of values.
    pub room: &'a mut usize,
}

fn take<E: Error>(room: &mut usize) -> Result<(), E> {
    *room = room.checked_sub(1).ok_or_else(|| E::custom(TOO_MANY))?;
    Ok(())
}

impl Keep {
    fn below(self, key: &str) -> Option<Self> {
        match self {
            Self::All => Some(Self::All),
            Self::Only(keys) => keys.iter().find(|(kept, _)| *kept == key).map(|(_, keep)| *keep),
            Self::Except(keys) => {
                keys.iter().find(|(known, _)| *known == key).map_or(Some(Self::All), |(_, keep)| *keep)
            }
            Self::Each(_) => None,
        }
    }

    fn of_items(self) -> Option<Self> {
        match self {
            Self::All => Some(Self::All),
            Self::Each(keep) => Some(*keep),
            Self::Only(_) | Self::Except(_) => None,
        }
    }
}

impl Picking<'_> {
    fn below(&mut self, keep: Keep) -> Picking<'_> {
        Picking { keep, room: self.room }
    }

    fn leaf<E: Error>(self, value: Json<'_>) -> Result<Json<'_>, E> {
        take(self.room)?;
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Picking<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Picking<'_> {
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
        let mut items = Vec::new();
        if let Some(keep) = self.keep.of_items() {
            take(self.room)?;
            while let Some(item) = access.next_element_seed(self.below(keep))? {
                items.push(item);
            }
        } else {
            while access.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Json<'de>, A::Error> {
        take(self.room)?;
        let mut entries = Vec::new();
        while let Some(Text(key)) = access.next_key()? {
            match self.keep.below(&key) {
                Some(keep) => entries.push((key, access.next_value_seed(self.below(keep))?)),
                None => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Json::Map(once(entries)))
    }
}

impl<'de> DeserializeSeed<'de> for Owning<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Owning<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        take(self.room).map(|()| Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        take(self.room).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        take(self.room).map(|()| value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        take(self.room).map(|()| value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        take(self.room).map(|()| value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        take(self.room).map(|()| text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        take(self.room)?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Owning { room: &mut *self.room })? {
            items.push(item);
        }
        Ok(items.into())
    }

    /// The last of equal keys counts.
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        take(self.room)?;
        let mut entries = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            entries.insert(key, access.next_value_seed(Owning { room: &mut *self.room })?);
        }
        Ok(entries.into())
    }
}

/// Keeps the last of equal keys. Sorts a copy to find them, so that a map of thousands takes no quadratic time.
fn once<'a>(mut entries: Vec<(Cow<'a, str>, Json<'a>)>) -> Vec<(Cow<'a, str>, Json<'a>)> {
    let twice = if entries.len() <= 16 {
        entries.iter().enumerate().any(|(at, (key, _))| entries[..at].iter().any(|(other, _)| other == key))
    } else {
        let mut keys: Vec<_> = entries.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    };
    if twice {
        let mut seen = HashSet::new();
        entries.reverse();
        entries.retain(|(key, _)| seen.insert(key.clone()));
        entries.reverse();
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(keep: Keep, text: &str) -> Result<String, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let json = Picking { keep, room: &mut 4 }.deserialize(&mut reader).map_err(|error| error.to_string())?;
        reader.end().map_err(|error| error.to_string())?;
        Ok(serde_json::to_string(&json).unwrap())
    }

    #[test]
    fn picking_skips_the_rest_without_taking_room() {
        const NAME: Keep = Keep::Only(&[("m", Keep::Only(&[("n", Keep::Only(&[]))]))]);
        const NO_S: Keep = Keep::Except(&[("s", None)]);
        const NO_S_IN_L: Keep = Keep::Except(&[("l", Some(Keep::Each(&NO_S)))]);
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let many = format!("[{}0]", "0,".repeat(10_000));
        for (keep, text, expected) in [
            (NAME, format!(r#"{{"a":{deep},"m":{{"b":{many},"n":"x","c":1}},"d":{many}}}"#), r#"{"m":{"n":"x"}}"#),
            (NAME, format!(r#"{{"m":{{"n":{deep}}}}}"#), r#"{"m":{"n":[]}}"#),
            (NAME, r#"{"m":{"n":{"n":1}}}"#.to_owned(), r#"{"m":{"n":{}}}"#),
            (NAME, r#"{"m":5}"#.to_owned(), r#"{"m":5}"#),
            (NAME, "null".to_owned(), "null"),
            (NO_S, format!(r#"{{"a":{{"s":1}},"s":{deep}}}"#), r#"{"a":{"s":1}}"#),
            (NO_S_IN_L, format!(r#"{{"l":[{{"s":{deep}}},{{"s":{many}}}]}}"#), r#"{"l":[{},{}]}"#),
            (NO_S_IN_L, format!(r#"{{"l":{{"a":{deep}}},"s":1}}"#), r#"{"l":{},"s":1}"#),
            (NO_S_IN_L, format!(r#"{{"l":[{deep},5,null]}}"#), r#"{"l":[[],5,null]}"#),
            (NO_S_IN_L, r#"{"l":"x"}"#.to_owned(), r#"{"l":"x"}"#),
        ] {
            assert_eq!(picked(keep, &text).as_deref(), Ok(expected));
        }
        for (keep, text) in [(Keep::All, "[1,2,3,4]"), (NO_S, r#"{"a":[1,2,3]}"#), (NO_S_IN_L, r#"{"l":[1,2,3]}"#)] {
            assert!(picked(keep, text).unwrap_err().starts_with(super::super::TOO_MANY), "{text}");
        }
        assert!(picked(NAME, r#"{"a":[}"#).is_err(), "it has to be JSON nevertheless");
    }

    fn owned(room: usize, text: &str) -> Result<Value, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Owning { room: &mut { room } }.deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    #[test]
    fn owned_value_is_that_of_the_json_library_within_its_room() {
        for (text, values) in [
            ("null", 1),
            ("-5", 1),
            ("18446744073709551615", 1),
            ("1.5e3", 1),
            (r#""a\u00e9\n""#, 1),
            ("[]", 1),
            (r#"[1,[true,{}]]"#, 5),
            (r#"{"a":{"b":[null,"c"]},"a":2,"d":false}"#, 7),
        ] {
            assert_eq!(owned(values, text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
            let error = owned(values - 1, text).unwrap_err().to_string();
            assert!(error.starts_with(TOO_MANY), "{text}: {error}");
        }
        assert!(owned(9, r#"{"a":[}"#).is_err());
    }
}
